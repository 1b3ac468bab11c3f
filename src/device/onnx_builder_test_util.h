// Writes tiny ONNX models for tests, without the onnx library: the few protobuf messages of
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto that a small graph needs.
//
//   OnnxBuilder(16).input("x", {1, 3}).node("Relu", {"x"}, {"y"}).output("y", {1, 3}).save(file);
#pragma once

#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/file.h"
#include "core/tensor.h"

namespace newscaster::test {

// An empty folder of its own, removed with everything in it at the end of the test.
class TempFolder {
  public:
    TempFolder() {
        static std::atomic<int> counter{0};
        path_ = std::filesystem::temp_directory_path() /
                ("newscaster_test_" + std::to_string(::getpid()) + "_" + std::to_string(counter++));
        std::filesystem::create_directories(path_);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

// One protobuf message as bytes.
class ProtoMessage {
  public:
    ProtoMessage& varint(int field, int64_t value) {
        key(field, 0);
        raw_varint(static_cast<uint64_t>(value));
        return *this;
    }
    ProtoMessage& f32(int field, float value) {
        key(field, 5);
        append(&value, sizeof(value));
        return *this;
    }
    ProtoMessage& bytes(int field, std::string_view value) {
        key(field, 2);
        raw_varint(value.size());
        bytes_ += value;
        return *this;
    }
    ProtoMessage& message(int field, const ProtoMessage& value) {
        return bytes(field, value.bytes_);
    }
    [[nodiscard]] const std::string& str() const { return bytes_; }

  private:
    void key(int field, uint64_t wire_type) {
        raw_varint(static_cast<uint64_t>(field) << 3U | wire_type);
    }
    void raw_varint(uint64_t value) {
        for (; value >= 128; value >>= 7U) bytes_ += static_cast<char>(value | 128U);
        bytes_ += static_cast<char>(value);
    }
    void append(const void* data, size_t size) {
        bytes_.append(static_cast<const char*>(data), size);
    }

    std::string bytes_;
};

using OnnxAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
using OnnxAttributes = std::map<std::string, OnnxAttribute>;

class OnnxBuilder {
  public:
    explicit OnnxBuilder(int64_t opset = 16) : opset_(opset) {}

    // An extent of -1 is dynamic.
    OnnxBuilder& input(const std::string& name, const Shape& shape, DType dtype = DType::f32) {
        graph_.message(11, value_info(name, shape, dtype));
        return *this;
    }
    OnnxBuilder& output(const std::string& name, const Shape& shape, DType dtype = DType::f32) {
        graph_.message(12, value_info(name, shape, dtype));
        return *this;
    }
    template <typename T>
    OnnxBuilder& constant(const std::string& name, const Shape& shape,
                          const std::vector<T>& values) {
        ProtoMessage tensor;
        for (const int64_t extent : shape) tensor.varint(1, extent);
        tensor.varint(2, onnx_type(DTypeOf<T>::kValue)).bytes(8, name);
        tensor.bytes(9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
        graph_.message(5, tensor);
        return *this;
    }
    OnnxBuilder& node(const std::string& op_type, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs,
                      const OnnxAttributes& attributes = {}) {
        ProtoMessage node;
        for (const auto& name : inputs) node.bytes(1, name);
        for (const auto& name : outputs) node.bytes(2, name);
        node.bytes(3, op_type + "_" + outputs.at(0)).bytes(4, op_type);
        for (const auto& [name, value] : attributes) node.message(5, attribute(name, value));
        graph_.message(1, node);
        return *this;
    }

    [[nodiscard]] std::string bytes() const {
        ProtoMessage graph = graph_;
        graph.bytes(2, "graph");
        const ProtoMessage opset = ProtoMessage().bytes(1, "").varint(2, opset_);
        return ProtoMessage().varint(1, 8).message(7, graph).message(8, opset).str();
    }
    std::filesystem::path save(const std::filesystem::path& file) const {
        write_text_atomic(file, bytes());
        return file;
    }

  private:
    static int64_t onnx_type(DType dtype) {
        switch (dtype) {
            case DType::f32:
                return 1;
            case DType::u8:
                return 2;
            case DType::i32:
                return 6;
            case DType::i64:
                return 7;
            case DType::f16:
                return 10;
            case DType::f64:
                return 11;
            default:
                throw std::invalid_argument("OnnxBuilder: element type not needed so far");
        }
    }
    static ProtoMessage value_info(const std::string& name, const Shape& shape, DType dtype) {
        ProtoMessage extents;
        for (const int64_t extent : shape) {
            ProtoMessage dimension;
            if (extent < 0) {
                dimension.bytes(2, "dynamic");
            } else {
                dimension.varint(1, extent);
            }
            extents.message(1, dimension);
        }
        const ProtoMessage tensor = ProtoMessage().varint(1, onnx_type(dtype)).message(2, extents);
        return ProtoMessage().bytes(1, name).message(2, ProtoMessage().message(1, tensor));
    }
    static ProtoMessage attribute(const std::string& name, const OnnxAttribute& value) {
        ProtoMessage message;
        message.bytes(1, name);
        if (const auto* f = std::get_if<float>(&value)) {
            message.f32(2, *f).varint(20, 1);
        } else if (const auto* i = std::get_if<int64_t>(&value)) {
            message.varint(3, *i).varint(20, 2);
        } else if (const auto* s = std::get_if<std::string>(&value)) {
            message.bytes(4, *s).varint(20, 3);
        } else {
            for (const int64_t i64 : std::get<std::vector<int64_t>>(value)) message.varint(8, i64);
            message.varint(20, 7);
        }
        return message;
    }

    int64_t opset_;
    ProtoMessage graph_;
};

}  // namespace newscaster::test

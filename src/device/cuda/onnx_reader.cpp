#include "device/cuda/onnx_reader.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "core/file.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

constexpr size_t kMaxRank = 8;

// ONNX's TensorProto.DataType.
constexpr std::array<std::pair<int64_t, DType>, 9> kTypes{{{1, DType::f32},
                                                           {2, DType::u8},
                                                           {3, DType::i8},
                                                           {6, DType::i32},
                                                           {7, DType::i64},
                                                           {9, DType::boolean},
                                                           {10, DType::f16},
                                                           {11, DType::f64},
                                                           {16, DType::bf16}}};

// One message, read field by field; every access is checked against its end.
class Message {
  public:
    Message(std::span<const std::byte> bytes, const std::string& origin)
        : bytes_(bytes), origin_(origin) {}

    // Moves to the next field; false at the end.
    bool next() {
        if (at_ == bytes_.size()) return false;
        const uint64_t key = varint();
        field_ = key >> 3U;
        const uint64_t wire = key & 7U;
        value_ = 0;
        payload_ = {};
        if (wire == 0) {
            value_ = varint();
        } else if (wire == 1) {
            payload_ = take(8);
        } else if (wire == 2) {
            payload_ = take(varint());
        } else if (wire == 5) {
            payload_ = take(4);
        } else {
            fail("unknown wire type");
        }
        wire_ = wire;
        return true;
    }
    [[nodiscard]] uint64_t field() const { return field_; }
    [[nodiscard]] int64_t integer() const { return static_cast<int64_t>(value_); }
    [[nodiscard]] std::string text() const {
        return {reinterpret_cast<const char*>(payload_.data()), payload_.size()};
    }
    [[nodiscard]] std::span<const std::byte> payload() const { return payload_; }
    [[nodiscard]] Message message() const {
        if (wire_ != 2) fail("a field of the wrong kind");
        return {payload_, origin_};
    }
    [[nodiscard]] float number() const { return fixed<float>(payload_); }

    // A repeated field, packed or not.
    void append(std::vector<int64_t>& target) const {
        if (wire_ == 0) {
            target.push_back(integer());
            return;
        }
        Message list(payload_, origin_);
        while (list.at_ < list.bytes_.size()) {
            target.push_back(static_cast<int64_t>(list.varint()));
        }
    }
    template <typename T>
    void append(std::vector<T>& target) const {
        if (payload_.size() % sizeof(T) != 0) fail("a list of the wrong length");
        for (size_t i = 0; i < payload_.size(); i += sizeof(T)) {
            target.push_back(fixed<T>(payload_.subspan(i, sizeof(T))));
        }
    }

    [[noreturn]] void fail(const std::string& fault) const {
        throw Error(ErrorCode::bad_pack,
                    fmt::format("{}: found {}, wanted an ONNX model", origin_, fault));
    }
    [[nodiscard]] const std::string& origin() const { return origin_; }

  private:
    template <typename T>
    [[nodiscard]] T fixed(std::span<const std::byte> bytes) const {
        if (bytes.size() != sizeof(T)) fail("a field of the wrong kind");
        T value{};
        std::memcpy(&value, bytes.data(), sizeof(T));
        return value;
    }
    uint64_t varint() {
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (at_ == bytes_.size()) fail("a truncated number");
            const auto byte = static_cast<uint64_t>(bytes_[at_++]);
            value |= (byte & 127U) << shift;
            if (byte < 128) return value;
        }
        fail("an overlong number");
    }
    std::span<const std::byte> take(uint64_t size) {
        if (size > bytes_.size() - at_) fail("a truncated field");
        const auto part = bytes_.subspan(at_, size);
        at_ += size;
        return part;
    }

    std::span<const std::byte> bytes_;
    const std::string& origin_;
    size_t at_ = 0;
    uint64_t field_ = 0;
    uint64_t wire_ = 0;
    uint64_t value_ = 0;
    std::span<const std::byte> payload_;
};

DType dtype_of(int64_t type, const Message& where, const std::string& tensor) {
    for (const auto& [onnx, ours] : kTypes) {
        if (onnx == type) return ours;
    }
    where.fail(fmt::format("tensor '{}' with element type {}", tensor, type));
}

// Typed lists hold small types as int32, and f16 by its bits.
void fill_from_lists(Tensor& tensor, const std::vector<int64_t>& integers,
                     const std::vector<float>& floats, const std::vector<double>& doubles,
                     const Message& where) {
    const auto count = static_cast<size_t>(tensor.size());
    const auto store = [&](size_t i, const auto value) {
        std::memcpy(tensor.data() + i * sizeof(value), &value, sizeof(value));
    };
    const size_t found = std::max({integers.size(), floats.size(), doubles.size()});
    if (found != count) {
        where.fail(fmt::format("a tensor of {} values for {}", found, to_string(tensor.shape())));
    }
    for (size_t i = 0; i < count; ++i) {
        if (!floats.empty()) {
            if (tensor.dtype() != DType::f32) where.fail("a tensor's values of the wrong type");
            store(i, floats[i]);
        } else if (!doubles.empty()) {
            if (tensor.dtype() != DType::f64) where.fail("a tensor's values of the wrong type");
            store(i, doubles[i]);
        } else {
            switch (size_of(tensor.dtype())) {
                case 1:
                    store(i, static_cast<uint8_t>(integers[i]));
                    break;
                case 2:
                    store(i, static_cast<uint16_t>(integers[i]));
                    break;
                case 4:
                    store(i, static_cast<int32_t>(integers[i]));
                    break;
                default:
                    store(i, integers[i]);
            }
        }
    }
}

std::pair<std::string, TensorPtr> read_tensor(Message message) {
    Shape shape;
    int64_t type = 0;
    std::string name;
    std::optional<std::span<const std::byte>> raw;
    std::vector<int64_t> integers;
    std::vector<float> floats;
    std::vector<double> doubles;
    while (message.next()) {
        switch (message.field()) {
            case 1:
                message.append(shape);
                break;
            case 2:
                type = message.integer();
                break;
            case 4:
                message.append(floats);
                break;
            case 5:
            case 7:
                message.append(integers);
                break;
            case 8:
                name = message.text();
                break;
            case 9:
                raw = message.payload();
                break;
            case 10:
                message.append(doubles);
                break;
            case 14:
                if (message.integer() != 0) message.fail("a tensor in another file");
                break;
            default:
                break;
        }
    }
    if (shape.size() > kMaxRank) message.fail(fmt::format("rank {}", shape.size()));
    const DType dtype = dtype_of(type, message, name);
    const auto count = static_cast<uint64_t>(element_count(shape));
    const size_t held = raw ? raw->size() / size_of(dtype)
                            : std::max({integers.size(), floats.size(), doubles.size()});
    if (count != held || (raw && raw->size() % size_of(dtype) != 0)) {
        message.fail(fmt::format("tensor '{}' of {} values for {}", name, held, to_string(shape)));
    }
    auto tensor = std::make_shared<Tensor>(dtype, shape);
    if (raw) {
        if (!raw->empty()) std::memcpy(tensor->data(), raw->data(), raw->size());
    } else {
        fill_from_lists(*tensor, integers, floats, doubles, message);
    }
    return {name, tensor};
}

std::pair<std::string, Attribute> read_attribute(Message message) {
    std::string name;
    Attribute value;
    while (message.next()) {
        switch (message.field()) {
            case 1:
                name = message.text();
                break;
            case 2:
                value.number = message.number();
                break;
            case 3:
                value.integer = message.integer();
                break;
            case 4:
                value.text = message.text();
                break;
            case 5:
                value.tensor = read_tensor(message.message()).second;
                break;
            case 7:
                message.append(value.numbers);
                break;
            case 8:
                message.append(value.integers);
                break;
            case 6:
            case 11:
                message.fail("a subgraph");
            default:
                break;
        }
    }
    return {name, value};
}

OnnxNode read_node(Message message) {
    OnnxNode node;
    std::string domain;
    while (message.next()) {
        switch (message.field()) {
            case 1:
                node.inputs.push_back(message.text());
                break;
            case 2:
                node.outputs.push_back(message.text());
                break;
            case 3:
                node.name = message.text();
                break;
            case 4:
                node.op = message.text();
                break;
            case 5:
                node.attributes.insert(read_attribute(message.message()));
                break;
            case 7:
                domain = message.text();
                break;
            default:
                break;
        }
    }
    if (!domain.empty() && domain != "ai.onnx") node.op = domain + "::" + node.op;
    if (node.name.empty() && !node.outputs.empty()) node.name = node.outputs.front();
    return node;
}

Shape read_shape(Message message) {
    Shape shape;
    while (message.next()) {
        if (message.field() != 1) continue;
        Message extent = message.message();
        shape.push_back(-1);
        while (extent.next()) {
            if (extent.field() == 1) shape.back() = extent.integer();
        }
    }
    return shape;
}

TensorInfo read_port(Message message) {
    TensorInfo info;
    int64_t type = 0;
    while (message.next()) {
        if (message.field() == 1) info.name = message.text();
        if (message.field() != 2) continue;
        Message value_type = message.message();
        while (value_type.next()) {
            if (value_type.field() != 1) continue;
            Message tensor_type = value_type.message();
            while (tensor_type.next()) {
                if (tensor_type.field() == 1) type = tensor_type.integer();
                if (tensor_type.field() == 2) info.shape = read_shape(tensor_type.message());
            }
        }
    }
    info.dtype = dtype_of(type, message, info.name);
    return info;
}

void read_graph(Message message, OnnxModel& model) {
    while (message.next()) {
        switch (message.field()) {
            case 1:
                model.nodes.push_back(read_node(message.message()));
                break;
            case 5:
                model.initializers.insert(read_tensor(message.message()));
                break;
            case 11:
                model.inputs.push_back(read_port(message.message()));
                break;
            case 12:
                model.outputs.push_back(read_port(message.message()));
                break;
            case 15:
                message.fail("a sparse tensor");
            default:
                break;
        }
    }
    std::erase_if(model.inputs,
                  [&](const TensorInfo& info) { return model.initializers.contains(info.name); });
}

}  // namespace

OnnxModel parse_onnx(std::span<const std::byte> bytes, const std::string& origin) {
    OnnxModel model;
    Message message(bytes, origin);
    bool has_graph = false;
    while (message.next()) {
        if (message.field() == 7) {
            read_graph(message.message(), model);
            has_graph = true;
        } else if (message.field() == 8) {
            Message opset = message.message();
            std::string domain;
            int64_t version = 0;
            while (opset.next()) {
                if (opset.field() == 1) domain = opset.text();
                if (opset.field() == 2) version = opset.integer();
            }
            if (domain.empty() || domain == "ai.onnx") model.opset = version;
        }
    }
    if (!has_graph || model.opset == 0) message.fail("no graph or no opset");
    if (model.outputs.empty()) message.fail("a graph without outputs");
    return model;
}

OnnxModel read_onnx(const std::filesystem::path& file) {
    return parse_onnx(read_file(file), file.string());
}

}  // namespace newscaster::device::cuda

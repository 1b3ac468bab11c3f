#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "core/bounded_queue.h"
#include "core/file.h"
#include "core/json_reader.h"
#include "core/safetensors.h"
#include "core/tensor.h"
#include "newscaster/error.h"
#include "newscaster/types.h"

namespace newscaster {
namespace {

namespace fs = std::filesystem;

fs::path scratch(const std::string& name) {
    fs::path folder = fs::path(testing::TempDir()) / "newscaster_core" / name;
    fs::remove_all(folder);
    fs::create_directories(folder);
    return folder;
}

std::string error_text(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(FramesCovering, RoundsUpExactly) {
    EXPECT_EQ(frames_covering(0, 16000, {25, 1}), 0);
    EXPECT_EQ(frames_covering(1, 16000, {25, 1}), 1);
    EXPECT_EQ(frames_covering(640, 16000, {25, 1}), 1);
    EXPECT_EQ(frames_covering(641, 16000, {25, 1}), 2);
    EXPECT_EQ(frames_covering(223040, 16000, {25, 1}), 349);  // 13.94 s
    EXPECT_EQ(frames_covering(44100LL * 60, 44100, {30000, 1001}), 1799);
    EXPECT_EQ(frames_covering(192000LL * 3600 * 3, 192000, {30000, 1001}), 323677);
}

TEST(Half, RoundTripsEveryFiniteValue) {
    for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const float value = half_to_float(static_cast<uint16_t>(bits));
        if (std::isnan(value)) continue;
        EXPECT_EQ(float_to_half(value), bits) << bits;
    }
}

TEST(Half, RoundsToNearestEven) {
    EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3C00);  // tie -> even
    EXPECT_EQ(float_to_half(1.0F + 0x1p-11F + 0x1p-20F), 0x3C01);
    EXPECT_EQ(float_to_half(65520.0F), 0x7C00);  // above the largest half
    EXPECT_EQ(float_to_half(0x1p-25F), 0x0000);  // tie -> even
    EXPECT_EQ(float_to_half(std::numeric_limits<float>::infinity()), 0x7C00);
    EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
}

TEST(Tensor, ConvertsAndGuardsTypes) {
    const std::vector<uint8_t> values{0, 128, 255};
    const Tensor bytes = Tensor::of<uint8_t>({3}, values);
    EXPECT_THROW((void)bytes.as<float>(), Error);
    const Tensor floats = bytes.to_f32();
    EXPECT_EQ(floats.as<float>()[2], 255.0F);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(floats.data()) % 64, 0U);
}

TEST(Tensor, RefusesHugeShapes) {
    EXPECT_THROW((void)element_count({1LL << 40, 1LL << 40}), Error);
    EXPECT_THROW((void)element_count({2, -1}), Error);
}

TEST(Safetensors, RoundTripsRandomTensors) {
    std::mt19937 random(7);
    TensorMap tensors;
    for (int i = 0; i < 20; ++i) {
        Tensor tensor(DType::f32, {static_cast<int64_t>(random() % 5), 3});
        for (float& value : tensor.as<float>()) value = static_cast<float>(random());
        tensors.emplace("tensor " + std::to_string(i), std::move(tensor));
    }
    const fs::path file = scratch("safetensors") / "t.safetensors";
    write_safetensors(file, tensors);
    const TensorMap read = read_safetensors(file);
    ASSERT_EQ(read.size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
        const Tensor& other = read.at(name);
        EXPECT_EQ(other.shape(), tensor.shape());
        EXPECT_EQ(std::memcmp(other.data(), tensor.data(), tensor.bytes()), 0);
    }
}

TEST(Safetensors, EveryTruncationAndBitFlipIsRefusedOrHarmless) {
    TensorMap tensors;
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    tensors.emplace("a", Tensor::of<float>({2, 3}, values));
    const fs::path file = scratch("fuzz") / "t.safetensors";
    write_safetensors(file, tensors);
    const auto bytes = read_file(file);
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
        EXPECT_THROW((void)parse_safetensors({bytes.data(), cut}, "t"), Error) << cut;
    }
    for (size_t bit = 0; bit < (bytes.size() - values.size() * 4) * 8; ++bit) {
        auto flipped = bytes;
        flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        try {
            (void)parse_safetensors(flipped, "t");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_pack);
        }
    }
}

TEST(JsonReader, NamesPathFoundAndWanted) {
    const auto document = JsonReader::parse(R"({"a": {"n": 7, "rate": "30000/1001"}})", "p.json",
                                            ErrorCode::bad_pack);
    const JsonReader root(document, "p.json", ErrorCode::bad_pack);
    EXPECT_EQ(root.at("a").at("n").integer(0, 10), 7);
    EXPECT_EQ(root.at("a").at("rate").rational().num, 30000);
    EXPECT_EQ(error_text([&] { (void)root.at("a").at("n").integer(0, 5); }),
              "p.json: a.n: found 7, wanted an integer from 0 to 5");
    EXPECT_EQ(error_text([&] { (void)root.at("a").at("m"); }), "p.json: a.m: missing");
    EXPECT_EQ(error_text([&] { root.at("a").expect_keys({"n"}); }),
              "p.json: a.rate: unknown key, known here: n");
}

TEST(JsonReader, RefusesBadRates) {
    for (const char* text : {"\"25/0\"", "\"/1\"", "\"25/1x\"", "0", "\"-25/1\"", "2.5"}) {
        const auto document = JsonReader::parse(text, "r", ErrorCode::bad_input);
        EXPECT_THROW((void)JsonReader(document, "r", ErrorCode::bad_input).rational(), Error)
            << text;
    }
}

TEST(AtomicFile, AppearsOnlyOnCommit) {
    const fs::path folder = scratch("atomic");
    const fs::path file = folder / "new" / "out.bin";
    {
        const AtomicFile abandoned(file);
        EXPECT_FALSE(fs::exists(file));
        EXPECT_TRUE(fs::exists(abandoned.temporary()));
    }
    EXPECT_TRUE(fs::is_empty(folder / "new"));
    write_text_atomic(file, "hello");
    EXPECT_EQ(read_text(file), "hello");
    EXPECT_EQ(sha256_of_file(file),
              "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
}

TEST(AtomicFile, SaysWhyAPlaceIsNotWritable) {
    EXPECT_THROW(AtomicFile("/proc/newscaster/out.mp4"), Error);
    EXPECT_THROW(AtomicFile(scratch("folder")), Error);
    EXPECT_THROW(AtomicFile("/dev/null"), Error);
}

TEST(AtomicFolder, AppearsOnlyOnCommit) {
    const fs::path parent = scratch("atomic_folder");
    const fs::path folder = parent / "out";
    {
        const AtomicFolder abandoned(folder);
        write_text_atomic(abandoned.temporary() / "a.txt", "a");
        EXPECT_FALSE(fs::exists(folder));
    }
    EXPECT_TRUE(fs::is_empty(parent));
    fs::create_directory(folder);
    AtomicFolder first(folder / "");  // a trailing slash is the same, still empty folder
    write_text_atomic(first.temporary() / "a.txt", "a");
    first.commit();
    EXPECT_EQ(read_text(folder / "a.txt"), "a");
    EXPECT_THROW(AtomicFolder{folder}, Error);
    EXPECT_THROW((AtomicFolder{folder / "a.txt", AtomicFolder::Existing::replace}), Error);
    {
        const AtomicFolder abandoned(folder, AtomicFolder::Existing::replace);
        EXPECT_EQ(read_text(folder / "a.txt"), "a");
    }
    AtomicFolder second(folder, AtomicFolder::Existing::replace);
    write_text_atomic(second.temporary() / "b.txt", "b");
    second.commit();
    EXPECT_FALSE(fs::exists(folder / "a.txt"));
    EXPECT_EQ(read_text(folder / "b.txt"), "b");
    EXPECT_EQ(std::distance(fs::directory_iterator(parent), {}), 1);
    EXPECT_THROW(AtomicFolder("/proc/newscaster"), Error);
}

TEST(BoundedQueue, KeepsOrderBlocksAndDrains) {
    BoundedQueue<int> queue(2);
    std::jthread producer([&](const std::stop_token& stop) {
        for (int i = 0; i < 1000; ++i) queue.push(i, stop);
        queue.close();
    });
    const std::stop_token never;
    for (int i = 0; i < 1000; ++i) {
        EXPECT_LE(queue.size(), 2U);
        EXPECT_EQ(queue.pop(never), i);
    }
    EXPECT_EQ(queue.pop(never), std::nullopt);
    EXPECT_FALSE(queue.push(1, never));
}

TEST(BoundedQueue, StopWakesBothSides) {
    BoundedQueue<int> queue(1);
    std::jthread consumer([&](const std::stop_token& stop) { EXPECT_FALSE(queue.pop(stop)); });
    consumer.request_stop();
    consumer.join();
    queue.push(1, {});
    std::jthread producer([&](const std::stop_token& stop) { EXPECT_FALSE(queue.push(2, stop)); });
    producer.request_stop();
}

}  // namespace
}  // namespace newscaster

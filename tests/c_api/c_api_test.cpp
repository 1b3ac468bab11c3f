// The C API's own duties: codes, messages, NULLs, options. Rendering is the C++ API's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "newscaster/newscaster.h"

namespace {

const std::string kRoot = NEWSCASTER_SOURCE_DIR;

class CApi : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(
            newscaster_engine_create((kRoot + "/packs/studio").c_str(), nullptr, &engine_, &error_),
            NEWSCASTER_OK)
            << error_.message;
        ASSERT_EQ(
            newscaster_avatar_load(engine_, (kRoot + "/avatars/anna").c_str(), &avatar_, &error_),
            NEWSCASTER_OK)
            << error_.message;
    }
    void TearDown() override {
        newscaster_avatar_destroy(avatar_);
        newscaster_engine_destroy(engine_);
    }

    // Pictures of one frame of silence, luma only.
    std::vector<std::vector<uint8_t>> play(const newscaster_session_options& options) {
        std::vector<std::vector<uint8_t>> pictures;
        const auto keep = [](const newscaster_frame* frame, void* user) {
            static_cast<std::vector<std::vector<uint8_t>>*>(user)->emplace_back(
                frame->y, frame->y + static_cast<ptrdiff_t>(frame->y_stride) * frame->height);
            return 0;
        };
        newscaster_session* session = nullptr;
        EXPECT_EQ(
            newscaster_session_open(engine_, avatar_, &options, keep, &pictures, &session, &error_),
            NEWSCASTER_OK)
            << error_.message;
        const std::vector<float> silence(640);
        EXPECT_EQ(newscaster_session_push_audio(session, silence.data(), silence.size(), &error_),
                  NEWSCASTER_OK);
        EXPECT_EQ(newscaster_session_close(session, &error_), NEWSCASTER_OK);
        EXPECT_EQ(newscaster_session_wait(session, &error_), NEWSCASTER_OK) << error_.message;
        newscaster_session_destroy(session);
        return pictures;
    }

    newscaster_engine* engine_ = nullptr;
    newscaster_avatar* avatar_ = nullptr;
    newscaster_error error_{};
};

TEST_F(CApi, ControlsAndCharacterAreTaken) {
    const auto plain = play({});
    ASSERT_EQ(plain.size(), 1U);
    newscaster_session_options turned{};
    turned.controls_json = R"({"pose_offset_deg": {"yaw": 15}})";
    turned.character = avatar_;
    const auto other = play(turned);
    ASSERT_EQ(other.size(), 1U);
    EXPECT_NE(other, plain);
    newscaster_session_options itself{};
    itself.character = avatar_;
    EXPECT_EQ(play(itself), plain);
}

TEST_F(CApi, RefusalsHaveCodeAndMessage) {
    const auto ignore = [](const newscaster_frame*, void*) { return 0; };
    newscaster_session_options options{};
    options.controls_json = "{\"pose\": 1}";
    newscaster_session* session = nullptr;
    EXPECT_EQ(
        newscaster_session_open(engine_, avatar_, &options, ignore, nullptr, &session, &error_),
        NEWSCASTER_BAD_INPUT);
    EXPECT_NE(std::string(error_.message).find("controls_json"), std::string::npos)
        << error_.message;
    EXPECT_EQ(session, nullptr);
    EXPECT_EQ(
        newscaster_session_open(engine_, avatar_, nullptr, nullptr, nullptr, &session, &error_),
        NEWSCASTER_BAD_INPUT);
    EXPECT_EQ(newscaster_avatar_load(engine_, "/no/such", nullptr, nullptr), NEWSCASTER_BAD_INPUT);
}

}  // namespace

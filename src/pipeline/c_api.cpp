// The one place where exceptions become codes for C callers.
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "newscaster/engine.h"
#include "newscaster/newscaster.h"

struct newscaster_engine {
    newscaster::Engine engine;
};

struct newscaster_avatar {
    newscaster::AvatarPtr avatar;
};

struct newscaster_session {
    std::unique_ptr<newscaster::Session> session;
};

namespace {

using newscaster::Error;
using newscaster::ErrorCode;

template <size_t Size>
void copy_text(char (&target)[Size], std::string_view text) {
    const size_t length = std::min(text.size(), Size - 1);
    std::memcpy(target, text.data(), length);
    target[length] = '\0';
}

newscaster_code report(newscaster_error* error, ErrorCode code, std::string_view stage,
                       std::string_view message) {
    const auto value = static_cast<newscaster_code>(code);
    if (error != nullptr) {
        error->code = value;
        copy_text(error->stage, stage);
        copy_text(error->message, message);
    }
    return value;
}

template <typename Work>
newscaster_code guarded(newscaster_error* error, Work work) noexcept {
    try {
        work();
    } catch (const Error& failure) {
        return report(error, failure.code(), failure.stage(), failure.what());
    } catch (const std::exception& failure) {
        return report(error, ErrorCode::runtime, "", failure.what());
    } catch (...) {
        return report(error, ErrorCode::runtime, "", "unknown error");
    }
    if (error != nullptr) *error = {};
    return NEWSCASTER_OK;
}

void require(const void* pointer, const char* name) {
    if (pointer == nullptr) {
        throw Error(ErrorCode::bad_input, std::string(name) + " is NULL");
    }
}

// Zero-filled options mean the defaults.
int cadence_stride(int stride) {
    if (stride == 0) return newscaster::CadenceOptions{}.stride;
    return stride == NEWSCASTER_STRIDE_ADAPTIVE ? 0 : stride;
}

std::string text_or(const char* text, const char* fallback) {
    return text != nullptr ? text : fallback;
}

}  // namespace

const char* newscaster_version(void) {
    return NEWSCASTER_VERSION;
}

newscaster_code newscaster_engine_create(const char* pack_dir,
                                         const newscaster_engine_options* options,
                                         newscaster_engine** out, newscaster_error* error) {
    return guarded(error, [&] {
        require(pack_dir, "pack_dir");
        require(out, "out");
        newscaster::EngineOptions engine_options;
        engine_options.pack = pack_dir;
        if (options != nullptr) {
            engine_options.provider = text_or(options->provider, "auto");
            engine_options.precision = text_or(options->precision, "auto");
            engine_options.cache_dir = text_or(options->cache_dir, "");
            engine_options.threads = options->threads;
            engine_options.frames_in_flight = options->frames_in_flight;
            engine_options.use_cache = options->no_cache == 0;
        }
        *out = new newscaster_engine{newscaster::Engine(engine_options)};
    });
}

void newscaster_engine_destroy(newscaster_engine* engine) {
    delete engine;
}

newscaster_engine_info newscaster_engine_get_info(const newscaster_engine* engine) {
    if (engine == nullptr) return {};
    const auto& info = engine->engine.info();
    return {info.sample_rate_hz, info.fps.num, info.fps.den};
}

newscaster_code newscaster_avatar_load(const newscaster_engine* engine, const char* avatar_dir,
                                       newscaster_avatar** out, newscaster_error* error) {
    return guarded(error, [&] {
        require(engine, "engine");
        require(avatar_dir, "avatar_dir");
        require(out, "out");
        *out = new newscaster_avatar{engine->engine.load_avatar(avatar_dir)};
    });
}

void newscaster_avatar_destroy(newscaster_avatar* avatar) {
    delete avatar;
}

newscaster_code newscaster_session_open(const newscaster_engine* engine,
                                        const newscaster_avatar* avatar,
                                        const newscaster_session_options* options,
                                        newscaster_frame_callback on_frame, void* user,
                                        newscaster_session** out, newscaster_error* error) {
    return guarded(error, [&] {
        require(engine, "engine");
        require(avatar, "avatar");
        require(reinterpret_cast<const void*>(on_frame), "on_frame");
        require(out, "out");
        newscaster::SessionOptions session_options;
        if (options != nullptr) {
            if (options->steps != 0) session_options.steps = options->steps;
            if (options->seed != nullptr) session_options.seed = *options->seed;
            session_options.emotion = text_or(options->emotion, "");
            session_options.cadence.stride = cadence_stride(options->stride);
            if (options->stride_frame_mode != 0) {
                session_options.cadence.mode = newscaster::StrideMode::frame;
            }
            session_options.smooth_pose = options->smooth_pose != 0;
            session_options.max_angular_acceleration = options->max_angular_acceleration;
            if (options->controls_json != nullptr) {
                session_options.controls =
                    newscaster::parse_controls(options->controls_json, "controls_json");
            }
            if (options->character != nullptr) {
                session_options.character = options->character->avatar;
            }
        }
        newscaster::SessionCallbacks callbacks;
        callbacks.on_frame = [on_frame, user](const newscaster::VideoFramePtr& frame) {
            const newscaster_frame view{frame->index,    frame->timestamp_s, frame->width,
                                        frame->height,   frame->y,           frame->uv,
                                        frame->y_stride, frame->uv_stride};
            return on_frame(&view, user) == 0;
        };
        *out = new newscaster_session{
            engine->engine.open_session(avatar->avatar, session_options, std::move(callbacks))};
    });
}

newscaster_code newscaster_session_push_audio(newscaster_session* session, const float* samples,
                                              size_t count, newscaster_error* error) {
    return guarded(error, [&] {
        require(session, "session");
        if (count == 0) return;
        require(samples, "samples");
        session->session->push_audio({samples, count});
    });
}

newscaster_code newscaster_session_close(newscaster_session* session, newscaster_error* error) {
    return guarded(error, [&] {
        require(session, "session");
        session->session->close();
    });
}

newscaster_code newscaster_session_wait(newscaster_session* session, newscaster_error* error) {
    return guarded(error, [&] {
        require(session, "session");
        session->session->wait();
    });
}

void newscaster_session_cancel(newscaster_session* session) {
    if (session != nullptr) session->session->cancel();
}

void newscaster_session_destroy(newscaster_session* session) {
    delete session;
}

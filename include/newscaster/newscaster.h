/* C API of newscaster: push speech samples, receive NV12 frames.
 *
 * Every function returns a code (NEWSCASTER_OK = 0) and, on failure, fills `error` when it is not
 * NULL. Handles are opaque; free each with its _destroy function, sessions before their avatar and
 * engine is not required (they keep what they need alive). Strings are UTF-8.
 * Thread-safety: engines and avatars may be used from any thread; a session's push/close/wait from
 * one thread, cancel from any. Frame callbacks come from a thread of the session, in order.
 */
#ifndef NEWSCASTER_NEWSCASTER_H_
#define NEWSCASTER_NEWSCASTER_H_

#include <stddef.h>
#include <stdint.h>

#include "newscaster/export.h"

/* C knows no `using`, and the prefix is its namespace. */
/* NOLINTBEGIN(modernize-use-using, readability-identifier-naming) */

#ifdef __cplusplus
extern "C" {
#endif

/* The same numbers as the program's exit codes. */
typedef enum newscaster_code {
    NEWSCASTER_OK = 0,
    NEWSCASTER_RUNTIME = 1,
    NEWSCASTER_BAD_INPUT = 2,
    NEWSCASTER_BAD_PACK = 3,
    NEWSCASTER_DEVICE_UNAVAILABLE = 4,
    NEWSCASTER_IO = 5,
    NEWSCASTER_CANCELLED = 130
} newscaster_code;

#define NEWSCASTER_MESSAGE_BYTES 512

typedef struct newscaster_error {
    newscaster_code code;
    char stage[32];                         /* "" outside the pipeline */
    char message[NEWSCASTER_MESSAGE_BYTES]; /* one line, cut to fit */
} newscaster_error;

typedef struct newscaster_engine newscaster_engine;
typedef struct newscaster_avatar newscaster_avatar;
typedef struct newscaster_session newscaster_session;

/* Zero-initialise, then set what differs: {0} means every default. */
typedef struct newscaster_engine_options {
    const char* provider;  /* NULL = best that runs here; "cpu" */
    const char* precision; /* NULL = best; "f32", "bf16", "f16", "int8" */
    const char* cache_dir; /* NULL = default place */
    int threads;           /* 0 = all cores */
    int frames_in_flight;  /* 0 = one per thread */
    int no_cache;          /* 1 = do not keep compiled graphs */
} newscaster_engine_options;

typedef struct newscaster_engine_info {
    int64_t sample_rate_hz; /* of newscaster_session_push_audio */
    int64_t fps_num;
    int64_t fps_den;
} newscaster_engine_info;

#define NEWSCASTER_STRIDE_ADAPTIVE (-1)

typedef struct newscaster_session_options {
    int64_t steps;        /* diffusion steps; 0 = the pack's default */
    const uint64_t* seed; /* NULL = the pack's default */
    const char* emotion;  /* NULL = the pack's default */
    /* JSON text of docs/controls.md; NULL = no controls. */
    const char* controls_json;
    /* Whose eyes, keypoints and scale the motion is made for; NULL = the avatar itself. */
    const newscaster_avatar* character;
    int stride;            /* keyframe every n frames: 1 .. 3, NEWSCASTER_STRIDE_ADAPTIVE; 0 = 1 */
    int stride_frame_mode; /* nonzero: frames in between from pictures instead of features */
    int smooth_pose;       /* nonzero: smoother head pose and translation, two frames later */
    double max_angular_acceleration; /* of pitch, yaw and roll, rad/s^2; 0 = no bound */
} newscaster_session_options;

/* NV12, BT.709, limited range. The planes are valid during the callback only. */
typedef struct newscaster_frame {
    int64_t index;
    double timestamp_s;
    int width;
    int height;
    const uint8_t* y;
    const uint8_t* uv;
    int y_stride;
    int uv_stride;
} newscaster_frame;

/* Return 0 to go on, anything else to cancel the session. */
typedef int (*newscaster_frame_callback)(const newscaster_frame* frame, void* user);

/* "0.1.0", static. */
NEWSCASTER_EXPORT const char* newscaster_version(void);

/* options may be NULL. */
NEWSCASTER_EXPORT newscaster_code newscaster_engine_create(const char* pack_dir,
                                                           const newscaster_engine_options* options,
                                                           newscaster_engine** out,
                                                           newscaster_error* error);
NEWSCASTER_EXPORT void newscaster_engine_destroy(newscaster_engine* engine);
NEWSCASTER_EXPORT newscaster_engine_info
newscaster_engine_get_info(const newscaster_engine* engine);

NEWSCASTER_EXPORT newscaster_code newscaster_avatar_load(const newscaster_engine* engine,
                                                         const char* avatar_dir,
                                                         newscaster_avatar** out,
                                                         newscaster_error* error);
NEWSCASTER_EXPORT void newscaster_avatar_destroy(newscaster_avatar* avatar);

/* options may be NULL; on_frame may not. */
NEWSCASTER_EXPORT newscaster_code newscaster_session_open(const newscaster_engine* engine,
                                                          const newscaster_avatar* avatar,
                                                          const newscaster_session_options* options,
                                                          newscaster_frame_callback on_frame,
                                                          void* user, newscaster_session** out,
                                                          newscaster_error* error);

/* Mono samples in [-1, 1]; blocks while the pipeline is full. */
NEWSCASTER_EXPORT newscaster_code newscaster_session_push_audio(newscaster_session* session,
                                                                const float* samples, size_t count,
                                                                newscaster_error* error);
/* No more audio. */
NEWSCASTER_EXPORT newscaster_code newscaster_session_close(newscaster_session* session,
                                                           newscaster_error* error);
/* Blocks until every frame was delivered. */
NEWSCASTER_EXPORT newscaster_code newscaster_session_wait(newscaster_session* session,
                                                          newscaster_error* error);
NEWSCASTER_EXPORT void newscaster_session_cancel(newscaster_session* session);
/* Cancels what still runs. */
NEWSCASTER_EXPORT void newscaster_session_destroy(newscaster_session* session);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using, readability-identifier-naming) */

#endif /* NEWSCASTER_NEWSCASTER_H_ */

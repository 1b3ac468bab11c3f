/* Pushes a WAV file (16-bit mono at the engine's rate) in pieces, as a live source would, and
 * writes the frames as raw NV12.
 *
 *   render_frames PACK AVATAR SPEECH.wav OUT.nv12
 *   ffplay -f rawvideo -pixel_format nv12 -video_size 1920x1080 -framerate 25 OUT.nv12
 */
#include <newscaster/newscaster.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 1024, WAV_HEADER_BYTES = 44 };

typedef struct Sink {
    FILE* file;
    long frames;
} Sink;

static int write_rows(FILE* file, const uint8_t* rows, int width, int height, int stride) {
    for (int y = 0; y < height; ++y) {
        const uint8_t* row = rows + (size_t)y * (size_t)stride;
        if (fwrite(row, 1, (size_t)width, file) != (size_t)width) return -1;
    }
    return 0;
}

static int on_frame(const newscaster_frame* frame, void* user) {
    Sink* sink = user;
    ++sink->frames;
    if (write_rows(sink->file, frame->y, frame->width, frame->height, frame->y_stride) != 0)
        return 1;
    return write_rows(sink->file, frame->uv, frame->width, frame->height / 2, frame->uv_stride);
}

static int fail(const char* what, const newscaster_error* error) {
    fprintf(stderr, "%s: %s\n", what, error->message);
    return (int)error->code;
}

static newscaster_code push_file(newscaster_session* session, FILE* wav, newscaster_error* error) {
    int16_t raw[PIECE];
    float samples[PIECE];
    size_t count = 0;
    while ((count = fread(raw, sizeof(raw[0]), PIECE, wav)) > 0) {
        for (size_t i = 0; i < count; ++i) samples[i] = (float)raw[i] / 32768.0F;
        const newscaster_code code = newscaster_session_push_audio(session, samples, count, error);
        if (code != NEWSCASTER_OK) return code;
    }
    return newscaster_session_close(session, error);
}

static int render(const char* pack, const char* avatar_dir, FILE* wav, Sink* sink) {
    newscaster_error error = {0};
    newscaster_engine* engine = NULL;
    newscaster_avatar* avatar = NULL;
    newscaster_session* session = NULL;
    int result = 0;
    if (newscaster_engine_create(pack, NULL, &engine, &error) != NEWSCASTER_OK) {
        result = fail("engine", &error);
    } else if (newscaster_avatar_load(engine, avatar_dir, &avatar, &error) != NEWSCASTER_OK) {
        result = fail("avatar", &error);
    } else if (newscaster_session_open(engine, avatar, NULL, on_frame, sink, &session, &error) !=
               NEWSCASTER_OK) {
        result = fail("session", &error);
    } else if (push_file(session, wav, &error) != NEWSCASTER_OK ||
               newscaster_session_wait(session, &error) != NEWSCASTER_OK) {
        result = fail("render", &error);
    }
    newscaster_session_destroy(session);
    newscaster_avatar_destroy(avatar);
    newscaster_engine_destroy(engine);
    return result;
}

int main(int argc, char** argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: render_frames PACK AVATAR SPEECH.wav OUT.nv12\n");
        return 2;
    }
    FILE* wav = fopen(argv[3], "rb");
    Sink sink = {fopen(argv[4], "wb"), 0};
    if (wav == NULL || sink.file == NULL || fseek(wav, WAV_HEADER_BYTES, SEEK_SET) != 0) {
        fprintf(stderr, "cannot open %s or %s\n", argv[3], argv[4]);
        return 5;
    }
    const int result = render(argv[1], argv[2], wav, &sink);
    fclose(wav);
    fclose(sink.file);
    if (result == 0) printf("%ld frames\n", sink.frames);
    return result;
}

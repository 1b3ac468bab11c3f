// The library in fifteen lines: one second of silence in, frames out.
#include <newscaster/engine.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) try {
    if (argc != 3) return std::fprintf(stderr, "usage: count_frames PACK AVATAR\n"), 2;
    const newscaster::Engine engine({.pack = argv[1]});
    int frames = 0;
    const auto session = engine.open_session(
        engine.load_avatar(argv[2]), {},
        {.on_frame = [&](const newscaster::VideoFramePtr&) { return ++frames, true; }});
    session->push_audio(std::vector<float>(static_cast<size_t>(engine.info().sample_rate_hz)));
    session->close();
    session->wait();
    std::printf("%d frames\n", frames);
    return 0;
} catch (const newscaster::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
}

#include "media/input.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "newscaster/error.h"

namespace newscaster::media {

namespace {

int refuse_open(AVFormatContext* /*format*/, AVIOContext** /*io*/, const char* /*url*/,
                int /*flags*/, AVDictionary** /*options*/) {
    return AVERROR(EPERM);
}

[[noreturn]] void fail_to_open(const AVIOContext& io, int result, const std::string& name,
                               const std::string& what) {
    if (io.error < 0 && io.error != AVERROR_EOF) {
        throw Error(ErrorCode::io, fmt::format("{}: read failed: {}", name, av_reason(io.error)));
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: is not {} ({})", name, what, av_reason(result)));
}

}  // namespace

std::string display_name(const std::string& path) {
    return path == "-" ? "standard input" : path;
}

void analyse_streams(Input& input, const std::string& name, const std::string& what) {
    const int result = avformat_find_stream_info(input.format.get(), nullptr);
    if (result < 0) fail_to_open(*input.io, result, name, what);
}

Input open_input(const std::string& path, const std::string& what, Analysis analysis) {
    silence_libav();
    const std::string name = display_name(path);
    std::error_code ignored;
    if (path != "-" && std::filesystem::is_directory(path, ignored)) {
        throw Error(ErrorCode::io, fmt::format("{}: is a folder, {} is wanted", name, what));
    }
    Input input;
    AVIOContext* io = nullptr;
    const std::string url = path == "-" ? "pipe:0" : file_url(path);
    if (const int result = avio_open2(&io, url.c_str(), AVIO_FLAG_READ, nullptr, nullptr);
        result < 0) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", name, av_reason(result)));
    }
    input.io.reset(io);

    AVFormatContext* format = avformat_alloc_context();
    if (format == nullptr) throw std::bad_alloc();
    format->pb = io;
    format->io_open = refuse_open;
    // Frees the context on failure.
    const int result = avformat_open_input(&format, "", nullptr, nullptr);
    if (result < 0) fail_to_open(*io, result, name, what);
    input.format.reset(format);
    if (analysis == Analysis::streams) analyse_streams(input, name, what);
    return input;
}

}  // namespace newscaster::media

#include "media/av_ptr.h"

extern "C" {
#include <libavutil/error.h>
#include <libavutil/log.h>
}

#include <array>
#include <new>

namespace newscaster::media {

namespace {

template <typename T>
T* not_null(T* pointer) {
    if (pointer == nullptr) throw std::bad_alloc();
    return pointer;
}

}  // namespace

AvFramePtr make_frame() {
    return AvFramePtr(not_null(av_frame_alloc()));
}

AvPacketPtr make_packet() {
    return AvPacketPtr(not_null(av_packet_alloc()));
}

std::shared_ptr<AVFrame> share(const AVFrame& frame) {
    return {not_null(av_frame_clone(&frame)), AvDeleter{}};
}

std::shared_ptr<AVPacket> share(const AVPacket& packet) {
    return {not_null(av_packet_clone(&packet)), AvDeleter{}};
}

std::string av_reason(int error) {
    std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
    av_strerror(error, text.data(), text.size());
    return text.data();
}

void silence_libav() {
    // libav prints to stderr by a level that is global to the process; a library must not print,
    // and setting it once keeps a host program's later choice.
    static const bool done = [] {
        av_log_set_level(AV_LOG_QUIET);
        return true;
    }();
    static_cast<void>(done);
}

std::string file_url(const std::string& path) {
    return "file:" + path;
}

}  // namespace newscaster::media

#include "encode/video_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "encode/mux_writer.h"
#include "encode/output_file.h"
#include "encode/png_writer.h"
#include "encode/raw_writer.h"
#include "media/av_ptr.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::pair<std::string_view, Container>, 5> kContainers{
    {{"mp4", Container::mp4},
     {"mkv", Container::mkv},
     {"nv12", Container::nv12},
     {"y4m", Container::y4m},
     {"png", Container::png}}};

const Container* find_container(std::string_view name) {
    const auto* found = std::find_if(kContainers.begin(), kContainers.end(),
                                     [&](const auto& entry) { return entry.first == name; });
    return found == kContainers.end() ? nullptr : &found->second;
}

// libav's MP4 muxer takes these without experimental flags and players know them.
bool fits_mp4(const AVCodecParameters& source) {
    switch (source.codec_id) {
        case AV_CODEC_ID_AAC:
        case AV_CODEC_ID_AC3:
        case AV_CODEC_ID_EAC3:
        case AV_CODEC_ID_ALAC:
        case AV_CODEC_ID_OPUS:
            return true;
        case AV_CODEC_ID_MP3:
            return source.sample_rate >= 16000;  // MPEG-2.5 is not standard there
        default:
            return false;
    }
}

bool fits_mkv(const AVCodecParameters& source) {
    // AAC in ADTS tells its parameters only with the first packet, the header needs them before.
    if (source.codec_id == AV_CODEC_ID_AAC) return source.extradata_size > 0;
    const AVOutputFormat* matroska = av_guess_format("matroska", nullptr, nullptr);
    return matroska != nullptr &&
           avformat_query_codec(matroska, source.codec_id, FF_COMPLIANCE_NORMAL) == 1;
}

void check_rate(Rational fps) {
    constexpr int64_t kMax = std::numeric_limits<int>::max();
    if (fps.num > 0 && fps.den > 0 && fps.num <= kMax && fps.den <= kMax) return;
    throw Error(ErrorCode::bad_input,
                fmt::format("frame rate {}/{}, a positive rate is wanted", fps.num, fps.den));
}

void check_png_output(const std::string& output) {
    if (output != "-") return;
    throw Error(ErrorCode::bad_input, "PNG frames go to a folder, not to standard output");
}

}  // namespace

Container container_from(const std::string& format, const std::string& output) {
    if (!format.empty()) {
        if (const Container* container = find_container(format)) return *container;
        throw Error(ErrorCode::bad_input,
                    fmt::format("output format '{}' is not known; mp4, mkv, nv12, y4m or png is "
                                "wanted",
                                format));
    }
    if (output == "-") return Container::mp4;
    std::error_code ignored;
    if (output.ends_with('/') || fs::is_directory(output, ignored)) return Container::png;
    std::string extension = fs::path(output).extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (extension == ".m4v") return Container::mp4;
    if (extension.size() > 1) {
        const Container* container = find_container(std::string_view(extension).substr(1));
        // "x.png" would be one picture, which is not what comes out.
        if (container != nullptr && *container != Container::png) return *container;
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the name tells no known format; .mp4, .mkv, .nv12, .y4m, a folder "
                            "(PNG frames) or an explicit format is wanted",
                            output));
}

AudioCarry choose_carry(Container container, const AVCodecParameters& source) {
    switch (container) {
        case Container::mp4:
            return fits_mp4(source) ? AudioCarry::copy : AudioCarry::aac;
        case Container::mkv:
            return fits_mkv(source) ? AudioCarry::copy : AudioCarry::aac;
        default:
            return AudioCarry::none;
    }
}

std::unique_ptr<VideoWriter> open_writer(const WriterOptions& options) {
    media::silence_libav();
    check_rate(options.video.fps);
    switch (options.container) {
        case Container::mp4:
        case Container::mkv:
            return std::make_unique<MuxWriter>(options);
        case Container::nv12:
        case Container::y4m:
            return std::make_unique<RawWriter>(options);
        case Container::png:
            break;
    }
    check_png_output(options.output);
    return std::make_unique<PngWriter>(options);
}

void check_output(Container container, const std::string& output) {
    if (container == Container::png) {
        check_png_output(output);
        const AtomicFolder removed_again(output);
    } else {
        OutputFile::probe(output);
    }
}

std::vector<std::string> available_encoders() {
    std::vector<std::string> names;
    for (const char* name : {"libx264", "aac", "png"}) {
        if (avcodec_find_encoder_by_name(name) != nullptr) names.emplace_back(name);
    }
    return names;
}

}  // namespace newscaster::encode

// Registration of a clip: one pass finds the face, a second cuts and reads it. Never more than a
// few pictures are in memory; the cached features are, and their number is bounded.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "composite/compositor.h"
#include "media/clip_source.h"
#include "media/read_ahead.h"
#include "newscaster/error.h"
#include "pipeline/avatar_parts.h"
#include "pipeline/clip_tensors.h"
#include "pipeline/clip_track.h"
#include "pipeline/source_report.h"
#include "registration/crop_box.h"
#include "registration/crop_sampler.h"

namespace newscaster::pipeline {

namespace {

// All cached features of a loaded avatar, in f32.
constexpr uint64_t kMaxFeatureBytes = 2ULL << 30U;

int64_t most_entries(const pack::Manifest& manifest) {
    uint64_t bytes = 0;
    for (const auto& [name, shape] : avatar::required_tensors(manifest, 1, 1)) {
        if (avatar::is_per_frame(name)) continue;
        uint64_t count = sizeof(float);
        for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
        bytes += count;
    }
    return static_cast<int64_t>(std::max<uint64_t>(kMaxFeatureBytes / bytes, 1));
}

void check_smoothing(int frames) {
    if (frames >= 1 && frames <= 101 && frames % 2 == 1) return;
    throw Error(ErrorCode::bad_input,
                fmt::format("smoothing of the source: found {} frames, wanted an odd number from 1 "
                            "to 101",
                            frames));
}

// The second pass: what every source frame looks like and how it is posed.
class ClipReader {
  public:
    ClipReader(const AvatarSource& source, const pack::Pack& pack, device::Device& device,
               const ClipTrack& track)
        : source_(source),
          pack_(pack),
          track_(track),
          crop_size_(static_cast<int>(pack.manifest().crop.size_px)),
          extractor_(pack, device),
          keys_(least_gap(std::ssize(track.framings), most_entries(pack.manifest()))),
          clip_(
              media::read_ahead(media::ClipSource::open(source.picture, pack.manifest().frame_rate,
                                                        limits_of(source), backdrop_of(source)))) {}

    // Reads the next source frame and yields its canvas.
    Nv12Image next() {
        auto picture = clip_->read();
        if (!picture) throw Error(ErrorCode::io, source_.picture.string() + ": changed while read");
        const RgbImage canvas = make_canvas(std::move(*picture), source_.picture.string());
        width_ = canvas.width;
        height_ = canvas.height;
        Framing framing = track_.framings[crop_to_canvas_.size()];
        const bool has_face = track_.has_face[crop_to_canvas_.size()];
        if (source_.eye_open) framing.eye_open = *source_.eye_open;
        if (source_.eye_ball) framing.eye_ball = *source_.eye_ball;
        crop_to_canvas_.push_back(registration::crop_to_picture(framing.crop, crop_size_));
        if (has_face) {
            add_face(registration::cut_crop(canvas, crop_to_canvas_.back(), crop_size_), framing);
        } else {
            add_nothing();
        }
        return composite::rgb_to_nv12(canvas);
    }

    // After the last frame.
    std::pair<avatar::AvatarDocument, TensorMap> finish() {
        auto document = describe(source_, pack_, width_, height_, std::move(crop_to_canvas_));
        document.features_of = std::move(features_of_);
        document.opacity = track_.opacity;
        TensorMap tensors = motions_.take();
        tensors.merge(features_.take());
        return {std::move(document), std::move(tensors)};
    }

  private:
    static int64_t least_gap(int64_t frames, int64_t entries) {
        return (frames + entries - 1) / entries;
    }

    void add_face(const RgbImage& crop, const Framing& framing) {
        auto features = extractor_.motion(crop);
        if (keys_.is_key(crop)) {
            features.appearance = extractor_.appearance(crop);
            TensorMap all = make_tensors(pack_, std::move(features), crop, framing);
            TensorMap motion;
            for (auto entry = all.begin(); entry != all.end();) {
                const auto current = entry++;
                if (avatar::is_per_frame(current->first)) motion.insert(all.extract(current));
            }
            features_.append(all);
            append_motion(motion);
        } else {
            append_motion(make_tensors(pack_, std::move(features), crop, framing));
        }
        features_of_.push_back(features_.entries() - 1);
    }

    void append_motion(const TensorMap& motion) {
        // The first face also stands for the frames before it.
        const int64_t before = motions_.entries() == 0 ? std::ssize(features_of_) : 0;
        for (int64_t i = 0; i <= before; ++i) motions_.append(motion);
    }

    // Drawn with opacity 0, but every source frame has its entries.
    void add_nothing() {
        if (motions_.entries() > 0) motions_.repeat(motions_.entries() - 1);
        features_of_.push_back(std::max<int64_t>(features_.entries() - 1, 0));
    }

    const AvatarSource& source_;
    const pack::Pack& pack_;
    const ClipTrack& track_;
    const int crop_size_;
    registration::FaceExtractor extractor_;
    KeyFrames keys_;
    std::unique_ptr<media::ClipSource> clip_;
    TensorStack motions_;   // per source frame
    TensorStack features_;  // per entry
    std::vector<int64_t> features_of_;
    std::vector<Affine> crop_to_canvas_;
    int width_ = 0;
    int height_ = 0;
};

}  // namespace

void write_clip_avatar(const AvatarSource& source, const pack::Pack& pack, device::Device& device,
                       const Log& log) {
    check_smoothing(source.smooth_source);
    SourceReport report(static_cast<int>(pack.manifest().crop.size_px));
    const ClipTrack track = track_clip(source, pack.manifest(), device, log, report);
    ClipReader reader(source, pack, device, track);
    avatar::ClipAvatarWriter writer(source.folder, source.replace);
    for (size_t i = 0; i < track.framings.size(); ++i) writer.add_canvas(reader.next());
    auto [document, tensors] = reader.finish();
    log(LogLevel::info, "{}: {} source frames of {}x{}, {} with features of their own",
        source.picture.string(), track.framings.size(), document.width, document.height,
        std::ranges::max(document.features_of) + 1);
    writer.commit(std::move(document), tensors);
    if (!report.empty()) report.write(source.folder, source.picture.filename().string());
}

}  // namespace newscaster::pipeline

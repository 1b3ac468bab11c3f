#include <cstring>
#include <random>

#include "composite/compositor.h"
#include "device/device.h"
#include "gpu_bench.h"
#include "media/image.h"
#include "newscaster/error.h"

namespace newscaster::bench {

namespace {

constexpr int kFrames = 165;
constexpr int kCrop = 512;
constexpr int kBatch = 8;
constexpr int kRepeats = 20;
const composite::SoftMask kMask{4.0, 40.0};

Affine placed(const RgbImage& canvas) {
    const double scale = 500.0 / kCrop;
    return {scale, 0.0, canvas.width / 2.0 - 250.0, 0.0, scale, canvas.height * 0.4 - 250.0};
}

// One way of getting crops from the device into NV12 canvases.
class Way {
  public:
    Way(device::Device& device, const RgbImage& picture, bool whole)
        : device_(device),
          stream_(device.make_stream()),
          tables_(composite::make_roi_tables(picture, placed(picture), kCrop, kMask, whole)),
          paster_(device.make_roi_paster(tables_)),
          bytes_(static_cast<size_t>(tables_.width) * static_cast<size_t>(tables_.height) * 3 / 2),
          canvas_(composite::rgb_to_nv12(picture)),
          box_{0, 0, picture.width, picture.height} {
        if (paster_ == nullptr) {
            throw Error(ErrorCode::device_unavailable, "the device has no paste-back of its own");
        }
        if (!whole) {
            box_ = composite::PastePlan(picture, placed(picture), kCrop, kMask).roi();
        }
        const device::TensorInfo info{"nv12", DType::u8, {static_cast<int64_t>(bytes_)}};
        drawn_ = device.allocate(info, device::Location::device);
        fetched_ = device.allocate(info, device::Location::pinned);
    }

    [[nodiscard]] size_t bytes() const { return bytes_; }
    [[nodiscard]] const Nv12Image& canvas() const { return canvas_; }

    void frame(device::Buffer& crops, int index) {
        paster_->paste(crops, index % kBatch, *drawn_, 0, *stream_);
        device_.copy(*drawn_, *fetched_, *stream_);
        stream_->synchronize();
        const std::byte* from = fetched_->host_data();
        const auto width = static_cast<size_t>(box_.width());
        const auto rows = [&](std::vector<uint8_t>& plane, int first, int last) {
            for (int row = first; row < last; ++row, from += width) {
                std::memcpy(plane.data() + int64_t{row} * canvas_.width + box_.x0, from, width);
            }
        };
        rows(canvas_.y, box_.y0, box_.y1);
        rows(canvas_.uv, box_.y0 / 2, box_.y1 / 2);
    }

  private:
    device::Device& device_;
    std::unique_ptr<device::Stream> stream_;
    RoiTables tables_;
    std::unique_ptr<device::RoiPaster> paster_;
    size_t bytes_;
    Nv12Image canvas_;
    Box box_;
    device::BufferPtr drawn_;
    device::BufferPtr fetched_;
};

int64_t differing_bytes(const Nv12Image& a, const Nv12Image& b) {
    int64_t count = 0;
    for (size_t i = 0; i < a.y.size(); ++i) count += a.y[i] != b.y[i] ? 1 : 0;
    for (size_t i = 0; i < a.uv.size(); ++i) count += a.uv[i] != b.uv[i] ? 1 : 0;
    return count;
}

}  // namespace

nlohmann::json measure_splice(const std::string& avatar, const std::string& provider) {
    const RgbImage picture = media::read_image(avatar + "/canvas.png");
    const auto device = device::open_device(provider, {});
    const auto stream = device->make_stream();
    const device::TensorInfo info{"crops", DType::f32, {kBatch, 3, kCrop, kCrop}};
    const auto host = device->allocate(info, device::Location::pinned);
    const auto crops = device->allocate(info, device::Location::device);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> level(0.0F, 1.0F);
    for (float& value : host->host_f32()) value = level(random);
    device->copy(*host, *crops, *stream);
    stream->synchronize();

    Way roi(*device, picture, false);
    Way whole(*device, picture, true);
    int64_t differing = 0;
    for (int i = 0; i < kFrames; ++i) {
        roi.frame(*crops, i);
        whole.frame(*crops, i);
        differing += differing_bytes(roi.canvas(), whole.canvas());
    }
    const auto timed = [&](Way& way) {
        const double ms = median_ms(kRepeats, [&] {
            for (int i = 0; i < kFrames; ++i) way.frame(*crops, i);
        });
        return nlohmann::json{{"ms_per_frame", ms / kFrames}, {"bytes_per_frame", way.bytes()}};
    };
    return {{"device", device->info().name},
            {"canvas", {picture.width, picture.height}},
            {"frames", kFrames},
            {"repeats", kRepeats},
            {"differing_bytes", differing},
            {"roi", timed(roi)},
            {"whole_canvas", timed(whole)}};
}

}  // namespace newscaster::bench

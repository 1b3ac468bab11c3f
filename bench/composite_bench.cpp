// Paste-back of a 512 px crop into a 1920x1080 canvas, one thread: ours against the same steps in
// OpenCV on the full canvas (warpAffine, alpha blend, RGB -> I420).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <random>
#include <string>

#include "composite/compositor.h"

namespace {

using newscaster::Affine;
using newscaster::Nv12Image;
using newscaster::RgbImage;
namespace composite = newscaster::composite;

constexpr int kWidth = 1920;
constexpr int kHeight = 1080;
constexpr int kCrop = 512;
constexpr double kScale = 500.0 / kCrop;
const composite::SoftMask kMask{4.0, 40.0};

RgbImage make_canvas() {
    std::mt19937 engine(1);
    RgbImage image{kWidth, kHeight, std::vector<uint8_t>(size_t{3} * kWidth * kHeight)};
    for (auto& value : image.pixels) value = static_cast<uint8_t>(engine());
    return image;
}

std::vector<float> make_crop() {
    std::mt19937 engine(2);
    std::uniform_real_distribution<float> value(0.0F, 1.0F);
    std::vector<float> crop(size_t{3} * kCrop * kCrop);
    for (auto& v : crop) v = value(engine);
    return crop;
}

Affine placed(double degrees) {
    const double angle = degrees * CV_PI / 180.0;
    const double c = kScale * std::cos(angle);
    const double s = kScale * std::sin(angle);
    const double half = kCrop / 2.0;
    return {c, -s, 960.0 - half * (c - s), s, c, 410.0 - half * (s + c)};
}

void paste_ours(benchmark::State& state, const std::string& kernel, double degrees) {
    const composite::PastePlan plan(make_canvas(), placed(degrees), kCrop, kMask, kernel);
    const auto crop = make_crop();
    Nv12Image target = plan.background();
    for (auto _ : state) {
        plan.paste(crop, target.y.data(), kWidth, target.uv.data(), kWidth);
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations());
}

// warpAffine's matrix maps pixel indices; ours maps continuous coordinates.
cv::Mat opencv_matrix(const Affine& m) {
    return (cv::Mat_<double>(2, 3) << m[0], m[1], m[2] + 0.5 * (m[0] + m[1]) - 0.5, m[3], m[4],
            m[5] + 0.5 * (m[3] + m[4]) - 0.5);
}

cv::Mat opencv_mask() {
    cv::Mat mask(kCrop, kCrop, CV_32F);
    for (int y = 0; y < kCrop; ++y) {
        for (int x = 0; x < kCrop; ++x) {
            const double border =
                std::min({x + 0.5, y + 0.5, kCrop - x - 0.5, kCrop - y - 0.5}) - kMask.inset_px;
            const double t = std::clamp(border / kMask.feather_px, 0.0, 1.0);
            mask.at<float>(y, x) = static_cast<float>(t * t * (3.0 - 2.0 * t));
        }
    }
    return mask;
}

// As face-swap and talking-head tools do it: everything on the full canvas. The warped mask and the
// 8-bit background stay fixed, so neither is charged to OpenCV.
void paste_opencv(benchmark::State& state, bool eight_bit, double degrees) {
    cv::setNumThreads(1);
    RgbImage image = make_canvas();
    const auto crop = make_crop();
    const cv::Mat canvas(kHeight, kWidth, CV_8UC3, image.pixels.data());
    cv::Mat canvas_f, alpha1, alpha, rest;
    canvas.convertTo(canvas_f, CV_32F);
    const cv::Mat matrix = opencv_matrix(placed(degrees));
    cv::warpAffine(opencv_mask(), alpha1, matrix, canvas.size(), cv::INTER_LINEAR);
    cv::cvtColor(alpha1, alpha, cv::COLOR_GRAY2BGR);
    rest = canvas_f.mul(cv::Scalar::all(1) - alpha);
    const cv::Mat beta1 = 1.0 - alpha1;
    cv::Mat face, warped, blended, rgb, i420;
    std::vector<cv::Mat> planes;
    planes.reserve(3);
    for (int c = 0; c < 3; ++c) {
        planes.emplace_back(kCrop, kCrop, CV_32F,
                            const_cast<float*>(crop.data()) + size_t{kCrop} * kCrop * c);
    }
    for (auto _ : state) {
        cv::merge(planes, face);
        if (eight_bit) {
            face.convertTo(rgb, CV_8UC3, 255.0);
            cv::warpAffine(rgb, warped, matrix, canvas.size(), cv::INTER_LINEAR);
            cv::blendLinear(warped, canvas, alpha1, beta1, blended);
            cv::cvtColor(blended, i420, cv::COLOR_RGB2YUV_I420);
        } else {
            face *= 255.0;
            cv::warpAffine(face, warped, matrix, canvas.size(), cv::INTER_LINEAR);
            cv::multiply(warped, alpha, blended);
            blended += rest;
            blended.convertTo(rgb, CV_8UC3);
            cv::cvtColor(rgb, i420, cv::COLOR_RGB2YUV_I420);
        }
        benchmark::DoNotOptimize(i420.data);
    }
    state.SetItemsProcessed(state.iterations());
}

void whole_canvas(benchmark::State& state, const std::string& kernel) {
    const RgbImage canvas = make_canvas();
    for (auto _ : state) {
        auto out = composite::rgb_to_nv12(canvas, kernel);
        benchmark::DoNotOptimize(out.y.data());
    }
    state.SetItemsProcessed(state.iterations());
}

void whole_canvas_opencv(benchmark::State& state) {
    cv::setNumThreads(1);
    RgbImage image = make_canvas();
    const cv::Mat canvas(kHeight, kWidth, CV_8UC3, image.pixels.data());
    cv::Mat i420;
    for (auto _ : state) {
        cv::cvtColor(canvas, i420, cv::COLOR_RGB2YUV_I420);
        benchmark::DoNotOptimize(i420.data);
    }
    state.SetItemsProcessed(state.iterations());
}

const bool kRegistered = [] {
    const auto in_ms = [](benchmark::internal::Benchmark* b) { b->Unit(benchmark::kMillisecond); };
    for (const auto& kernel : composite::available_kernels()) {
        in_ms(benchmark::RegisterBenchmark(
            ("paste/straight/" + kernel).c_str(),
            [kernel](benchmark::State& state) { paste_ours(state, kernel, 0.0); }));
        in_ms(benchmark::RegisterBenchmark(
            ("paste/rotated/" + kernel).c_str(),
            [kernel](benchmark::State& state) { paste_ours(state, kernel, 8.0); }));
        in_ms(benchmark::RegisterBenchmark(
            ("rgb_to_nv12/" + kernel).c_str(),
            [kernel](benchmark::State& state) { whole_canvas(state, kernel); }));
    }
    for (const bool eight_bit : {true, false}) {
        const std::string depth = eight_bit ? "opencv_u8" : "opencv_f32";
        in_ms(benchmark::RegisterBenchmark(
            ("paste/straight/" + depth).c_str(),
            [=](benchmark::State& state) { paste_opencv(state, eight_bit, 0.0); }));
        in_ms(benchmark::RegisterBenchmark(
            ("paste/rotated/" + depth).c_str(),
            [=](benchmark::State& state) { paste_opencv(state, eight_bit, 8.0); }));
    }
    in_ms(benchmark::RegisterBenchmark("rgb_to_i420/opencv", whole_canvas_opencv));
    return true;
}();

}  // namespace

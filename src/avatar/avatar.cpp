#include "avatar/avatar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "core/file.h"
#include "newscaster/error.h"

namespace newscaster::avatar {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxTensorBytes = 4ULL << 30U;

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
    throw Error(ErrorCode::bad_pack, fmt::format("{}: {}", file.string(), what));
}

// A file of the avatar that cannot be read is a fault of the avatar, not of the disk.
template <typename Read>
auto as_avatar_error(Read read) {
    try {
        return read();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::io) throw;
        throw Error(ErrorCode::bad_pack, error.what());
    }
}

AvatarDocument read_document(const fs::path& folder) {
    const fs::path file = folder / kDocumentFile;
    return as_avatar_error([&] { return parse_avatar_document(read_text(file), file.string()); });
}

std::vector<fs::path> existing_canvas_files(const fs::path& folder,
                                            const std::vector<std::string>& names) {
    std::vector<fs::path> files;
    files.reserve(names.size());
    for (const auto& name : names) {
        std::error_code ignored;
        files.push_back(folder / name);
        if (!fs::is_regular_file(files.back(), ignored)) {
            fail(files.back(), "the canvas picture is missing");
        }
    }
    return files;
}

// u8 tensors are pictures: 0..255 becomes 0..1. Every other type keeps its values.
Tensor to_engine_values(const Tensor& stored) {
    Tensor values = stored.to_f32();
    if (stored.dtype() == DType::u8) {
        for (float& value : values.as<float>()) value /= 255.0F;
    }
    return values;
}

TensorMap read_tensors(const fs::path& file, const pack::GraphFile& expected,
                       const Avatar& avatar) {
    const auto bytes = as_avatar_error([&] { return read_file(file, kMaxTensorBytes); });
    const std::string found = sha256_hex(std::span<const std::byte>(bytes));
    if (found != expected.sha256) {
        fail(file,
             fmt::format("sha256 is {}, avatar.json wants {}: the file is damaged or replaced",
                         found, expected.sha256));
    }
    TensorMap tensors;
    for (const auto& [name, stored] : parse_safetensors(bytes, file.string())) {
        const bool per_frame = is_per_frame(name);
        const int64_t entries = per_frame ? avatar.source_frames() : avatar.feature_entries();
        if (stored.rank() == 0 || stored.dim(0) != entries) {
            fail(file, fmt::format("tensor '{}': found shape {}, wanted {} on the first axis, one "
                                   "entry per {}",
                                   name, to_string(stored.shape()), entries,
                                   per_frame || avatar.source_frames() == entries
                                       ? "source frame"
                                       : "number under \"features\""));
        }
        Tensor values = to_engine_values(stored);
        const auto all = values.as<float>();
        if (!std::all_of(all.begin(), all.end(), [](float v) { return std::isfinite(v); })) {
            fail(file, fmt::format("tensor '{}': found a value that is not finite", name));
        }
        tensors.emplace(name, std::move(values));
    }
    return tensors;
}

void check_tensors(const TensorMap& tensors, const fs::path& file,
                   const std::map<std::string, Shape>& wanted) {
    for (const auto& [name, shape] : wanted) {
        const auto found = tensors.find(name);
        if (found == tensors.end()) {
            fail(file,
                 fmt::format("tensor '{}' is missing, wanted shape {}", name, to_string(shape)));
        }
        if (found->second.shape() != shape) {
            fail(file, fmt::format("tensor '{}': found shape {}, wanted {}", name,
                                   to_string(found->second.shape()), to_string(shape)));
        }
    }
}

void check_nv12_size(const fs::path& file, const AvatarDocument& document) {
    const uint64_t wanted = static_cast<uint64_t>(document.width) *
                            static_cast<uint64_t>(document.height) * 3 / 2 *
                            document.crop_to_canvas.size();
    std::error_code error;
    const auto found = fs::file_size(file, error);
    if (error || found != wanted) {
        fail(file,
             fmt::format("found {} bytes, wanted {}: {} NV12 frames of {}x{}", error ? 0 : found,
                         wanted, document.crop_to_canvas.size(), document.width, document.height));
    }
}

pack::MaskSpec choose_mask(const AvatarDocument& document, const pack::CropSpec& crop,
                           const fs::path& file) {
    if (!document.mask) return crop.mask;
    const double half = static_cast<double>(crop.size_px) / 2.0;
    const double found = document.mask->inset_px + document.mask->feather_px;
    if (found > half) {
        fail(file, fmt::format("mask: found inset_px + feather_px of {}, wanted at most {}, half "
                               "of the pack's crop",
                               found, half));
    }
    return *document.mask;
}

}  // namespace

bool is_per_frame(std::string_view tensor) {
    return tensor == kCanonicalKeypoints || tensor == kSourceMotion || tensor == kEyeOpen ||
           tensor == kEyeBall;
}

int64_t Avatar::feature_entries() const {
    return std::ranges::max(features_of) + 1;
}

int64_t Avatar::frame_of_entry(int64_t entry) const {
    return std::ranges::find(features_of, entry) - features_of.begin();
}

std::map<std::string, Shape> required_tensors(const pack::Manifest& manifest, int64_t frames,
                                              int64_t entries) {
    std::map<std::string, Shape> wanted{
        {std::string(kCanonicalKeypoints), {frames, manifest.keypoints.count, 3}},
        {std::string(kSourceMotion), {frames, manifest.motion.dims}}};
    for (const auto& [kind, name] : {std::pair{pack::ConditionKind::eye_open, kEyeOpen},
                                     std::pair{pack::ConditionKind::eye_ball, kEyeBall}}) {
        if (const auto* span = manifest.motion.find(kind); span != nullptr) {
            wanted.emplace(name, Shape{frames, span->size});
        }
    }
    std::set<std::string> made;
    for (const auto role : {pack::role::kWarp, pack::role::kDecoder}) {
        const auto& graph = manifest.graph(role);
        const auto driving = graph.bindings.find("driving_keypoints");
        for (const auto& [name, spec] : graph.inputs) {
            if (made.contains(name)) continue;
            if (driving != graph.bindings.end() && driving->second == name) continue;
            Shape shape = spec.shape;
            if (shape.empty()) shape.resize(1);
            shape[0] = entries;
            wanted.emplace(name, std::move(shape));
        }
        for (const auto& [name, spec] : graph.outputs) made.insert(name);
    }
    return wanted;
}

int64_t mirror_loop(int64_t index, int64_t count) {
    const int64_t place = index % (2 * count);
    return place < count ? place : 2 * count - 1 - place;
}

Avatar load_avatar(const fs::path& folder, const pack::Manifest& manifest,
                   const std::string& avatar_key) {
    const fs::path document_file = folder / kDocumentFile;
    AvatarDocument document = read_document(folder);
    if (document.avatar_key != avatar_key) {
        fail(document_file,
             fmt::format("pack: found an avatar made for pack '{}' with key {}, wanted pack '{}' "
                         "with key {}: make it again with this pack (docs/avatar-format.md)",
                         document.pack_name, document.avatar_key, manifest.name, avatar_key));
    }
    Avatar avatar;
    avatar.folder = folder;
    avatar.width = document.width;
    avatar.height = document.height;
    avatar.canvas_files = existing_canvas_files(folder, document.canvas_files);
    avatar.nv12 = document.nv12;
    if (avatar.nv12) check_nv12_size(avatar.canvas_files.front(), document);
    avatar.mask = choose_mask(document, manifest.crop, document_file);
    avatar.crop_to_canvas = std::move(document.crop_to_canvas);
    avatar.features_of = std::move(document.features_of);
    if (avatar.features_of.empty()) {
        avatar.features_of.resize(avatar.crop_to_canvas.size());
        std::iota(avatar.features_of.begin(), avatar.features_of.end(), int64_t{0});
    }
    avatar.opacity = std::move(document.opacity);
    avatar.opacity.resize(avatar.crop_to_canvas.size(), 1.0);
    const fs::path tensors_file = folder / document.tensors.file;
    avatar.tensors = read_tensors(tensors_file, document.tensors, avatar);
    check_tensors(avatar.tensors, tensors_file,
                  required_tensors(manifest, avatar.source_frames(), avatar.feature_entries()));
    avatar.name = std::move(document.name);
    avatar.title = std::move(document.title);
    avatar.license = std::move(document.license);
    return avatar;
}

AvatarSummary summarize_avatar(const fs::path& folder) {
    AvatarDocument document = read_document(folder);
    const fs::path tensors_file = folder / document.tensors.file;
    std::error_code error;
    const auto bytes = fs::file_size(tensors_file, error);
    if (error) fail(tensors_file, "the tensor file is missing");
    AvatarSummary summary;
    summary.name = std::move(document.name);
    summary.title = std::move(document.title);
    summary.license = std::move(document.license);
    summary.pack_name = std::move(document.pack_name);
    summary.avatar_key = std::move(document.avatar_key);
    summary.width = document.width;
    summary.height = document.height;
    summary.source_frames = static_cast<int64_t>(document.crop_to_canvas.size());
    summary.tensor_bytes = bytes;
    return summary;
}

}  // namespace newscaster::avatar

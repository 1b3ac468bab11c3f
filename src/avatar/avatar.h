// An avatar on disk: canvas pictures, crop transforms and cached tensors, made for one pack.
// docs/avatar-format.md is the reference for users.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "avatar/avatar_document.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "core/stage_types.h"
#include "pack/manifest.h"

namespace newscaster::avatar {

// Tensors that the motion composer reads, besides the graph inputs.
inline constexpr std::string_view kCanonicalKeypoints = "kp_canonical";  // [n, K, 3]
inline constexpr std::string_view kSourceMotion = "source_motion";       // [n, motion dims]
// And the motion generator, where the pack's conditions name them: [n, size of the condition].
inline constexpr std::string_view kEyeOpen = "eye_open";
inline constexpr std::string_view kEyeBall = "eye_ball";

struct Avatar {
    std::string name;
    std::string title;
    std::string license;
    std::filesystem::path folder;
    int width = 0;  // canvas, even
    int height = 0;
    std::vector<std::filesystem::path> canvas_files;  // one per source frame, or one for all
    bool nv12 = false;                                // canvas_files: one of all frames as NV12
    std::vector<Affine> crop_to_canvas;               // per source frame
    std::vector<int64_t> features_of;  // per source frame: the entry of the features that draws it
    std::vector<double> opacity;       // per source frame: how much of the crop is seen, 0..1
    pack::MaskSpec mask;               // the pack's, unless the avatar overrides it
    // Along axis 0 one entry per source frame (is_per_frame), or one per entry of the features;
    // names = graph inputs; f32 after loading (stored u8 becomes value / 255).
    TensorMap tensors;

    [[nodiscard]] int64_t source_frames() const {
        return static_cast<int64_t>(crop_to_canvas.size());
    }
    // Source frames that look alike share an entry.
    [[nodiscard]] int64_t feature_entries() const;
    // The first source frame of an entry: the one that it was taken from.
    [[nodiscard]] int64_t frame_of_entry(int64_t entry) const;
};

// What is asked of every source frame, in contrast to the features that draw it.
[[nodiscard]] bool is_per_frame(std::string_view tensor);

// Source frame shown at video frame `index` when `count` frames play as a mirror loop:
// 0..n-1, n-1..0, 0.. (the end frames are shown twice in a row, as upstream Ditto does).
// index >= 0, count >= 1.
[[nodiscard]] int64_t mirror_loop(int64_t index, int64_t count);

// Loads and checks avatar.json, the hash and shapes of the cached tensors, and that it was made for
// a pack with this key. Throws Error(bad_pack) naming file, found and wanted.
[[nodiscard]] Avatar load_avatar(const std::filesystem::path& folder,
                                 const pack::Manifest& manifest, const std::string& avatar_key);

// Name -> shape of every tensor that an avatar of `frames` source frames and `entries` of features
// needs for a pack: what the motion composer and generator read, per source frame; and graph inputs
// that neither the driving keypoints nor an earlier graph feeds, the features.
[[nodiscard]] std::map<std::string, Shape> required_tensors(const pack::Manifest& manifest,
                                                            int64_t frames, int64_t entries);

// Writes avatar.json, the tensor file and one canvas picture as `folder`, complete or not at all.
// The names of the files and the hash of the tensors are filled in. Throws Error(io): the folder is
// not empty and `replace` is false, or it holds something else than an avatar; or it cannot be
// written.
void write_avatar(const std::filesystem::path& folder, AvatarDocument document,
                  const RgbImage& canvas, const TensorMap& tensors, bool replace);

// Writes an avatar of many source frames, complete or not at all: the canvases one by one, so that
// no more than one is in memory.
class ClipAvatarWriter {
  public:
    // Throws like write_avatar.
    ClipAvatarWriter(const std::filesystem::path& folder, bool replace);

    // The next source frame; all have one size. Throws Error(io).
    void add_canvas(const Nv12Image& canvas);

    // Fills in what write_avatar fills in. Throws Error(io).
    void commit(AvatarDocument document, const TensorMap& tensors);

  private:
    AtomicFolder target_;
    std::ofstream canvases_;
};

// One source frame of an avatar whose canvases are NV12. Thread-safe. Throws Error(io).
[[nodiscard]] Nv12Image read_nv12_canvas(const std::filesystem::path& file, int width, int height,
                                         int64_t index);

// Facts for `newscaster avatar info`, without a pack.
struct AvatarSummary {
    std::string name, title, license, pack_name, avatar_key;
    int width = 0, height = 0;
    int64_t source_frames = 0;
    uint64_t tensor_bytes = 0;
};
[[nodiscard]] AvatarSummary summarize_avatar(const std::filesystem::path& folder);

}  // namespace newscaster::avatar

#include <fmt/format.h>

#include <utility>

#include "avatar/avatar.h"
#include "core/file.h"
#include "media/image.h"
#include "newscaster/error.h"

namespace newscaster::avatar {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCanvasFile = "canvas.png";
constexpr const char* kNv12File = "canvas.nv12";
constexpr const char* kTensorFile = "tensors.safetensors";

// Replacing removes the old folder with all it holds, so it has to be an avatar.
void require_replaceable(const fs::path& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored) || fs::is_empty(folder, ignored)) return;
    if (fs::is_regular_file(folder / kDocumentFile, ignored)) return;
    throw Error(ErrorCode::io,
                fmt::format("{}: is no avatar ({} is missing), not replaced; a new or empty folder "
                            "is wanted",
                            folder.string(), kDocumentFile));
}

AtomicFolder::Existing check_target(const fs::path& folder, bool replace) {
    if (!replace) return AtomicFolder::Existing::refuse;
    require_replaceable(folder);
    return AtomicFolder::Existing::replace;
}

// Tensors and document of the folder, which becomes the avatar.
void finish(AtomicFolder& target, AvatarDocument document, const TensorMap& tensors) {
    write_safetensors(target.temporary() / kTensorFile, tensors);
    document.tensors = {.file = kTensorFile,
                        .sha256 = sha256_of_file(target.temporary() / kTensorFile)};
    write_text_atomic(target.temporary() / kDocumentFile, avatar_document_text(document));
    target.commit();
}

[[noreturn]] void fail_io(const fs::path& file, const char* what) {
    throw Error(ErrorCode::io, fmt::format("{}: {}", file.string(), what));
}

}  // namespace

void write_avatar(const fs::path& folder, AvatarDocument document, const RgbImage& canvas,
                  const TensorMap& tensors, bool replace) {
    AtomicFolder target(folder, check_target(folder, replace));
    media::write_png(target.temporary() / kCanvasFile, canvas);
    document.canvas_files = {kCanvasFile};
    finish(target, std::move(document), tensors);
}

ClipAvatarWriter::ClipAvatarWriter(const fs::path& folder, bool replace)
    : target_(folder, check_target(folder, replace)),
      canvases_(target_.temporary() / kNv12File, std::ios::binary) {
    if (!canvases_) fail_io(target_.temporary() / kNv12File, "cannot be written");
}

void ClipAvatarWriter::add_canvas(const Nv12Image& canvas) {
    for (const auto* plane : {&canvas.y, &canvas.uv}) {
        canvases_.write(reinterpret_cast<const char*>(plane->data()),
                        static_cast<std::streamsize>(plane->size()));
    }
    if (!canvases_)
        fail_io(target_.temporary() / kNv12File, "cannot be written: is the disk full?");
}

void ClipAvatarWriter::commit(AvatarDocument document, const TensorMap& tensors) {
    canvases_.close();
    if (!canvases_)
        fail_io(target_.temporary() / kNv12File, "cannot be written: is the disk full?");
    document.canvas_files = {kNv12File};
    document.nv12 = true;
    finish(target_, std::move(document), tensors);
}

Nv12Image read_nv12_canvas(const fs::path& file, int width, int height, int64_t index) {
    const size_t luma = static_cast<size_t>(width) * static_cast<size_t>(height);
    Nv12Image image{width, height, std::vector<uint8_t>(luma), std::vector<uint8_t>(luma / 2)};
    std::ifstream in(file, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(index) * static_cast<std::streamoff>(luma / 2 * 3));
    for (auto* plane : {&image.y, &image.uv}) {
        in.read(reinterpret_cast<char*>(plane->data()),
                static_cast<std::streamsize>(plane->size()));
    }
    if (!in) fail_io(file, fmt::format("source frame {} cannot be read", index).c_str());
    return image;
}

}  // namespace newscaster::avatar

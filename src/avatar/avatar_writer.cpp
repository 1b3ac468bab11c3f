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

}  // namespace

void write_avatar(const fs::path& folder, AvatarDocument document, const RgbImage& canvas,
                  const TensorMap& tensors, bool replace) {
    if (replace) require_replaceable(folder);
    AtomicFolder target(folder,
                        replace ? AtomicFolder::Existing::replace : AtomicFolder::Existing::refuse);
    media::write_png(target.temporary() / kCanvasFile, canvas);
    write_safetensors(target.temporary() / kTensorFile, tensors);
    document.canvas_files = {kCanvasFile};
    document.tensors = {.file = kTensorFile,
                        .sha256 = sha256_of_file(target.temporary() / kTensorFile)};
    write_text_atomic(target.temporary() / kDocumentFile, avatar_document_text(document));
    target.commit();
}

}  // namespace newscaster::avatar

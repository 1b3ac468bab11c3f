// Files: whole reads with a size limit, atomic writes, hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace newscaster {

// Throws Error(io) naming the file and the reason; limit guards against absurd sizes.
[[nodiscard]] std::vector<std::byte> read_file(const std::filesystem::path& file,
                                               uint64_t limit_bytes = 4ULL << 30U);
[[nodiscard]] std::string read_text(const std::filesystem::path& file,
                                    uint64_t limit_bytes = 64ULL << 20U);

// Lower-case hex SHA-256.
[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);
[[nodiscard]] std::string sha256_hex(std::string_view text);
[[nodiscard]] std::string sha256_of_file(const std::filesystem::path& file);

// A file that appears under its final name only when commit() succeeds. Until then the bytes are in
// a temporary beside it, removed by the destructor; the final name is never half-written.
class AtomicFile {
  public:
    // Creates missing parent folders and the temporary at once, so an unwritable place fails before
    // any work. Throws Error(io). The temporary keeps the final extension ("out.mp4" ->
    // ".out.mp4.<pid>.<n>.part.mp4") for writers that sniff it.
    explicit AtomicFile(std::filesystem::path final_path);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
    [[nodiscard]] const std::filesystem::path& path() const { return final_; }

    // Renames the temporary over the final name. Throws Error(io).
    void commit();

  private:
    std::filesystem::path final_;
    std::filesystem::path temporary_;
    bool committed_ = false;
};

// A folder that appears under its final name, complete, only when commit() succeeds; see
// AtomicFile.
class AtomicFolder {
  public:
    enum class Existing { refuse, replace };  // what to do about a folder that is not empty

    // Creates missing parent folders and the temporary at once. Throws Error(io): the final name is
    // a file, or a folder that is not empty (refuse), or the place is not writable.
    explicit AtomicFolder(const std::filesystem::path& final_path,
                          Existing existing = Existing::refuse);
    AtomicFolder(const AtomicFolder&) = delete;
    AtomicFolder& operator=(const AtomicFolder&) = delete;
    ~AtomicFolder();

    [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
    [[nodiscard]] const std::filesystem::path& path() const { return final_; }  // no trailing slash

    // Renames the temporary to the final name; a replaced folder is removed. Throws Error(io).
    void commit();

  private:
    std::filesystem::path final_;
    std::filesystem::path temporary_;
    Existing existing_;
    bool committed_ = false;
};

// AtomicFile + write + commit.
void write_file_atomic(const std::filesystem::path& file, std::span<const std::byte> bytes);
void write_text_atomic(const std::filesystem::path& file, std::string_view text);

// $NEWSCASTER_CACHE, else $XDG_CACHE_HOME/newscaster, else ~/.cache/newscaster.
[[nodiscard]] std::filesystem::path default_cache_dir();

}  // namespace newscaster

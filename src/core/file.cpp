#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "newscaster/error.h"

namespace newscaster {

namespace fs = std::filesystem;

namespace {

std::string reason(int error_number) {
    return std::generic_category().message(error_number);
}

[[noreturn]] void fail_to_write(const fs::path& path, const std::error_code& error) {
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot be written: {}", path.string(), error.message()));
}

// A hidden name in the same folder (made if missing) that nobody else uses.
fs::path temporary_beside(const fs::path& final_path) {
    static std::atomic<unsigned> counter{0};  // unique names within the process
    std::error_code error;
    const fs::path folder = final_path.has_parent_path() ? final_path.parent_path() : fs::path(".");
    fs::create_directories(folder, error);
    if (error && !fs::is_directory(folder)) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: folder cannot be made: {}", folder.string(), error.message()));
    }
    return folder / fmt::format(".{}.{}.{}.part{}", final_path.filename().string(), ::getpid(),
                                counter.fetch_add(1), final_path.extension().string());
}

class Sha256 {
  public:
    Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
            throw Error(ErrorCode::runtime, "SHA-256 is not available in the crypto library");
        }
    }
    void update(const void* data, size_t size) { EVP_DigestUpdate(context_.get(), data, size); }
    std::string hex() {
        std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
        unsigned int length = 0;
        EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
        std::string text;
        text.reserve(2UL * length);
        for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
        return text;
    }

  private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

std::ifstream open_for_reading(const fs::path& file) {
    std::error_code ignored;
    if (fs::is_directory(file, ignored)) {
        throw Error(ErrorCode::io, fmt::format("{}: is a folder, a file is wanted", file.string()));
    }
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", file.string(),
                                               reason(errno != 0 ? errno : EIO)));
    }
    return stream;
}

template <typename Container>
Container read_whole(const fs::path& file, uint64_t limit_bytes) {
    std::ifstream stream = open_for_reading(file);
    stream.seekg(0, std::ios::end);
    const auto size = static_cast<int64_t>(stream.tellg());
    if (size < 0) throw Error(ErrorCode::io, fmt::format("{}: cannot be read", file.string()));
    if (static_cast<uint64_t>(size) > limit_bytes) {
        throw Error(ErrorCode::io, fmt::format("{}: {} bytes, more than the limit of {}",
                                               file.string(), size, limit_bytes));
    }
    stream.seekg(0);
    Container bytes;
    bytes.resize(static_cast<size_t>(size));
    stream.read(reinterpret_cast<char*>(bytes.data()), size);
    if (stream.gcount() != size) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: read {} of {} bytes", file.string(), stream.gcount(), size));
    }
    return bytes;
}

}  // namespace

std::vector<std::byte> read_file(const fs::path& file, uint64_t limit_bytes) {
    return read_whole<std::vector<std::byte>>(file, limit_bytes);
}

std::string read_text(const fs::path& file, uint64_t limit_bytes) {
    return read_whole<std::string>(file, limit_bytes);
}

std::string sha256_hex(std::span<const std::byte> bytes) {
    Sha256 hash;
    hash.update(bytes.data(), bytes.size());
    return hash.hex();
}

std::string sha256_hex(std::string_view text) {
    return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

std::string sha256_of_file(const fs::path& file) {
    std::ifstream stream = open_for_reading(file);
    Sha256 hash;
    std::vector<char> block(1U << 20U);
    while (stream) {
        stream.read(block.data(), static_cast<std::streamsize>(block.size()));
        hash.update(block.data(), static_cast<size_t>(stream.gcount()));
    }
    if (stream.bad()) throw Error(ErrorCode::io, fmt::format("{}: read failed", file.string()));
    return hash.hex();
}

AtomicFile::AtomicFile(fs::path final_path) : final_(std::move(final_path)) {
    std::error_code error;
    if (fs::is_directory(final_, error)) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: is a folder, a file name is wanted", final_.string()));
    }
    if (fs::exists(final_, error) && !fs::is_regular_file(final_, error)) {
        // Renaming over a device or pipe would replace it (as root even /dev/null).
        throw Error(ErrorCode::io,
                    fmt::format("{}: is not a regular file; \"-\" writes to standard output",
                                final_.string()));
    }
    temporary_ = temporary_beside(final_);
    const int fd = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: cannot be written: {}", final_.string(), reason(errno)));
    }
    ::close(fd);
}

AtomicFile::~AtomicFile() {
    if (committed_) return;
    std::error_code ignored;
    fs::remove(temporary_, ignored);
}

void AtomicFile::commit() {
    std::error_code error;
    fs::rename(temporary_, final_, error);
    if (error) fail_to_write(final_, error);
    committed_ = true;
}

AtomicFolder::AtomicFolder(const fs::path& final_path, Existing existing) : existing_(existing) {
    const fs::path normal = final_path.lexically_normal();
    final_ = normal.has_filename() ? normal : normal.parent_path();  // "frames/" is "frames"
    std::error_code error;
    if (fs::exists(final_, error)) {
        const bool folder = fs::is_directory(final_, error);
        if (!folder || (existing == Existing::refuse && !fs::is_empty(final_, error))) {
            throw Error(ErrorCode::io,
                        fmt::format("{}: exists already, a new or empty folder is wanted",
                                    final_.string()));
        }
    }
    temporary_ = temporary_beside(final_);
    fs::create_directory(temporary_, error);
    if (error) fail_to_write(final_, error);
}

AtomicFolder::~AtomicFolder() {
    if (committed_) return;
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
}

void AtomicFolder::commit() {
    std::error_code error;
    fs::path old;
    if (existing_ == Existing::replace && fs::is_directory(final_, error)) {
        old = temporary_beside(final_);
        fs::rename(final_, old, error);
        if (error) fail_to_write(final_, error);
    }
    fs::rename(temporary_, final_, error);  // replaces an empty folder
    if (error) {
        std::error_code ignored;
        if (!old.empty()) fs::rename(old, final_, ignored);
        fail_to_write(final_, error);
    }
    committed_ = true;
    if (!old.empty()) fs::remove_all(old, error);
}

void write_file_atomic(const fs::path& file, std::span<const std::byte> bytes) {
    AtomicFile target(file);
    std::ofstream stream(target.temporary(), std::ios::binary | std::ios::trunc);
    stream.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    stream.close();
    if (!stream) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot be written: {}", file.string(),
                                               reason(errno != 0 ? errno : EIO)));
    }
    target.commit();
}

void write_text_atomic(const fs::path& file, std::string_view text) {
    write_file_atomic(file, std::as_bytes(std::span(text.data(), text.size())));
}

fs::path default_cache_dir() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value != nullptr ? value : "");
    };
    if (auto own = variable("NEWSCASTER_CACHE"); !own.empty()) return own;
    if (auto xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "newscaster";
    if (auto home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache/newscaster";
    return fs::temp_directory_path() / "newscaster-cache";
}

}  // namespace newscaster

#include "encode/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

#include "media/av_ptr.h"
#include "newscaster/error.h"

namespace newscaster::encode {

namespace fs = std::filesystem;

namespace {

constexpr int kAvioBuffer = 256 * 1024;

// A device, named pipe or socket: written directly, never replaced.
bool is_special(const std::string& output) {
    std::error_code ignored;
    const fs::file_status status = fs::status(output, ignored);
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

[[noreturn]] void fail_to_write(const std::string& name, int error_number) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot be written: {}", name,
                                           std::generic_category().message(error_number)));
}

}  // namespace

void OutputFile::AvioDeleter::operator()(AVIOContext* p) const {
    av_freep(static_cast<void*>(&p->buffer));
    avio_context_free(&p);
}

OutputFile::OutputFile(const std::string& output)
    : name_(output == "-" ? "standard output" : output) {
    if (output == "-") {
        fd_ = STDOUT_FILENO;
        return;
    }
    const bool special = is_special(output);
    if (!special) atomic_.emplace(output);
    const std::string target = special ? output : atomic_->temporary().string();
    const int flags = special ? O_WRONLY : O_RDWR | O_TRUNC;
    fd_ = ::open(target.c_str(), flags | O_CLOEXEC);
    if (fd_ < 0) fail(errno);
    owns_fd_ = true;
}

OutputFile::~OutputFile() {
    if (owns_fd_) ::close(fd_);
}

void OutputFile::fail(int error_number) const {
    fail_to_write(name_, error_number);
}

void OutputFile::probe(const std::string& output) {
    if (output == "-") return;
    if (!is_special(output)) {
        const AtomicFile removed_again(output);
    } else if (::access(output.c_str(), W_OK) != 0) {
        fail_to_write(output, errno);
    }
}

int OutputFile::write_all(const uint8_t* data, size_t size) {
    if (error_ != 0) return error_;
    while (size > 0) {
        const ssize_t written = ::write(fd_, data, size);
        if (written > 0) {
            data += written;
            size -= static_cast<size_t>(written);
        } else if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            pollfd wait{fd_, POLLOUT, 0};
            ::poll(&wait, 1, -1);
        } else if (written == 0 || errno != EINTR) {
            error_ = written == 0 ? EIO : errno;
            return error_;
        }
    }
    return 0;
}

void OutputFile::write(std::span<const uint8_t> bytes) {
    if (const int error = write_all(bytes.data(), bytes.size()); error != 0) fail(error);
}

int OutputFile::write_callback(void* self, uint8_t* data, int size) {
    const int error = static_cast<OutputFile*>(self)->write_all(data, static_cast<size_t>(size));
    return error == 0 ? size : AVERROR(error);
}

int64_t OutputFile::seek_callback(void* self, int64_t offset, int whence) {
    const int fd = static_cast<OutputFile*>(self)->fd_;
    if (whence == AVSEEK_SIZE) {
        const off_t here = ::lseek(fd, 0, SEEK_CUR);
        const off_t size = ::lseek(fd, 0, SEEK_END);
        ::lseek(fd, here, SEEK_SET);
        return size >= 0 ? size : AVERROR(errno);
    }
    const off_t result = ::lseek(fd, offset, whence & ~AVSEEK_FORCE);
    return result >= 0 ? result : AVERROR(errno);
}

AVIOContext* OutputFile::avio() {
    if (!avio_) {
        auto* buffer = static_cast<uint8_t*>(av_malloc(kAvioBuffer));
        if (buffer == nullptr) throw std::bad_alloc();
        avio_.reset(avio_alloc_context(buffer, kAvioBuffer, 1, this, nullptr, &write_callback,
                                       seekable() ? &seek_callback : nullptr));
        if (!avio_) {
            av_free(buffer);
            throw std::bad_alloc();
        }
    }
    return avio_.get();
}

void OutputFile::check() const {
    if (error_ != 0) fail(error_);
    if (avio_ && avio_->error < 0) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot be written: {}", name_,
                                               media::av_reason(avio_->error)));
    }
}

std::string OutputFile::url() const {
    return media::file_url(atomic_ ? atomic_->temporary().string() : name_);
}

void OutputFile::commit() {
    if (avio_) avio_flush(avio_.get());
    check();
    if (owns_fd_) {
        owns_fd_ = false;
        if (::close(fd_) != 0) fail(errno);
    }
    if (atomic_) atomic_->commit();
}

}  // namespace newscaster::encode

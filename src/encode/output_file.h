// Where the bytes of a result go: a file that appears only when complete, a device or named pipe,
// or standard output; with the system's reason when writing fails. Private to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/file.h"

struct AVIOContext;

namespace newscaster::encode {

// Not thread-safe. A closed pipe is reported as Error(io) only when the program ignores SIGPIPE.
class OutputFile {
  public:
    // output: a path, or "-" for standard output. Missing parent folders are made. Existing
    // devices and named pipes are written directly. Throws Error(io) when not writable.
    explicit OutputFile(const std::string& output);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();

    // Throws Error(io) naming the output and the reason.
    void write(std::span<const uint8_t> bytes);

    // For a muxer; owned by this object. Errors inside it do not throw: call check().
    [[nodiscard]] AVIOContext* avio();
    // Throws Error(io) when a write through avio() failed.
    void check() const;

    // Regular files only; a muxer may then go back and complete its header.
    [[nodiscard]] bool seekable() const { return atomic_.has_value(); }
    // libav address under which the bytes written so far can be read again (seekable() only).
    [[nodiscard]] std::string url() const;
    // How messages name this output.
    [[nodiscard]] const std::string& name() const { return name_; }

    // Whether this place can be written, without opening a pipe or device (which may wait for a
    // reader). Leaves nothing behind but missing parent folders. Throws Error(io).
    static void probe(const std::string& output);

    // Everything was written: closes and gives the file its final name. Throws Error(io).
    void commit();

  private:
    struct AvioDeleter {
        void operator()(AVIOContext* p) const;
    };
    // 0, or the errno of the failure.
    int write_all(const uint8_t* data, size_t size);
    [[noreturn]] void fail(int error_number) const;
    static int write_callback(void* self, uint8_t* data, int size);
    static int64_t seek_callback(void* self, int64_t offset, int whence);

    std::string name_;
    std::optional<AtomicFile> atomic_;
    int fd_ = -1;
    bool owns_fd_ = false;
    int error_ = 0;  // errno of the first failed write
    std::unique_ptr<AVIOContext, AvioDeleter> avio_;
};

}  // namespace newscaster::encode

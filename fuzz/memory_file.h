// Bytes as a file that code under test can open by path; nothing touches a disk.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace newscaster::fuzz {

class MemoryFile {
  public:
    explicit MemoryFile(std::span<const uint8_t> bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
        if (fd_ < 0 ||
            ::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
            std::abort();
        }
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { ::close(fd_); }

    // Opening it gives a fresh file position, as any path does.
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    int fd_;
};

}  // namespace newscaster::fuzz

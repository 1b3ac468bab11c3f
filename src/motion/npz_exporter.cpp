#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "motion/exporters.h"
#include "newscaster/error.h"

namespace newscaster::motion {

namespace {

// Zip: PKWARE APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.16 (end).
// npy: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0.
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kNpyHeaderBytes = 128;  // fixed, so that the row count can be patched in
constexpr size_t kReadBlockBytes = 1U << 16U;
static_assert(std::endian::native == std::endian::little, "npy data is written as it lies");

constexpr std::array<uint32_t, 256> make_crc_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < table.size(); ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value & 1U) != 0 ? (value >> 1U) ^ 0xEDB88320U : value >> 1U;
        }
        table[i] = value;
    }
    return table;
}

// CRC-32 as zip uses it; `crc` is the value of the bytes before, 0 at the start.
uint32_t crc32(std::string_view bytes, uint32_t crc) {
    static constexpr auto kTable = make_crc_table();
    crc = ~crc;
    for (const char c : bytes) {
        crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (crc >> 8U);
    }
    return ~crc;
}

template <typename T>
void put(std::string& target, T value) {
    std::array<char, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(T));
    target.append(bytes.data(), bytes.size());
}

std::string npy_header(std::string_view descr, std::string_view shape) {
    std::string header("\x93NUMPY\x01\x00", 8);
    put(header, static_cast<uint16_t>(kNpyHeaderBytes - 10));
    header += fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
    header.resize(kNpyHeaderBytes - 1, ' ');
    return header + '\n';
}

std::string motion_header(int64_t frames, int64_t dims) {
    return npy_header("<f4", fmt::format("({}, {})", frames, dims));
}

// The fields that the local header and the directory have in common.
std::string member_fields(uint32_t crc, uint32_t size, size_t name_bytes) {
    std::string fields;
    put<uint16_t>(fields, 20);      // version needed: 2.0
    put<uint16_t>(fields, 0);       // flags
    put<uint16_t>(fields, 0);       // method: stored
    put<uint16_t>(fields, 0);       // time: fixed, so that equal motion gives equal files
    put<uint16_t>(fields, 0x0021);  // date: 1980-01-01
    put(fields, crc);
    put(fields, size);  // compressed
    put(fields, size);
    put(fields, static_cast<uint16_t>(name_bytes));
    put<uint16_t>(fields, 0);  // extra field
    return fields;
}

std::string local_header(const std::string& name, uint32_t crc, uint32_t size) {
    return std::string("PK\x03\x04", 4) + member_fields(crc, size, name.size()) + name;
}

// Code points of ASCII names, padded with zeros to the longest.
std::string unicode_cells(const std::vector<std::string>& names, size_t width) {
    std::string cells;
    for (const auto& name : names) {
        for (size_t i = 0; i < width; ++i) {
            put(cells,
                i < name.size() ? static_cast<uint32_t>(static_cast<unsigned char>(name[i])) : 0U);
        }
    }
    return cells;
}

}  // namespace

NpzExporter::NpzExporter(const std::filesystem::path& file, const pack::Manifest& manifest)
    : dims_(manifest.motion.dims),
      fps_(manifest.frame_rate.to_double()),
      names_(dim_names(manifest.motion)),
      file_(file) {
    begin_member("motion.npy", motion_header(0, dims_));
}

void NpzExporter::begin_member(const std::string& name, std::string_view npy_header) {
    const int64_t offset = file_.size();
    if (offset > std::numeric_limits<uint32_t>::max()) {
        throw Error(ErrorCode::io, "motion export: .npz is full at 4 GiB, wanted .csv or .json");
    }
    members_.push_back({.name = name, .offset = static_cast<uint32_t>(offset)});
    file_.append(local_header(name, 0, 0));
    file_.append(npy_header);
}

// Sizes and checksum are known only now: read the member back and patch its local header.
void NpzExporter::end_member() {
    Member& member = members_.back();
    const int64_t begin =
        member.offset + static_cast<int64_t>(kLocalHeaderBytes + member.name.size());
    const int64_t size = file_.size() - begin;
    if (file_.size() > std::numeric_limits<uint32_t>::max()) {
        throw Error(ErrorCode::io, "motion export: .npz is full at 4 GiB, wanted .csv or .json");
    }
    member.size = static_cast<uint32_t>(size);
    for (int64_t at = begin; at < begin + size; at += static_cast<int64_t>(kReadBlockBytes)) {
        member.crc = crc32(file_.read(at, kReadBlockBytes), member.crc);
    }
    file_.patch(member.offset, local_header(member.name, member.crc, member.size));
}

void NpzExporter::write(int64_t frame, std::span<const float> motion) {
    require_row(frame, next_frame_, motion, dims_);
    file_.append({reinterpret_cast<const char*>(motion.data()), motion.size_bytes()});
    ++next_frame_;
}

void NpzExporter::append_directory() {
    const auto begin = static_cast<uint32_t>(file_.size());
    std::string directory;
    for (const Member& member : members_) {
        directory.append("PK\x01\x02", 4);
        put<uint16_t>(directory, 20);  // version made by: 2.0
        directory += member_fields(member.crc, member.size, member.name.size());
        put<uint16_t>(directory, 0);  // comment
        put<uint16_t>(directory, 0);  // disk
        put<uint16_t>(directory, 0);  // internal attributes
        put<uint32_t>(directory, 0);  // external attributes
        put(directory, member.offset);
        directory += member.name;
    }
    const auto directory_bytes = static_cast<uint32_t>(directory.size());
    const auto count = static_cast<uint16_t>(members_.size());
    directory.append("PK\x05\x06", 4);
    put<uint16_t>(directory, 0);  // this disk
    put<uint16_t>(directory, 0);  // disk of the directory
    put(directory, count);
    put(directory, count);
    put(directory, directory_bytes);
    put(directory, begin);
    put<uint16_t>(directory, 0);  // comment
    file_.append(directory);
}

void NpzExporter::finish() {
    const auto data = static_cast<int64_t>(kLocalHeaderBytes + members_.front().name.size());
    file_.patch(data, motion_header(next_frame_, dims_));
    end_member();

    size_t width = 1;
    for (const auto& name : names_) width = std::max(width, name.size());
    begin_member("names.npy",
                 npy_header(fmt::format("<U{}", width), fmt::format("({},)", names_.size())));
    file_.append(unicode_cells(names_, width));
    end_member();

    std::string fps;
    put(fps, fps_);
    begin_member("fps.npy", npy_header("<f8", "()"));
    file_.append(fps);
    end_member();

    append_directory();
    file_.commit();
}

}  // namespace newscaster::motion

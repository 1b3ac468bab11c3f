// Opening a file or standard input with libav by content alone. Private to this room.
#pragma once

#include <string>

#include "media/av_ptr.h"

namespace newscaster::media {

// An opened container. `format` must go before `io`: it reads through it.
struct Input {
    AvIoPtr io;
    InputFormatPtr format;
};

// path: a file, or "-" for standard input (not seekable). The name is never shown to libav's
// format detection and the content cannot make libav open anything else (playlists, references).
// `what` completes "is not ...": "a sound file". Throws Error(io) when it cannot be read,
// Error(bad_input) when the content is no known format.
// With Analysis::none the streams are as the header describes them; nothing is decoded.
enum class Analysis { none, streams };
[[nodiscard]] Input open_input(const std::string& path, const std::string& what,
                               Analysis analysis = Analysis::streams);

// What Analysis::streams does: decodes as much as it takes to know every stream.
void analyse_streams(Input& input, const std::string& name, const std::string& what);

// "standard input" for "-", else the path; how messages name the input.
[[nodiscard]] std::string display_name(const std::string& path);

}  // namespace newscaster::media

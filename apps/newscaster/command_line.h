// From arguments, NEWSCASTER_* variables and the configuration file to a request; nothing is run.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "requests.h"

namespace newscaster::cli {

// Parses one command line; a second parse starts from the values of the first. Not thread-safe.
class CommandLine {
  public:
    // version: what --version prints.
    explicit CommandLine(const std::string& version);
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // Throws CLI::Success for --help and --version (see print), CLI::ParseError for what the
    // command line gets wrong, Error(bad_input) for what the configuration file gets wrong.
    [[nodiscard]] Invocation parse(int argc, const char* const* argv);

    // Writes the help or version that `asked` asks for to standard output; the exit code.
    int print(const CLI::Success& asked) const;

  private:
    void add_global_options();
    void add_pack_verb();
    void add_avatar_verb();

    CLI::App app_;
    GlobalOptions global_;
    RenderRequest render_;
    PackInfoRequest pack_info_;
    PackVerifyRequest pack_verify_;
    PackPlanRequest pack_plan_;
    AvatarInfoRequest avatar_info_;
    AvatarPreviewRequest avatar_preview_;
    AvatarCreateRequest avatar_create_;
    ForensicsRequest forensics_;
    SyncRequest sync_;
    Request chosen_;
};

}  // namespace newscaster::cli

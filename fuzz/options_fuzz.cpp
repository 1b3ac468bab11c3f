// Any bytes as a command line or as a configuration file: a request whose numbers are in range, or
// a refusal that the program turns into exit code 2.
//
// The first byte chooses: 'c' = the rest is a TOML file of `newscaster render`, else the rest are
// the arguments, one a line.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "command_line.h"
#include "memory_file.h"
#include "newscaster/error.h"
#include "render_options.h"

namespace {

namespace cli = newscaster::cli;

constexpr size_t kMaxBytes = 4096;

void check(const cli::RenderRequest& request) {
    const auto within = [](double value, double low, double high) {
        if (!(value >= low && value <= high)) std::abort();
    };
    within(request.crf, 0.0, 51.0);
    within(request.threads, 0, 1024);
    within(request.batch_size, 0, 1024);
    within(static_cast<double>(request.steps), 0, 1000);
    if (request.audio.empty()) return;
    const auto job = cli::make_job(request);
    if (job.output.empty() || request.stride != 1) std::abort();
}

void parse(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv{"newscaster"};
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    cli::CommandLine command_line("fuzz");
    try {
        const auto invocation = command_line.parse(static_cast<int>(argv.size()), argv.data());
        if (const auto* render = std::get_if<cli::RenderRequest>(&invocation.request)) {
            check(*render);
        }
    } catch (const CLI::ParseError&) {  // help and version, too
    } catch (const newscaster::Error& error) {
        if (error.code() != newscaster::ErrorCode::bad_input) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0 || size > kMaxBytes) return 0;
    if (data[0] == 'c') {
        const newscaster::fuzz::MemoryFile file({data + 1, size - 1});
        parse({"render", "speech.wav", "--config", file.path()});
        return 0;
    }
    std::vector<std::string> arguments;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    // Other files are the machine's, not the fuzzer's.
    if (rest.find("--config") != std::string_view::npos) return 0;
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        arguments.emplace_back(rest.substr(0, end));
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    parse(arguments);
    return 0;
}

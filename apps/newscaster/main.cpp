// The `newscaster` program: parses the command line, runs one verb, turns failures into exit codes.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <variant>

#include "command_line.h"
#include "commands.h"
#include "interrupt.h"
#include "newscaster/error.h"
#include "newscaster/inspect.h"

namespace newscaster::cli {

LogSink GlobalOptions::log_sink() const {
    auto level = spdlog::level::warn;
    if (quiet) {
        level = spdlog::level::err;
    } else if (verbosity > 0) {
        level = verbosity == 1 ? spdlog::level::info : spdlog::level::debug;
    }
    auto logger = std::make_shared<spdlog::logger>(
        "newscaster", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(level);
    logger->set_pattern("newscaster: %^%l%$: %v");
    return [logger](LogLevel severity, std::string_view line) {
        switch (severity) {
            case LogLevel::debug:
                logger->debug("{}", line);
                break;
            case LogLevel::info:
                logger->info("{}", line);
                break;
            case LogLevel::warning:
                logger->warn("{}", line);
                break;
            case LogLevel::error:
                logger->error("{}", line);
                break;
        }
    };
}

namespace {

int fail(const Error& error) {
    const std::string stage = error.stage().empty() ? "" : error.stage() + ": ";
    const bool show_stage = error.code() == ErrorCode::runtime;
    fmt::print(stderr, "newscaster: {}{}\n", show_stage ? stage : "", error.what());
    return static_cast<int>(error.code());
}

int parse_and_run(int argc, char** argv) {
    install_interrupt_handlers();
    CommandLine command_line(version());
    try {
        const Invocation invocation = command_line.parse(argc, argv);
        return std::visit([&](const auto& request) { return run(request, invocation.global); },
                          invocation.request);
    } catch (const CLI::Success& help) {
        return command_line.print(help);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "newscaster: {}; see newscaster --help\n", error.what());
        return static_cast<int>(ErrorCode::bad_input);
    } catch (const Error& error) {
        return fail(error);
    }
}

}  // namespace
}  // namespace newscaster::cli

int main(int argc, char** argv) {
    try {
        return newscaster::cli::parse_and_run(argc, argv);
    } catch (const std::exception& exception) {
        std::fprintf(stderr, "newscaster: %s\n", exception.what());
        return 1;
    }
}

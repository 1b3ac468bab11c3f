#include "settings.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>

#include "newscaster/error.h"

namespace newscaster::cli {

namespace {

constexpr std::string_view kConfigFlag = "--config";

std::string value_text(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
    if (const auto number = node.value_exact<int64_t>()) return fmt::format("{}", *number);
    if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
    return "";
}

void apply_value(CLI::App& app, const std::string& file, const std::string& key,
                 const toml::node& node) {
    CLI::Option* option = app.get_option_no_throw("--" + key);
    if (option == nullptr || key == "config" || key == "help") {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: \"{}\" is not an option of {}", file, key, app.get_name()));
    }
    const std::string text = value_text(node);
    if (text.empty()) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: {}: wanted a string, number or true/false", file, key));
    }
    try {
        option->default_val(text);
    } catch (const CLI::Error& error) {
        throw Error(ErrorCode::bad_input, fmt::format("{}: {}: {}", file, key, error.what()));
    }
}

// toml++ wants to seek, which pipes cannot, and takes a folder for an empty file.
std::string contents_of(const std::string& file) {
    std::error_code ignored;
    std::ifstream stream(file, std::ios::binary);
    if (!stream.is_open() || std::filesystem::is_directory(file, ignored)) {
        throw Error(ErrorCode::bad_input, file + ": the configuration file cannot be read");
    }
    return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

void name_environment_variables(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
        const auto& names = option->get_lnames();
        if (names.empty() || names.front() == "help" || names.front() == "version") continue;
        std::string variable = "NEWSCASTER_" + names.front();
        std::transform(variable.begin(), variable.end(), variable.begin(), [](unsigned char c) {
            return c == '-' ? '_' : static_cast<char>(std::toupper(c));
        });
        option->envname(variable);
    }
    for (CLI::App* verb : app.get_subcommands({})) name_environment_variables(*verb);
}

void apply_config_file(CLI::App& app, const std::string& file) {
    toml::table table;
    try {
        table = toml::parse(contents_of(file), file);
    } catch (const toml::parse_error& error) {
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
    }
    for (const auto& [key, node] : table) {
        const std::string name(key.str());
        const toml::table* section = node.as_table();
        if (section == nullptr) {
            apply_value(app, file, name, node);
            continue;
        }
        const auto verbs = app.get_subcommands(
            [&](const CLI::App* candidate) { return candidate->get_name() == name; });
        if (verbs.empty()) {
            throw Error(ErrorCode::bad_input,
                        fmt::format("{}: [{}] is not a verb of newscaster", file, name));
        }
        for (const auto& [option, value] : *section) {
            apply_value(*verbs.front(), file, std::string(option.str()), value);
        }
    }
}

std::string find_config_file(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == kConfigFlag && i + 1 < argc) return argv[i + 1];
        if (argument.starts_with(kConfigFlag) && argument.size() > kConfigFlag.size() &&
            argument[kConfigFlag.size()] == '=') {
            return std::string(argument.substr(kConfigFlag.size() + 1));
        }
    }
    const char* variable = std::getenv("NEWSCASTER_CONFIG");
    return variable != nullptr ? variable : "";
}

}  // namespace newscaster::cli

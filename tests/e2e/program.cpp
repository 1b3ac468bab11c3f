#include "e2e/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

namespace newscaster::e2e {

namespace fs = std::filesystem;

namespace {

constexpr int kSignalBase = 128;
constexpr auto kPoll = std::chrono::milliseconds(2);

std::string contents(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

void redirect(int target, const fs::path& file, int flags) {
    const int fd = ::open(file.c_str(), flags, 0644);
    if (fd < 0 || ::dup2(fd, target) < 0) ::_exit(126);
}

// In the child: never returns.
[[noreturn]] void execute(const std::string& program, const std::vector<std::string>& arguments,
                          const RunOptions& options, const fs::path& out, const fs::path& err) {
    redirect(STDIN_FILENO, options.stdin_file.empty() ? "/dev/null" : options.stdin_file, O_RDONLY);
    redirect(STDOUT_FILENO, options.stdout_file.empty() ? out : options.stdout_file,
             O_WRONLY | O_CREAT | O_TRUNC);
    redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
    for (const auto& [name, value] : options.environment) {
        ::setenv(name.c_str(), value.c_str(), 1);
    }
    if (!options.working_folder.empty() && ::chdir(options.working_folder.c_str()) != 0) {
        ::_exit(126);
    }
    if (options.file_size_limit != 0) {
        const rlimit limit{options.file_size_limit, options.file_size_limit};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execvp(program.c_str(), argv.data());
    ::_exit(127);
}

}  // namespace

RunResult run(const std::string& program, const std::vector<std::string>& arguments,
              const RunOptions& options) {
    std::array<char, 32> name{"/tmp/newscaster_run_XXXXXX"};
    const fs::path folder = ::mkdtemp(name.data());
    const auto start = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) execute(program, arguments, options, folder / "out", folder / "err");

    int status = 0;
    rusage usage{};
    bool killed = options.kill_signal == 0;
    while (::wait4(child, &status, WNOHANG, &usage) == 0) {
        if (!killed && std::chrono::steady_clock::now() - start >= options.kill_after) {
            ::kill(child, options.kill_signal);
            killed = true;
        }
        std::this_thread::sleep_for(kPoll);
    }
    RunResult result;
    result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
    result.out = contents(folder / "out");
    result.err = contents(folder / "err");
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    result.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    result.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) << 10U;
    fs::remove_all(folder);
    return result;
}

RunResult newscaster(const std::vector<std::string>& arguments, const RunOptions& options) {
    RunOptions with_data = options;
    with_data.environment.try_emplace("NEWSCASTER_DATA", NEWSCASTER_SOURCE_DIR);
    return run(NEWSCASTER_PROGRAM, arguments, with_data);
}

fs::path scratch() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    fs::path folder = fs::path(testing::TempDir()) / "newscaster_e2e" /
                      (std::string(test->test_suite_name()) + "." + test->name());
    fs::remove_all(folder);
    fs::create_directories(folder);
    return folder;
}

std::string tool(const std::string& program, const std::vector<std::string>& arguments) {
    const RunResult result = run(program, arguments);
    EXPECT_EQ(result.exit_code, 0) << program << ": " << result.err;
    return result.out;
}

}  // namespace newscaster::e2e

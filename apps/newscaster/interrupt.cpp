#include "interrupt.h"

#include <csignal>

namespace newscaster::cli {

namespace {

// A signal handler can only reach a global; this is the program's, not the library's.
volatile std::sig_atomic_t stop_signal = 0;

extern "C" void on_signal(int number) {
    stop_signal = number;
    std::signal(number, SIG_DFL);
}

}  // namespace

void install_interrupt_handlers() {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    std::signal(SIGPIPE, SIG_IGN);  // closed pipes and file size limits become write errors
    std::signal(SIGXFSZ, SIG_IGN);
}

bool interrupted() {
    return stop_signal != 0;
}

}  // namespace newscaster::cli

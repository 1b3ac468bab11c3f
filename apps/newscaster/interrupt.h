// SIGINT and SIGTERM ask for a clean stop; SIGPIPE becomes a write error.
#pragma once

namespace newscaster::cli {

// Installs the handlers; a second SIGINT or SIGTERM ends the process the hard way.
void install_interrupt_handlers();

[[nodiscard]] bool interrupted();

}  // namespace newscaster::cli

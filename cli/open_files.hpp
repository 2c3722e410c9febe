/// The limit of open files of this process.
#pragma once

#include <cstdint>

namespace lamella::cli {

/// Lets this process open as many files as the system lets it: connections are files, and the limit
/// that shells begin with, 1,024, is less than http.connections_max. Returns how many; 0 where that
/// fails, and then nothing is changed.
uint64_t allow_open_files();

/// In the log, where so few files are a matter of links between workers.
void warn_of_few_files(uint64_t limit);

} // namespace lamella::cli

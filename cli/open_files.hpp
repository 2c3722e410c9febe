/// The limit of open files of this process.
#pragma once

namespace lamella::cli {

/// Lets this process open as many files as the system lets it: connections are files, and the limit
/// that shells begin with, 1,024, is less than http.connections_max. Does nothing where that fails.
void allow_open_files();

} // namespace lamella::cli

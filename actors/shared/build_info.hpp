/// What this program was built of. Its functions are in a file that CMake writes
/// (cmake/commit.cmake).
#pragma once

#include <string_view>

namespace lamella::actors {

/// Commit of the sources, twelve digits; with "-dirty" where they had changes beside it. Empty
/// where they came without their history.
std::string_view build_commit();

/// When that was first built here, "2026-11-24T03:02:51Z".
std::string_view build_date();

} // namespace lamella::actors

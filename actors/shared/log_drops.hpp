/// Dropped log lines of this process.
#pragma once

#include <atomic>
#include <cstdint>

namespace lamella::actors {

/// Lines that could not be written, because the reader was too slow or gone, or the file was not
/// writable.
inline std::atomic<uint64_t> log_lines_dropped{0};

} // namespace lamella::actors

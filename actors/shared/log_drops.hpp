/// What became of the log of this process.
#pragma once

#include <atomic>
#include <cstdint>

namespace lamella::actors {

/// Lines that could not be written, because nobody read them in time or their file took none.
inline std::atomic<uint64_t> log_lines_dropped{0};

} // namespace lamella::actors

/// What the machine itself can do, measured in the run that quotes it.
#pragma once

namespace lamella::cli {

/// GB/s of reading memory far larger than any cache, with all threads; the best of several passes.
/// Takes about a second and 512 MB.
double measure_read_bandwidth(unsigned threads);

} // namespace lamella::cli

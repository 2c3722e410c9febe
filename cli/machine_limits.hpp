/// What the machine itself can do, measured in the run that quotes it.
#pragma once

namespace lamella::cli {

/// GB/s of reading memory far larger than any cache, with all threads; the best of several passes.
/// Takes about a second and 512 MB.
double measure_read_bandwidth(unsigned threads);

/// 10^9 operations per second (a product and a sum are two) of the processor's int8 dot products
/// out of registers, with all threads: what products of quantised weights cannot exceed. 0 where
/// the processor has neither AVX-512 VNNI nor AVX2. Takes some 0.2 s.
double measure_int8_rate(unsigned threads);

} // namespace lamella::cli

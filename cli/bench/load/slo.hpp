/// Limits on the latencies of a request (SLOs): in milliseconds, or as slowdowns against a request
/// that is alone on the same server (S-M24).
#pragma once

#include "cli/bench/bench_record.hpp"

#include <string>
#include <vector>

namespace lamella::cli {

/// Reads ttft:500, tbt:50ms, e2e:1.5x and so on: the names are ttft, tpot (also tbt) and e2el (also
/// e2e), the limit is in milliseconds or, with an x, a slowdown. Throws command_error (2).
bench_slos read_slos(const std::vector<std::string>& words);

/// A request's latencies divided by those that it would have alone.
struct slowdowns {
  double ttft, tpot, e2el;
};

/// Between the measurements of requests that were alone, in a straight line over the lengths;
/// beyond them the nearest. No numbers where there are no measurements.
slowdowns slowdowns_of(const bench_record& r, const std::vector<bench_record>& alone);

/// Whether a request keeps all limits; one on what it does not have is kept.
bool keeps(const bench_record& r, const bench_slos& slos, const std::vector<bench_record>& alone);

/// Do the requests keep the nine limits of Splitwise (table VI): P50, P90 and P99 of the slowdowns
/// of TTFT (2, 3, 6), of TBT and of the whole (1.25, 1.5, 5)?
bool keep_nine_slos(const bench_result& result);

} // namespace lamella::cli

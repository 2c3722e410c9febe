/// Values of metrics, read from their page.
#pragma once

#include "net/metrics/metrics.hpp"

#include <string>

namespace lamella::simulation {

/// The sum of all series of that name, or the value of one: `name{label="value"}`. 0: there is
/// none. Clusters of one process share their numbers. A page of all metrics costs more than most
/// events.
inline double metric(net::metrics& metrics, const std::string& series) {
  const auto page = metrics.scrape().body;
  double sum = 0;
  for (size_t at = 0; (at = page.find("\n" + series, at)) != std::string::npos; ++at) {
    const auto line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
    if (line[series.size()] == ' ' || line[series.size()] == '{')
      sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

} // namespace lamella::simulation

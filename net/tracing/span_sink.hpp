/// Where finished spans go.
#pragma once

#include "net/tracing/span.hpp"

#include <vector>

namespace lamella::net {

/// Thread-safe; never blocks who offers.
class span_sink {
public:
  virtual ~span_sink() = default;
  /// Whether spans go anywhere; if not, none need to be made.
  virtual bool on() const = 0;
  /// Takes the spans of one request, all or none.
  virtual void offer(std::vector<span> spans) = 0;
};

} // namespace lamella::net

#include "scheduler/compatibility.hpp"

#include <array>
#include <cstdio>

namespace lamella::scheduler {

namespace {

std::string hex(uint64_t x) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(x));
  return text.data();
}

} // namespace

std::optional<std::string> refuse_worker(const identity& service, const identity& worker) {
  std::string text;
  const auto compare = [&](const char* what, const std::string& ours, const std::string& theirs) {
    if (ours == theirs) return;
    text += (text.empty() ? "" : "; ") + std::string{what} + ": the service has " + ours
            + ", the worker " + (theirs.empty() ? "none" : theirs);
  };
  compare("version", service.version, worker.version);
  compare("kernel set", service.kernels, worker.kernels);
  compare("shapes", service.shapes, worker.shapes);
  if (worker.with_weights)
    compare("model digest", hex(service.model_digest), hex(worker.model_digest));
  if (text.empty()) return std::nullopt;
  return text;
}

} // namespace lamella::scheduler

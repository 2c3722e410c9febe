#include "cli/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include <unistd.h>

namespace lamella::cli {

namespace {

constexpr int bar_width = 30;
constexpr std::chrono::milliseconds redraw_after{50};
constexpr std::chrono::seconds line_after{5};

/// "97.3 MB" where the numbers are bytes, nothing where they only count.
std::string size_suffix(uint64_t bytes) {
  if (bytes < 1'000'000) return {};
  char text[32];
  std::snprintf(text, sizeof text, " %.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

} // namespace

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

progress_bar::progress_bar()
    : progress_bar{[](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }} {
  terminal_ = is_terminal(STDERR_FILENO);
}

progress_bar::progress_bar(line_writer says)
    : terminal_{false}, says_{std::move(says)}, began_{std::chrono::steady_clock::now()},
      drawn_{began_} {}

progress_bar::~progress_bar() {
  if (open_) std::fputs("\n", stderr);
}

void progress_bar::update(const std::string& phase, uint64_t done, uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  const bool first = phase != phase_, last = done >= total;
  if (first) {
    phase_ = phase;
    began_ = now;
  }
  const auto wait = terminal_ ? std::chrono::duration_cast<std::chrono::milliseconds>(redraw_after)
                              : std::chrono::duration_cast<std::chrono::milliseconds>(line_after);
  if (!last && now - drawn_ < wait) return;
  drawn_ = now;
  const double ratio = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const double spent = std::chrono::duration<double>(now - began_).count();
  const double eta = ratio > 0 ? spent / ratio * (1 - ratio) : 0;
  if (!terminal_) {
    if (last && spent < 1) return; // too quick to be worth a line
    says_(fmt::format("loading {}: {:.0f} %{}, {:.1f} s{}", phase, ratio * 100, size_suffix(total),
                      spent, last ? "" : " so far"));
    return;
  }
  const int full = static_cast<int>(ratio * bar_width);
  std::string bar(static_cast<size_t>(std::clamp(full, 0, bar_width)), '#');
  bar.resize(bar_width, '.');
  std::fprintf(stderr, "\r\033[K%-8s [%s] %3.0f %%%s  %.1f s", phase.c_str(), bar.c_str(),
               ratio * 100, size_suffix(total).c_str(), last ? spent : eta);
  open_ = !last;
  if (last) std::fputs("\n", stderr);
  std::fflush(stderr);
}

} // namespace lamella::cli

// A log whose reader stops, whose disk is full, and that goes on afterwards.
#include "actors/shared/log_drops.hpp"
#include "cli/log_writer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include <fcntl.h>
#include <unistd.h>

using lamella::cli::log_writer;

namespace {

constexpr std::chrono::minutes timeout{5}; // only a broken program waits so long

struct pipe_ends {
  int read_end = -1, write_end = -1;
  pipe_ends() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    read_end = ends[0];
    write_end = ends[1];
  }
  ~pipe_ends() {
    if (read_end >= 0) close(read_end);
    close(write_end);
  }
};

std::string line_of(size_t i) { return "line " + std::to_string(i) + std::string(90, '.') + "\n"; }

} // namespace

TEST_CASE("log: lines come out whole and in their order") {
  pipe_ends ends;
  log_writer writer{ends.write_end};
  for (size_t i = 0; i < 100; ++i) CHECK(writer.put(line_of(i)));
  CHECK(writer.flush(timeout));
  std::string expected, got(1 << 16, '\0');
  for (size_t i = 0; i < 100; ++i) expected += line_of(i);
  got.resize(static_cast<size_t>(read(ends.read_end, got.data(), got.size())));
  CHECK(got == expected);
  CHECK(writer.dropped() == 0);
}

TEST_CASE("log: nobody waits for a reader that stopped; lines are dropped, counted, and go on") {
  pipe_ends ends;
  const auto before = lamella::actors::log_lines_dropped.load();
  log_writer writer{ends.write_end};
  size_t put = 0;
  const size_t lines = 4 * log_writer::room / line_of(0).size();
  for (size_t i = 0; i < lines; ++i) put += writer.put(line_of(i)) ? 1 : 0;
  CHECK(put < lines);
  CHECK(writer.dropped() == lines - put);
  CHECK(lamella::actors::log_lines_dropped - before == lines - put);
  CHECK_FALSE(writer.flush(std::chrono::milliseconds{1}));
  // The reader comes back: all that was not dropped is there.
  std::string got;
  char buffer[1 << 16];
  while (static_cast<size_t>(std::count(got.begin(), got.end(), '\n')) < put) {
    const auto count = read(ends.read_end, buffer, sizeof buffer);
    REQUIRE(count > 0);
    got.append(buffer, static_cast<size_t>(count));
  }
  CHECK(writer.flush(timeout));
  CHECK(got.starts_with(line_of(0) + line_of(1)));
  CHECK(writer.put("again\n"));
  CHECK(writer.flush(timeout));
  const auto count = read(ends.read_end, buffer, sizeof buffer);
  CHECK(std::string{buffer, static_cast<size_t>(count)} == "again\n");
}

TEST_CASE("log: a process whose reader never comes back ends all the same") {
  pipe_ends ends;
  {
    log_writer writer{ends.write_end};
    for (size_t i = 0; i < 2000; ++i) writer.put(line_of(i));
  }
  CHECK(true); // the writer has gone, its thread hangs on
}

TEST_CASE("log: a full disk, and a pipe without a reader, cost lines and nothing else") {
  SUBCASE("full disk") {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    REQUIRE(full >= 0);
    {
      log_writer writer{full};
      for (size_t i = 0; i < 10; ++i) CHECK(writer.put(line_of(i)));
      CHECK(writer.flush(timeout));
      CHECK(writer.dropped() == 10);
    }
    close(full);
  }
  SUBCASE("no reader") {
    pipe_ends ends;
    close(ends.read_end);
    ends.read_end = -1;
    log_writer writer{ends.write_end};
    CHECK(writer.put(line_of(0)));
    CHECK(writer.flush(timeout));
    CHECK(writer.dropped() == 1);
  }
}

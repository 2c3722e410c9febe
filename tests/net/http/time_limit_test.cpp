// Deadlines of conversations over sockets.
#include "net/http/time_limit.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <doctest/doctest.h>

#include <optional>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using socket_type = asio::local::stream_protocol::socket;
using limit_type = lamella::net::time_limit<socket_type>;

namespace {

struct two_ends {
  two_ends() { asio::local::connect_pair(*near, far); }
  asio::io_context io;
  std::shared_ptr<socket_type> near = std::make_shared<socket_type>(io);
  socket_type far{io};
};

} // namespace

TEST_CASE("a socket is closed when its time is over, and says so") {
  two_ends x;
  limit_type limit{x.near, 0ms};
  char byte = 0;
  boost::system::error_code result;
  asio::async_read(*x.near, asio::buffer(&byte, 1), [&](auto ec, size_t) { result = ec; });
  x.io.run();
  CHECK(result == asio::error::operation_aborted);
  CHECK(limit.over());
  CHECK_FALSE(x.near->is_open());
}

TEST_CASE("A1 an answer that is there when its time is over keeps the socket open") {
  two_ends x;
  // Whoever stood still finds both at once: the answer, and a timer that has expired.
  std::optional<limit_type> limit;
  limit.emplace(x.near, 0ms);
  char byte = 0;
  boost::system::error_code result = asio::error::would_block;
  bool was_over = true;
  asio::async_read(*x.near, asio::buffer(&byte, 1), [&](auto ec, size_t) {
    result = ec;
    was_over = limit->over();
    limit.reset();
  });
  asio::write(x.far, asio::buffer("a", 1));
  x.io.run();
  CHECK_FALSE(result);
  CHECK(byte == 'a');
  CHECK_FALSE(was_over);
  CHECK(x.near->is_open());
}

#include "actors/worker/link_book.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

TEST_CASE("A link that comes up when its epoch is over is not remembered") {
  link_book book;
  net::link_event up{net::link_event::kind::up, {}, true, net::link_transport::tcp, "a test"};
  up.trips = std::make_shared<net::round_trips>();
  up.key.epoch = 7;
  book.note(up);
  CHECK(book.of(up.key).transport == "tcp");
  book.forget(7);
  CHECK(book.of(up.key).transport.empty());
  book.note(up);
  CHECK(book.of(up.key).transport.empty());
  up.key.epoch = 8;
  book.note(up);
  CHECK(book.of(up.key).transport == "tcp");
}

} // namespace lamella::actors::test

#include "actors/protocol/values.hpp"
#include "actors/shared/digest_book.hpp"

#include <doctest/doctest.h>

using lamella::actors::digest_book;
using lamella::scheduler::sequence_id;
using finding = digest_book::finding;

TEST_CASE("I9 the K and V of a position are the same in every epoch, or somebody is told") {
  digest_book book{100};
  constexpr sequence_id a{7}, b{8};
  CHECK((book.note(a, 3, 1, 33) == finding::first));
  CHECK((book.note(a, 3, 1, 33) == finding::same));
  CHECK((book.note(b, 3, 1, 44) == finding::first));
  CHECK((book.note(a, 0, 1, 30) == finding::first));
  CHECK((book.note(a, 3, 2, 33) == finding::kept));
  CHECK((book.note(a, 3, 2, 33) == finding::same));
  CHECK((book.note(b, 3, 2, 45) == finding::lost));
  CHECK((book.note(b, 3, 2, 45) == finding::same)); // told once
  CHECK((book.note(a, 0, 5, 30) == finding::kept));
  CHECK((book.note(a, 0, 5, 31) == finding::changed));
  CHECK(book.losses() == 1);
}

TEST_CASE("I9 what is remembered is bounded: the oldest sequences are forgotten first") {
  digest_book book{10};
  for (uint64_t i = 1; i <= 5; ++i)
    for (uint32_t p = 0; p < 4; ++p) book.note(sequence_id{i}, p, 1, i);
  CHECK(book.positions() <= 10);
  CHECK((book.note(sequence_id{5}, 3, 2, 5) == finding::kept));
  CHECK((book.note(sequence_id{1}, 3, 2, 9) == finding::first));
  for (uint32_t p = 0; p < 50; ++p) book.note(sequence_id{9}, p, 1, p); // one alone may be larger
  CHECK((book.note(sequence_id{9}, 49, 2, 49) == finding::kept));
}

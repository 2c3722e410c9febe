#include "net/api/stop_matcher.hpp"

#include <doctest/doctest.h>

#include <random>

using lamella::net::stop_matcher;

namespace {

struct found {
  std::string text;
  std::optional<size_t> stop;
};

/// The definition: after each byte, does a stop string end here? The longest of those wins.
found naive(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      const std::string& s = stops[i];
      if (s.empty() || s.size() > end || text.compare(end - s.size(), s.size(), s) != 0) continue;
      if (!best || s.size() > stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, {}};
}

} // namespace

TEST_CASE("stop strings are found across pieces and never sent") {
  stop_matcher m({"###", "\n\n"});
  CHECK(m.feed("abc#") == "abc");
  CHECK(m.held() == 1);
  CHECK(m.feed("#") == "");
  CHECK(m.feed("x") == "##x");
  CHECK(m.feed("y\n") == "y");
  CHECK(!m.matched());
  CHECK(m.feed("\nrest") == "");
  CHECK(m.matched() == 1u);
  CHECK(m.feed("more") == "");
  CHECK(m.finish() == "");
}

TEST_CASE("held text is released at the end") {
  stop_matcher m({"stop"});
  CHECK(m.feed("a sto") == "a ");
  CHECK(m.finish() == "sto");
  stop_matcher none({});
  CHECK(none.feed("anything") == "anything");
  CHECK(none.finish() == "");
}

TEST_CASE("a stop string that may not end the text yet is text, but may begin a longer one") {
  stop_matcher m({"ab", "abc"});
  std::string out = m.feed("xab", false);
  out += m.feed("ab", false);
  CHECK(!m.matched());
  CHECK(out + m.feed("c") == "xab");
  CHECK(m.matched() == 1u);
}

TEST_CASE("the stop string that is complete first wins, of those the longest") {
  stop_matcher nested({"xabcy", "abc", "bc"});
  CHECK(nested.feed("xabcy") == "x");
  CHECK(nested.matched() == 1u);
}

TEST_CASE("the matcher equals the definition for random texts in random pieces") {
  std::mt19937 random(41);
  for (int round = 0; round < 20'000; ++round) {
    const auto word = [&](unsigned length) {
      std::string s;
      while (length--) s += "ab"[random() % 2];
      return s;
    };
    std::vector<std::string> stops;
    for (unsigned n = random() % 4; n; --n) stops.push_back(word(1 + random() % 6));
    const std::string text = word(random() % 40);
    const found expected = naive(stops, text);
    stop_matcher m(stops);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t piece = 1 + random() % 5;
      out += m.feed(text.substr(at, piece));
      at += piece;
      // What was sent is a prefix of the final text, and no more than needed is held.
      CHECK(expected.text.compare(0, out.size(), out) == 0);
      CHECK(m.held() < 6);
    }
    out += m.finish();
    CHECK(out == expected.text);
    if (expected.stop)
      CHECK(stops[*m.matched()] == stops[*expected.stop]);
    else
      CHECK(!m.matched());
  }
}

TEST_CASE("a text made to be bad for rolling comparison is still linear") {
  // Each byte moves the automaton by at most one level down, so the steps up are bounded too; a
  // quadratic matcher would need 10^9 comparisons here.
  stop_matcher m({std::string(255, 'a') + "b"});
  size_t released = 0;
  const std::string piece(1000, 'a');
  for (int i = 0; i < 4000; ++i) released += m.feed(piece).size();
  CHECK(released == 4'000'000 - 255);
  CHECK(m.feed("b") == "");
  CHECK(m.matched() == 0u);
}

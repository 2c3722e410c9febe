#include "net/api/reasoning_reader.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::reasoning_start;

namespace {

const model::reasoning_marks think{"<think>", "</think>"};

struct row {
  reasoning_start start;
  const char *answer, *reasoning, *text;
};

} // namespace

TEST_CASE("reasoning is split off an answer, however it is cut into pieces") {
  using enum reasoning_start;
  for (const auto& x : {
           row{open, "<think>\nA <b>?\n\n</think>\n\nYes", "A <b>?", "Yes"},
           row{open, "<think></think>Yes", "", "Yes"},
           row{open, "<think>\n\n</think>\n\n\nYes\n", "", "\nYes\n"},
           row{open, "Yes, <think>no</think>", "", "Yes, <think>no</think>"},
           row{open, "<thin", "", "<thin"},
           row{open, "<thinking>", "", "<thinking>"},
           row{open, "<think>cut off \n", "cut off", ""},
           row{open, "<think>cut </thin", "cut </thin", ""},
           row{open, "", "", ""},
           row{begun, "so </thi </think> it\n", "so </thi", " it\n"},
           row{begun, "\n</think>\n<think>x</think>", "", "<think>x</think>"},
           row{begun, "a</think>\n\n", "a", ""},
           row{closed, "<think>a</think>b", "", "<think>a</think>b"},
       })
    for (const size_t bytes : {1, 2, 3, 5, 100}) {
      CAPTURE(x.answer);
      CAPTURE(bytes);
      net::reasoning_reader reader{{think, x.start}};
      CHECK(reader.reasons() == (x.start == begun));
      std::string reasoning, text;
      const auto take = [&](const net::reasoning_piece& piece) {
        CHECK((piece.reasoning.empty() || text.empty())); // first all of the one, then the other
        reasoning += piece.reasoning;
        text += piece.text;
      };
      const std::string_view answer{x.answer};
      for (size_t i = 0; i < answer.size(); i += bytes) take(reader.feed(answer.substr(i, bytes)));
      take(reader.finish());
      CHECK(reasoning == x.reasoning);
      CHECK(text == x.text);
    }
}

TEST_CASE("reasoning behind text keeps its place, however the answer is cut into pieces") {
  const std::string_view answer =
      "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>analysis"
      "<|message|>why<|end|><|start|>assistant<|channel|>final<|message|>Yes<|end|>"
      "<|start|>assistant<|channel|>analysis<|message|>so<|end|>";
  for (const size_t bytes : {1, 2, 3, 5, 1000}) {
    CAPTURE(bytes);
    model::reasoning_marks marks;
    marks.form = model::answer_form::channels;
    net::reasoning_reader reader{{marks, reasoning_start::open}};
    std::string said;
    const auto take = [&](const net::reasoning_piece& piece) {
      for (const auto& part : net::parts_of(piece.reasoning, piece.text, piece.ends)) {
        for (const char c : part.reasoning) said += {'r', c};
        for (const char c : part.text) said += {'t', c};
      }
    };
    for (size_t i = 0; i < answer.size(); i += bytes) take(reader.feed(answer.substr(i, bytes)));
    take(reader.finish());
    CHECK(said == "tIt tltototkt.rwrhryt\nt\ntYtetsr\nr\nrsro");
  }
}

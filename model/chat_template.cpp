#include "model/chat_template.hpp"

#include "model/jinja_interpreter.hpp"
#include "model/jinja_parser.hpp"

namespace lamella::model {

struct chat_template::program {
  jinja::tree tree;
};

chat_template chat_template::compile(std::string_view source) {
  chat_template made;
  made.program_ = std::make_shared<const program>(program{jinja::parse(source)});
  return made;
}

std::vector<template_segment> chat_template::render(const template_input& input,
                                                    const template_limits& limits) const {
  const auto out = jinja::interpreter{program_->tree, input, limits}.run();
  std::vector<template_segment> segments;
  size_t from = 0;
  for (const auto& run : out.runs()) {
    segments.push_back({out.bytes().substr(from, run.end - from), run.trusted});
    from = run.end;
  }
  return segments;
}

std::string chat_template::render_text(const template_input& input,
                                       const template_limits& limits) const {
  return jinja::interpreter{program_->tree, input, limits}.run().bytes();
}

} // namespace lamella::model

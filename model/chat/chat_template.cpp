#include "model/chat/chat_template.hpp"

#include "model/jinja/builtins.hpp"
#include "model/jinja/interpreter.hpp"
#include "model/jinja/parser.hpp"

#include <set>

namespace lamella::model {

struct chat_template::program {
  jinja::tree tree;
  std::set<std::string, std::less<>> members;
  std::vector<std::string> absent;
};

namespace {

constexpr size_t absent_max = 8;

std::vector<std::string> absent_of(const jinja::tree& tree) {
  using jinja::node_kind;
  std::set<std::pair<node_kind, std::string_view>> found;
  std::vector<std::string> result;
  for (const auto& x : tree.nodes) {
    const bool is_filter = x.kind == node_kind::filter;
    const bool exists = is_filter                   ? jinja::is_filter(x.text)
                        : x.kind == node_kind::test ? jinja::is_test(x.text)
                                                    : true;
    if (exists || result.size() >= absent_max || !found.emplace(x.kind, x.text).second) continue;
    result.push_back("line " + std::to_string(x.line) + ": there is no "
                     + (is_filter ? "filter" : "test") + " named '" + x.text + "'");
  }
  return result;
}

} // namespace

chat_template chat_template::compile(std::string_view source) {
  program x{jinja::parse(source), {}, {}};
  for (const auto& node : x.tree.nodes)
    if (node.kind == jinja::node_kind::attribute || node.kind == jinja::node_kind::string)
      x.members.insert(node.text);
  x.absent = absent_of(x.tree);
  chat_template made;
  made.program_ = std::make_shared<const program>(std::move(x));
  return made;
}

bool chat_template::reads(std::string_view member) const {
  return program_->members.contains(member);
}

const std::vector<std::string>& chat_template::absent() const { return program_->absent; }

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

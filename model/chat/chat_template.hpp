/// Chat templates: the Jinja subset that model files use to lay out a conversation.
#pragma once

#include "model/jinja/data.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// A compiled template. Immutable; render() may be called from any number of threads at once.
class chat_template {
public:
  /// Reads a template of at most 1 MiB. Throws chat_template_error (syntax) with the line.
  static chat_template compile(std::string_view source);

  /// Lays out a conversation. Neighbouring segments differ in trust; none is empty. Throws
  /// chat_template_error. Time and memory are within the limits whatever the template does.
  std::vector<template_segment> render(const template_input& input,
                                       const template_limits& limits = {}) const;

  /// Members that the template names anywhere, such as content in m.content, m['content'] and
  /// m.get('content').
  bool reads(std::string_view member) const;

  /// Filters and tests that do not exist, in words with their lines: within conditions, so that
  /// only conversations that reach them are refused. Each name once, a few at most.
  const std::vector<std::string>& absent() const;

  /// What render() makes, as one string.
  std::string render_text(const template_input& input, const template_limits& limits = {}) const;

private:
  struct program;
  std::shared_ptr<const program> program_;
};

} // namespace lamella::model

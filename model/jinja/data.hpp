/// What a template is given, why it fails, and how much it may do.
#pragma once

#include "base/big_integer.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lamella::model {

/// Data from a request, as in JSON: null, true, 12, 1.5, "text", [..], {..}. Members keep their
/// order.
struct template_data {
  using list = std::vector<template_data>;
  using object = std::vector<std::pair<std::string, template_data>>;

  template_data() = default;
  template <class T> template_data(T x) : value{std::move(x)} {}
  template_data(const char* x) : value{std::string{x}} {}
  template_data(int x) : value{int64_t{x}} {}

  std::variant<std::nullptr_t, bool, int64_t, double, big_integer, std::string, list, object> value{
      nullptr};
};

/// Why a template cannot be used, or not with this conversation.
class chat_template_error : public std::runtime_error {
public:
  enum class kind : uint8_t {
    syntax,  ///< the template is not in the language; found by compile()
    runtime, ///< an operation the values do not allow, such as reading from an undefined value
    raised,  ///< the template called raise_exception: what() is its text, for the client
    limit    ///< a bound of template_limits was reached
  };

  chat_template_error(kind what, uint32_t line, const std::string& message)
      : std::runtime_error{message}, kind_{what}, line_{line} {}

  kind why() const { return kind_; }
  uint32_t line() const { return line_; } ///< in the template, from 1

  /// For those who did not write the template: "line 2: there is no filter named 'x'". What the
  /// template raised is for the client as it is.
  std::string told() const {
    return kind_ == kind::raised ? what() : "line " + std::to_string(line_) + ": " + what();
  }

private:
  kind kind_;
  uint32_t line_;
};

/// Bounds of one rendering. Templates come with model files and may be hostile.
struct template_limits {
  size_t output_bytes = 1 << 20;
  uint64_t steps = 1'000'000;       ///< evaluated nodes, and bytes handled in units of 64
  uint32_t recursion = 100;         ///< calls of macros inside each other
  size_t memory_bytes = 256u << 20; ///< of everything made while rendering
};

/// A stretch of rendered text. Trusted text was written in the template (or is the BOS or EOS
/// token): only there may the tokeniser recognise special tokens, and only such that lie wholly in
/// one segment. Ordinary text is tokenised across segment borders.
struct template_segment {
  std::string text;
  bool trusted = false;

  friend bool operator==(const template_segment&, const template_segment&) = default;
};

/// What a rendering is made from. Everything but the tokens comes from the client.
struct template_input {
  template_data messages = template_data::list{};
  bool add_generation_prompt = true;
  std::string bos_token;
  std::string eos_token;
  /// Further variables: `tools`, `documents`, and the client's `chat_template_kwargs`. They hide
  /// functions of the language, and cannot replace the variables above.
  template_data::object more;
  std::chrono::sys_seconds now{}; ///< what strftime_now shows, in UTC
};

} // namespace lamella::model

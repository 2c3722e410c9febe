#include "net/api/tool_call_reader.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

constexpr std::string_view blanks = " \n\t\r";

/// Bytes at the end of `text` that are the beginning of `mark`.
size_t begun(std::string_view text, std::string_view mark) {
  for (auto n = std::min(text.size(), mark.size()); n > 0; --n)
    if (text.ends_with(mark.substr(0, n))) return n;
  return 0;
}

/// Bytes of `text` without white space at its end.
size_t trimmed(std::string_view text) {
  const auto last = text.find_last_not_of(blanks);
  return last == text.npos ? 0 : last + 1;
}

} // namespace

tool_call_reader::tool_call_reader(model::tool_dialect dialect) : dialect_{std::move(dialect)} {}

answer_piece tool_call_reader::feed(std::string_view text) {
  held_ += text;
  answer_piece out;
  for (bool goes_on = true; goes_on;) switch (state_) {
    case state::text:
      goes_on = read_text(out, false);
      break;
    case state::name:
      goes_on = read_name(out);
      break;
    case state::arguments:
      goes_on = read_arguments(out);
      break;
    case state::behind_call:
      goes_on = read_behind_call();
      break;
    }
  return out;
}

answer_piece tool_call_reader::finish() {
  answer_piece out;
  if (state_ == state::text) read_text(out, true);
  held_.clear();
  return out;
}

bool tool_call_reader::reads_as_text(std::string_view next) const {
  if (state_ != state::text) return false;
  const auto mark = dialect_.mark();
  const auto known = begun(held_, mark);
  const auto n = std::min(next.size(), mark.size() - known);
  return known == 0 || mark.compare(known, n, next, 0, n) != 0;
}

void tool_call_reader::give_text(answer_piece& out, size_t bytes) {
  out.text += held_.substr(0, bytes);
  held_.erase(0, bytes);
}

/// Answers whether a call has begun.
bool tool_call_reader::read_text(answer_piece& out, bool over) {
  const auto mark = dialect_.mark();
  if (free_ || over) {
    give_text(out, held_.size());
    return false;
  }
  if (mark.empty()) { // the first character tells
    const auto first = held_.find_first_not_of(blanks);
    if (first == held_.npos) return false;
    if (held_[first] != '{') {
      free_ = true;
      return read_text(out, over);
    }
    held_.erase(0, first);
  } else {
    const auto at = held_.find(mark);
    if (at == held_.npos) {
      give_text(out, trimmed(std::string_view{held_}.substr(0, held_.size() - begun(held_, mark))));
      return false;
    }
    give_text(out, trimmed(std::string_view{held_}.substr(0, at)));
    held_.erase(0, held_.find(mark) + mark.size());
  }
  state_ = state::name;
  return true;
}

bool tool_call_reader::read_name(answer_piece& out) {
  constexpr std::string_view before = R"({"name": ")";
  const auto after = dialect_.before_arguments();
  const auto end = held_.find(after, before.size());
  if (end == held_.npos) return false;
  out.calls.push_back({calls_++, held_.substr(before.size(), end - before.size()), {}});
  held_.erase(0, end + after.size());
  state_ = state::arguments;
  depth_ = 0;
  in_string_ = escaped_ = false;
  return true;
}

bool tool_call_reader::read_arguments(answer_piece& out) {
  size_t bytes = 0;
  bool complete = false;
  while (bytes < held_.size() && !complete) {
    const char c = held_[bytes++];
    if (in_string_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else
        in_string_ = c != '"';
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && depth_ > 0) {
      complete = --depth_ == 0;
    }
  }
  if (bytes > 0) {
    if (out.calls.empty()) out.calls.push_back({calls_ - 1, {}, {}});
    out.calls.back().arguments += held_.substr(0, bytes);
    held_.erase(0, bytes);
  }
  if (complete) state_ = state::behind_call;
  return complete;
}

/// Answers whether another call has begun.
bool tool_call_reader::read_behind_call() {
  const auto next = "}" + dialect_.close + dialect_.between + dialect_.open;
  if (!held_.starts_with(next)) return false;
  held_.erase(0, next.size());
  state_ = state::name;
  return true;
}

} // namespace lamella::net

#include "net/api/tool_call_reader.hpp"

#include "base/json_writer.hpp"
#include "net/api/answer_parts.hpp"

#include <algorithm>
#include <utility>

namespace lamella::net {

namespace {

/// Bytes at the end of `text` that are the beginning of `mark`.
size_t begun(std::string_view text, std::string_view mark) {
  for (auto n = std::min(text.size(), mark.size()); n > 0; --n)
    if (text.ends_with(mark.substr(0, n))) return n;
  return 0;
}

/// Bytes of `text` without white space at its end.
size_t bytes_before_blanks(std::string_view text) {
  const auto last = text.find_last_not_of(answer_blanks);
  return last == text.npos ? 0 : last + 1;
}

constexpr std::string_view name_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/// A piece of a text as part of a JSON string, wherever it was cut.
std::string json_escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (byte < 0x20)
      ((out += "\\u00") += digits[byte / 16]) += digits[byte % 16];
    else
      out += c;
  }
  return out;
}

/// The length of what a pattern, in which calls are numbered, matches at the beginning of `text`;
/// npos: more of the text must come. What a grammar wrote fits.
size_t matched(std::string_view text, std::string_view pattern) {
  size_t at = 0;
  for (const char c : pattern) {
    if (at == text.size()) return text.npos;
    if (c == model::tool_dialect::number)
      at = std::min(text.find_first_not_of("0123456789", at), text.size());
    else
      ++at;
  }
  return at;
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
    case state::form:
      goes_on = read_form();
      break;
    case state::name:
      goes_on = read_name(out);
      break;
    case state::arguments:
      goes_on = read_arguments(out);
      break;
    case state::parameter:
      goes_on = read_parameter(out);
      break;
    case state::value:
      goes_on = read_value(out);
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
  const auto mark = this->mark();
  const auto known = begun(held_, mark);
  const auto n = std::min(next.size(), mark.size() - known);
  return known == 0 || mark.compare(known, n, next, 0, n) != 0;
}

/// What tells a call from text behind its first character.
std::string tool_call_reader::mark() const {
  return dialect_.also.empty() ? dialect_.mark() : dialect_.also[0].open;
}

void tool_call_reader::give_text(answer_piece& out, size_t bytes) {
  out.text += held_.substr(0, bytes);
  held_.erase(0, bytes);
}

/// Answers whether a call has begun.
bool tool_call_reader::read_text(answer_piece& out, bool over) {
  const auto mark = this->mark();
  if (free_ || over) {
    give_text(out, held_.size());
    return false;
  }
  if (dialect_.mark().empty() && !is_text_) { // the first character tells
    const auto first = held_.find_first_not_of(answer_blanks);
    if (first == held_.npos) return false;
    if (held_[first] != '{') {
      is_text_ = true;
      free_ = mark.empty();
      return read_text(out, over);
    }
    held_.erase(0, first);
  } else {
    const auto at = held_.find(mark);
    if (at == held_.npos) {
      give_text(out, bytes_before_blanks(
                         std::string_view{held_}.substr(0, held_.size() - begun(held_, mark))));
      return false;
    }
    give_text(out, bytes_before_blanks(std::string_view{held_}.substr(0, at)));
    held_.erase(0, held_.find(mark) + mark.size());
    behind_mark_ = dialect_.behind_mark();
    if (!dialect_.also.empty()) {
      state_ = state::form;
      return true;
    }
  }
  state_ = state::name;
  return true;
}

/// Of the forms behind one mark, the one that the call is in.
bool tool_call_reader::read_form() {
  if (held_.empty()) return false;
  auto form = dialect_.also[held_[0] == '{' ? 0 : dialect_.also.size() - 1];
  dialect_ = std::move(form);
  state_ = state::name;
  return true;
}

bool tool_call_reader::read_name(answer_piece& out) {
  const auto lead = matched(held_, behind_mark_ + dialect_.lead);
  if (lead == held_.npos) return false;
  const auto behind = std::string_view{held_}.substr(lead);
  auto length = std::min(behind.find_first_not_of(name_characters), behind.size());
  if (name_characters.find(dialect_.before_arguments()[0]) != name_characters.npos)
    length = std::min(length, behind.find(dialect_.before_arguments()));
  const auto& marked = dialect_.parameters;
  const auto middle =
      length == behind.size()
          ? held_.npos
          : matched(behind.substr(length), dialect_.before_arguments() + (marked ? "" : "{"));
  if (middle == held_.npos) return false;
  name_ = behind.substr(0, length);
  behind_mark_.clear();
  out.calls.push_back({calls_++, name_, marked ? "{" : ""});
  held_.erase(0, lead + length + middle - (marked ? 0 : 1));
  state_ = marked ? state::parameter : state::arguments;
  depth_ = 0;
  in_string_ = escaped_ = false;
  is_first_ = true;
  return true;
}

void tool_call_reader::give_arguments(answer_piece& out, std::string_view json) {
  if (json.empty()) return;
  if (out.calls.empty()) out.calls.push_back({calls_ - 1, {}, {}});
  out.calls.back().arguments += json;
}

/// The name of a parameter, or the end of all.
bool tool_call_reader::read_parameter(answer_piece& out) {
  const auto& marks = *dialect_.parameters;
  const bool is_list = !marks.between.empty();
  const auto before_name = (is_first_ ? "" : marks.between) + marks.before_name;
  if (is_list && held_.empty()) return false;
  if (!held_.starts_with(before_name) || (is_list && held_.starts_with(dialect_.tail))) {
    if (before_name.starts_with(held_)) return false;
    give_arguments(out, "}");
    state_ = state::behind_call;
    return true;
  }
  auto end = held_.find(marks.before_value, before_name.size());
  const auto other =
      marks.before_other.empty() ? held_.npos : held_.find(marks.before_other, before_name.size());
  const bool is_other = other < end;
  if (is_other) end = other;
  if (end == held_.npos) return false;
  const auto name = held_.substr(before_name.size(), end - before_name.size());
  held_.erase(0, end + (is_other ? marks.before_other : marks.before_value).size());
  const auto& texts = dialect_.texts;
  in_text_ = !is_list
             && std::find(texts.begin(), texts.end(), model::tool_dialect::key_of(name_, name))
                    != texts.end();
  give_arguments(out, (is_first_ ? "" : ", ") + to_json(json_value{name}) + ": "
                          + (in_text_ ? "\"" : ""));
  is_first_ = in_string_ = escaped_ = is_begun_ = false;
  depth_ = 0;
  state_ = state::value;
  return true;
}

/// Python's words are JSON's.
void tool_call_reader::give_word(answer_piece& out) {
  const auto word = std::exchange(word_, {});
  give_arguments(out, word == "True"    ? "true"
                      : word == "False" ? "false"
                      : word == "None"  ? "null"
                                        : word);
}

/// Between two quotes of the dialect: a text as it stands.
bool tool_call_reader::read_quoted(answer_piece& out) {
  const auto& quote = dialect_.parameters->quote;
  const auto end = held_.find(quote);
  const auto bytes = end != held_.npos ? end : held_.size() - begun(held_, quote);
  give_arguments(out, json_escaped(std::string_view{held_}.substr(0, bytes)));
  held_.erase(0, bytes + (end != held_.npos ? quote.size() : 0));
  if (end == held_.npos) return false;
  give_arguments(out, "\"");
  state_ = state::parameter;
  return true;
}

/// JSON up to a comma or bracket that is not within it, or a text between quotes.
bool tool_call_reader::read_listed_value(answer_piece& out) {
  const auto& quote = dialect_.parameters->quote;
  if (in_text_) return read_quoted(out);
  if (!is_begun_ && !quote.empty()) {
    if (held_.size() < quote.size() && quote.starts_with(held_)) return false;
    if (in_text_ = held_.starts_with(quote); in_text_) {
      held_.erase(0, quote.size());
      give_arguments(out, "\"");
      return true;
    }
  }
  size_t bytes = 0;
  while (bytes < held_.size()) {
    const char c = held_[bytes];
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    is_begun_ = true;
    if (!in_string_ && is_letter) {
      word_ += c;
      ++bytes;
      continue;
    }
    give_word(out);
    const bool opens = c == '[' || c == '{' || c == '(', closes = c == ']' || c == '}' || c == ')';
    if (!in_string_ && depth_ == 0 && (closes || c == ',')) {
      state_ = state::parameter;
      break;
    }
    if (escaped_)
      escaped_ = false;
    else if (in_string_ && c == '\\')
      escaped_ = true;
    else if (c == '"')
      in_string_ = !in_string_;
    else if (!in_string_ && opens)
      ++depth_;
    else if (!in_string_ && closes)
      --depth_;
    give_arguments(out, {&c, 1});
    ++bytes;
  }
  held_.erase(0, bytes);
  return state_ == state::parameter;
}

/// A text as it stands, or JSON, in whose strings the mark may stand.
bool tool_call_reader::read_value(answer_piece& out) {
  if (!dialect_.parameters->between.empty()) return read_listed_value(out);
  const auto& mark = dialect_.parameters->behind_value;
  size_t bytes = 0;
  bool complete = false;
  for (; bytes < held_.size(); ++bytes) {
    const auto rest = std::string_view{held_}.substr(bytes);
    if (!in_string_ && rest.starts_with(mark)) complete = true;
    if (complete || (!in_string_ && std::string_view{mark}.starts_with(rest))) break;
    if (in_text_) continue;
    const char c = rest[0];
    if (escaped_)
      escaped_ = false;
    else if (c == '\\' && in_string_)
      escaped_ = true;
    else if (c == '"')
      in_string_ = !in_string_;
  }
  const auto piece = std::string_view{held_}.substr(0, bytes);
  give_arguments(out, in_text_ ? json_escaped(piece) : std::string{piece});
  if (complete && in_text_) give_arguments(out, "\"");
  held_.erase(0, bytes + (complete ? mark.size() : 0));
  if (complete) state_ = state::parameter;
  return complete;
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
  const auto next = dialect_.tail + dialect_.close + dialect_.between + dialect_.open;
  if (!held_.starts_with(next)) return false;
  held_.erase(0, next.size());
  state_ = state::name;
  return true;
}

} // namespace lamella::net

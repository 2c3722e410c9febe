#include "net/api/channel_reader.hpp"

#include <algorithm>
#include <utility>

namespace lamella::net {

namespace {

constexpr std::string_view channel_mark = "<|channel|>", message_mark = "<|message|>",
                           start_mark = "<|start|>assistant", to_mark = "to=";
constexpr std::string_view ends[] = {"<|end|>", "<|call|>", "<|return|>"};

/// Does one begin with the other?
bool begin_alike(std::string_view a, std::string_view b) {
  return a.starts_with(b) || b.starts_with(a);
}

/// Bytes at the end of `text` that are the beginning of an end of a message.
size_t may_be_end(std::string_view text) {
  size_t most = 0;
  for (const auto end : ends)
    for (auto n = std::min(text.size(), end.size() - 1); n > most; --n)
      if (text.ends_with(end.substr(0, n))) most = n;
  return most;
}

/// What stands in a header behind `mark`, up to a space or the next mark.
std::string_view named(std::string_view header, std::string_view mark) {
  const auto at = header.find(mark);
  if (at == header.npos) return {};
  const auto rest = header.substr(at + mark.size());
  return rest.substr(0, rest.find_first_of(" <"));
}

} // namespace

/// Messages of one kind are apart.
void channel_reader::begin(state x, reasoning_piece& out) {
  const bool reasons = x == state::reasoning;
  const auto before = out.ends.empty() ? part_end{} : out.ends.back();
  if (reasons && out.text.size() > before.text)
    out.ends.push_back({out.reasoning.size(), out.text.size()});
  auto& has = reasons ? has_reasoning_ : has_text_;
  if (std::exchange(has, true) && x != state::call) (reasons ? out.reasoning : out.text) += "\n\n";
  state_ = x;
}

/// Answers whether there is more to read, as the others do.
bool channel_reader::read_header(reasoning_piece& out) {
  if (held_.empty()) return false;
  if (form_ == model::answer_form::recipients) {
    constexpr std::string_view all = "all\n";
    if (held_.size() < all.size() && all.starts_with(held_)) return false;
    const bool is_text = held_.starts_with(all);
    if (is_text) held_.erase(0, all.size());
    begin(is_text ? state::text : state::call, out);
    if (!is_text) out.text += ">>>"; // which the prompt has ended with
    return true;
  }
  const auto end = held_.find(message_mark);
  const bool is_header = begin_alike(held_, channel_mark) || begin_alike(held_, " to=");
  if (!is_header || std::min(end, held_.size()) > header_max) {
    begin(state::text, out);
    return true;
  }
  if (end == held_.npos) return false;
  const auto header = std::string_view{held_}.substr(0, end);
  auto to = named(header, to_mark);
  constexpr std::string_view functions = "functions.";
  if (to.starts_with(functions)) {
    begin(state::call, out);
    (((out.text += channel_mark) += "commentary to=") += to) += " <|constrain|>json<|message|>";
  } else if (named(header, channel_mark) == "analysis" || !to.empty()) {
    begin(state::reasoning, out);
  } else {
    begin(state::text, out);
  }
  held_.erase(0, end + message_mark.size());
  return true;
}

bool channel_reader::read_body(reasoning_piece& out) {
  auto& to = state_ == state::reasoning ? out.reasoning : out.text;
  if (form_ == model::answer_form::recipients) {
    to += std::exchange(held_, {});
    return false;
  }
  auto first = held_.npos;
  size_t length = 0;
  for (const auto end : ends)
    if (const auto at = held_.find(end); at < first) {
      first = at;
      length = end.size();
    }
  if (first == held_.npos) {
    const auto bytes = held_.size() - may_be_end(held_);
    to += held_.substr(0, bytes);
    held_.erase(0, bytes);
    return false;
  }
  to += held_.substr(0, first);
  held_.erase(0, first + length);
  state_ = state::behind;
  return true;
}

bool channel_reader::read_behind() {
  if (held_.size() < start_mark.size() && start_mark.starts_with(held_)) return false;
  if (held_.starts_with(start_mark)) held_.erase(0, start_mark.size());
  state_ = state::header;
  return true;
}

reasoning_piece channel_reader::feed(std::string_view text) {
  held_ += text;
  reasoning_piece out;
  for (bool goes_on = true; goes_on;)
    goes_on = state_ == state::header   ? read_header(out)
              : state_ == state::behind ? read_behind()
                                        : read_body(out);
  return out;
}

reasoning_piece channel_reader::finish() {
  reasoning_piece out;
  if (state_ != state::header && state_ != state::behind)
    (reasons() ? out.reasoning : out.text) = std::exchange(held_, {});
  held_.clear();
  return out;
}

} // namespace lamella::net

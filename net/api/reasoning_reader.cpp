#include "net/api/reasoning_reader.hpp"

#include "net/api/answer_parts.hpp"

#include <algorithm>
#include <utility>

namespace lamella::net {

namespace {

/// Bytes at the end of `text` that may be the beginning of white space and `mark` behind it.
size_t may_be_end(std::string_view text, std::string_view mark) {
  size_t begun = 0;
  for (auto n = std::min(text.size(), mark.size() - 1); n > 0 && begun == 0; --n)
    if (text.ends_with(mark.substr(0, n))) begun = n;
  const auto last = text.substr(0, text.size() - begun).find_last_not_of(answer_blanks);
  return text.size() - (last == text.npos ? 0 : last + 1);
}

} // namespace

reasoning_reader::reasoning_reader(model::answer_reasoning what)
    : marks_{std::move(what.marks)}, state_{what.start == model::reasoning_start::open ? state::open
                                            : what.start == model::reasoning_start::begun
                                                ? state::begun
                                                : state::over} {
  if (state_ == state::open && marks_.form != model::answer_form::marks)
    channels_.emplace(marks_.form);
}

/// Answers whether there is more to read, as the others do.
bool reasoning_reader::read_open() {
  if (held_.starts_with(marks_.begin)) {
    held_.erase(0, marks_.begin.size());
    state_ = state::begun;
  } else if (!marks_.begin.starts_with(held_)) {
    state_ = state::over;
  } else {
    return false;
  }
  return true;
}

bool reasoning_reader::read_inside(reasoning_piece& out) {
  if (state_ == state::begun) {
    held_.erase(0, std::min(held_.find_first_not_of(answer_blanks), held_.size()));
    if (held_.empty()) return false;
    state_ = state::inside;
  }
  const auto end = held_.find(marks_.end);
  auto given = held_.substr(0, end);
  if (end != held_.npos) {
    given.erase(given.find_last_not_of(answer_blanks) + 1);
    out.reasoning += given;
    held_.erase(0, end + marks_.end.size());
    state_ = state::behind;
    return true;
  }
  given.resize(given.size() - may_be_end(given, marks_.end));
  out.reasoning += given;
  held_.erase(0, given.size());
  return false;
}

bool reasoning_reader::read_behind() {
  while (skipped_ < 2 && held_.starts_with('\n')) {
    held_.erase(0, 1);
    ++skipped_;
  }
  if (skipped_ < 2 && held_.empty()) return false;
  state_ = state::over;
  return true;
}

reasoning_piece reasoning_reader::feed(std::string_view text) {
  if (channels_) return channels_->feed(text);
  held_ += text;
  reasoning_piece out;
  for (bool goes_on = true; goes_on;) switch (state_) {
    case state::open:
      goes_on = read_open();
      break;
    case state::begun:
    case state::inside:
      goes_on = read_inside(out);
      break;
    case state::behind:
      goes_on = read_behind();
      break;
    case state::over:
      out.text = std::exchange(held_, {});
      goes_on = false;
      break;
    }
  return out;
}

reasoning_piece reasoning_reader::finish() {
  if (channels_) return channels_->finish();
  reasoning_piece out;
  auto& rest = reasons() ? out.reasoning : out.text;
  rest = std::exchange(held_, {});
  if (reasons()) rest.erase(rest.find_last_not_of(answer_blanks) + 1);
  return out;
}

} // namespace lamella::net

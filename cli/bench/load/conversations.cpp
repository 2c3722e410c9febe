#include "cli/bench/load/conversations.hpp"

#include "base/json.hpp"
#include "scheduler/planner/cost/csv.hpp"

#include <algorithm>

namespace lamella::cli {

namespace {

using scheduler::table_error;

constexpr size_t object_bytes_max = size_t{16} << 20;
constexpr int end_of_file = std::char_traits<char>::eof();
constexpr int64_t answer_tokens_max = 10'000'000;
constexpr const char* forms =
    "write {\"conversations\": [{\"from\": \"human\", \"value\": ...}, {\"from\": \"gpt\", ...}]}, "
    "{\"messages\": [{\"role\": \"user\", \"content\": ...}, ...]} or {\"prompt\": ..., "
    "\"output_tokens\": N}";

const std::string* text_at(const json_value& object, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto* found = object.find(name); found != nullptr)
      if (const auto* text = found->get_if<std::string>(); text != nullptr) return text;
  return nullptr;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> all) {
  return std::any_of(all.begin(), all.end(), [&](const char* x) { return word == x; });
}

/// Each turn of a user with the answer right behind it, up to one that lacks either.
conversation from_turns(const json_value& turns, const char* who, const char* what, size_t most,
                        size_t line) {
  const auto* all = turns.get_if<json_value::array>();
  if (all == nullptr)
    throw table_error{line,
                      "the turns are " + std::string{turns.kind()} + ", not a list; " + forms};
  conversation told;
  const std::string* question = nullptr;
  for (const auto& turn : *all) {
    if (told.size() == most) break;
    const auto *from = text_at(turn, {who}), *text = text_at(turn, {what});
    if (from == nullptr || text == nullptr) continue; // images and calls have no text
    if (is_one_of(*from, {"human", "user"})) {
      if (question != nullptr) break;
      question = text;
    } else if (question != nullptr
               && is_one_of(*from, {"gpt", "assistant", "chatgpt", "bing", "bard"})) {
      if (question->empty() || text->empty()) break;
      told.push_back({*question, *text, {}});
      question = nullptr;
    }
  }
  return told;
}

conversation from_prompt(const json_value& object, const std::string& prompt, size_t line) {
  conversation_turn x{prompt, {}, {}};
  if (const auto* answer = text_at(object, {"completion", "output"}); answer != nullptr)
    x.answer = *answer;
  for (const char* name : {"output_tokens", "output_tokens_count", "max_tokens"}) {
    const auto* found = object.find(name);
    if (found == nullptr) continue;
    const auto* number = found->get_if<int64_t>();
    if (number == nullptr || *number < 1 || *number > answer_tokens_max)
      throw table_error{line, std::string{name} + ": not a whole number from 1 to 10000000"};
    x.output_tokens = static_cast<uint32_t>(*number);
    break;
  }
  return prompt.empty() ? conversation{} : conversation{std::move(x)};
}

/// Of no turns where it has no question with an answer.
conversation read_conversation(const json_value& object, size_t most, size_t line) {
  for (const char* name : {"conversations", "conversation"})
    if (const auto* turns = object.find(name); turns != nullptr)
      return from_turns(*turns, "from", "value", most, line);
  if (const auto* turns = object.find("messages"); turns != nullptr)
    return from_turns(*turns, "role", "content", most, line);
  if (const auto* prompt = text_at(object, {"prompt", "text"}); prompt != nullptr)
    return from_prompt(object, *prompt, line);
  throw table_error{line, std::string{"the object has neither conversations, messages nor prompt; "}
                              + forms};
}

} // namespace

conversation_reader::conversation_reader(std::istream& in, size_t turns_max)
    : in_{*in.rdbuf()}, turns_max_{turns_max} {
  scheduler::pass_over_mark(in);
  const int c = skip_space();
  if (c == end_of_file) throw table_error{"the file is empty"};
  list_ = c == '[';
  if (list_)
    get();
  else if (c != '{')
    throw table_error{line_, std::string{"it begins with neither [ nor {; "} + forms};
}

int conversation_reader::get() {
  const int c = in_.sbumpc();
  if (c == '\n') ++line_;
  return c;
}

int conversation_reader::skip_space() {
  for (;;) {
    const int c = in_.sgetc();
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return c;
    get();
  }
}

bool conversation_reader::take_object(std::string& text) {
  int c = skip_space();
  if (list_) {
    if (c == ']') return false;
    if (!first_) {
      if (c != ',')
        throw table_error{line_, c == end_of_file
                                     ? "the file ends before the ] of its list: it is cut off"
                                     : "neither a comma nor the ] of the list"};
      get();
      c = skip_space();
    }
  }
  if (c == end_of_file && !list_) return false;
  first_ = false;
  begun_ = line_;
  if (c != '{') throw table_error{line_, std::string{"not an object; "} + forms};
  text.clear();
  size_t depth = 0;
  bool quoted = false, escaped = false;
  do {
    c = get();
    if (c == end_of_file)
      throw table_error{begun_, "the file ends within this object: it is cut off"};
    if (text.size() == object_bytes_max)
      throw table_error{begun_, "the object is longer than 16 MiB; leave it out"};
    text += static_cast<char>(c);
    if (quoted) {
      quoted = escaped || c != '"';
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  } while (depth > 0);
  return true;
}

std::optional<conversation> conversation_reader::next() {
  for (std::string text; take_object(text);) {
    json_value object;
    try {
      object = parse_json(text);
    } catch (const json_syntax_error& e) {
      const auto upto = text.begin() + static_cast<ptrdiff_t>(std::min(e.offset, text.size()));
      throw table_error{begun_ + static_cast<size_t>(std::count(text.begin(), upto, '\n')),
                        std::string{"no JSON: "} + e.what()};
    }
    if (auto x = read_conversation(object, turns_max_, begun_); !x.empty()) return x;
    ++passed_over_;
  }
  return std::nullopt;
}

} // namespace lamella::cli

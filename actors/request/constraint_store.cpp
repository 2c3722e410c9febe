#include "actors/request/constraint_store.hpp"

#include "base/json_writer.hpp"
#include "model/chat/tool_grammar.hpp"
#include "model/grammar/json_schema/json_grammar.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/json_schema/json_schema_resources.hpp"
#include "model/grammar/regular_expression.hpp"
#include "model/grammar/text/grammar_text.hpp"
#include "net/api/api_fields.hpp"
#include "net/http/api_error.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using kind = net::output_format::kind;
using model::grammar;

constexpr size_t name_bytes_max = 64; // in the log

/// Calls `tell` with the keywords of each schema that has some, and its field.
template <class Tell>
void each_schema(const net::output_format* format, const net::tool_use& tools, const Tell& tell) {
  const auto look = [&](const json_value& schema, const std::string& field) {
    if (const auto found = model::unknown_keywords(schema); !found.empty()) tell(found, field);
  };
  if (format != nullptr && format->what == kind::schema) look(format->schema, format->field);
  for (const auto& x : tools.tools) look(x.parameters, x.schema_field);
}

/// Once, for a format is compiled once.
void log_ignored_keywords(const net::output_format* format, const net::tool_use& tools) {
  each_schema(format, tools, [](const auto& found, const std::string& field) {
    std::string names;
    for (const auto& x : found)
      names += (names.empty() ? "" : ", ") + to_json(json_value(x.name.substr(0, name_bytes_max)))
               + " (" + std::to_string(x.count) + ")";
    spdlog::info("{} has keywords that no draft of JSON Schema has, and that mean nothing: {}",
                 field, names);
  });
}

grammar::node_id formatted(grammar& g, const net::output_format& format, grammar::node_id next) {
  switch (format.what) {
  case kind::json:
    return model::json_grammar{g}.any_object(next);
  case kind::schema:
    try {
      return model::json_schema_grammar(g, format.schema, next);
    } catch (const model::json_schema_error& e) {
      throw net::invalid_schema(format.field, format.field + ": " + e.what());
    }
  case kind::regex:
    try {
      return model::regular_expression::parse(format.text,
                                              model::regular_expression::reading::python)
          .compile(g, model::regular_expression::match::whole, model::spelling::plain, next);
    } catch (const model::regular_expression_error& e) {
      throw net::invalid_value(format.field, format.field + ": " + e.what());
    }
  case kind::grammar:
    try {
      return model::grammar_of_text(g, format.text, next);
    } catch (const model::grammar_text_error& e) {
      throw net::invalid_value(format.field, format.field + ": " + e.what());
    }
  case kind::choice:
    break;
  }
  return g.texts(format.choices, next);
}

/// Calls, or text beside them: free where it has no format, else all of the answer.
grammar::node_id with_tools(grammar& g, const net::output_format* format, const net::tool_use& use,
                            const model::tool_dialect& dialect, grammar::node_id next,
                            const model::answer_reasoning& reasoning) {
  std::vector<model::tool_signature> tools;
  for (const auto& x : use.tools)
    tools.push_back(
        {x.name, x.parameters.is_null() ? nullptr : &x.parameters, x.schema_field, x.strict});
  const auto many = use.parallel ? model::tool_calls::many : model::tool_calls::one;
  try {
    if (use.what == net::tool_use::choice::automatic && format == nullptr)
      return model::text_or_tool_calls(g, tools, dialect, many, next, reasoning);
    auto answer = model::tool_calls_grammar(g, tools, dialect, many, next, reasoning);
    if (use.what == net::tool_use::choice::automatic)
      answer = g.choice({model::as_text(g, reasoning, formatted(g, *format, next)), answer});
    return model::behind_reasoning(g, reasoning, answer);
  } catch (const model::json_schema_error& e) {
    throw net::invalid_schema(e.pointer.substr(0, e.pointer.find('/')), e.what());
  }
}

std::string key_of(const net::output_format* format, const net::tool_use& tools,
                   const model::answer_reasoning& reasoning) {
  return std::to_string(static_cast<int>(reasoning.start))
         + (format != nullptr ? format->key() : std::string{}) + "\n" + tools.key();
}

} // namespace

std::string ignored_keywords(const net::output_format* format, const net::tool_use& tools,
                             bool strict) {
  std::vector<std::string> names;
  each_schema(format, tools, [&](const auto& found, const std::string& field) {
    if (strict)
      throw net::invalid_schema(field, field + ": " + found.front().pointer
                                           + " is a keyword that no draft of JSON Schema has: "
                                             "remove it (api.strict)");
    for (const auto& x : found)
      if (std::find(names.begin(), names.end(), x.name) == names.end()) names.push_back(x.name);
  });
  return net::header_list(names);
}

constraint_store::constraint_store(std::shared_ptr<const model::tokenizer> text,
                                   std::vector<model::token_id> ends, uint32_t vocabulary)
    : text_{std::move(text)}, ends_{std::move(ends)}, vocabulary_{vocabulary} {}

std::shared_ptr<const model::token_trie>
constraint_store::trie_with(std::vector<std::string> marks) {
  const std::lock_guard guard{tries_lock_};
  auto& trie = tries_[marks];
  if (trie) return trie;
  std::vector<model::token_id> tokens;
  for (const auto& mark : marks)
    if (const auto token = text_->special_token(mark)) tokens.push_back(*token);
  trie = std::make_shared<model::token_trie>(text_, tokens);
  return trie;
}

/// Null where there is none. With the lock held.
std::shared_ptr<model::output_constraint> constraint_store::kept(const std::string& key) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const entry& x) { return x.key == key; });
  if (known == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, known);
  return known->constraint;
}

bool constraint_store::find(const net::output_format* format, const net::tool_use& tools,
                            std::shared_ptr<model::output_constraint>& found,
                            const model::answer_reasoning& reasoning) {
  if (format == nullptr && !tools.active()) return true;
  const auto key = key_of(format, tools, reasoning);
  const std::lock_guard guard{lock_};
  found = kept(key);
  return found != nullptr;
}

std::shared_ptr<model::output_constraint>
constraint_store::make(const net::output_format* format, const net::tool_use& tools,
                       const model::tool_dialect& dialect,
                       const model::answer_reasoning& reasoning) {
  std::shared_ptr<model::output_constraint> made;
  // Another request may have made it meanwhile.
  if (find(format, tools, made, reasoning)) return made;
  try {
    grammar g;
    g.begin(0, tools.active()
                   ? with_tools(g, format, tools, dialect, g.end(), reasoning)
                   : model::behind_reasoning(
                       g, reasoning, model::as_text(g, reasoning, formatted(g, *format, g.end()))));
    std::vector<std::string> marks;
    if (tools.active()) marks = dialect.mark_tokens();
    if (reasoning.start != model::reasoning_start::closed)
      for (auto& mark : reasoning.marks.tokens()) marks.push_back(std::move(mark));
    made = std::make_shared<model::output_constraint>(std::move(g), trie_with(std::move(marks)),
                                                      ends_, vocabulary_);
    log_ignored_keywords(format, tools);
  } catch (const model::grammar_error& e) {
    const auto field = format != nullptr ? format->field : std::string{"tools"};
    throw net::invalid_schema(field,
                              field + ": the output cannot be constrained to it: " + e.what());
  }
  auto key = key_of(format, tools, reasoning);
  const std::lock_guard guard{lock_};
  if (auto other = kept(key)) return other;
  entries_.push_front({std::move(key), made});
  drop_others();
  return made;
}

/// Those that nobody has asked for the longest, beyond what may be kept.
void constraint_store::drop_others() {
  size_t kept = 0, bytes = 0;
  for (auto x = entries_.begin(); x != entries_.end(); ++x) {
    bytes += x->key.size() + x->constraint->memory_bytes();
    if (++kept > 1 && (kept > kept_max || bytes > kept_bytes_max)) {
      entries_.erase(x, entries_.end());
      return;
    }
  }
}

} // namespace lamella::actors

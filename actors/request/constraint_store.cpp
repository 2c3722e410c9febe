#include "actors/request/constraint_store.hpp"

#include "actors/protocol/requests.hpp"
#include "base/json_writer.hpp"
#include "model/chat/tool_grammar.hpp"
#include "model/grammar/json_schema/json_grammar.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/json_schema/json_schema_resources.hpp"
#include "model/grammar/regular_expression.hpp"
#include "net/http/api_error.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using kind = net::output_format::kind;
using model::grammar;

/// Tells once, for a format is compiled once, what of a schema means nothing.
void tell_unknown_keywords(const json_value& schema, const std::string& field) {
  constexpr size_t name_bytes_max = 64;
  std::string names;
  for (const auto& [name, count] : model::unknown_keywords(schema))
    names += (names.empty() ? "" : ", ") + to_json(json_value(name.substr(0, name_bytes_max)))
             + " (" + std::to_string(count) + ")";
  if (!names.empty())
    spdlog::info("{} has keywords that no draft of JSON Schema has, and that mean nothing: {}",
                 field, names);
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
      return model::regular_expression::parse(format.regex)
          .compile(g, model::regular_expression::match::whole, model::spelling::plain, next);
    } catch (const model::regular_expression_error& e) {
      throw net::invalid_value(format.field, format.field + ": " + e.what());
    }
  case kind::choice:
    break;
  }
  return g.texts(format.choices, next);
}

/// Calls, or text beside them: free where it has no format, else all of the answer.
grammar::node_id with_tools(grammar& g, const net::output_format* format, const net::tool_use& use,
                            const model::tool_dialect& dialect, grammar::node_id next) {
  std::vector<model::tool_signature> tools;
  for (const auto& x : use.tools)
    tools.push_back(
        {x.name, x.parameters.is_null() ? nullptr : &x.parameters, x.schema_field, x.strict});
  const auto many = use.parallel ? model::tool_calls::many : model::tool_calls::one;
  try {
    if (use.what == net::tool_use::choice::required)
      return model::tool_calls_grammar(g, tools, dialect, many, next);
    if (format == nullptr) return model::text_or_tool_calls(g, tools, dialect, many, next);
    return g.choice(
        {formatted(g, *format, next), model::tool_calls_grammar(g, tools, dialect, many, next)});
  } catch (const model::json_schema_error& e) {
    throw net::invalid_schema(e.pointer.substr(0, e.pointer.find('/')), e.what());
  }
}

std::string key_of(const net::output_format* format, const net::tool_use& tools) {
  return (format != nullptr ? format->key() : std::string{}) + "\n" + tools.key();
}

} // namespace

constraint_store::constraint_store(std::shared_ptr<const model::tokenizer> text,
                                   std::vector<model::token_id> ends, uint32_t vocabulary)
    : text_{std::move(text)}, ends_{std::move(ends)}, vocabulary_{vocabulary} {}

std::shared_ptr<const model::token_trie>
constraint_store::trie_of(bool with_marks, const model::tool_dialect& dialect) {
  const std::lock_guard guard{tries_lock_};
  auto& trie = with_marks ? tool_trie_ : text_trie_;
  if (trie) return trie;
  std::vector<model::token_id> marks;
  if (with_marks)
    for (const auto& mark : dialect.mark_tokens())
      if (const auto token = text_->special_token(mark)) marks.push_back(*token);
  trie = std::make_shared<model::token_trie>(text_, marks);
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
                            std::shared_ptr<model::output_constraint>& found) {
  if (format == nullptr && !tools.active()) return true;
  const auto key = key_of(format, tools);
  const std::lock_guard guard{lock_};
  found = kept(key);
  return found != nullptr;
}

std::shared_ptr<model::output_constraint>
constraint_store::make(const net::output_format* format, const net::tool_use& tools,
                       const model::tool_dialect& dialect) {
  std::shared_ptr<model::output_constraint> made;
  if (find(format, tools, made)) return made; // another request may have made it meanwhile
  try {
    grammar g;
    g.begin(0, tools.active() ? with_tools(g, format, tools, dialect, g.end())
                              : formatted(g, *format, g.end()));
    made = std::make_shared<model::output_constraint>(
        std::move(g), trie_of(tools.active(), dialect), ends_, vocabulary_);
    if (format != nullptr && format->what == kind::schema)
      tell_unknown_keywords(format->schema, format->field);
    for (const auto& x : tools.tools) tell_unknown_keywords(x.parameters, x.schema_field);
  } catch (const model::grammar_error& e) {
    const auto field = format != nullptr ? format->field : std::string{"tools"};
    throw net::invalid_schema(field,
                              field + ": the output cannot be constrained to it: " + e.what());
  }
  auto key = key_of(format, tools);
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

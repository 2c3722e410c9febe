#include "model/chat/tool_grammar.hpp"

#include "model/grammar/beginning.hpp"
#include "model/grammar/json_schema/json_grammar.hpp"
#include "model/grammar/json_schema/json_schema.hpp"

#include <algorithm>
#include <vector>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

const byte_set any_byte = bytes_between(0, 255);

/// Does its `type` say so?
bool excludes_objects(const json_value& schema) {
  const auto* type = schema.find("type");
  if (type == nullptr) return false;
  const auto is_object = [](const json_value& x) { return x == json_value{"object"}; };
  if (const auto* some = type->get_if<json_value::array>())
    return std::none_of(some->begin(), some->end(), is_object);
  return !is_object(*type);
}

class builder {
public:
  builder(grammar& g, std::span<const tool_signature> tools, const tool_dialect& dialect,
          tool_calls how_many)
      : grammar_{g}, json_{g}, tools_{tools}, dialect_{dialect}, many_{how_many == tool_calls::many
                                                                       && dialect.many} {}

  /// Behind `begin` and the first `open`.
  node_id behind_mark(node_id next) {
    const auto end = grammar_.text(dialect_.end, next);
    if (!many_) return call(end);
    const auto behind_call = grammar_.choice();
    const auto first = call(behind_call);
    auto another = grammar_.text(dialect_.open, first);
    // Who ends a call with a line feed has not promised another one.
    if (dialect_.end.empty()) another = grammar_.choice({another, end, results(end)});
    grammar_.branch(behind_call, {grammar_.text(dialect_.between, another), end});
    return first;
  }

  node_id calls(node_id next) { return grammar_.text(dialect_.mark(), behind_mark(next)); }

  node_id text_or_calls(node_id next) {
    return dialect_.mark().empty() ? text_or_call(next) : text_up_to_mark(next);
  }

private:
  /// A model that goes on with the results of its calls has ended its answer.
  node_id results(node_id end) {
    return dialect_.results.empty() ? end : grammar_.text(dialect_.results, end);
  }

  /// A call from behind its `open`.
  node_id call(node_id next) {
    const auto behind_arguments = grammar_.text("}" + dialect_.close, next);
    std::vector<node_id> branches;
    for (const auto& tool : tools_)
      branches.push_back(grammar_.text(tool.name + dialect_.before_arguments(),
                                       arguments(tool, behind_arguments)));
    return grammar_.text(R"({"name": ")", grammar_.choice(std::move(branches)));
  }

  /// Always an object: of what the schema takes, the objects.
  node_id arguments(const tool_signature& tool, node_id next) {
    if (tool.parameters == nullptr) return grammar_.text("{}", next);
    const auto object = beginning_with(grammar_, as_said(tool, next), '{');
    if (!object || excludes_objects(*tool.parameters))
      throw json_schema_error(tool.pointer,
                              "does not allow an object, but the arguments of a call are one: "
                              "describe them with \"type\": \"object\"");
    return *object;
  }

  node_id as_said(const tool_signature& tool, node_id next) {
    try {
      return json_schema_grammar(grammar_, *tool.parameters, next);
    } catch (const json_schema_error& e) {
      if (tool.strict) throw json_schema_error(tool.pointer + e.pointer, e.problem);
      return json_.any_object(next);
    }
  }

  /// While text is read, how much of the mark its end may be the beginning of.
  node_id text_up_to_mark(node_id next) {
    const auto mark = dialect_.mark();
    const auto call = behind_mark(next);
    std::vector<node_id> read(mark.size());
    for (auto& node : read) node = grammar_.choice();
    for (size_t i = 0; i < mark.size(); ++i) {
      auto others = any_byte;
      std::vector<node_id> branches{next};
      const auto go = [&](uint8_t byte, size_t known) {
        others.reset(byte);
        branches.push_back(
            grammar_.bytes(byte_set{}.set(byte), known == mark.size() ? call : read[known]));
      };
      go(static_cast<uint8_t>(mark[i]), i + 1);
      // Another byte may go on with a shorter beginning.
      for (size_t j = i; j-- > 0;)
        if (const auto byte = static_cast<uint8_t>(mark[j]);
            others[byte] && mark.compare(i - j, j, mark, 0, j) == 0)
          go(byte, j + 1);
      branches.push_back(grammar_.bytes(others, read[0]));
      grammar_.branch(read[i], std::move(branches));
    }
    return read[0];
  }

  /// The first character that is no white space tells.
  node_id text_or_call(node_id next) {
    const auto text = grammar_.choice();
    grammar_.branch(text, {grammar_.bytes(any_byte, text), next});
    const auto blanks = byte_set{}.set(' ').set('\n');
    auto others = any_byte & ~blanks;
    others.reset('{');
    const auto begin = grammar_.choice();
    grammar_.branch(begin, {grammar_.bytes(blanks, begin), grammar_.bytes(others, text),
                            behind_mark(next), next});
    return begin;
  }

  grammar& grammar_;
  json_grammar json_;
  std::span<const tool_signature> tools_;
  const tool_dialect& dialect_;
  bool many_;
};

} // namespace

node_id tool_calls_grammar(grammar& g, std::span<const tool_signature> tools,
                           const tool_dialect& dialect, tool_calls how_many, node_id next) {
  return builder{g, tools, dialect, how_many}.calls(next);
}

node_id text_or_tool_calls(grammar& g, std::span<const tool_signature> tools,
                           const tool_dialect& dialect, tool_calls how_many, node_id next) {
  return builder{g, tools, dialect, how_many}.text_or_calls(next);
}

} // namespace lamella::model

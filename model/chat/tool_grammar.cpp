#include "model/chat/tool_grammar.hpp"

#include "model/chat/marked_text.hpp"
#include "model/grammar/beginning.hpp"
#include "model/grammar/json_schema/json_grammar.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/json_schema/json_schema_keywords.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

const byte_set any_byte = bytes_between(0, 255);

/// Does a template write the value without quotes?
bool is_text(const json_value& schema) {
  const auto* type = schema.find("type");
  return type != nullptr && *type == json_value{"string"};
}

/// Keywords of texts that a grammar of free text cannot keep to.
const char* more_than_text(const json_value& schema) {
  for (const auto* keyword : {"pattern", "format", "minLength", "maxLength", "const", "allOf",
                              "anyOf", "oneOf", "not", "$ref", "if"})
    if (schema.find(keyword) != nullptr) return keyword;
  return nullptr;
}

const json_value::object* properties_of(const tool_signature& tool) {
  const auto* named = tool.parameters != nullptr ? tool.parameters->find("properties") : nullptr;
  return named != nullptr ? named->get_if<json_value::object>() : nullptr;
}

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
          tool_calls how_many, std::string not_text = {})
      : grammar_{g}, json_{g}, tools_{tools}, dialect_{dialect},
        many_{how_many == tool_calls::many && dialect.many}, not_text_{std::move(not_text)} {}

  /// Behind what tells calls from text.
  node_id behind_mark(node_id next) {
    return grammar_.text(dialect_.behind_mark(), behind_open(next));
  }

  /// Behind `begin` and the first `open`.
  node_id behind_open(node_id next) {
    const auto end = grammar_.text(dialect_.end, next);
    if (!many_) return call(end);
    const auto behind_call = grammar_.choice();
    const auto first = call(behind_call);
    auto another = grammar_.text(dialect_.open, first);
    // Who ends a call with a line feed has not promised another one.
    const auto& between = dialect_.between;
    const bool is_feed = !between.empty() && between.find_first_not_of(" \n") == between.npos;
    if (dialect_.end.empty() && !between.empty())
      another = grammar_.choice({another, end, results(end)});
    else if (is_feed && !dialect_.end.starts_with(between))
      another = grammar_.choice({another, end});
    grammar_.branch(behind_call, {grammar_.text(between, another), end});
    return first;
  }

  node_id calls(node_id next) {
    auto all = grammar_.text(dialect_.mark(), behind_mark(next));
    if (!dialect_.also.empty())
      all = grammar_.choice({all, grammar_.text(dialect_.also[0].open, other_calls(next))});
    return all;
  }

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
    const auto behind_arguments = grammar_.text(dialect_.tail + dialect_.close, next);
    std::vector<node_id> branches;
    for (const auto& tool : tools_)
      branches.push_back(grammar_.text(
          tool.name, pattern(dialect_.before_arguments(), arguments(tool, behind_arguments))));
    return pattern(dialect_.lead, grammar_.choice(std::move(branches)));
  }

  /// A text in which calls may be numbered.
  node_id pattern(std::string_view text, node_id next) {
    constexpr uint32_t digits_max = 3;
    const auto at = text.rfind(tool_dialect::number);
    if (at == text.npos) return grammar_.text(text, next);
    next = grammar_.text(text.substr(at + 1), next);
    auto number = next;
    for (uint32_t i = 0; i < digits_max; ++i)
      number =
          grammar_.bytes(bytes_between('0', '9'), i == 0 ? next : grammar_.maybe(number, next));
    return pattern(text.substr(0, at), number);
  }

  /// Always an object: of what the schema takes, the objects.
  node_id arguments(const tool_signature& tool, node_id next) {
    if (dialect_.parameters) return parameters(tool, next);
    if (tool.parameters == nullptr) return grammar_.text("{}", next);
    const auto as_object = beginning_with(grammar_, as_said(tool, next), '{');
    if (!as_object || excludes_objects(*tool.parameters)) throw no_object(tool);
    return *as_object;
  }

  /// Is one of the values that the parameters take an object?
  bool may_be_object(const tool_signature& tool) {
    if (excludes_objects(*tool.parameters)) return false;
    if (tool.parameters->find("type") != nullptr || takes_anything(*tool.parameters)) return true;
    grammar tried;
    tried.add_work(grammar_.work());
    bool is_one = true;
    try {
      const auto any = json_schema_grammar(tried, *tool.parameters, tried.end());
      is_one = beginning_with(tried, any, '{').has_value();
    } catch (const json_schema_error&) { // told where it is compiled, if it is
    }
    grammar_.add_work(tried.work() - grammar_.work());
    return is_one;
  }

  static json_schema_error no_object(const tool_signature& tool) {
    return {tool.pointer, "does not allow an object, but the arguments of a call are one: "
                          "describe them with \"type\": \"object\""};
  }

  node_id as_said(const tool_signature& tool, node_id next) {
    try {
      return json_schema_grammar(grammar_, *tool.parameters, next);
    } catch (const json_schema_error& e) {
      if (tool.strict) throw json_schema_error(tool.pointer + e.pointer, e.problem);
      return json_.any_object(next);
    }
  }

  /// One by one, in the order in which the schema names them.
  node_id parameters(const tool_signature& tool, node_id next) {
    const auto* named = properties_of(tool);
    if (tool.parameters != nullptr && !may_be_object(tool)) throw no_object(tool);
    if (named == nullptr) {
      if (tool.strict && tool.parameters != nullptr && !takes_anything(*tool.parameters))
        throw json_schema_error(tool.pointer, "must have properties: this model writes the "
                                              "arguments of a call by their names");
      return next;
    }
    const auto* required = tool.parameters->find("required");
    const auto* names = required != nullptr ? required->get_if<json_value::array>() : nullptr;
    const auto& marks = *dialect_.parameters;
    auto first = next, further = next; // where none was written, and behind one
    for (auto at = named->rbegin(); at != named->rend(); ++at) {
      const auto& [name, schema] = *at;
      const bool is_other = !marks.before_other.empty() && !is_text(schema);
      const auto one = grammar_.text(marks.before_name + name
                                         + (is_other ? marks.before_other : marks.before_value),
                                     value(tool, name, schema, further));
      const auto another = grammar_.text(marks.between, one);
      const bool must =
          names != nullptr
          && std::find(names->begin(), names->end(), json_value(name)) != names->end();
      first = must ? one : grammar_.maybe(one, first);
      further = must ? another : grammar_.maybe(another, further);
    }
    return first;
  }

  /// A value of a list as in a call of Python: nothing but a comma or an end may follow.
  node_id listed_value(const tool_signature& tool, const json_value& schema,
                       const std::string& pointer, node_id next) {
    const auto* type = schema.find("type");
    if (type != nullptr && *type == json_value{"boolean"} && schema.find("enum") == nullptr
        && schema.find("const") == nullptr)
      return grammar_.texts({"True", "False", "true", "false"}, next);
    return json(tool, schema, pointer, next);
  }

  /// The value of a parameter, up to what stands behind it.
  node_id value(const tool_signature& tool, const std::string& name, const json_value& schema,
                node_id next) {
    const auto& marks = *dialect_.parameters;
    const bool is_list = !marks.between.empty();
    const auto pointer = "/properties/" + pointer_part(name);
    if (is_list && (marks.quote.empty() || !is_text(schema)))
      return listed_value(tool, schema, pointer, next);
    const auto& behind = is_list ? marks.quote : marks.behind_value;
    // The text ends at the mark, and what else is behind it follows.
    const auto end =
        behind.find('>') == behind.npos ? behind : behind.substr(0, behind.rfind('>') + 1);
    const auto after = grammar_.text(behind.substr(end.size()), next);
    if (!is_text(schema)) return json(tool, schema, pointer, grammar_.text(behind, next));
    const auto* more = more_than_text(schema);
    if (more != nullptr && tool.strict)
      throw json_schema_error(tool.pointer + pointer + "/" + more,
                              "is not supported in strict tools of this "
                              "model, which writes texts as they are");
    const auto* values = schema.find("enum");
    const auto* allowed = values != nullptr ? values->get_if<json_value::array>() : nullptr;
    std::vector<std::string> texts;
    for (size_t i = 0; allowed != nullptr && i < allowed->size(); ++i)
      if (const auto* text = (*allowed)[i].get_if<std::string>();
          text != nullptr && text->find(end) == text->npos)
        texts.push_back(*text);
    const auto text = texts.empty() ? text_up_to(grammar_, end, after, {})
                                    : grammar_.texts(std::move(texts), grammar_.text(end, after));
    return grammar_.text(marks.quote, text);
  }

  /// `pointer`: within the parameters.
  node_id json(const tool_signature& tool, const json_value& schema, const std::string& pointer,
               node_id next) {
    try {
      return json_schema_grammar(grammar_, *tool.parameters, {&schema, pointer}, next);
    } catch (const json_schema_error& e) {
      if (tool.strict) throw json_schema_error(tool.pointer + e.pointer, e.problem);
      return json_.any_value(next);
    }
  }

  node_id text_up_to_mark(node_id next) {
    return text_up_to(grammar_, dialect_.mark(), behind_mark(next), next, not_text_);
  }

  /// One call in another form, behind the mark of these.
  node_id other_calls(node_id next) {
    std::vector<node_id> branches;
    for (const auto& x : dialect_.also)
      branches.push_back(builder{grammar_, tools_, x, tool_calls::one}.behind_mark(next));
    return grammar_.choice(std::move(branches));
  }

  /// The first character that is no white space tells, or the mark of another form does.
  node_id text_or_call(node_id next) {
    auto text = grammar_.choice();
    grammar_.branch(text, {grammar_.bytes(any_byte, text), next});
    const auto blanks = byte_set{}.set(' ').set('\n');
    auto others = any_byte & ~blanks;
    others.reset('{');
    const auto begin = grammar_.choice();
    if (!dialect_.also.empty()) {
      const auto& mark = dialect_.also[0].open;
      text = text_up_to(grammar_, mark, other_calls(next), next);
      const auto first = static_cast<uint8_t>(mark[0]);
      others.reset(first);
      grammar_.branch(begin, {*beginning_with(grammar_, text, first)});
    }
    grammar_.branch(begin, {grammar_.bytes(blanks, begin), grammar_.bytes(others, text),
                            behind_mark(next), next});
    return begin;
  }

  grammar& grammar_;
  json_grammar json_;
  std::span<const tool_signature> tools_;
  const tool_dialect& dialect_;
  bool many_;
  std::string not_text_; ///< texts do not begin with it
};

} // namespace

std::vector<std::string> text_parameters(std::span<const tool_signature> tools) {
  std::vector<std::string> texts;
  for (const auto& tool : tools)
    if (const auto* named = properties_of(tool))
      for (const auto& [name, schema] : *named)
        if (is_text(schema)) texts.push_back(tool_dialect::key_of(tool.name, name));
  return texts;
}

node_id tool_calls_grammar(grammar& g, std::span<const tool_signature> tools,
                           const tool_dialect& dialect, tool_calls how_many, node_id next,
                           const answer_reasoning& reasoning) {
  builder made{g, tools, dialect, how_many};
  const bool is_begun =
      reasoning.start == reasoning_start::open && reasoning.marks.form == answer_form::recipients;
  return is_begun ? made.behind_mark(next) : made.calls(next);
}

node_id text_or_tool_calls(grammar& g, std::span<const tool_signature> tools,
                           const tool_dialect& dialect, tool_calls how_many, node_id next,
                           const answer_reasoning& reasoning) {
  const bool open = reasoning.start == reasoning_start::open;
  const auto form = reasoning.marks.form;
  if (open && form != answer_form::marks) {
    builder made{g, tools, dialect, how_many};
    const auto text = form == answer_form::channels ? text_up_to(g, reasoning.marks.end, next, next)
                                                    : made.text_or_calls(next);
    const auto calls = tool_calls_grammar(g, tools, dialect, how_many, next, reasoning);
    return behind_reasoning(g, reasoning, g.choice({as_text(g, reasoning, text), calls}), next);
  }
  builder made{g, tools, dialect, how_many, open ? reasoning.marks.begin : ""};
  return behind_reasoning(g, reasoning, made.text_or_calls(next), next);
}

} // namespace lamella::model

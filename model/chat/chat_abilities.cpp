#include "model/chat/chat_abilities.hpp"

namespace lamella::model {

namespace {

using list = template_data::list;
using object = template_data::object;

/// Words that no template has of its own.
const std::string said = "probe-said", said_too = "probe-more";
const std::string tool_name = "probe_tool", argument = "probe_argument", value = "probe-value";
const std::string told = "probe-told", result = "probe-result", call_id = "probe0123";
const std::string thought = "probe-thought";

template_data text_part(const std::string& text) {
  return object{{"type", "text"}, {"text", text}};
}

template_data message(const std::string& role, template_data content) {
  return object{{"role", role}, {"content", std::move(content)}};
}

template_data calling(bool as_text = false, const std::string& id = call_id) {
  template_data arguments = object{{argument, value}};
  if (as_text) arguments = R"({")" + argument + R"(": ")" + value + R"("})";
  object function{{"name", tool_name}, {"arguments", std::move(arguments)}};
  list calls{object{{"id", id}, {"type", "function"}, {"function", std::move(function)}}};
  return object{{"role", "assistant"}, {"content", ""}, {"tool_calls", std::move(calls)}};
}

template_data result_of(template_data content) {
  return object{{"role", "tool"},
                {"content", std::move(content)},
                {"name", tool_name},
                {"tool_call_id", call_id}};
}

template_data definitions() {
  object parameters{
      {"type", "object"},
      {"properties", object{{argument, object{{"type", "string"}, {"description", told}}}}},
      {"required", list{argument}}};
  object function{
      {"name", tool_name}, {"description", told}, {"parameters", std::move(parameters)}};
  return list{object{{"type", "function"}, {"function", std::move(function)}}};
}

/// A conversation in which `content` is said by `role` last.
list talk(const std::string& role, template_data content) {
  if (role == "user") return {message(role, std::move(content))};
  if (role == "assistant")
    return {message("user", "Hi"), message(role, std::move(content)), message("user", "Go on")};
  if (role == "tool") return {message("user", "Hi"), calling(), result_of(std::move(content))};
  return {message(role, std::move(content)), message("user", "Hi")};
}

class prober {
public:
  prober(const chat_template& x, const std::string& bos, const std::string& eos) : template_{x} {
    input_.bos_token = bos;
    input_.eos_token = eos;
  }

  /// What comes out; nothing where the template refuses.
  std::string shown(list messages, bool with_tools, const object& more = {}) {
    input_.messages = std::move(messages);
    input_.more = {{"tools", with_tools ? definitions() : template_data{}}, {"documents", {}}};
    input_.more.insert(input_.more.end(), more.begin(), more.end());
    try {
      return template_.render_text(input_);
    } catch (const chat_template_error&) {
      return {};
    }
  }

  content_forms forms_of(const std::string& role) {
    const bool tools = role == "tool";
    const auto has = [](const std::string& text, const std::string& word) {
      return text.find(word) != std::string::npos;
    };
    const auto parts = shown(talk(role, list{text_part(said), text_part(said_too)}), tools);
    // A template that prints a list as it is shows the words too, among others that nobody said.
    const auto quoted = [&](char by) { return has(parts, by + said + by); };
    return {has(shown(talk(role, said), tools), said),
            has(parts, said) && has(parts, said_too) && !quoted('\'') && !quoted('"')};
  }

  /// What comes out where this role says something is not what comes out where any other does.
  bool is_known(const std::string& role) {
    const std::string other = "probe-role";
    auto shown_of_role = shown(talk(role, said), false);
    for (size_t at = 0; (at = shown_of_role.find(role, at)) != std::string::npos;)
      shown_of_role.replace(at, role.size(), other);
    return shown_of_role.find(said) != std::string::npos
           && shown_of_role != shown(talk(other, said), false);
  }

  /// Tools are told with names and arguments, and calls and results come out beside them.
  bool lays_out_tools(const std::string& answered) {
    const auto has_all = [](const std::string& text,
                            std::initializer_list<std::string_view> words) {
      for (const auto word : words)
        if (text.find(word) == std::string::npos) return false;
      return true;
    };
    return has_all(shown({message("user", "Hi")}, true), {tool_name, argument, told})
           && has_all(answered, {argument, value, result});
  }

  bool names_tools() {
    return shown({message("user", "Hi")}, true).find(tool_name) != std::string::npos;
  }
  bool lays_out_calls() {
    const auto answered = shown(talk("tool", result), false);
    for (const auto* word : {&tool_name, &value, &result})
      if (answered.find(*word) == std::string::npos) return false;
    return true;
  }

  /// Whose marks the template writes around reasoning or at the end of prompts, or looks for in
  /// earlier answers to leave reasoning out.
  reasoning_marks reasoning() {
    for (const auto& marks : known_reasoning_marks())
      if (knows(marks)) return marks;
    return {};
  }

  tool_dialect calls() {
    const auto named = "functions." + tool_name + ":0";
    for (const auto& [as_text, id] : {std::pair{false, call_id}, {true, call_id}, {false, named}}) {
      const auto answered =
          shown({message("user", "Hi"), calling(as_text, id), result_of(result)}, true);
      if (!lays_out_tools(answered)) continue;
      auto dialect = tool_dialect_of(answered, tool_name);
      dialect.takes_texts = as_text && dialect.template_writes;
      dialect.ids_are_names = id == named;
      if (dialect.template_writes) return dialect;
    }
    return tool_dialect_of("", tool_name);
  }

private:
  bool knows(const reasoning_marks& marks) {
    switch (marks.form) {
    case answer_form::marks:
      return writes_reasoning(marks) || ends_prompts(marks) || leaves_out(marks);
    case answer_form::channels:
      return writes_reasoning(marks);
    case answer_form::recipients:
      return reasoning_start_of(shown({message("user", "Hi")}, false), marks)
             == reasoning_start::open;
    }
    return false;
  }

  bool writes_reasoning(const reasoning_marks& marks) {
    const auto thinking = [](template_data answer) {
      auto& members = std::get<object>(answer.value);
      for (const auto* name : {"reasoning_content", "reasoning", "thinking"})
        members.emplace_back(name, thought);
      return answer;
    };
    const auto asked = message("user", "Hi");
    for (const auto& text : {shown({asked, thinking(message("assistant", said))}, false),
                             shown({asked, thinking(calling()), result_of(result)}, true)}) {
      const auto begin = text.find(marks.begin), at = text.find(thought, begin);
      if (begin != text.npos && at != text.npos && text.find(marks.end, at) != text.npos)
        return true;
    }
    return false;
  }

  bool ends_prompts(const reasoning_marks& marks) {
    for (const auto* name : {"enable_thinking", "thinking"})
      for (const bool wanted : {true, false})
        if (reasoning_start_of(shown({message("user", "Hi")}, false, {{name, wanted}}), marks)
            != reasoning_start::open)
          return true;
    return false;
  }

  bool leaves_out(const reasoning_marks& marks) {
    const auto text = shown(talk("assistant", marks.begin + thought + marks.end + said), false);
    return text.find(said) != text.npos && text.find(thought) == text.npos;
  }

  const chat_template& template_;
  template_input input_;
};

} // namespace

content_forms chat_abilities::shows(std::string_view role) const {
  const auto found = content.find(role);
  return found == content.end() ? content_forms{} : found->second;
}

chat_abilities abilities_of(const chat_template& x, const std::string& bos,
                            const std::string& eos) {
  prober probe{x, bos, eos};
  chat_abilities made;
  for (const auto* role : {"system", "developer", "user", "assistant", "tool"})
    made.content.emplace(role, probe.forms_of(role));
  made.knows_developer = probe.is_known("developer");
  made.shows_tools = probe.names_tools();
  made.shows_calls = probe.lays_out_calls();
  return made;
}

tool_dialect calls_of(const chat_template& x, const std::string& bos, const std::string& eos) {
  return prober{x, bos, eos}.calls();
}

reasoning_marks reasoning_of(const chat_template& x, const std::string& bos,
                             const std::string& eos) {
  return prober{x, bos, eos}.reasoning();
}

} // namespace lamella::model

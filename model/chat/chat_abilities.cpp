#include "model/chat/chat_abilities.hpp"

namespace lamella::model {

namespace {

using list = template_data::list;
using object = template_data::object;

/// Words that no template has of its own.
const std::string said = "probe-said", said_too = "probe-more";
const std::string tool_name = "probe_tool", argument = "probe_argument", value = "probe-value";
const std::string told = "probe-told", tool_result = "probe-result";
/// Ids of each form.
const std::string call_id = "call_probe_0123456789abcdef", short_id = "probe0123",
                  named_id = "functions." + tool_name + ":0";
const std::string thought = "probe-thought";

template_data text_part(const std::string& text) {
  return object{{"type", "text"}, {"text", text}};
}

template_data message(const std::string& role, template_data content) {
  return object{{"role", role}, {"content", std::move(content)}};
}

template_data calling(bool as_text = false, const std::string& id = short_id) {
  template_data arguments = object{{argument, value}};
  if (as_text) arguments = R"({")" + argument + R"(": ")" + value + R"("})";
  object function{{"name", tool_name}, {"arguments", std::move(arguments)}};
  list calls{object{{"id", id}, {"type", "function"}, {"function", std::move(function)}}};
  return object{{"role", "assistant"}, {"content", ""}, {"tool_calls", std::move(calls)}};
}

template_data result_of(template_data content, const std::string& id = short_id) {
  return object{
      {"role", "tool"}, {"content", std::move(content)}, {"name", tool_name}, {"tool_call_id", id}};
}

/// An answer with two calls, and their results.
list two_calls(const std::string& first, const std::string& second) {
  auto answer = calling(false, first);
  const auto calls_in = [](template_data& message) -> list& {
    return std::get<list>(std::get<object>(message.value).back().second.value);
  };
  auto other = calling(false, second);
  calls_in(answer).push_back(calls_in(other).front());
  return {message("user", "Hi"), answer, result_of(said, first), result_of(said_too, second)};
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
           && has_all(answered, {argument, value, tool_result});
  }

  bool names_tools() {
    return shown({message("user", "Hi")}, true).find(tool_name) != std::string::npos;
  }
  bool lays_out_calls(const std::string& id) {
    const auto answered =
        shown({message("user", "Hi"), calling(false, id), result_of(tool_result, id)}, false);
    for (const auto* word : {&tool_name, &value, &tool_result})
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
    for (const auto& id : {call_id, short_id, named_id})
      if (auto dialect = calls_by(id); dialect.template_writes) return dialect;
    return tool_dialect_of("", tool_name);
  }

  call_ids ids() {
    const auto takes = [&](const std::string& id) {
      return lays_out_calls(id) || calls_by(id).template_writes;
    };
    if (takes(call_id)) return call_ids::any;
    if (takes(short_id)) return call_ids::nine_letters;
    return takes(named_id) ? call_ids::functions : call_ids::any;
  }

  /// Whether all that is said in such turns comes out; so, too, where nothing said there does.
  void look_at_turns(chat_abilities& to) {
    const auto hi = message("user", "Hi"), answer = message("assistant", "Hello");
    const auto takes = [&](list messages, bool with_tools = false) {
      const auto text = shown(std::move(messages), with_tools);
      return text.find(said) != text.npos && text.find(said_too) != text.npos;
    };
    const auto one = [](const char* role) { return message(role, said); };
    const auto other = [](const char* role) { return message(role, said_too); };
    const auto& id = to.ids == call_ids::any            ? call_id
                     : to.ids == call_ids::nine_letters ? short_id
                                                        : named_id;
    if (takes({one("user"), answer, other("user")})) {
      to.takes_two_users = takes({one("user"), other("user")});
      for (const bool with_tools : {false, true})
        if (takes({hi, calling(false, id), result_of(said, id), answer, other("user")}, with_tools))
          to.takes_user_behind_result =
              to.takes_user_behind_result
              && takes({hi, calling(false, id), result_of(said, id), other("user")}, with_tools);
    }
    if (takes({hi, one("assistant"), hi, other("assistant"), hi}))
      to.takes_two_answers = takes({hi, one("assistant"), other("assistant"), hi});
    if (takes({one("system"), other("user")})) {
      to.takes_two_systems = takes({one("system"), other("system"), hi});
      to.takes_late_system = takes({hi, answer, one("system"), other("user")});
    }
    const auto second = id.substr(0, id.size() - 1) + (id.back() == '1' ? "2" : "1");
    for (const bool with_tools : {false, true})
      if (takes({hi, calling(false, id), result_of(said, id), calling(false, second),
                 result_of(said_too, second)},
                with_tools))
        to.takes_two_calls = to.takes_two_calls && takes(two_calls(id, second), with_tools);
  }

private:
  /// How calls with that id are written; no template_writes: they are not.
  tool_dialect calls_by(const std::string& id) {
    for (const bool as_text : {false, true}) {
      const auto answered =
          shown({message("user", "Hi"), calling(as_text, id), result_of(tool_result, id)}, true);
      if (!lays_out_tools(answered)) continue;
      auto dialect = tool_dialect_of(answered, tool_name);
      dialect.takes_texts = as_text && dialect.template_writes;
      if (dialect.template_writes) return dialect;
    }
    return tool_dialect_of("", tool_name);
  }

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
                             shown({asked, thinking(calling()), result_of(tool_result)}, true)}) {
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
  made.ids = probe.ids();
  for (const auto& id : {call_id, short_id, named_id})
    made.shows_calls = made.shows_calls || probe.lays_out_calls(id);
  probe.look_at_turns(made);
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

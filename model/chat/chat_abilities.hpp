/// Abilities of a chat template, detected by rendering small conversations.
#pragma once

#include "model/chat/chat_template.hpp"
#include "model/chat/reasoning.hpp"
#include "model/chat/tool_dialect.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lamella::model {

/// In which forms a template shows what a message says.
struct content_forms {
  bool text = false;  ///< "..."
  bool parts = false; ///< [{"type": "text", "text": "..."}, ...]

  bool any() const { return text || parts; }
};

/// Ids of calls that a template takes.
enum class call_ids : uint8_t {
  any,
  nine_letters, ///< and digits: it refuses others
  functions     ///< functions.NAME:NUMBER: it shows them as the names of the functions
};

struct chat_abilities {
  std::map<std::string, content_forms, std::less<>> content; ///< by role
  /// Developers have words of their own. A template that lays out any role alike knows none: what
  /// its model was trained with is the system's.
  bool knows_developer = false;
  bool shows_tools = false; ///< the name of a tool comes out
  bool shows_calls = false; ///< earlier calls and their results come out, in whatever form
  call_ids ids = call_ids::any;

  /// Turns that some templates refuse, or leave out.
  bool takes_two_users = true;          ///< one message of a user behind another
  bool takes_two_answers = true;        ///< the same of the assistant
  bool takes_user_behind_result = true; ///< of a call
  bool takes_two_systems = true;        ///< at the beginning
  bool takes_late_system = true;        ///< behind an answer
  bool takes_two_calls = true;          ///< in one answer

  /// What of a role's messages comes out.
  content_forms shows(std::string_view role) const;
};

/// Renders conversations with a word of its own for whatever is asked, and looks for these words in
/// what comes out. What a template refuses, it cannot do.
chat_abilities abilities_of(const chat_template& x, const std::string& bos, const std::string& eos);

/// How the template writes calls of tools. It `template_writes` where tools, calls and results all
/// come out, in a dialect that we read.
tool_dialect calls_of(const chat_template& x, const std::string& bos, const std::string& eos);

/// Between which marks the model reasons; none where the template knows of no reasoning.
reasoning_marks reasoning_of(const chat_template& x, const std::string& bos,
                             const std::string& eos);

} // namespace lamella::model

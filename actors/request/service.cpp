#include "actors/request/service.hpp"

#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::actors {

bool service::serves(const std::string& name) const {
  return name == model_name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

uint64_t tokens_of_a_sequence(const service& s) {
  const auto room = s.slots > s.window_slots ? s.slots - s.window_slots : 0;
  return std::min(s.context_tokens, room);
}

uint64_t longest_prompt(const service& s) {
  return std::min<uint64_t>(tokens_of_a_sequence(s),
                            s.rules.limits.prompt_tokens.value_or(s.context_tokens));
}

void check_model(const service& s, const std::string& name) {
  if (!name.empty() && !s.serves(name)) throw net::model_not_found(name);
}

} // namespace lamella::actors

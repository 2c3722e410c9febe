/// Constraints of structured output: compiled once per format, and cached while in use.
#pragma once

#include "model/chat/reasoning.hpp"
#include "model/chat/tool_dialect.hpp"
#include "model/grammar/output_constraint.hpp"
#include "net/api/output_format.hpp"
#include "net/api/tool_use.hpp"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lamella::actors {

/// Thread-safe. Requests with the same format share one constraint, and its computed masks.
class constraint_store {
public:
  static constexpr size_t kept_max = 64;
  static constexpr size_t kept_bytes_max = size_t{256} << 20;

  /// `ends`: the tokens that end an answer; `vocabulary`: of the model, which may have more rows of
  /// logits than the tokenizer has tokens.
  constraint_store(std::shared_ptr<const model::tokenizer> text, std::vector<model::token_id> ends,
                   uint32_t vocabulary);

  /// `format`: of text, behind the reasoning; null: free. Returns at once; `found` is null where
  /// the output is unconstrained; false where the constraint must be compiled first.
  bool find(const net::output_format* format, const net::tool_use& tools,
            std::shared_ptr<model::output_constraint>& found,
            const model::answer_reasoning& reasoning = {});

  /// The same, compiled if missing: may take seconds, during which other threads can still find().
  /// Throws net::api_error (400, invalid_schema or invalid_value) for unsupported formats.
  std::shared_ptr<model::output_constraint> make(const net::output_format* format,
                                                 const net::tool_use& tools,
                                                 const model::tool_dialect& dialect,
                                                 const model::answer_reasoning& reasoning = {});

private:
  struct entry {
    std::string key;
    std::shared_ptr<model::output_constraint> constraint;
  };

  std::shared_ptr<model::output_constraint> kept(const std::string& key);
  std::shared_ptr<const model::token_trie> trie_with(std::vector<std::string> marks);
  void drop_others();

  const std::shared_ptr<const model::tokenizer> text_;
  const std::vector<model::token_id> ends_;
  const uint32_t vocabulary_;
  std::mutex tries_lock_; ///< guards the tries, which are made when they are first needed
  /// By special tokens that are in them: marks of calls and reasoning.
  std::map<std::vector<std::string>, std::shared_ptr<const model::token_trie>> tries_;
  std::mutex lock_;          ///< guards what follows, and is held for moments
  std::list<entry> entries_; ///< last used first
};

/// Names of the keywords of a request's schemas that mean nothing, each once and with commas
/// between them, as net::header_list() has them; empty: there are none. `strict`: throws
/// net::api_error (400, invalid_schema, with a pointer) where there is one. Linear in the schemas.
std::string ignored_keywords(const net::output_format* format, const net::tool_use& tools,
                             bool strict);

} // namespace lamella::actors

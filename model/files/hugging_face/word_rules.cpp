#include "model/files/hugging_face/word_rules.hpp"

#include "base/printable.hpp"
#include "model/files/hugging_face/json_file.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::model::hugging_face {

namespace {

struct known_expression {
  std::string_view text, pre;
};

/// Further spellings are further entries. Possessive quantifiers change nothing here: what they
/// take could never be given back to a match; nor does one newline instead of several after all
/// white space before it.
constexpr std::array<known_expression, 6> expressions{{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "gpt-2"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "llama-bpe"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     "llama-bpe"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2"},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "tekken"},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "gpt-4o"},
}};

/// One step and where it stands.
struct step {
  std::string type;
  json_object_reader fields;
};

/// The steps of a sequence in their order; a sequence in a sequence is none.
std::vector<step> steps_of(const json_value& value) {
  const std::string path = "pre_tokenizer";
  std::vector<step> steps;
  const auto add = [&](const json_value& x, const std::string& at) {
    json_object_reader fields{x, at};
    auto type = fields.required_string("type", {1, 64});
    steps.push_back({std::move(type), std::move(fields)});
  };
  add(value, path);
  if (steps[0].type != "Sequence") return steps;
  steps.clear();
  const auto listed = path + ".pretokenizers";
  const auto* items = value.find("pretokenizers");
  if (items == nullptr) throw refuse(listed, "is required");
  const auto& all = json_items(*items, listed, {1, 16});
  for (size_t i = 0; i < all.size(); ++i) add(all[i], json_index(listed, i));
  return steps;
}

/// The name of the rules of a step that cuts by an expression, which must match all of every text:
/// then it does not matter whether what matches is kept or what does not is dropped.
std::string_view read_split(json_object_reader& fields) {
  const auto behaviour = fields.required_string("behavior", {1, 32});
  const bool inverted = fields.optional<bool>("invert").value_or(false);
  if (!(behaviour == "Isolated" && !inverted) && !(behaviour == "Removed" && inverted))
    throw refuse(fields.path("behavior"), "'" + printable(behaviour)
                                              + (inverted ? "' with" : "' without")
                                              + " invert is not supported");
  json_object_reader pattern{fields.require("pattern"), fields.path("pattern")};
  const auto text = pattern.required_string("Regex", {1, 4096});
  for (const auto& known : expressions)
    if (known.text == text) return known.pre;
  throw refuse(pattern.path("Regex"), "'" + printable(text, 400)
                                          + "' is not one of the supported expressions, those of "
                                            "GPT-2, LLaMA-3, Qwen2, Tekken and GPT-4o");
}

void read_byte_level(json_object_reader& fields, bool cut_before, std::string_view& pre) {
  if (fields.optional<bool>("add_prefix_space").value_or(true))
    throw refuse(fields.path("add_prefix_space"), "must be false");
  const bool cuts = fields.optional<bool>("use_regex").value_or(true);
  if (cut_before && cuts)
    throw refuse(fields.path("use_regex"), "must be false after a step that cuts");
  if (cuts)
    pre = pre.empty() ? "gpt-2" : "smollm";
  else if (!cut_before)
    throw refuse(fields.path("use_regex"), "must be true where no other step cuts");
}

void read_metaspace(json_object_reader& fields, word_rules& out) {
  if (const auto mark = fields.required_string("replacement", {1, 16}); mark != space_mark)
    throw refuse(fields.path("replacement"), "is '" + printable(mark) + "'; U+2581 is supported");
  if (fields.optional<bool>("split").value_or(true))
    throw refuse(fields.path("split"), "must be false");
  const auto scheme = fields.optional_string("prepend_scheme", {1, 16});
  if (scheme && *scheme != "always" && *scheme != "first" && *scheme != "never")
    throw refuse(fields.path("prepend_scheme"),
                 "is '" + printable(*scheme) + "'; known are always, first, never");
  out.marks_spaces = true;
  out.adds_space =
      scheme ? *scheme != "never" : fields.optional<bool>("add_prefix_space").value_or(true);
  out.adds_space_once = scheme == "first";
}

} // namespace

word_rules read_word_rules(const json_value& pre_tokenizer) {
  word_rules out;
  if (pre_tokenizer.is_null()) return out;
  auto steps = steps_of(pre_tokenizer);
  std::string_view pre;
  bool cut = false;
  for (auto& [type, fields] : steps) {
    const auto at = fields.path("type");
    if (out.byte_level) throw refuse(at, "comes after ByteLevel, which must be the last step");
    if (type == "ByteLevel") {
      out.byte_level = true;
      read_byte_level(fields, cut, pre);
    } else if (type == "Split" && pre.empty()) {
      pre = read_split(fields);
      cut = true;
    } else if (type == "Digits" && pre.empty()) {
      if (!fields.optional<bool>("individual_digits").value_or(false))
        throw refuse(fields.path("individual_digits"), "must be true");
      pre = "smollm";
    } else if (type == "Metaspace" && steps.size() == 1) {
      read_metaspace(fields, out);
    } else {
      throw refuse(at, "'" + printable(type)
                           + "' is not supported here; known are ByteLevel, at most one Split or "
                             "Digits before it, and Metaspace alone");
    }
  }
  if (!pre.empty() && !out.byte_level) throw refuse("pre_tokenizer", "must end with ByteLevel");
  out.pre = pre;
  return out;
}

} // namespace lamella::model::hugging_face

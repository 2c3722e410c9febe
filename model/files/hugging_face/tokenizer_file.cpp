#include "model/files/hugging_face/tokenizer_file.hpp"

#include "base/printable.hpp"
#include "model/files/hugging_face/pieces.hpp"
#include "model/files/hugging_face/word_rules.hpp"

#include <algorithm>

namespace lamella::model::hugging_face {

namespace {

using merge_list = std::vector<std::pair<token_id, token_id>>;

/// Does a marker steer the model by its looks, whatever the file says? Then users may not write it.
bool looks_like_control(std::string_view text) {
  return (text.size() > 4 && text.starts_with("<|") && text.ends_with("|>"))
         || (text.starts_with("<\uFF5C") && text.ends_with("\uFF5C>")); // DeepSeek's
}

/// "<0x0A>"
bool is_byte(std::string_view text) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && digit(text[3])
         && digit(text[4]);
}

/// Reads the parts of a tokenizer.json one after the other.
class tokenizer_reader {
public:
  tokenizer_reader(json_object_reader& file, tokenizer_source& out)
      : file_(file), model_(file.require("model"), "model"), out_(out) {}

  void read() {
    if (const auto type = model_.optional_string("type").value_or("BPE"); type != "BPE")
      throw refuse("model.type", "'" + printable(type) + "' is not supported; known is BPE");
    refuse_options();
    read_vocabulary();
    read_added_tokens();
    refuse_gaps();
    const auto* words = file_.find("pre_tokenizer");
    const auto rules = read_word_rules(words != nullptr ? *words : json_value{});
    rules.byte_level ? read_byte_level(rules) : read_pieces(rules);
    out_.add_bos = begins_with_token();
  }

private:
  void refuse_options() {
    for (const auto* none : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const auto text = model_.optional_string(none); text && !text->empty())
        throw refuse(model_.path(none), "'" + printable(*text) + "' is not supported");
    if (model_.optional<double>("dropout").value_or(0) != 0)
      throw refuse("model.dropout", "is not supported");
  }

  void put(token_id id, const std::string& text, const std::string& path) {
    if (text.size() > tokenizer_limit::token_bytes)
      throw refuse(path, "has " + std::to_string(text.size()) + " bytes, at most "
                             + std::to_string(tokenizer_limit::token_bytes) + " are read");
    if (id >= out_.tokens.size()) {
      out_.tokens.resize(id + 1);
      out_.kinds.resize(id + 1, token_kind::unused);
      taken_.resize(id + 1, false);
    }
    if (taken_[id] && out_.tokens[id] != text)
      throw refuse(path, "has id " + std::to_string(id) + ", which is that of '"
                             + printable(out_.tokens[id]) + "', too");
    const auto [known, fresh] = ids_.emplace(text, id);
    if (!fresh && known->second != id)
      throw refuse(path, "has id " + std::to_string(id) + " here and "
                             + std::to_string(known->second) + " elsewhere");
    taken_[id] = true;
    out_.tokens[id] = text;
  }

  void read_vocabulary() {
    const auto& value = model_.require("vocab");
    const auto* entries = value.get_if<json_value::object>();
    if (entries == nullptr || entries->empty())
      throw refuse("model.vocab", "must be an object of tokens and their ids");
    ids_.reserve(entries->size());
    for (const auto& [text, id] : *entries) {
      const auto path = "model.vocab." + printable(text);
      const auto number = json_as<uint32_t>(id, path, {0, vocabulary_max - 1});
      put(number, text, path);
      out_.kinds[number] = token_kind::normal;
    }
  }

  void read_added_tokens() {
    const auto* list = file_.find("added_tokens");
    if (list == nullptr) return;
    const auto& items = json_items(*list, "added_tokens", {0, tokenizer_limit::added_tokens});
    for (size_t i = 0; i < items.size(); ++i) {
      json_object_reader x{items[i], json_index("added_tokens", i)};
      const auto id = x.required<uint32_t>("id", {0, vocabulary_max - 1});
      const auto text = x.required_string("content", {1, tokenizer_limit::token_bytes});
      put(id, text, x.path("content"));
      for (const auto* option : {"single_word", "lstrip"})
        if (x.optional<bool>(option).value_or(false)) throw refuse(x.path(option), "must be false");
      const bool control = x.optional<bool>("special").value_or(false) || looks_like_control(text);
      out_.kinds[id] = control ? token_kind::control : token_kind::user_defined;
      if (x.optional<bool>("rstrip").value_or(false)) out_.take_space.push_back(id);
    }
  }

  void refuse_gaps() {
    const auto gap = std::find(taken_.begin(), taken_.end(), false);
    if (gap != taken_.end())
      throw refuse("model.vocab", "has no token of id " + std::to_string(gap - taken_.begin())
                                      + ", though there are higher ones");
  }

  token_id token(const std::string& text, const std::string& path) const {
    const auto found = ids_.find(text);
    if (found == ids_.end())
      throw refuse(path, "needs '" + printable(text) + "', which is not in the vocabulary");
    return found->second;
  }

  /// Pairs of tokens as lists of two, or as texts with a space between them, which no token of such
  /// files has.
  merge_list read_merges() {
    merge_list merges;
    const auto& items =
        json_items(model_.require("merges"), "model.merges", {0, 2 * vocabulary_max});
    merges.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      const auto path = json_index("model.merges", i);
      std::string left, right;
      if (const auto* text = items[i].get_if<std::string>()) {
        const auto space = text->find(' ');
        if (space == std::string::npos || text->find(' ', space + 1) != std::string::npos)
          throw refuse(path, "is not two tokens with a space between them");
        left = text->substr(0, space);
        right = text->substr(space + 1);
      } else {
        const auto& pair = json_items(items[i], path, {2, 2});
        left = json_string(pair[0], json_index(path, 0));
        right = json_string(pair[1], json_index(path, 1));
      }
      merges.emplace_back(token(left, path), token(right, path));
      token(left + right, path);
    }
    return merges;
  }

  void read_byte_level(const word_rules& rules) {
    out_.kind = "gpt2";
    out_.pre = rules.pre;
    out_.whole_words = model_.optional<bool>("ignore_merges").value_or(false);
    if (model_.optional<bool>("byte_fallback").value_or(false))
      throw refuse("model.byte_fallback", "must be false where tokens stand for bytes");
    read_normalizer([](const std::string& type, json_object_reader&) {
      return type == "NFC"; // left out here: text comes back as it was
    });
    for (const auto& [left, right] : read_merges())
      out_.merges.push_back(out_.tokens[left] + " " + out_.tokens[right]);
  }

  void read_pieces(const word_rules& rules) {
    out_.kind = "llama";
    if (!model_.optional<bool>("byte_fallback").value_or(false))
      throw refuse("model.byte_fallback",
                   "must be true where no step of pre_tokenizer is ByteLevel");
    if (model_.optional<bool>("ignore_merges").value_or(false))
      throw refuse("model.ignore_merges", "must be false with byte_fallback");
    bool prepends = false, marks = rules.marks_spaces;
    read_normalizer([&](const std::string& type, json_object_reader& step) {
      if (type == "Prepend") return prepends = step.required_string("prepend") == space_mark;
      if (type != "Replace") return false;
      json_object_reader pattern{step.require("pattern"), step.path("pattern")};
      const bool replaces =
          pattern.optional_string("String") == " " && step.required_string("content") == space_mark;
      marks |= replaces;
      return replaces;
    });
    if (!marks) throw refuse("normalizer", "must replace spaces by U+2581");
    out_.add_space_prefix = prepends || rules.adds_space;
    out_.space_prefix_once = !prepends && rules.adds_space_once;
    for (token_id id = 0; id < out_.tokens.size(); ++id)
      if (out_.kinds[id] == token_kind::normal && is_byte(out_.tokens[id]))
        out_.kinds[id] = token_kind::byte;
    if (const auto text = model_.optional_string("unk_token")) {
      out_.unknown = token(*text, "model.unk_token");
      out_.kinds[*out_.unknown] = token_kind::unknown;
    }
    score_pieces(read_merges(), ids_, out_);
  }

  /// `known(type, step)` of the normalizer, or of each step of a sequence.
  template <class F> void read_normalizer(F&& known) {
    const auto* value = file_.find("normalizer");
    if (value == nullptr) return;
    const auto read_step = [&](const json_value& x, const std::string& path) {
      json_object_reader step{x, path};
      const auto type = step.required_string("type", {1, 64});
      if (!known(type, step))
        throw refuse(step.path("type"), "'" + printable(type)
                                            + "' is not supported with these options and this "
                                              "pre_tokenizer");
    };
    json_object_reader fields{*value, "normalizer"};
    if (fields.required_string("type", {1, 64}) != "Sequence") {
      read_step(*value, "normalizer");
      return;
    }
    const auto path = fields.path("normalizers");
    const auto& steps = json_items(fields.require("normalizers"), path, {0, 16});
    for (size_t i = 0; i < steps.size(); ++i) read_step(steps[i], json_index(path, i));
  }

  /// Does the post-processor put a token before every text? What it puts behind texts is left out:
  /// an answer follows there.
  bool begins_with_token() {
    const auto* value = file_.find("post_processor");
    if (value == nullptr) return false;
    json_object_reader fields{*value, "post_processor"};
    if (fields.required_string("type", {1, 64}) != "Sequence")
      return template_begins(*value, "post_processor");
    const auto path = fields.path("processors");
    const auto& steps = json_items(fields.require("processors"), path, {0, 16});
    bool begins = false;
    for (size_t i = 0; i < steps.size(); ++i)
      begins |= template_begins(steps[i], json_index(path, i));
    return begins;
  }

  bool template_begins(const json_value& value, const std::string& path) {
    json_object_reader fields{value, path};
    const auto type = fields.required_string("type", {1, 64});
    if (type == "ByteLevel") return false;
    if (type != "TemplateProcessing")
      throw refuse(fields.path("type"), "'" + printable(type)
                                            + "' is not supported; known are ByteLevel, "
                                              "TemplateProcessing, Sequence");
    const auto single = fields.path("single");
    const auto& items = json_items(fields.require("single"), single, {1, 16});
    const auto* first = items[0].find("SpecialToken");
    if (first == nullptr) return false;
    json_object_reader special{*first, json_index(single, 0) + ".SpecialToken"};
    out_.bos =
        token(special.required_string("id", {1, tokenizer_limit::token_bytes}), special.path("id"));
    return true;
  }

  json_object_reader& file_;
  json_object_reader model_;
  tokenizer_source& out_;
  vocabulary_map ids_;
  std::vector<bool> taken_; ///< ids
};

/// The id of a token that is told by its text, or by an object with it; nothing where the text is
/// not in the vocabulary, as in files that were made from others.
std::optional<token_id> named_token(json_object_reader& fields, const char* field,
                                    const tokenizer_source& source) {
  const auto* value = fields.find(field);
  if (value == nullptr) return {};
  auto path = fields.path(field);
  if (value->get_if<json_value::object>() != nullptr) {
    json_object_reader inner{*value, path};
    value = &inner.require("content");
    path = inner.path("content");
  }
  const auto text = json_string(*value, path, {0, tokenizer_limit::token_bytes});
  const auto found = std::find(source.tokens.begin(), source.tokens.end(), text);
  if (found == source.tokens.end()) return {};
  return static_cast<token_id>(found - source.tokens.begin());
}

} // namespace

json_file open_tokenizer_file(const std::filesystem::path& path) {
  return json_file{path,
                   {.text_bytes = tokenizer_limit::file_bytes,
                    .object_members = vocabulary_max,
                    .array_items = 2 * vocabulary_max,
                    .values = size_t{8} << 20}};
}

tokenizer_source read_tokenizer(const json_file& file) {
  return file.read([&](json_object_reader& fields) {
    tokenizer_source out;
    out.file = file.path();
    tokenizer_reader{fields, out}.read();
    return out;
  });
}

void read_tokenizer_settings(const json_file& file, tokenizer_source& out) {
  file.read([&](json_object_reader& fields) {
    if (const auto id = named_token(fields, "bos_token", out)) out.bos = id;
    if (const auto id = named_token(fields, "eos_token", out)) out.eos = id;
    if (const auto id = named_token(fields, "pad_token", out)) out.padding = id;
    if (!out.unknown) out.unknown = named_token(fields, "unk_token", out);
    if (const auto adds = fields.optional<bool>("add_bos_token")) out.add_bos = adds;
  });
}

std::string read_chat_template(const json_file& file) {
  return file.read([&](json_object_reader& fields) -> std::string {
    constexpr const char* field = "chat_template";
    constexpr json_range<size_t> range{0, size_t{1} << 20};
    const auto* value = fields.find(field);
    if (value == nullptr) return {};
    if (value->get_if<json_value::array>() == nullptr) return json_string(*value, field, range);
    const auto& items = json_items(*value, field, {0, 64});
    for (size_t i = 0; i < items.size(); ++i) {
      json_object_reader named{items[i], json_index(field, i)};
      if (named.required_string("name") == "default")
        return named.required_string("template", range);
    }
    if (items.empty()) return {};
    throw refuse(field, "has no template of the name 'default'");
  });
}

} // namespace lamella::model::hugging_face

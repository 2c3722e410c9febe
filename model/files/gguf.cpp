#include "model/files/gguf.hpp"

#include "base/byte_digest.hpp"
#include "base/printable.hpp"
#include "model/files/gguf_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <mutex>

namespace lamella::model {

namespace {

constexpr uint64_t token_bytes_max = 4096;
constexpr uint64_t merges_max = 2 * vocabulary_max;
/// Number arrays up to this length are kept as hyperparameters (head counts per layer).
constexpr uint64_t kept_elements_max = 4096;

/// Of Phi-3: is white space after this token no text, should it be a marker?
bool takes_space(std::string_view token) {
  return (token.starts_with("<|") && token.ends_with("|>") && token != "<|endoftext|>")
         || token == "</s>";
}

class gguf_checkpoint final : public checkpoint {
public:
  explicit gguf_checkpoint(const std::filesystem::path& path)
      : file_(path), header_(read_gguf_header(file_)) {
    refuse_split(); // of whose parts only the first says what the model is
    const auto* architecture = find_value("general.architecture");
    if (!architecture) throw fail("general.architecture", "is missing");
    architecture_ = as_text("general.architecture", *architecture);
    const auto plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    };
    if (architecture_.empty() || architecture_.size() > 64
        || !std::all_of(architecture_.begin(), architecture_.end(), plain))
      throw fail("general.architecture",
                 "is '" + printable(architecture_) + "', must be 1 to 64 of a-z 0-9 - _");
    keep_number_arrays();
    for (size_t i = 0; i < header_.tensors.size(); ++i) by_name_.push_back(i);
    std::sort(by_name_.begin(), by_name_.end(), [this](size_t a, size_t b) {
      return header_.tensors[a].name < header_.tensors[b].name;
    });
    if (const auto* text = find_value("tokenizer.chat_template"))
      chat_template_ = as_text("tokenizer.chat_template", *text);
    read_tokenizer();
    check_counts();
    file_.check_intact();
  }

  const std::filesystem::path& path() const override { return file_.path(); }
  std::string file_name() const override { return file_.path().stem().string(); }
  uint64_t file_bytes() const override { return file_.bytes().size(); }
  std::string format() const override { return "GGUF v" + std::to_string(header_.version); }
  const std::string& architecture() const override { return architecture_; }
  std::string name() const override {
    const auto* value = find_value("general.name");
    const auto* text = value ? std::get_if<std::string>(&value->content) : nullptr;
    return text && !text->empty() ? *text : file_name();
  }
  const std::string& chat_template() const override { return chat_template_; }
  const tokenizer_source& tokenizer() const override { return tokenizer_; }

  std::optional<uint64_t> find_u64(std::string_view key) const override {
    const std::string field = full(key);
    const auto* value = find_value(field);
    if (!value) return {};
    return as_u64(field, *value);
  }

  std::optional<double> find_f64(std::string_view key) const override {
    const std::string field = full(key);
    const auto* value = find_value(field);
    if (!value) return {};
    double number = 0;
    if (const auto* real = std::get_if<double>(&value->content)) {
      number = *real;
    } else if (const auto* integer = std::get_if<uint64_t>(&value->content)) {
      number = static_cast<double>(*integer);
    } else if (const auto* sign = std::get_if<int64_t>(&value->content)) {
      number = static_cast<double>(*sign);
    } else {
      throw wrong_type(field, *value, "a number");
    }
    if (!std::isfinite(number)) throw fail(field, "is not a finite number");
    return number;
  }

  std::optional<bool> find_bool(std::string_view key) const override {
    const std::string field = full(key);
    const auto* value = find_value(field);
    if (!value) return {};
    return as_bool(field, *value);
  }

  std::optional<std::string> find_text(std::string_view key) const override {
    const std::string field = full(key);
    const auto* value = find_value(field);
    if (!value) return {};
    return as_text(field, *value);
  }

  std::optional<std::vector<uint64_t>> find_u64s(std::string_view key) const override {
    const std::string field = full(key);
    const auto* value = find_value(field);
    if (!value) return {};
    if (!std::holds_alternative<gguf_array>(value->content)) return {{as_u64(field, *value)}};
    const auto kept = arrays_.find(field);
    if (kept == arrays_.end()) throw wrong_type(field, *value, "a short array of integers");
    std::vector<uint64_t> integers;
    for (const double number : kept->second) {
      if (!(number >= 0 && number <= 0x1p53) || number != std::floor(number))
        throw fail(field, "has an element that is not an unsigned integer");
      integers.push_back(static_cast<uint64_t>(number));
    }
    return integers;
  }

  std::span<const tensor_view> tensors() const override { return header_.tensors; }

  const tensor_view* find(std::string_view name) const override {
    const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                        [this](size_t index, std::string_view wanted) {
                                          return header_.tensors[index].name < wanted;
                                        });
    if (found == by_name_.end() || header_.tensors[*found].name != name) return nullptr;
    return &header_.tensors[*found];
  }

  std::vector<std::pair<std::string, std::string>> describe() const override {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const std::string& key : header_.keys)
      lines.emplace_back(printable(key), shown(header_.values.find(key)->second));
    return lines;
  }

  uint64_t digest() const override {
    std::call_once(digested_, [this] { digest_ = digest_of(file_.bytes()); });
    file_.check_intact();
    return digest_;
  }
  void check_intact() const override { file_.check_intact(); }
  void release_pages() const override { file_.release_pages(); }

  file_error error_at_key(std::string_view key, const std::string& problem) const override {
    return fail(full(key), problem);
  }

  file_error error_at_tensor(std::string_view name, const std::string& problem) const override {
    std::optional<uint64_t> place;
    if (const auto* found = find(name))
      place = header_.tensor_entries[static_cast<size_t>(found - header_.tensors.data())];
    return {file_.path(), place, "tensor '" + printable(name) + "'", problem};
  }

private:
  std::string full(std::string_view key) const { return architecture_ + "." + std::string(key); }

  const gguf_value* find_value(std::string_view field) const {
    const auto found = header_.values.find(field);
    return found == header_.values.end() ? nullptr : &found->second;
  }

  file_error fail(const std::string& field, const std::string& problem) const {
    const auto* value = find_value(field);
    return {file_.path(), value ? std::optional(value->offset) : std::nullopt, printable(field),
            problem};
  }

  file_error wrong_type(const std::string& field, const gguf_value& value,
                        const std::string& wanted) const {
    return fail(field, "is of type " + std::string(to_string(value.type)) + ", must be " + wanted);
  }

  uint64_t as_u64(const std::string& field, const gguf_value& value) const {
    if (const auto* integer = std::get_if<uint64_t>(&value.content)) return *integer;
    const auto* sign = std::get_if<int64_t>(&value.content);
    if (!sign) throw wrong_type(field, value, "an integer");
    if (*sign < 0) throw fail(field, "is " + std::to_string(*sign) + ", must not be negative");
    return static_cast<uint64_t>(*sign);
  }

  bool as_bool(const std::string& field, const gguf_value& value) const {
    const auto* truth = std::get_if<bool>(&value.content);
    if (!truth) throw wrong_type(field, value, "a bool");
    return *truth;
  }

  const std::string& as_text(const std::string& field, const gguf_value& value) const {
    const auto* text = std::get_if<std::string>(&value.content);
    if (!text) throw wrong_type(field, value, "a text");
    return *text;
  }

  const gguf_array* array(const std::string& field, uint64_t count_max) const {
    const auto* value = find_value(field);
    if (!value) return nullptr;
    const auto* found = std::get_if<gguf_array>(&value->content);
    if (!found) throw wrong_type(field, *value, "an array");
    if (found->count > count_max)
      throw fail(field, "has " + std::to_string(found->count) + " elements, at most "
                            + std::to_string(count_max) + " are read");
    return found;
  }

  void refuse_split() const {
    const auto* value = find_value("split.count");
    if (!value) return;
    const uint64_t parts = as_u64("split.count", *value);
    if (parts > 1)
      throw fail("split.count", "the file is one of " + std::to_string(parts)
                                    + " parts of a model; join the parts into one file first "
                                      "(split models are not read)");
  }

  void keep_number_arrays() {
    for (const auto& [key, value] : header_.values) {
      const auto* found = std::get_if<gguf_array>(&value.content);
      if (found && found->count <= kept_elements_max && key.starts_with(architecture_ + ".")
          && found->element != gguf_type::text && found->element != gguf_type::boolean)
        arrays_.emplace(key, read_numbers(file_, *found, printable(key)));
    }
  }

  std::optional<token_id> token_key(const std::string& field) const {
    const auto* value = find_value(field);
    if (!value) return {};
    const uint64_t id = as_u64(field, *value);
    if (id >= tokenizer_.tokens.size())
      throw fail(field, "is " + std::to_string(id) + ", the vocabulary has "
                            + std::to_string(tokenizer_.tokens.size()) + " tokens");
    return static_cast<token_id>(id);
  }

  void read_tokenizer();
  void check_counts() const;
  std::string shown(const gguf_value& value) const;

  mapped_file file_;
  gguf_header header_;
  std::string architecture_;
  std::string chat_template_;
  tokenizer_source tokenizer_;
  std::vector<size_t> by_name_; ///< indexes of tensors, sorted by name
  std::map<std::string, std::vector<double>, std::less<>> arrays_;
  mutable std::once_flag digested_;
  mutable uint64_t digest_ = 0; ///< once `digested_`
};

void gguf_checkpoint::read_tokenizer() {
  const std::string prefix = "tokenizer.ggml.";
  tokenizer_.file = file_.path();
  const auto* kind = find_value(prefix + "model");
  if (!kind) return; // a model without a tokeniser; make_tokenizer() says so
  tokenizer_.kind = as_text(prefix + "model", *kind);
  if (const auto* pre = find_value(prefix + "pre")) tokenizer_.pre = as_text(prefix + "pre", *pre);
  if (const auto* found = array(prefix + "tokens", vocabulary_max))
    tokenizer_.tokens = read_texts(file_, *found, prefix + "tokens", token_bytes_max);
  const size_t count = tokenizer_.tokens.size();
  if (const auto* found = array(prefix + "merges", merges_max))
    tokenizer_.merges = read_texts(file_, *found, prefix + "merges", 2 * token_bytes_max);

  const auto as_many = [&](const std::string& field, size_t elements) {
    if (elements != count)
      throw fail(field, "has " + std::to_string(elements) + " elements, the vocabulary has "
                            + std::to_string(count) + " tokens");
  };
  if (const auto* found = array(prefix + "token_type", vocabulary_max)) {
    as_many(prefix + "token_type", found->count);
    for (const double type : read_numbers(file_, *found, prefix + "token_type")) {
      if (!(type >= 1 && type <= 6) || type != std::floor(type))
        throw fail(prefix + "token_type", "element " + std::to_string(tokenizer_.kinds.size())
                                              + " is not a type (1 to 6)");
      tokenizer_.kinds.push_back(static_cast<token_kind>(type));
    }
  }
  tokenizer_.kinds.resize(count, token_kind::normal);
  if (const auto* found = array(prefix + "scores", vocabulary_max)) {
    as_many(prefix + "scores", found->count);
    for (const double score : read_numbers(file_, *found, prefix + "scores"))
      tokenizer_.scores.push_back(static_cast<float>(score));
  }
  tokenizer_.bos = token_key(prefix + "bos_token_id");
  tokenizer_.eos = token_key(prefix + "eos_token_id");
  tokenizer_.unknown = token_key(prefix + "unknown_token_id");
  tokenizer_.padding = token_key(prefix + "padding_token_id");
  for (const char* end : {"eot_token_id", "eom_token_id"})
    if (const auto id = token_key(prefix + end)) tokenizer_.more_ends.push_back(*id);
  if (const auto* add = find_value(prefix + "add_bos_token"))
    tokenizer_.add_bos = as_bool(prefix + "add_bos_token", *add);
  if (const auto* add = find_value(prefix + "add_space_prefix"))
    tokenizer_.add_space_prefix = as_bool(prefix + "add_space_prefix", *add);
  // No key says so: it is how Phi-3's own tokeniser reads its templates.
  if (architecture_ == "phi3" && tokenizer_.kind == "llama")
    for (token_id id = 0; id < count; ++id)
      if (takes_space(tokenizer_.tokens[id])) tokenizer_.take_space.push_back(id);
}

/// Counts within the compiled maxima, and of one mind with the tensors.
void gguf_checkpoint::check_counts() const {
  const auto scalar = [this](std::string_view key) {
    const auto* value = find_value(full(key));
    return value && !std::holds_alternative<gguf_array>(value->content);
  };
  const auto bounded = [&](std::string_view key, uint32_t high) -> uint32_t {
    return scalar(key) ? u32(key, 1, high) : 0;
  };
  const uint32_t layers = bounded("block_count", gguf_limit::layers);
  const uint32_t embedding = bounded("embedding_length", gguf_limit::embedding);
  bounded("feed_forward_length", gguf_limit::feed_forward);
  bounded("context_length", gguf_limit::context);
  bounded("vocab_size", static_cast<uint32_t>(vocabulary_max));
  const uint32_t heads = bounded("attention.head_count", gguf_limit::heads);
  const uint32_t kv_heads = bounded("attention.head_count_kv", gguf_limit::heads);
  if (heads != 0 && kv_heads > heads)
    throw fail(full("attention.head_count_kv"), "is " + std::to_string(kv_heads)
                                                    + ", more than the " + std::to_string(heads)
                                                    + " attention heads");
  if (header_.tensors.empty()) return;

  uint64_t layers_seen = 0;
  for (const tensor_view& each : header_.tensors) {
    if (!each.name.starts_with("blk.")) continue;
    uint32_t layer = 0;
    const char* end = each.name.data() + each.name.size();
    const auto parsed = std::from_chars(each.name.data() + 4, end, layer);
    if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != '.')
      throw error_at_tensor(each.name, "has no layer number in its name");
    if (layer >= layers)
      throw error_at_tensor(each.name, "is of layer " + std::to_string(layer) + ", "
                                           + full("block_count") + " is " + std::to_string(layers));
    layers_seen = std::max<uint64_t>(layers_seen, layer + 1);
  }
  if (layers_seen != layers)
    throw fail(full("block_count"), "is " + std::to_string(layers) + ", the tensors have "
                                        + std::to_string(layers_seen) + " layers");
  if (const auto* table = find("token_embd.weight")) {
    if (!tokenizer_.kind.empty() && table->rows != tokenizer_.tokens.size())
      throw error_at_tensor(table->name,
                            "has " + std::to_string(table->rows) + " rows, the vocabulary has "
                                + std::to_string(tokenizer_.tokens.size()) + " tokens");
    if (table->inner != embedding)
      throw error_at_tensor(table->name, "has rows of " + std::to_string(table->inner) + ", "
                                             + full("embedding_length") + " is "
                                             + std::to_string(embedding));
  }
}

std::string gguf_checkpoint::shown(const gguf_value& value) const {
  if (const auto* text = std::get_if<std::string>(&value.content))
    return "\"" + printable(*text) + "\"";
  if (const auto* truth = std::get_if<bool>(&value.content)) return *truth ? "true" : "false";
  if (const auto* integer = std::get_if<uint64_t>(&value.content)) return std::to_string(*integer);
  if (const auto* sign = std::get_if<int64_t>(&value.content)) return std::to_string(*sign);
  if (const auto* real = std::get_if<double>(&value.content)) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", *real);
    return text;
  }
  const auto& found = std::get<gguf_array>(value.content);
  return "[" + std::to_string(found.count) + " x " + std::string(to_string(found.element)) + "]";
}

} // namespace

std::unique_ptr<checkpoint> open_gguf(const std::filesystem::path& path) {
  return std::make_unique<gguf_checkpoint>(path);
}

} // namespace lamella::model

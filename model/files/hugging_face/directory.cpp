#include "model/files/hugging_face/directory.hpp"

#include "base/byte_digest.hpp"
#include "base/json_writer.hpp"
#include "base/printable.hpp"
#include "model/files/hugging_face/hyperparameters.hpp"
#include "model/files/hugging_face/tensor_names.hpp"
#include "model/files/hugging_face/tokenizer_file.hpp"
#include "model/files/hugging_face/weight_files.hpp"

#include <algorithm>
#include <mutex>

namespace lamella::model::hugging_face {

namespace {

constexpr size_t template_bytes_max = size_t{1} << 20;

class directory final : public checkpoint {
public:
  explicit directory(const std::filesystem::path& path)
      : path_(std::filesystem::canonical(path)), architecture_(read_config()),
        weights_(open_weights(path_)) {
    add_tensors();
    read_vocabulary();
    check_intact();
  }

  const std::filesystem::path& path() const override { return path_; }
  std::string file_name() const override { return path_.filename().string(); }
  uint64_t file_bytes() const override { return file_bytes_; }
  std::string format() const override { return "Hugging Face directory"; }
  const std::string& architecture() const override { return architecture_; }
  std::string name() const override { return file_name(); }
  const std::string& chat_template() const override { return chat_template_; }
  const tokenizer_source& tokenizer() const override { return tokenizer_; }

  std::optional<uint64_t> find_u64(std::string_view key) const override {
    const auto* found = config_.find(key);
    return found == nullptr ? std::nullopt : std::optional(as<uint64_t>(*found));
  }
  std::optional<double> find_f64(std::string_view key) const override {
    const auto* found = config_.find(key);
    return found == nullptr ? std::nullopt : std::optional(as<double>(*found));
  }
  std::optional<bool> find_bool(std::string_view key) const override {
    const auto* found = config_.find(key);
    return found == nullptr ? std::nullopt : std::optional(as<bool>(*found));
  }
  std::optional<std::string> find_text(std::string_view key) const override {
    const auto* found = config_.find(key);
    if (found == nullptr) return {};
    const auto* text = found->value.get_if<std::string>();
    if (text == nullptr) throw error_at_key(key, "must be a string");
    return *text;
  }
  std::optional<std::vector<uint64_t>> find_u64s(std::string_view key) const override {
    const auto number = find_u64(key);
    if (!number) return {};
    return {{*number}};
  }

  std::span<const tensor_view> tensors() const override { return tensors_; }
  const tensor_view* find(std::string_view name) const override {
    const auto found =
        std::lower_bound(tensors_.begin(), tensors_.end(), name,
                         [](const auto& x, std::string_view wanted) { return x.name < wanted; });
    return found == tensors_.end() || found->name != name ? nullptr : &*found;
  }

  std::vector<std::pair<std::string, std::string>> describe() const override;

  uint64_t digest() const override {
    std::call_once(digested_, [this] {
      auto parts = text_digests_;
      for (const auto& each : weights_) parts.push_back(digest_of(each->file().bytes()));
      digest_ = digest_of(std::as_bytes(std::span{parts}));
    });
    check_intact();
    return digest_;
  }
  void check_intact() const override {
    for (const auto& each : weights_) each->file().check_intact();
  }
  void release_pages() const override {
    for (const auto& each : weights_) each->file().release_pages();
  }

  file_error error_at_key(std::string_view key, const std::string& problem) const override {
    const auto* found = config_.find(key);
    return {path_ / "config.json",
            {},
            found == nullptr ? std::string{field_of_key(key)} : found->field,
            problem};
  }
  file_error error_at_tensor(std::string_view name, const std::string& problem) const override {
    const auto field = "tensor '" + printable(hugging_face_name(name, architecture_)) + "'";
    const auto* found = find(name);
    for (const auto& each : weights_)
      if (found != nullptr && !found->data.empty()
          && found->data.data() >= each->file().bytes().data()
          && found->data.data() < each->file().bytes().data() + each->file().bytes().size())
        return {each->file().path(), {}, field, problem};
    return {path_, {}, field, problem};
  }

private:
  template <class T> T as(const hyperparameter& x) const {
    try {
      return json_as<T>(x.value, x.field);
    } catch (const json_field_error& wrong) {
      throw at_field(path_ / "config.json", wrong);
    }
  }

  /// Counts a file that was read, and its bytes.
  void note(const std::string& text) {
    file_bytes_ += text.size();
    text_digests_.push_back(digest_of(std::as_bytes(std::span{text})));
  }
  json_file open(const char* name) {
    json_file file{path_ / name};
    note(file.text());
    return file;
  }
  bool has(const char* name) const { return std::filesystem::exists(path_ / name); }

  std::string read_config() {
    if (!has("config.json"))
      throw file_error(path_, {}, "config.json",
                       "no such file; Hugging Face directories have config.json, "
                       "tokenizer.json and *.safetensors");
    config_ = read_hyperparameters(open("config.json"));
    if (has("generation_config.json")) {
      const auto more = read_ends(open("generation_config.json"));
      config_.ends.insert(config_.ends.end(), more.begin(), more.end());
    }
    return config_.architecture;
  }

  void add_tensors();
  void add_tensor(const tensor_view& from);
  void read_vocabulary();
  void read_texts();
  void add_ends();

  std::filesystem::path path_;
  uint64_t file_bytes_ = 0;
  std::vector<uint64_t> text_digests_;
  hyperparameters config_;
  std::string architecture_;
  std::vector<std::unique_ptr<safetensors_file>> weights_;
  std::vector<tensor_view> tensors_; ///< sorted by name
  tokenizer_source tokenizer_;
  std::string chat_template_;
  mutable std::once_flag digested_;
  mutable uint64_t digest_ = 0; ///< once `digested_`
};

void directory::add_tensor(const tensor_view& from) {
  auto name = gguf_name(from.name, architecture_);
  // A file may keep the head, too, that is the embedding table.
  if (name.empty() || (name == "output.weight" && config_.ties_output.value_or(false))) return;
  tensors_.push_back(from);
  auto& x = tensors_.back();
  x.name = std::move(name);
  if (!config_.interleaves) return;
  const auto part = part_of_layer(x.name);
  const char* count = part == "attn_q"   ? "attention.head_count"
                      : part == "attn_k" ? "attention.head_count_kv"
                                         : nullptr;
  if (count == nullptr) return;
  const auto heads = find_u64(count).value_or(find_u64("attention.head_count").value_or(0));
  // Where these do not divide, the shape is wrong, and that will be said.
  if (heads != 0 && heads <= 1u << 16 && (x.rows == 1 ? x.inner : x.rows) % (2 * heads) == 0)
    x.halved_heads = static_cast<uint32_t>(heads);
}

void directory::add_tensors() {
  for (const auto& each : weights_) {
    file_bytes_ += each->file().bytes().size();
    for (const auto& x : each->tensors()) add_tensor(x);
  }
  for (const auto& row : config_.rows)
    tensors_.push_back(
        {row.name, tensor_type::f32, row.values.size(), 1, std::as_bytes(std::span{row.values})});
  std::sort(tensors_.begin(), tensors_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors_.size(); ++i)
    if (tensors_[i].name == tensors_[i - 1].name)
      throw error_at_tensor(tensors_[i].name, "appears twice");
  if (find("output.weight") == nullptr && !config_.ties_output.value_or(true))
    throw error_at_tensor("output.weight",
                          "is missing, and config.json says tie_word_embeddings: false");
}

void directory::read_texts() {
  if (has("chat_template.jinja")) {
    chat_template_ = read_text(path_ / "chat_template.jinja", template_bytes_max);
    note(chat_template_);
  }
  if (!has("tokenizer_config.json")) return;
  const auto settings = open("tokenizer_config.json");
  read_tokenizer_settings(settings, tokenizer_);
  if (chat_template_.empty()) chat_template_ = read_chat_template(settings);
}

void directory::add_ends() {
  auto& ends = config_.ends;
  for (const auto id : ends)
    if (id >= tokenizer_.tokens.size())
      throw error_at_key("eos_token_id", "is " + std::to_string(id) + ", the vocabulary has "
                                             + std::to_string(tokenizer_.tokens.size())
                                             + " tokens");
  if (!tokenizer_.eos && !ends.empty()) tokenizer_.eos = ends.front();
  if (!tokenizer_.bos && config_.bos && *config_.bos < tokenizer_.tokens.size())
    tokenizer_.bos = config_.bos;
  tokenizer_.more_ends = ends;
}

void directory::read_vocabulary() {
  if (!has("tokenizer.json"))
    throw file_error(path_, {}, "tokenizer.json",
                     std::string{"no such file"}
                         + (has("tokenizer.model") ? "; tokenizer.model is not read" : ""));
  {
    const auto file = open_tokenizer_file(path_ / "tokenizer.json");
    note(file.text());
    tokenizer_ = read_tokenizer(file);
  }
  read_texts();
  add_ends();
  const auto* table = find("token_embd.weight");
  if (table == nullptr) return; // whoever reads the shapes says so
  if (const auto size = find_u64("vocab_size"); size && *size != table->rows)
    throw error_at_key("vocab_size", "is " + std::to_string(*size) + ", the embedding table has "
                                         + std::to_string(table->rows) + " rows");
  // Tables are often longer than vocabularies, for the sake of devices.
  for (auto id = tokenizer_.tokens.size(); id < std::min(table->rows, vocabulary_max); ++id) {
    tokenizer_.tokens.push_back("[PAD" + std::to_string(id) + "]");
    tokenizer_.kinds.push_back(token_kind::unused);
    if (!tokenizer_.scores.empty()) tokenizer_.scores.push_back(0);
  }
}

std::vector<std::pair<std::string, std::string>> directory::describe() const {
  std::vector<std::pair<std::string, std::string>> lines{{"general.architecture", architecture_}};
  for (const auto& x : config_.values)
    lines.emplace_back(architecture_ + "." + x.key, printable(to_json(x.value)));
  lines.emplace_back("tokenizer.ggml.model", tokenizer_.kind);
  if (!tokenizer_.pre.empty()) lines.emplace_back("tokenizer.ggml.pre", tokenizer_.pre);
  lines.emplace_back("tokenizer.ggml.tokens",
                     "[" + std::to_string(tokenizer_.tokens.size()) + " x text]");
  const auto add_id = [&](const char* key, std::optional<token_id> id) {
    if (id) lines.emplace_back(key, std::to_string(*id));
  };
  add_id("tokenizer.ggml.bos_token_id", tokenizer_.bos);
  add_id("tokenizer.ggml.eos_token_id", tokenizer_.eos);
  lines.emplace_back("tokenizer.ggml.add_bos_token",
                     tokenizer_.add_bos.value_or(false) ? "true" : "false");
  if (!chat_template_.empty())
    lines.emplace_back("tokenizer.chat_template", "\"" + printable(chat_template_) + "\"");
  return lines;
}

} // namespace

std::unique_ptr<checkpoint> open_directory(const std::filesystem::path& path) {
  return std::make_unique<directory>(path);
}

} // namespace lamella::model::hugging_face

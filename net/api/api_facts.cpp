// Answers that tell of the model, its tokens and this program: bodies of /v1/models, /tokenize,
// /detokenize, /tokenizer_info and /version.
#include "base/json_writer.hpp"
#include "net/api/api_response.hpp"

#include <ctime>

namespace lamella::net {

namespace {

/// Seconds since 1970 as RFC 3339 has them.
std::string date_of(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

/// With the members by which OpenAI's API and Anthropic's describe a model.
void write_model(json_writer& w, const model_entry& entry) {
  w.begin_object()
      .member("id", entry.id)
      .member("object", "model")
      .member("type", "model")
      .member("display_name", entry.id)
      .member("created", entry.created)
      .member("created_at", date_of(entry.created))
      .member("owned_by", "lamella")
      .member("root", entry.root)
      .null_member("parent")
      .member("max_model_len", entry.max_model_len);
  w.key("meta").begin_object();
  for (const auto& [name, json] : entry.meta) w.key(name).raw(json);
  w.end_object().end_object();
}

} // namespace

std::string models_body(std::span<const model_entry> models) {
  json_writer w;
  w.begin_object().member("object", "list").key("data").begin_array();
  for (const model_entry& entry : models) write_model(w, entry);
  w.end_array().member("has_more", false);
  if (models.empty())
    w.null_member("first_id").null_member("last_id");
  else
    w.member("first_id", models.front().id).member("last_id", models.back().id);
  return w.end_object().take();
}

std::string model_body(const model_entry& entry) {
  json_writer w;
  write_model(w, entry);
  return w.take();
}

std::string tokenize_body(std::span<const uint32_t> tokens, uint64_t max_model_len,
                          const std::vector<std::string>* strings) {
  json_writer w;
  w.begin_object().member("count", tokens.size()).member("max_model_len", max_model_len);
  w.key("tokens").begin_array();
  for (const uint32_t token : tokens) w.value(token);
  w.end_array().key("token_strs");
  if (strings) {
    w.begin_array();
    for (const std::string& text : *strings) w.value(text);
    w.end_array();
  } else {
    w.null();
  }
  w.end_object();
  return w.take();
}

std::string detokenize_body(std::string_view text) {
  return json_writer().begin_object().member("prompt", text).end_object().take();
}

std::string tokenizer_info_body(const tokenizer_facts& facts) {
  json_writer w;
  w.begin_object();
  const auto text = [&](std::string_view name, std::string_view value) {
    if (value.empty())
      w.null_member(name);
    else
      w.member(name, value);
  };
  text("bos_token", facts.bos);
  text("eos_token", facts.eos);
  w.null_member("pad_token"); // sequences are never padded here
  text("chat_template", facts.chat_template);
  w.member("add_bos_token", facts.adds_bos).member("model_max_length", facts.max_model_len);
  return w.end_object().take();
}

std::string version_body(std::string_view version, std::string_view commit,
                         std::string_view build_date) {
  return json_writer()
      .begin_object()
      .member("version", version)
      .member("commit", commit)
      .member("build_date", build_date)
      .end_object()
      .take();
}

} // namespace lamella::net

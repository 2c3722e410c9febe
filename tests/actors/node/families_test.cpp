// Models of every architecture, and a SentencePiece vocabulary, through the whole service.
#include "model/program/architectures.hpp"
#include "tests/actors/gateway/served.hpp"

namespace lamella::actors::test {
namespace {

config::settings settings_of(const tests::scratch_folder& folder,
                             const tests::tiny_model_options& options) {
  tests::write_tiny_model(folder / "family.gguf", options);
  auto x = tiny_settings();
  x.model.path = folder / "family.gguf";
  return x;
}

/// The text and every bit of its logits that the API shows.
json_value choices_of(served& s) {
  const auto answered =
      s.post("/v1/completions", R"({"model":"tiny","prompt":)" + token_list(54, 3)
                                    + R"(,"max_tokens":12,"temperature":0,"logprobs":2,)"
                                      R"("ignore_eos":true})");
  REQUIRE_MESSAGE(answered.status == 200, answered.body);
  return at(answered.json, "choices");
}

} // namespace

TEST_CASE("every architecture is served, with the same bits by one shard and by three") {
  for (const char* name : {"qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3"}) {
    CAPTURE(name);
    REQUIRE(model::find_architecture(name) != nullptr);
    const tests::scratch_folder folder;
    tests::tiny_model_options options;
    options.architecture = name;
    auto settings = settings_of(folder, options);
    const auto alone = [&] {
      served one{settings};
      return choices_of(one);
    }();
    settings.pools.attention.members = 3;
    settings.batching.prefill_chunk_tokens = 16;
    served three{settings};
    CHECK(choices_of(three) == alone);
  }
}

TEST_CASE("a sliding window bounds the context of the service") {
  const tests::scratch_folder folder;
  auto writer = tests::make_tiny_model();
  writer.set_u32("llama.attention.sliding_window", 100);
  writer.write(folder / "window.gguf");
  auto settings = tiny_settings();
  settings.model.path = folder / "window.gguf";
  served s{settings};
  CHECK(int_at(s.get("/v1/models").json, "data.0.max_model_len") == 100);
  const auto ask = [&](uint32_t prompt) {
    return s.post("/v1/completions", R"({"model":"tiny","prompt":)" + token_list(prompt, 1)
                                         + R"(,"max_tokens":10,"ignore_eos":true})");
  };
  CHECK(ask(90).status == 200);
  CHECK(ask(91).status == 400);
}

// " the" is token 266. A message is a text of its own; a completion goes on after words.
TEST_CASE("the space that SentencePiece puts before a text is not in a message") {
  const tests::scratch_folder folder;
  tests::tiny_model_options options;
  options.sentencepiece = true;
  served s{settings_of(folder, options)};
  const auto encoded = s.post("/tokenize", R"({"model":"tiny","prompt":"the the"})");
  CHECK(at(encoded.json, "tokens") == parse_json("[1,266,266]"));
  CHECK(text_at(s.post("/detokenize", R"({"model":"tiny","tokens":[266,266]})").json, "prompt")
        == "the the");
  const std::string drawn = R"(,"max_tokens":2,"temperature":0,"logit_bias":{"266":100}})";
  const auto completed =
      s.post("/v1/completions", R"({"model":"tiny","prompt":"on","echo":true)" + drawn);
  CHECK(text_at(completed.json, "choices.0.text") == "on the the");
  const std::string chat = R"({"model":"tiny","messages":[{"role":"user","content":"on"}])";
  CHECK(text_at(s.post("/v1/chat/completions", chat + drawn).json, "choices.0.message.content")
        == "the the");
  const auto shown =
      s.post("/v1/chat/completions", chat + R"(,"logprobs":true,"top_logprobs":1)" + drawn);
  CHECK(text_at(shown.json, "choices.0.logprobs.content.0.token") == "the");
  CHECK(text_at(shown.json, "choices.0.logprobs.content.1.token") == " the");
  CHECK(s.stream("/v1/chat/completions", chat + R"(,"stream":true)" + drawn).text == "the the");
}

} // namespace lamella::actors::test

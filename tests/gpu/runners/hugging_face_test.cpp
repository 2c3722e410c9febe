// A model is the same whether it lies in a GGUF file or in a directory of Hugging Face.
#include "tests/golden/families.hpp"
#include "tests/hugging_face_writer.hpp"
#include "tests/pipeline_runs.hpp"

using namespace lamella;
using namespace lamella::test;

namespace {

logits all_logits(const model::loaded_model& m, pipeline_options options) {
  pipeline p{m, std::move(options)};
  const auto tokens = random_tokens(40, 5);
  return run_chunked(p, tokens, 17, whole(40));
}

/// The logits of the model as a file and as a directory of `shards` files.
void check_same(models& made, const tests::tiny_model_options& options, size_t shards,
                const pipeline_options& run) {
  const auto path = made.folder / "model";
  std::filesystem::remove_all(path);
  tests::make_hugging_face_model(options, shards).write(path);
  CHECK(
      same_bytes(all_logits(model::load_program(path), run), all_logits(made.load(options), run)));
}

} // namespace

TEST_CASE_FIXTURE(models, "a directory of any architecture computes what its GGUF file does") {
  for (const auto& family : tests::families()) {
    CAPTURE(family.name);
    check_same(*this, family.options, 1, {});
  }
}

TEST_CASE_FIXTURE(models, "weights of all types that directories have, in several files, are the "
                          "same bytes on any ranks") {
  for (const auto type :
       {model::tensor_type::f32, model::tensor_type::f16, model::tensor_type::bf16})
    for (const uint32_t ranks : {1u, 3u}) {
      CAPTURE(model::to_string(type));
      CAPTURE(ranks);
      tests::tiny_model_options options;
      options.biased = {"attn_q", "attn_k", "attn_v", "attn_output"};
      options.weights = type;
      options.feed_forward = 192;
      options.tied_embeddings = false;
      check_same(*this, options, 4, {.ranks = ranks});
    }
}

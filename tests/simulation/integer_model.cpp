#include "tests/simulation/integer_model.hpp"

#include "tests/actors/device/stepped_device.hpp"

namespace lamella::simulation {

namespace {

using namespace gpu;

void embed_tokens(const embed_args& x, kernel_context) {
  for (size_t m = 0; m < x.tokens.size(); ++m) {
    const auto token = x.tokens[m] == take_sampled ? x.last_sampled[x.seats[m]] : x.tokens[m];
    for (uint32_t j = 0; j < x.table.inputs; ++j)
      x.out[m * x.table.inputs + j] = lane(mix(token, j));
  }
}

void copy_rows(const rms_norm_args& x, kernel_context) {
  std::memmove(x.out, x.x, sizeof(float) * x.rows * x.width);
}

void multiply(const matmul_args& x, kernel_context) {
  kernels_run().matmuls += x.parts.size();
  for (const auto& part : x.parts) {
    const auto name = name_of(part.weight);
    const auto inputs = part.weight.inputs;
    for (uint32_t m = 0; m < x.rows; ++m) {
      const auto row = mix(fold(x.x + size_t{m} * inputs, inputs), name);
      for (uint32_t n = 0; n < part.weight.outputs; ++n)
        part.out[size_t{m} * part.out_stride + n] = lane(mix(row, n));
    }
  }
}

void rotate(const rope_args& x, kernel_context) {
  for (uint32_t m = 0; m < x.rows; ++m)
    for (uint32_t j = 0; j < x.heads * x.dim; ++j) {
      const auto at = size_t{m} * x.stride + j;
      x.out[at] = lane(mix(mix(number(x.x[at]), x.positions[m]), j));
    }
}

void gate(const silu_mul_args& x, kernel_context) {
  for (size_t i = 0; i < size_t{x.rows} * x.width; ++i)
    x.out[i] = lane(mix(number(x.gate[i]) + 1, number(x.up[i])));
}

void sum(const add_args& x, kernel_context) {
  for (size_t i = 0; i < size_t{x.rows} * x.width; ++i)
    x.out[i] = lane(mix(number(x.a[i]), number(x.b[i])));
}

void sample_rows(const sample_args& x, kernel_context) {
  for (size_t i = 0; i < x.records.size(); ++i) {
    const auto& r = x.records[i];
    uint64_t edits = 0;
    for (const auto& e : x.edits.subspan(r.first_edit, r.edit_count))
      edits += edited(e.token, e.scale, e.add);
    const auto logits = fold(x.logits + size_t{r.row} * x.vocabulary, x.vocabulary);
    x.out[i] = {};
    if (r.given != no_token) {
      x.out[i].token = r.given;
      x.out[i].logprob = score_of(logits, r.given);
      x.out[i].rank = 1;
      continue;
    }
    const auto h = lot(logits, r.seed, r.choice, r.draw, edits);
    if (r.mask == no_mask) {
      x.out[i].token = drawn(h, r.seed);
    } else {
      std::vector<uint32_t> allowed;
      for (uint32_t t = 0; t < x.vocabulary; ++t)
        if ((x.masks[size_t{r.mask} * mask_words(x.vocabulary) + t / 32] >> t % 32 & 1) != 0)
          allowed.push_back(t);
      x.out[i].finite = !allowed.empty();
      x.out[i].token = drawn_of(h, allowed);
    }
    if (!x.seats.empty()) x.last_sampled[x.seats[i]] = x.out[i].token;
  }
}

/// Hash sums per row and head between the two halves of attention.
uint64_t* sums_of(const attention_args& x) { return reinterpret_cast<uint64_t*>(x.state); }

size_t state_floats(const attention_args& x) { return size_t{x.rows} * x.kv.kv_heads * 2; }

/// Adds the positions [from, to) of a span, as its slots have them, to a row's sums.
void attend(const attention_args& x, const attention_span& span, uint32_t row, uint32_t from,
            uint32_t to) {
  const auto dim = x.kv.dim;
  for (uint32_t h = 0; h < x.kv.kv_heads; ++h) {
    const auto* q =
        reinterpret_cast<const float*>(x.q) + (size_t{h} * x.rows + row) * x.group * dim;
    const auto query = fold(q, size_t{x.group} * dim);
    auto& total = sums_of(x)[size_t{row} * x.kv.kv_heads + h];
    uint32_t position = 0;
    for (const auto& run : x.runs.subspan(span.first_run, span.run_count))
      for (uint32_t i = 0; i < run.length && position < to; ++i, ++position) {
        if (position < from) continue;
        const auto* keys =
            reinterpret_cast<const float*>(x.kv.rows + (size_t{run.first} + i) * x.kv.row_bytes())
            + size_t{h} * dim;
        const auto* values = keys + size_t{x.kv.kv_heads} * dim;
        total += attended(query, position, mix(fold(keys, dim), fold(values, dim)));
      }
  }
}

void attend_previous(const attention_args& x, kernel_context) {
  ++kernels_run().attentions;
  std::memset(x.state, 0, state_floats(x) * sizeof(float));
  for (const auto& span : x.spans)
    if (span.rows == 1) attend(x, span, span.first_row, 0, span.first_position);
}

void attend_new(const attention_args& x, kernel_context) {
  for (const auto& span : x.spans)
    for (uint32_t i = 0; i < span.rows; ++i) {
      const auto own = span.first_position + i;
      attend(x, span, span.first_row + i, span.rows == 1 ? own : 0, own + 1);
    }
  const auto width = size_t{x.group} * x.kv.dim;
  auto* out = reinterpret_cast<float*>(x.out);
  for (uint32_t h = 0; h < x.kv.kv_heads; ++h)
    for (uint32_t row = 0; row < x.rows; ++row)
      for (size_t j = 0; j < width; ++j)
        out[(size_t{h} * x.rows + row) * width + j] =
            lane(mix(sums_of(x)[size_t{row} * x.kv.kv_heads + h], j));
}

integer_model make_model() {
  tests::scratch_folder folder;
  tests::tiny_model_options options;
  options.layers = 2;
  options.embedding = 16;
  options.heads = 4;
  options.kv_heads = 2;
  options.head_dim = 4;
  options.feed_forward = 16;
  tests::write_tiny_model(folder / "integer.gguf", options);
  integer_model x{model::load_model(folder / "integer.gguf"), nullptr};
  // Lives as long as the weights that lie in its memory.
  static actors::test::stepped_engine engine;
  static const auto device = engine.make_device("weights");
  x.weights = std::make_shared<gpu::packed_weights>(
      *x.loaded.program,
      [&](const model::weight_use& w) -> const model::tensor_view& { return x.loaded.tensor(w); },
      *device, [](uint64_t, uint64_t) {});
  return x;
}

} // namespace

kernel_counts& kernels_run() {
  static kernel_counts counts;
  return counts;
}

const gpu::operators& integer_operators() {
  static const auto table = [] {
    auto x = reference_operators();
    x.name = "integer";
    x.embed = embed_tokens;
    x.rms_norm = copy_rows;
    x.matmul = multiply;
    x.rope = rotate;
    x.silu_mul = gate;
    x.add = sum;
    x.sample = sample_rows;
    x.attention_state_floats = state_floats;
    x.attend_previous = attend_previous;
    x.attend_new = attend_new;
    return x;
  }();
  return table;
}

const integer_model& the_model() {
  static const auto model = make_model();
  return model;
}

} // namespace lamella::simulation

#include "model/files/hugging_face/rope_settings.hpp"

#include "base/printable.hpp"
#include "model/files/hugging_face/json_file.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lamella::model::hugging_face {

namespace {

constexpr double factor_max = 1e6;

/// The pieces of a configuration that scaling is about.
struct rope_reader {
  json_object_reader& config;
  json_object_reader& rope;
  hyperparameters& out;
  double base;
  uint32_t rotated; ///< elements of a head

  /// Of the first training: a field of the scaling, or of the configuration, or the longest
  /// context.
  uint32_t original_context() {
    constexpr const char* field = "original_max_position_embeddings";
    constexpr json_range<uint32_t> range{1, 1u << 27};
    if (const auto x = rope.optional<uint32_t>(field, range)) return *x;
    if (const auto x = config.optional<uint32_t>(field, range)) return *x;
    return trained_context();
  }
  uint32_t trained_context() {
    return config.required<uint32_t>("max_position_embeddings", {1, 1u << 27});
  }
  void set(const char* key, const char* field, json_value value) {
    out.set(std::string{"rope.scaling."} + key, rope.path(field), std::move(value));
  }
  double factor(double low) { return rope.required<double>("factor", {low, factor_max}); }

  void linear() {
    set("type", "rope_type", "linear");
    set("factor", "factor", factor(1e-3));
  }

  void yarn() {
    for (const auto* unknown : {"mscale", "mscale_all_dim"})
      if (rope.find(unknown) != nullptr) throw refuse(rope.path(unknown), "is not supported");
    if (!rope.optional<bool>("truncate").value_or(true))
      throw refuse(rope.path("truncate"), "must be true; other yarn scaling is not supported");
    const auto scale = factor(1);
    set("type", "rope_type", "yarn");
    set("factor", "factor", scale);
    set("original_context_length", "original_max_position_embeddings",
        uint64_t{original_context()});
    if (const auto x = rope.optional<double>("beta_fast")) set("yarn_beta_fast", "beta_fast", *x);
    if (const auto x = rope.optional<double>("beta_slow")) set("yarn_beta_slow", "beta_slow", *x);
    // The magnitude follows from the factor; the key is what comes on top.
    if (const auto x = rope.optional<double>("attention_factor", {1e-3, 1e3}))
      set("attn_factor", "attention_factor", *x / (1 + 0.1 * std::log(scale)));
  }

  /// Pairs that turn often within the original context go on as they are, slow ones are slowed down
  /// by the factor, and those between by something between.
  void llama3() {
    const auto scale = factor(1);
    const auto low = rope.required<double>("low_freq_factor", {1e-3, factor_max});
    const auto high = rope.required<double>("high_freq_factor", {1e-3, factor_max});
    if (low >= high)
      throw refuse(rope.path("low_freq_factor"), "must be less than high_freq_factor");
    const double original = original_context();
    number_row row{"rope_freqs.weight", {}};
    for (uint32_t i = 0; i < rotated / 2; ++i) {
      const auto turns = original * std::pow(base, -2.0 * i / rotated) / (2 * std::numbers::pi);
      const auto kept = std::min(std::max((turns - low) / (high - low), 0.0), 1.0);
      row.values.push_back(static_cast<float>(1 / ((1 - kept) / scale + kept)));
    }
    set("type", "rope_type", "llama3");
    out.rows.push_back(std::move(row));
  }

  void longrope() {
    for (const auto* unknown : {"short_mscale", "long_mscale"})
      if (rope.find(unknown) != nullptr) throw refuse(rope.path(unknown), "is not supported");
    const double original = original_context(), trained = trained_context();
    rope.find("factor"); // the same as the contexts say
    set("type", "rope_type", "longrope");
    set("original_context_length", "original_max_position_embeddings",
        static_cast<uint64_t>(original));
    const auto longer = trained / original;
    const auto sharper =
        longer > 1 && original > 1 ? std::sqrt(1 + std::log(longer) / std::log(original)) : 1.0;
    set("attn_factor", "attention_factor",
        rope.optional<double>("attention_factor", {1e-3, 1e3}).value_or(sharper));
    for (const auto& [field, name] : {std::pair{"short_factor", "rope_factors_short.weight"},
                                      std::pair{"long_factor", "rope_factors_long.weight"}}) {
      const auto path = rope.path(field);
      number_row row{name, {}};
      const auto& items = json_items(rope.require(field), path, {rotated / 2, rotated / 2});
      for (size_t i = 0; i < items.size(); ++i)
        row.values.push_back(
            static_cast<float>(json_as<double>(items[i], json_index(path, i), {1e-3, factor_max})));
      out.rows.push_back(std::move(row));
    }
  }

  /// "rope_type", or "type" as it was called before; files may have both.
  std::string type() {
    auto older = rope.optional_string("type", {1, 64});
    auto newer = rope.optional_string("rope_type", {1, 64});
    if (older && newer && *older != *newer)
      throw refuse(rope.path("type"), "differs from rope_type");
    auto found = (newer ? newer : older).value_or("default");
    return found == "su" ? "longrope" : found; // as Phi-3 called it first
  }

  void scale() {
    const auto kind = type();
    if (kind == "linear")
      linear();
    else if (kind == "yarn")
      yarn();
    else if (kind == "llama3")
      llama3();
    else if (kind == "longrope")
      longrope();
    else if (kind != "default")
      throw refuse(rope.path("rope_type"),
                   "'" + printable(kind)
                       + "' is not supported; known are default, linear, yarn, llama3, longrope");
    for (const auto field : rope.unread())
      throw refuse(rope.path(printable(field)), "is not known for scaling '" + kind + "'");
  }
};

} // namespace

void read_rope(json_object_reader& config, hyperparameters& out) {
  // Newer files have everything in one object, older ones the scaling alone.
  const json_value nothing{json_value::object{}};
  const auto* settings = config.find("rope_parameters");
  const char* name = settings != nullptr ? "rope_parameters" : "rope_scaling";
  if (settings == nullptr) settings = config.find(name);
  json_object_reader rope{settings != nullptr ? *settings : nothing, name};

  const bool base_inside = rope.find("rope_theta") != nullptr;
  auto& of_base = base_inside ? rope : config;
  const auto base = of_base.optional<double>("rope_theta", {1, 1e12}).value_or(10000);
  out.set("rope.freq_base", of_base.path("rope_theta"), base);

  const auto heads = config.required<uint32_t>("num_attention_heads", {1, 1024});
  const auto width = config.required<uint32_t>("hidden_size", {1, 1u << 20});
  const auto dim = config.optional<uint32_t>("head_dim", {1, 1024}).value_or(width / heads);
  const bool part_inside = rope.find("partial_rotary_factor") != nullptr;
  auto& of_part = part_inside ? rope : config;
  const auto part = of_part.optional<double>("partial_rotary_factor", {0, 1}).value_or(1);
  if (out.interleaves && part != 1)
    throw refuse(of_part.path("partial_rotary_factor"),
                 "must be 1 in architecture " + out.architecture);
  const auto rotated = static_cast<uint32_t>(part * dim);
  if (part != 1)
    out.set("rope.dimension_count", of_part.path("partial_rotary_factor"), uint64_t{rotated});

  rope_reader{config, rope, out, base, rotated}.scale();
}

} // namespace lamella::model::hugging_face

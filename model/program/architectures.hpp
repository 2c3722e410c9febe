/// The supported architectures. To add one: a file next to llama.cpp and a line in the list.
#pragma once

#include "model/program/graph.hpp"
#include "model/spec.hpp"

#include <string_view>

namespace lamella::model {

class checkpoint;

struct architecture {
  std::string_view name;
  /// Shapes from the file's hyperparameters. Throws file_error naming the field that is missing,
  /// out of range or inconsistent with the tensors.
  model_spec (*read_spec)(const checkpoint&);
  /// What one of `ranks` ranks does.
  operator_graph (*definition)(const model_spec&, uint32_t ranks);

  /// Runs the definition on symbols. `ranks` divides the spec's heads, KV heads and feed-forward
  /// width.
  operator_graph trace(const model_spec& spec, uint32_t ranks = 1) const {
    return definition(spec, ranks);
  }
};

/// Null when unknown.
const architecture* find_architecture(std::string_view name);

/// "llama, ..."
std::string architecture_names();

/// LLaMA, LLaMA-2, LLaMA-3 (GQA, rope scaling), SmolLM2 and others of their shape.
const architecture& llama_architecture();

/// Qwen2, Qwen2.5 and others of their shape.
const architecture& qwen2_architecture();

/// Qwen3, without mixtures of experts.
const architecture& qwen3_architecture();

const architecture& smollm3_architecture();

/// Granite 3, without mixtures of experts.
const architecture& granite_architecture();

/// Phi-3, Phi-3.5 and Phi-4.
const architecture& phi3_architecture();

/// OLMo 2; one rank only.
const architecture& olmo2_architecture();

} // namespace lamella::model

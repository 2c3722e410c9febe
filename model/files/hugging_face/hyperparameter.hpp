/// Values of config.json, by the keys of GGUF.
#pragma once

#include "base/json.hpp"
#include "model/token.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::model::hugging_face {

/// A value of config.json under the key that it has in GGUF files ("block_count").
struct hyperparameter {
  std::string key;
  std::string field; ///< in config.json: "num_hidden_layers"
  json_value value;
};

/// Numbers that GGUF files keep as a tensor of one row: divisors of rotations.
struct number_row {
  std::string name; ///< "rope_freqs.weight"
  std::vector<float> values;
};

/// A decoder's configuration.
struct hyperparameters {
  std::string architecture; ///< GGUF's name of it
  /// The architecture rotates elements that lie side by side; in files of Hugging Face such two lie
  /// half a head apart.
  bool interleaves = false;
  std::vector<hyperparameter> values; ///< keys are unique
  std::vector<number_row> rows;
  std::optional<bool> ties_output; ///< is the output head the embedding table?
  std::optional<token_id> bos;     ///< begins texts
  std::vector<token_id> ends;      ///< end answers

  void set(std::string key, std::string field, json_value value) {
    values.push_back({std::move(key), std::move(field), std::move(value)});
  }
  const hyperparameter* find(std::string_view key) const {
    for (const auto& x : values)
      if (x.key == key) return &x;
    return nullptr;
  }
};

} // namespace lamella::model::hugging_face

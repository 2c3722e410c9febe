#include "model/spec.hpp"

#include <cmath>

namespace lamella::model {

std::string_view model_spec::context_bound() const {
  return context_tokens < trained_tokens ? "of the model's attention window"
                                         : "the model was trained for";
}

float model_spec::attention_scale() const {
  if (score_scale != 0) return score_scale;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

} // namespace lamella::model

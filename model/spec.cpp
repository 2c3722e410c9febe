#include "model/spec.hpp"

#include <cmath>

namespace lamella::model {

float model_spec::attention_scale() const {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

} // namespace lamella::model

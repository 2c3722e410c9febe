#include "actors/decode/mask_maker.hpp"

#include "actors/shared/exceptions.hpp"

namespace lamella::actors {

mask_maker_actor::behavior_type
mask_maker(mask_maker_actor::stateful_pointer<mask_maker_state> self) {
  end_on_exceptions(self);
  return {
      [](model::constrained_answer& x) {
        x.make_mask();
        return std::move(x);
      },
  };
}

} // namespace lamella::actors

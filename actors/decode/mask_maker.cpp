#include "actors/decode/mask_maker.hpp"

#include "actors/protocol/error.hpp"
#include "actors/shared/exceptions.hpp"

namespace lamella::actors {

mask_maker_actor::behavior_type
mask_maker(mask_maker_actor::stateful_pointer<mask_maker_state> self) {
  end_on_exceptions(self);
  return {
      [](model::constrained_answer& x) -> caf::result<model::constrained_answer> {
        try {
          x.make_mask();
        } catch (const model::grammar_error& e) { // of this answer alone
          return caf::make_error(ec::mask_refused, e.what());
        }
        return std::move(x);
      },
  };
}

} // namespace lamella::actors

#include "actors/request/divergence.hpp"

#include "actors/protocol/kv.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

void compare_with_committed(request_ptr self, size_t index, uint32_t position, token_id again,
                            const char* by) {
  const auto& st = self->state;
  const auto committed = st.sequences[index].text->tokens().at(position);
  if (again == committed) return;
  st.server->metrics->diverged();
  self->send(st.server->allocator, kv_doubt{st.sequence(index), st.server->epoch});
  spdlog::error("divergence request_id={} request={} choice={} position={} committed={} again={} "
                "by={} epoch={}: a device, a kernel or memory is faulty",
                st.exchange->request().request_id, static_cast<uint64_t>(st.id), index, position,
                committed, again, by, st.server->epoch);
}

} // namespace lamella::actors

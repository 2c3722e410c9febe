#include "actors/device/attention_shard_state.hpp"

namespace lamella::actors {

attention_shard_state::stream_state& stream_of(shard_ptr self, stream_id id, uint64_t epoch) {
  auto& st = self->state;
  auto& stream = st.streams[id];
  if (!stream.links.empty() && stream.epoch == epoch) return stream;
  stream.links.clear();
  stream.replicas.clear();
  const auto number = static_cast<uint32_t>(id);
  if (number >= scheduler::member_streams)
    stream.links.push_back(st.config.member_links(
        {epoch, number, number - scheduler::member_streams, st.config.seat}));
  else
    stream.replicas = st.config.replicas_of(id);
  for (const auto replica : stream.replicas)
    stream.links.push_back(st.config.links({epoch, number, replica, st.config.seat}));
  stream.epoch = epoch;
  return stream;
}

std::function<bool()> gaps_of(shard_ptr self) { return gaps_of(self->state.watch); }

std::function<bool()> gaps_of(const std::shared_ptr<const gpu::qkv_watch>& watch) {
  if (!watch) return {};
  return [watch, pacer = std::make_shared<scheduler::pull_pacer>(scheduler::pull_window)] {
    return pacer->may_step(watch->waits(), watch->receives());
  };
}

} // namespace lamella::actors

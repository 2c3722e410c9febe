#include "actors/device/shard_check.hpp"

#include "actors/device/iteration.hpp"
#include "actors/protocol/parity.hpp"
#include "gpu/runners/kv_checksums.hpp"

namespace lamella::actors {

namespace {

constexpr caf::timespan check_deadline = std::chrono::seconds{20};

} // namespace

caf::result<kv_checked> check(shard_ptr self, const kv_check& x) {
  auto& st = self->state;
  std::vector<gpu::slot_run> runs;
  for (const auto& run : x.runs) runs.push_back({run.first, run.length});
  const auto work = std::make_shared<gpu::checksum_runner>(st.config.cache, st.config.device->ops(),
                                                           std::move(runs), gaps_of(self));
  auto promise = self->make_response_promise<kv_checked>();
  self->request(st.executor, check_deadline + answer_timeout, stream_id{scheduler::check_stream},
                work_ptr{work}, check_deadline)
      .then([promise, work](bool) mutable { promise.deliver(kv_checked{work->sums()}); },
            [promise](caf::error& reason) mutable { promise.deliver(std::move(reason)); });
  return promise;
}

} // namespace lamella::actors

#include "scheduler/planner/cost/staggered.hpp"

#include "scheduler/planner/cost/stages.hpp"

#include <algorithm>
#include <vector>

namespace lamella::scheduler {

namespace {

uint32_t place_of(uint32_t batch, uint64_t slice, uint32_t replicas, pipeline_kind kind) {
  // Of replicas in stages there may be more batches than replicas and one.
  if (kind == pipeline_kind::rotational) return rotation{replicas}.replica_of(batch, slice);
  return batch % replicas;
}

} // namespace

staggered_run play_staggered(std::span<const iteration_times> all, uint32_t replicas,
                             pipeline_kind kind, uint32_t layers, uint32_t iterations,
                             uint32_t stages) {
  struct place {
    double free = 0, busy = 0;
    double serve(double ready, double work) {
      free = std::max(free, ready) + work;
      busy += work;
      return free;
    }
  };
  struct walk {
    double ready = 0;
    uint64_t slice = 0;
    bool at_model = true;
    bool done = false;
  };
  std::vector<place> models(replicas * stages), compute_nics(replicas * stages);
  place attention, memory_nics;
  std::vector<walk> walks(all.size());
  // Replicas start one after the other, t_m / (n - 1) apart (L-M17); with stages an iteration is
  // divided evenly, or all batches would go from stage to stage together.
  for (uint32_t j = 0; j < all.size(); ++j)
    walks[j].ready = stages > 1 ? all[j].alone() * j / static_cast<double>(all.size())
                                : all[j].model / layers * j / std::max<size_t>(1, all.size() - 1);
  const uint64_t slices = uint64_t{layers} * iterations;
  double end = 0;
  for (;;) {
    // Whoever is ready first is served first.
    walk* next = nullptr;
    for (auto& w : walks)
      if (!w.done && (next == nullptr || w.ready < next->ready)) next = &w;
    if (next == nullptr) break;
    const auto j = static_cast<uint32_t>(next - walks.data());
    const auto& t = all[j];
    if (next->at_model) {
      const auto replica = place_of(j, next->slice, replicas, kind) * stages
                           + stage_of(static_cast<uint32_t>(next->slice % layers), layers, stages);
      const auto sent = models[replica].serve(next->ready, t.model / layers);
      next->ready = std::max({sent + (t.network / 2 - t.hidden) / layers,
                              compute_nics[replica].serve(sent, t.compute_nics / layers),
                              memory_nics.serve(sent, t.memory_nics / layers)});
    } else {
      next->ready = attention.serve(next->ready, t.attention / layers) + t.network / 2 / layers;
      ++next->slice;
      if (next->slice % layers == 0) next->ready += t.host;
      next->done = next->slice == slices;
      end = std::max(end, next->ready);
    }
    next->at_model = !next->at_model;
  }
  staggered_run run;
  run.iteration_s = end / iterations;
  for (const auto& m : models) run.replica_busy += m.busy / end / (replicas * stages);
  run.attention_busy = attention.busy / end;
  return run;
}

} // namespace lamella::scheduler

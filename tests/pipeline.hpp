/// A replica and its shards without actors: programs, channels and streams on devices of any kind.
#pragma once

#include "gpu/host/host_engine.hpp"
#include "gpu/ring/device_ring.hpp"
#include "gpu/runners/attention_runner.hpp"
#include "gpu/runners/parity_runner.hpp"
#include "gpu/runners/slice_runner.hpp"
#include "model/program/load.hpp"

#include <doctest/doctest.h>

#include <future>

namespace lamella::test {

/// How the KV heads or the sequences are spread over shards.
struct pipeline_options {
  const gpu::operators* ops = &gpu::reference_operators();
  unsigned threads = 2;
  uint32_t shards = 1;
  uint32_t ranks = 1;    ///< devices that are the replica together
  uint32_t replicas = 1; ///< that run the slices in turn; each has all weights
  uint32_t mini_batches = 1;
  bool by_request = false; ///< shards hold all KV heads of some sequences, not some of all
  gpu::half_type wire = gpu::half_type::f16;
  gpu::half_type kv = gpu::half_type::f16;
  uint32_t slots = 2048;         ///< per shard
  size_t parity_frame_bytes = 0; ///< of one more shard with the parity of the others; 0: none
  /// Devices to use instead of the host's; empty: the host engine's.
  std::function<std::unique_ptr<gpu::device>()> replica_device{}, shard_device{};
};

/// One sequence's part of an iteration: `tokens` at positions from `position` on.
struct pipeline_rows {
  std::vector<uint32_t> tokens;
  uint32_t position = 0;
  std::vector<gpu::slot_run> runs; ///< cover position + tokens.size() slots
  bool every_row = false;          ///< logits of all rows, not of the last only
  uint32_t member = 0;             ///< by request: the shard that holds the sequence
};

class pipeline {
public:
  using options = pipeline_options;
  using rows = pipeline_rows;

  pipeline(const model::loaded_model& m, options o)
      : options_{o}, program_{model::rank_program(m, o.ranks)}, engine_{o.threads, *o.ops} {
    for (uint32_t r = 0; r < std::max(o.ranks, o.replicas); ++r) {
      rank x;
      x.device = o.replica_device ? o.replica_device() : engine_.make_device("replica");
      x.state = std::make_shared<gpu::slice_stream_state>(*x.device);
      x.stream = x.device->make_stream("batch");
      x.weights = std::make_shared<gpu::packed_weights>(
          *program_,
          [&](const model::weight_use& w) -> const model::tensor_view& { return m.tensor(w); },
          *x.device, [](uint64_t, uint64_t) {}, o.replicas > 1 ? 0 : r);
      rank_devices_.push_back(x.device);
      ranks_.push_back(std::move(x));
    }
    const auto& spec = program_->spec;
    if (o.ranks > 1)
      groups_ = gpu::make_rank_groups(
          rank_devices_, 0,
          uint64_t{1024} * std::max(spec.hidden, 2 * spec.heads * spec.head_dim) * 4);
    const auto heads = o.by_request ? spec.kv_heads : spec.kv_heads / o.shards;
    for (uint32_t i = 0; i < o.shards + (o.parity_frame_bytes > 0 ? 1 : 0); ++i) {
      shard s;
      s.device =
          o.shard_device ? o.shard_device() : engine_.make_device("shard " + std::to_string(i));
      s.stream = s.device->make_stream("batch");
      s.cache = std::make_shared<gpu::kv_cache>(*s.device, spec.layers, o.slots, heads,
                                                spec.head_dim, o.kv);
      const size_t slot =
          std::max(size_t{1024} * heads * std::max(spec.group(), 2u) * spec.head_dim * 4,
                   o.parity_frame_bytes);
      gpu::ring_terms terms;
      terms.slots = gpu::frames_per_link(o.mini_batches);
      terms.slot_bytes = gpu::slot_room(slot);
      for (uint32_t r = 0; r < o.replicas; ++r) {
        s.forth.push_back(gpu::make_device_ring(*rank_devices_[r], *s.device, terms));
        s.back.push_back(gpu::make_device_ring(*s.device, *rank_devices_[r], terms));
      }
      shards_.push_back(std::move(s));
    }
    gpu::ring_terms terms;
    terms.slot_bytes = gpu::slot_room(1024 * program_->context_bytes_per_row());
    for (uint32_t r = 0; o.replicas > 1 && r < o.replicas; ++r)
      contexts_.push_back(
          gpu::make_device_ring(*rank_devices_[r], *rank_devices_[(r + 1) % o.replicas], terms));
  }

  /// Runs one iteration and returns the logits of the wanted rows, in order.
  std::vector<std::vector<float>> run(const std::vector<rows>& batch,
                                      std::vector<gpu::sample_record> samples = {}) {
    const auto& spec = program_->spec;
    gpu::slice_launch launch;
    launch.tag.iteration = ++iteration_;
    launch.wire = options_.wire;
    launch.mini_batches = options_.mini_batches;
    launch.turns = {options_.replicas,
                    static_cast<uint32_t>(iteration_ * spec.layers % options_.replicas)};
    std::vector<shard_part> parts(shards_.size());
    for (uint32_t seat = 0; const auto& x : batch) {
      const auto first_row = static_cast<uint32_t>(launch.tokens.size());
      const auto count = static_cast<uint32_t>(x.tokens.size());
      for (uint32_t i = 0; i < parts.size(); ++i)
        if (!options_.by_request || i == x.member) parts[i].add(x, first_row);
      for (uint32_t i = 0; i < count; ++i) {
        if (x.every_row || i + 1 == count) launch.selected.push_back(first_row + i);
        launch.tokens.push_back(x.tokens[i]);
        launch.positions.push_back(x.position + i);
        launch.seats.push_back(seat);
      }
      ++seat;
    }
    launch.samples = std::move(samples);
    launch.sample_seats.assign(launch.samples.size(), 0);
    const auto heads = options_.by_request ? spec.kv_heads : spec.kv_heads / options_.shards;
    std::vector<std::future<gpu::work_status>> ends;
    std::vector<std::shared_ptr<gpu::attention_runner>> attentions;
    std::vector<uint32_t> shares; // the shards of launch.shares
    const auto deadline = gpu::clock::now() + std::chrono::minutes{2};
    for (uint32_t i = 0; i < shards_.size(); ++i) {
      auto& s = shards_[i];
      auto& part = parts[i];
      if (part.rows.empty()) continue;
      const auto first_head = options_.by_request ? 0 : i * heads;
      gpu::attention_launch a{launch.tag,    static_cast<uint32_t>(part.rows.size()),
                              spec.group(),  spec.attention_scale(),
                              options_.wire, part.spans,
                              part.runs};
      a.turns = launch.turns;
      a.mini_batches = launch.mini_batches;
      std::vector<gpu::runner_link> links;
      for (uint32_t r = 0; r < options_.replicas; ++r)
        links.push_back({s.forth[r].from, s.back[r].to});
      if (i == options_.shards) {
        launch.parity = {
            {nullptr, nullptr, 0, options_.shards, options_.kv, options_.parity_frame_bytes}};
        ends.push_back(start(*s.stream,
                             std::make_shared<gpu::parity_runner>(s.cache, s.device->ops(), a,
                                                                  options_.parity_frame_bytes,
                                                                  std::move(links)),
                             deadline));
        continue;
      }
      launch.shares.push_back({nullptr, nullptr, part.rows, first_head, heads});
      shares.push_back(i);
      attentions.push_back(
          std::make_shared<gpu::attention_runner>(s.cache, s.device->ops(), a, std::move(links)));
      ends.push_back(start(*s.stream, attentions.back(), deadline));
    }
    std::vector<std::shared_ptr<gpu::slice_runner>> runners;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      const auto& x = ranks_[r];
      runners.push_back(std::make_shared<gpu::slice_runner>(
          program_, x.weights, x.device->ops(), of_replica_or_rank(launch, shares, r), x.state));
      ends.push_back(start(*x.stream, runners.back(), deadline));
    }
    for (auto& e : ends) REQUIRE(e.get() == gpu::work_status::done);
    const auto last = launch.turns.of(spec.layers);
    auto& runner = runners[last];
    bytes_ = 0;
    for (uint32_t r = 0; r < options_.replicas; ++r) bytes_ += runners[r]->bytes_sent();
    for (const auto& a : attentions) bytes_ += a->bytes_sent();
    sampled_ = runner->sampled();
    auto result = logits_of(*runner, *rank_devices_[last], launch.selected.size());
    // Every rank draws the tokens itself: they must have the same logits.
    for (uint32_t r = 1; r < options_.ranks; ++r)
      CHECK(logits_of(*runners[r], *rank_devices_[r], launch.selected.size()) == result);
    return result;
  }

  const std::vector<gpu::sampled_token>& sampled() const { return sampled_; }
  /// Of the last iteration, both ways.
  uint64_t bytes_sent() const { return bytes_; }
  /// Of all iterations: parts of sums that a rank has sent to the others.
  uint64_t sum_bytes_sent(uint32_t r) const { return groups_[r]->sums->bytes_sent(); }
  const gpu::kv_cache& cache(uint32_t seat) const { return *shards_[seat].cache; }
  gpu::device& device(uint32_t seat) const { return *shards_[seat].device; }
  const model::model_spec& spec() const { return program_->spec; }

private:
  struct rank {
    std::shared_ptr<gpu::device> device;
    std::unique_ptr<gpu::stream> stream;
    std::shared_ptr<gpu::packed_weights> weights;
    std::shared_ptr<gpu::slice_stream_state> state;
  };
  struct shard {
    std::unique_ptr<gpu::device> device;
    std::unique_ptr<gpu::stream> stream;
    std::shared_ptr<gpu::kv_cache> cache;
    std::vector<gpu::device_ring> forth, back; ///< by replica
  };

  /// What one shard sees of an iteration.
  struct shard_part {
    std::vector<uint32_t> rows; ///< of the launch, ascending
    std::vector<gpu::attention_span> spans;
    std::vector<gpu::slot_run> runs;

    void add(const pipeline_rows& x, uint32_t first_row) {
      spans.push_back({static_cast<uint32_t>(rows.size()), static_cast<uint32_t>(x.tokens.size()),
                       x.position, static_cast<uint32_t>(runs.size()),
                       static_cast<uint32_t>(x.runs.size())});
      runs.insert(runs.end(), x.runs.begin(), x.runs.end());
      for (uint32_t i = 0; i < x.tokens.size(); ++i) rows.push_back(first_row + i);
    }
  };

  /// The launch as one of several gets it. `shares`: the shards of its shares.
  gpu::slice_launch of_replica_or_rank(gpu::slice_launch x, const std::vector<uint32_t>& shares,
                                       uint32_t r) const {
    const auto replica = options_.replicas > 1 ? r : 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      x.shares[i].to = shards_[shares[i]].forth[replica].to;
      x.shares[i].from = shards_[shares[i]].back[replica].from;
    }
    for (auto& parity : x.parity) {
      parity.to = shards_.back().forth[replica].to;
      parity.from = shards_.back().back[replica].from;
    }
    x.turn = replica;
    if (!contexts_.empty())
      x.context = {contexts_[(r + contexts_.size() - 1) % contexts_.size()].from, contexts_[r].to};
    if (!groups_.empty()) x.ranks = groups_[r];
    if (!groups_.empty() && r > 0) {
      x.shares.clear();
      x.parity.clear();
    }
    return x;
  }

  std::vector<std::vector<float>> logits_of(const gpu::slice_runner& runner, gpu::device& on,
                                            size_t count) const {
    const auto vocabulary = program_->spec.vocabulary;
    std::vector<std::vector<float>> result;
    for (size_t i = 0; i < count; ++i) {
      auto& row = result.emplace_back(vocabulary);
      on.read(std::as_writable_bytes(std::span{row}),
              reinterpret_cast<const std::byte*>(runner.logits() + i * vocabulary));
    }
    return result;
  }

  static std::future<gpu::work_status> start(gpu::stream& on, std::shared_ptr<gpu::work> x,
                                             gpu::clock::time_point deadline) {
    auto end = std::make_shared<std::promise<gpu::work_status>>();
    auto result = end->get_future();
    on.launch(std::move(x), deadline, [end](gpu::work_status status) { end->set_value(status); });
    return result;
  }

  options options_;
  std::shared_ptr<const model::model_program> program_;
  gpu::host_engine engine_;
  std::vector<std::shared_ptr<gpu::device>> rank_devices_;
  std::vector<rank> ranks_;
  std::vector<std::shared_ptr<const gpu::rank_group>> groups_; ///< by rank; empty for one
  std::vector<shard> shards_;
  std::vector<gpu::device_ring> contexts_; ///< from replica r to the next; empty for one
  uint64_t iteration_ = 0;
  uint64_t bytes_ = 0;
  std::vector<gpu::sampled_token> sampled_;
};

} // namespace lamella::test

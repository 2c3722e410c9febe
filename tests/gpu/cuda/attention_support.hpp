/// Sequences, batches of them in a device's cache, and exact attention over them.
#pragma once

#include "gpu/cuda/attention/attention.hpp"
#include "gpu/kernels/half.hpp"
#include "gpu/kernels/q8.hpp"
#include "tests/gpu/cuda/device_support.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lamella::gpu::cuda::test {

using half_bits = uint16_t;

/// Roughly normal, deviation 1, from one draw.
inline float normal(tests::splitmix& random) {
  auto bits = random.next();
  auto sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (static_cast<float>(sum) / 65536 - 2) * 1.7320508f;
}

struct shape {
  uint32_t heads, group, dim;
  half_type type = half_type::f16;    ///< of the cache
  half_type q8_wire = half_type::f16; ///< of the wire of one of q8; of others it is the cache's
  half_type wire() const { return type == half_type::q8 ? q8_wire : type; }
  half_bits narrow(float x) const { return wire() == half_type::bf16 ? to_bf16(x) : to_half(x); }
  float widen(half_bits x) const { return wire() == half_type::bf16 ? from_bf16(x) : from_half(x); }
  /// Of a row against exact attention over the same cache: rounding the output is 2^-12 (bf16:
  /// 2^-9) at random, rounding each probability as much again. K of q8 is rounded, too, by as much
  /// of scores that are a few tens.
  double tolerance() const {
    const double rounded = type == half_type::q8 ? 5 : 1;
    return wire() == half_type::bf16 ? 8e-3 * rounded : 1e-3 * rounded;
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(dim)); }
  size_t head_bytes() const { return head_bytes_of(type, dim); }

  /// A head from the wire as the cache holds it.
  std::vector<std::byte> cached(const half_bits* head) const {
    std::vector<std::byte> bytes(head_bytes());
    if (type == half_type::q8) {
      std::vector<float> wide(dim);
      for (uint32_t j = 0; j < dim; ++j) wide[j] = widen(head[j]);
      quantise_head(wide.data(), dim, bytes.data());
    } else {
      std::memcpy(bytes.data(), head, bytes.size());
    }
    return bytes;
  }
  /// And what that stands for.
  std::vector<double> as_cached(const half_bits* head) const {
    const auto bytes = cached(head);
    std::vector<double> values(dim);
    for (uint32_t j = 0; j < dim; ++j)
      values[j] = type == half_type::q8 ? double{q8_scale_of(bytes.data(), q8_scale_at(dim))}
                                              * static_cast<int8_t>(bytes[j])
                                        : widen(head[j]);
    return values;
  }
};

/// Q, K and V of every position of one sequence, rounded to the type of the shape.
struct sequence {
  shape s;
  uint32_t length;
  std::vector<half_bits> q, k, v; ///< [position][H][G][D] and [position][H][D]

  /// `sharpness` multiplies the queries: the larger, the fewer positions count.
  sequence(const shape& s_, uint32_t length_, tests::splitmix& random, float sharpness = 1)
      : s{s_}, length{length_} {
    auto fill = [&](std::vector<half_bits>& x, size_t width, float factor) {
      x.resize(width * length);
      for (auto& value : x) value = s.narrow(normal(random) * factor);
    };
    fill(q, size_t{s.heads} * s.group * s.dim, sharpness);
    fill(k, size_t{s.heads} * s.dim, 1);
    fill(v, size_t{s.heads} * s.dim, 1);
  }

  /// Attention of one query over positions [0, position], in double precision: [D].
  std::vector<double> exact(uint32_t position, uint32_t head, uint32_t g) const {
    std::vector<double> scores(position + 1), sum(s.dim);
    const auto* query = &q[((size_t{position} * s.heads + head) * s.group + g) * s.dim];
    std::vector<double> wide(s.dim);
    for (uint32_t j = 0; j < s.dim; ++j) wide[j] = s.widen(query[j]);
    for (uint32_t p = 0; p <= position; ++p) {
      const auto key = s.as_cached(&k[(size_t{p} * s.heads + head) * s.dim]);
      for (uint32_t j = 0; j < s.dim; ++j) scores[p] += wide[j] * key[j];
      scores[p] *= s.scale();
    }
    auto highest = *std::max_element(scores.begin(), scores.end());
    double weight = 0;
    for (uint32_t p = 0; p <= position; ++p) {
      auto w = std::exp(scores[p] - highest);
      weight += w;
      const auto value = s.as_cached(&v[(size_t{p} * s.heads + head) * s.dim]);
      for (uint32_t j = 0; j < s.dim; ++j) sum[j] += w * value[j];
    }
    for (auto& x : sum) x /= weight;
    return sum;
  }
};

/// Runs of `longest` slots (the last is shorter) at random places of a pool, for `length`
/// positions.
inline std::vector<slot_run> scattered(uint32_t length, uint32_t longest, uint32_t pool,
                                       tests::splitmix& random) {
  std::vector<uint32_t> places(pool / longest);
  std::iota(places.begin(), places.end(), 0);
  std::vector<slot_run> runs;
  for (uint32_t at = 0; at < length; at += longest) {
    auto taken = runs.size();
    REQUIRE(taken < places.size());
    std::swap(places[taken], places[taken + random.below(places.size() - taken)]);
    runs.push_back({places[taken] * longest, std::min(longest, length - at)});
  }
  return runs;
}

/// Rows [first, first + rows) of a sequence in one call.
struct piece {
  const sequence* of;
  uint32_t first, rows;
  std::vector<slot_run> runs; ///< of positions [0, first + rows)
};

/// A call with its memory on the device: earlier positions are in the cache, which is NaN
/// elsewhere; so are outputs and records.
class device_call {
public:
  device_call(const shape& s, const std::vector<piece>& pieces, uint32_t slots,
              size_t head_from = 0, size_t heads = 0)
      : s_{s}, heads_{heads == 0 ? s.heads : heads}, head_from_{head_from} {
    std::vector<attention_span> spans;
    std::vector<slot_run> runs;
    for (const auto& p : pieces) {
      spans.push_back({rows_, p.rows, p.first, static_cast<uint32_t>(runs.size()),
                       static_cast<uint32_t>(p.runs.size())});
      runs.insert(runs.end(), p.runs.begin(), p.runs.end());
      rows_ += p.rows;
    }
    plan_ = plan_attention(spans, runs, s.group);
    const auto d = s.dim;
    cache_.assign(size_t{slots} * 2 * heads_ * s.head_bytes(), std::byte{0xff});
    for (const auto& p : pieces) fill_cache(p);
    std::vector<half_bits> q, k, v;
    for (auto h = head_from; h < head_from + heads_; ++h)
      for (const auto& p : pieces)
        for (auto i = p.first; i < p.first + p.rows; ++i) {
          const auto& x = *p.of;
          auto at = (size_t{i} * s.heads + h) * d;
          q.insert(q.end(), &x.q[at * s.group], &x.q[at * s.group] + s.group * d);
          k.insert(k.end(), &x.k[at], &x.k[at] + d);
          v.insert(v.end(), &x.v[at], &x.v[at] + d);
        }
    add(cache_), add(q), add(k), add(v);
    auto& c = plan_.capacity;
    for (auto size : {q.size() * 2, c.device_bytes(),
                      attention_record_bytes(c, static_cast<uint32_t>(heads_), s.group, d)})
      memory_.push_back(std::make_unique<device_bytes>(size));
    memory_[5]->upload(plan_.bytes);
    args.type = s.type;
    args.wire = s.wire();
    args.cache = memory_[0]->data();
    args.q = memory_[1]->data(), args.k_new = memory_[2]->data(), args.v_new = memory_[3]->data();
    args.out = memory_[4]->data(), args.plan = memory_[5]->data();
    args.records = memory_[6]->data();
    args.capacity = c;
    args.kv_heads = static_cast<uint32_t>(heads_), args.dim = d, args.group = s.group;
    args.scale = s.scale();
  }

  void launch(cudaStream_t stream = nullptr) const {
    check(launch_expand_runs(args.capacity, args.plan, stream));
    check(launch_attend_previous(args, stream));
    check(launch_append_kv(args, stream));
    check(launch_attend_new(args, stream));
  }
  void run() const {
    launch();
    check(cudaDeviceSynchronize());
  }
  /// The same for spans of one row, with append_kv in attend_new's kernel.
  void run_joined() const {
    check(launch_expand_runs(args.capacity, args.plan, nullptr));
    check(launch_attend_previous(args, nullptr));
    attention_end end;
    end.append = true;
    check(launch_attend_new(args, end, nullptr));
    check(cudaDeviceSynchronize());
  }

  /// Row m of head h, [G][D], as it went out.
  std::vector<half_bits> row(size_t h, size_t m) const {
    if (out_.empty()) {
      auto bytes = memory_[4]->download();
      out_.resize(bytes.size() / 2);
      std::memcpy(out_.data(), bytes.data(), bytes.size());
    }
    auto width = size_t{s_.group} * s_.dim;
    auto* from = out_.data() + (h * rows_ + m) * width;
    return {from, from + width};
  }
  std::vector<std::byte> cache() const { return memory_[0]->download(); }
  /// The cache as it must be afterwards: nothing but the new rows is written.
  std::vector<std::byte> expected_cache(const std::vector<piece>& pieces) {
    for (auto p : pieces) {
      p.first += p.rows;
      fill_cache(p);
    }
    return cache_;
  }
  const attention_plan& plan() const { return plan_; }
  uint32_t rows() const { return rows_; }

  attention_device_args args;

private:
  template <class T> void add(const std::vector<T>& x) {
    memory_.push_back(std::make_unique<device_bytes>(x));
  }

  /// Writes K and V of positions [0, first) at their slots.
  void fill_cache(const piece& p) {
    const auto d = s_.dim;
    uint32_t position = 0;
    for (const auto& run : p.runs)
      for (uint32_t i = 0; i < run.length && position < p.first; ++i, ++position)
        for (size_t h = 0; h < heads_; ++h) {
          auto from = (size_t{position} * s_.heads + head_from_ + h) * d;
          const auto k = s_.cached(&p.of->k[from]), v = s_.cached(&p.of->v[from]);
          auto* to = &cache_[(size_t{run.first + i} * 2 * heads_ + h) * k.size()];
          std::copy(k.begin(), k.end(), to);
          std::copy(v.begin(), v.end(), to + heads_ * k.size());
        }
  }

  shape s_;
  size_t heads_, head_from_;
  uint32_t rows_ = 0;
  attention_plan plan_;
  std::vector<std::byte> cache_;
  std::vector<std::unique_ptr<device_bytes>> memory_; ///< cache, q, k, v, out, plan, records
  mutable std::vector<half_bits> out_;
};

} // namespace lamella::gpu::cuda::test

#include "gpu/runners/slice_runner.hpp"

#include "gpu/runners/mini_batches.hpp"
#include "gpu/runners/parity_frames.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace lamella::gpu {

using model::opcode;

slice_runner::slice_runner(std::shared_ptr<const model::model_program> program,
                           std::shared_ptr<const packed_weights> weights, const operators& ops,
                           slice_launch launch, std::shared_ptr<slice_stream_state> state)
    : program_{std::move(program)}, weights_{std::move(weights)}, ops_{ops},
      launch_{std::move(launch)}, state_{std::move(state)} {
  // The rows of a prompt lie side by side, in one seat.
  decodes_ = std::adjacent_find(launch_.seats.begin(), launch_.seats.end()) == launch_.seats.end();
  has_next(); // moves to the first instruction of this replica's slices
}

uint32_t slice_runner::rows_of(model::buffer_id buffer) const {
  return static_cast<uint32_t>(program_->buffer_selected[buffer] ? launch_.selected.size()
                                                                 : launch_.tokens.size());
}

/// Runs on the stream, after the launch before it: sampled tokens are known and the workspace free.
void slice_runner::begin(arena& room) {
  begun_ = true;
  check_launch();
  room.reset();
  for (model::buffer_id b = 0; b < program_->buffer_width.size(); ++b)
    buffers_.push_back(room.allocate<float>(size_t{rows_of(b)} * program_->buffer_width[b]));
  if (launch_.ranks) meet_ranks(room);
  make_pieces();
  if (!launch_.turns.rotate()) return;
  rows_.resize(launch_.tokens.size());
  std::iota(rows_.begin(), rows_.end(), 0u);
}

/// The others know rank 0 as the one shard of their replica.
void slice_runner::meet_ranks(arena& room) {
  const auto& group = *launch_.ranks;
  const auto& spec = program_->spec;
  const auto heads = spec.kv_heads / group.ranks;
  const auto rows = static_cast<uint32_t>(launch_.tokens.size());
  if (group.rank == 0) {
    exchange_.emplace(launch_.ranks,
                      head_exchange::shape{heads, rows, spec.group(), spec.head_dim, launch_.wire},
                      ops_, room);
    return;
  }
  shard_share all{group.links[0].to, group.links[0].from, std::vector<uint32_t>(rows), 0, heads};
  std::iota(all.rows.begin(), all.rows.end(), 0u);
  launch_.shares = {std::move(all)};
}

/// The ranks behind the first one give it all their rows in one frame.
void slice_runner::make_pieces() {
  const auto most = launch_.ranks && launch_.ranks->rank > 0 ? 1 : launch_.mini_batches;
  for (uint32_t i = 0; i < most; ++i)
    for (const auto& share : launch_.shares) {
      const auto same = [&](uint32_t a, uint32_t b) {
        return launch_.seats[a] == launch_.seats[b];
      };
      const bool one_each = std::ranges::adjacent_find(share.rows, same) == share.rows.end();
      const auto ranges = mini_batches(static_cast<uint32_t>(share.rows.size()), most, one_each);
      if (i < ranges.size())
        pieces_.push_back(
            {&share, std::span{share.rows}.subspan(ranges[i].first, ranges[i].count)});
    }
}

/// What a kernel would follow outside its memory.
void slice_runner::check_launch() const {
  for (auto token : launch_.tokens)
    if (token != take_sampled && token >= program_->spec.vocabulary)
      throw std::runtime_error("token id " + std::to_string(token) + " is outside the vocabulary");
  for (const auto* seats : {&launch_.seats, &launch_.sample_seats})
    for (auto seat : *seats)
      if (seat >= seats_max)
        throw std::runtime_error("seat " + std::to_string(seat) + ", at most "
                                 + std::to_string(seats_max - 1) + " are possible");
  for (auto row : launch_.selected)
    if (row >= launch_.tokens.size())
      throw std::runtime_error("selected row " + std::to_string(row) + " of "
                               + std::to_string(launch_.tokens.size()));
  const auto masks = launch_.masks.size() / mask_words(program_->spec.vocabulary);
  for (const auto& x : launch_.samples) {
    if (x.mask != no_mask && x.mask >= masks)
      throw std::runtime_error("mask " + std::to_string(x.mask) + " of " + std::to_string(masks));
    if (x.given != no_token && x.given >= program_->spec.vocabulary)
      throw std::runtime_error("given token " + std::to_string(x.given)
                               + " is outside the vocabulary");
  }
  const auto ranks = launch_.ranks ? launch_.ranks->ranks : 1;
  if (ranks != program_->ranks())
    throw std::runtime_error("a program of " + std::to_string(program_->ranks())
                             + " rank(s) in a group of " + std::to_string(ranks));
}

/// Goes to the next instruction of this replica's slices, if there is one. Contexts stay where they
/// are in a replica that has all slices.
bool slice_runner::has_next() {
  for (; slice_ < program_->slices.size(); ++slice_, instruction_ = 0) {
    if (launch_.turns.of(static_cast<uint32_t>(slice_)) != launch_.turn) continue;
    const auto& list = program_->slices[slice_].instructions;
    const auto migrates = [](const model::instruction& x) {
      return x.code == opcode::send_context || x.code == opcode::recv_context;
    };
    while (instruction_ < list.size() && !launch_.turns.rotate() && migrates(list[instruction_]))
      ++instruction_;
    if (instruction_ < list.size()) return true;
  }
  return false;
}

work::progress slice_runner::advance(kernel_context context) {
  if (!begun_) begin(*context.workspace);
  if (!has_next()) return end_with_parity();
  const auto& next = program_->slices[slice_].instructions[instruction_];
  step_aside(next.code == opcode::send_q || next.code == opcode::send_kv
             || next.code == opcode::send_context);
  const auto outcome = execute(next, context);
  if (outcome == progress::blocked) return outcome;
  piece_ = parity_ = 0;
  collected_ = false;
  ++instruction_;
  return has_next() ? progress::advanced : end_with_parity();
}

/// By opcode: what computes is part of its slice.
step_label slice_runner::next_step() const {
  auto x = whole();
  x.number = static_cast<uint32_t>(slice_);
  if (slice_ == program_->slices.size()) {
    x.name = x.waits = "recv_stored";
    x.kind = step_kind::wait;
    return x;
  }
  const auto& next = program_->slices[slice_].instructions[instruction_];
  const auto name = to_string(next.code);
  if (name.starts_with("recv_")) {
    x.kind = step_kind::wait;
    x.number = next.layer;
  } else if (name.starts_with("send_")) {
    x.kind = step_kind::send;
    x.number = next.layer;
  } else if (next.code == opcode::sample) {
    x.kind = step_kind::sample;
  } else {
    x.name = "slice";
    return x;
  }
  x.name = x.waits = name;
  return x;
}

step_label slice_runner::whole() const {
  return {"iteration",
          "wait",
          step_kind::compute,
          0,
          static_cast<uint32_t>(launch_.tokens.size()),
          launch_.tag.iteration};
}

bool slice_runner::is_urgent() const {
  if (!begun_ || slice_ == program_->slices.size()) return false;
  return decodes_ && instruction_ > 0
         && program_->slices[slice_].instructions[instruction_].code != opcode::recv_attention;
}

work::progress slice_runner::execute(const model::instruction& x, kernel_context context) {
  const auto in = [&](size_t i) { return buffers_[x.inputs[i]]; };
  const auto out = x.outputs.empty() ? nullptr : buffers_[x.outputs[0]];
  const auto shaped = x.outputs.empty() ? x.inputs.at(0) : x.outputs[0];
  const auto rows = rows_of(shaped);
  const auto width = program_->buffer_width[shaped];
  switch (x.code) {
  case opcode::embed:
    ops_.embed({weights_->matrix(x.weights[0]), launch_.tokens, launch_.seats,
                state_->last_sampled(), out},
               context);
    break;
  case opcode::rms_norm:
    if (rows > 0)
      ops_.rms_norm({in(0), weights_->vector(x.weights[0]), program_->spec.norm_epsilon,
                     rows * x.heads, width / x.heads, out},
                    context);
    break;
  case opcode::add_bias:
    ops_.add_bias({in(0), weights_->vector(x.weights[0]), rows, width, out}, context);
    break;
  case opcode::matmul:
    matmul(x, context);
    break;
  case opcode::rope:
    ops_.rope({in(0), out, rows, x.heads, program_->spec.head_dim, width, program_->spec.pairing,
               launch_.positions, program_->spec.rope_frequencies, program_->spec.rope_magnitude},
              context);
    break;
  case opcode::scale:
    ops_.scale({in(0), x.factor, rows, width, out}, context);
    break;
  case opcode::silu_mul:
    ops_.silu_mul({in(0), in(1), rows, width, out, x.ends_inputs}, context);
    break;
  case opcode::add:
    ops_.add({in(0), in(1), rows, width, out}, context);
    break;
  case opcode::select:
    ops_.gather_rows({in(0), launch_.selected, width, out}, context);
    break;
  case opcode::sample:
    sample(x, context);
    break;
  case opcode::all_reduce:
    return all_reduce(x, context);
  case opcode::send_q:
  case opcode::send_kv:
    return send(x, context);
  case opcode::recv_attention:
    return receive_attention(x, context);
  case opcode::send_context:
    return send_context(x, context);
  case opcode::recv_context:
    return receive_context(x, context);
  }
  return progress::advanced;
}

/// Elements from one row's heads to the next one's, as they are sent and received here.
uint32_t slice_runner::heads_stride(model::buffer_id buffer) const {
  return program_->buffer_width[buffer] * (exchange_ ? launch_.ranks->ranks : 1);
}

void slice_runner::matmul(const model::instruction& x, kernel_context context) {
  const auto rows = rows_of(x.outputs[0]);
  if (rows == 0) return;
  std::vector<matmul_part> parts;
  for (size_t i = 0; i < x.outputs.size(); ++i) {
    const auto& weight = weights_->matrix(x.weights[i]);
    parts.push_back({weight, buffers_[x.outputs[i]], weight.outputs});
  }
  ops_.matmul({buffers_[x.inputs[0]], rows, parts}, context);
}

/// The sum is made in place: a product alone writes this buffer, and nothing reads it before.
work::progress slice_runner::all_reduce(const model::instruction& x, kernel_context context) {
  auto tag = launch_.tag;
  tag.layer = sums_;
  const auto buffer = x.outputs[0];
  if (!launch_.ranks->sums->all_reduce(
          {tag, buffers_[buffer], rows_of(buffer), program_->buffer_width[buffer]}, context))
    return progress::blocked;
  ++sums_;
  return progress::advanced;
}

/// Rounds the rows and heads of each piece into its channel; continues where a full ring or a rank
/// that is behind stopped it.
work::progress slice_runner::send(const model::instruction& x, kernel_context context) {
  const auto& spec = program_->spec;
  const bool queries = x.code == opcode::send_q;
  auto tag = launch_.tag;
  tag.layer = x.layer;
  tag.kind = queries ? frame_kind::q : frame_kind::kv;
  std::vector<const float*> own;
  for (auto input : x.inputs) own.push_back(buffers_[input]);
  if (exchange_ && !collected_) {
    if (!exchange_->collect(tag, own, context)) return progress::blocked;
    collected_ = true;
  }
  for (; piece_ < pieces_.size(); ++piece_) {
    const auto& share = *pieces_[piece_].share;
    const auto& rows = pieces_[piece_].rows;
    const auto width = queries ? spec.group() * spec.head_dim : spec.head_dim;
    const auto part = size_t{share.head_count} * rows.size() * width * bytes_of(launch_.wire);
    const auto bytes = part * x.inputs.size();
    auto* to = reserve(*share.to, bytes);
    if (to == nullptr) return progress::blocked;
    for (size_t i = 0; i < x.inputs.size(); ++i)
      ops_.to_wire({exchange_ ? exchange_->all(i) : own[i], heads_stride(x.inputs[i]), rows,
                    share.first_head, share.head_count, width, launch_.wire, to + i * part},
                   context);
    share.to->commit(tag);
    bytes_sent_ += bytes;
  }
  return queries ? progress::advanced : send_parities(x, context);
}

/// Continues where a full ring stopped it.
work::progress slice_runner::send_parities(const model::instruction& x, kernel_context context) {
  for (; parity_ < launch_.parity.size(); ++parity_)
    if (!send_parity(launch_.parity[parity_], x, context)) return progress::blocked;
  return progress::advanced;
}

/// Adds this layer's parity to the frame that waits for it; false: the ring is full.
bool slice_runner::send_parity(const parity_share& parity, const model::instruction& x,
                               kernel_context context) {
  const auto& spec = program_->spec;
  const auto& first = launch_.shares[parity.first_share];
  if (first.rows.empty()) return true;
  const parity_frames frames{parity.frame_bytes, spec.layers,
                             first.rows.size() * first.head_count
                                 * head_bytes_of(parity.cache, spec.head_dim),
                             launch_.turns};
  const auto bytes = frames.bytes_of_frame(x.layer);
  auto* to = reserve(*parity.to, bytes); // the same memory for all layers of a frame
  if (to == nullptr) return false;
  for (size_t i = 0; i < x.inputs.size(); ++i)
    ops_.parity_to_wire({exchange_ ? exchange_->all(i) : buffers_[x.inputs[i]],
                         heads_stride(x.inputs[i]), first.rows, parity.shares, first.head_count,
                         spec.head_dim, launch_.wire, parity.cache,
                         to + frames.place(x.layer) + i * frames.half()},
                        context);
  if (!frames.ends_with(x.layer)) return true;
  auto tag = launch_.tag;
  tag.layer = x.layer;
  tag.kind = frame_kind::parity;
  parity.to->commit(tag);
  bytes_sent_ += bytes;
  return true;
}

/// Until all shards with parity have stored theirs.
work::progress slice_runner::end_with_parity() {
  if (launch_.turns.of(program_->spec.layers) != launch_.turn) return progress::done;
  auto tag = launch_.tag;
  tag.layer = program_->spec.layers - 1;
  tag.kind = frame_kind::stored;
  for (; parity_ < launch_.parity.size(); ++parity_) {
    const auto& parity = launch_.parity[parity_];
    if (launch_.shares[parity.first_share].rows.empty()) continue;
    if (parity.from->receive(tag, 0) == nullptr) return progress::blocked;
    parity.from->release();
  }
  return progress::done;
}

work::progress slice_runner::receive_attention(const model::instruction& x,
                                               kernel_context context) {
  const auto& spec = program_->spec;
  auto tag = launch_.tag;
  tag.layer = x.layer;
  tag.kind = frame_kind::attention;
  for (; piece_ < pieces_.size(); ++piece_) {
    const auto& share = *pieces_[piece_].share;
    const auto& rows = pieces_[piece_].rows;
    const auto width = spec.group() * spec.head_dim;
    const auto bytes = size_t{share.head_count} * rows.size() * width * bytes_of(launch_.wire);
    const auto* arrived = share.from->receive(tag, bytes, 0);
    if (arrived == nullptr) return progress::blocked;
    ops_.from_wire({arrived->payload.data(), rows, share.first_head, share.head_count, width,
                    launch_.wire, exchange_ ? exchange_->all(0) : buffers_[x.outputs[0]],
                    heads_stride(x.outputs[0])},
                   context);
    share.from->release();
  }
  if (exchange_ && !exchange_->distribute(tag, buffers_[x.outputs[0]], context))
    return progress::blocked;
  return progress::advanced;
}

void slice_runner::sample(const model::instruction& x, kernel_context context) {
  logits_ = buffers_[x.inputs[0]];
  if (launch_.samples.empty()) return;
  sampled_.resize(launch_.samples.size());
  ops_.sample({logits_, static_cast<uint32_t>(launch_.selected.size()), program_->spec.vocabulary,
               launch_.samples, launch_.edits, launch_.masks, launch_.sample_seats,
               state_->last_sampled(), sampled_},
              context);
}

} // namespace lamella::gpu

/// Instruction lists: what a replica runs between two attention operators (L-M16; Lamina 4.2.2).
#pragma once

#include "model/program/graph.hpp"
#include "model/program/splitter.hpp"
#include "model/spec.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::model {

enum class opcode : uint8_t {
  embed,
  rms_norm,
  matmul, ///< one input, one or more products
  rope,
  silu_mul,
  add,
  select,
  sample,
  all_reduce, ///< one input, added up over the ranks of the group, in ascending order
  add_bias,
  scale,
  send_q,         ///< inputs[0]: queries, to the shards
  send_kv,        ///< inputs[0], [1]: keys and values of the new rows, to the shards
  recv_attention, ///< outputs[0]: attention output of layer `layer`, from the shards
  send_context,   ///< inputs: what later slices need, to the replica of the next slice (L-M21)
  recv_context,   ///< outputs: the same, from the replica of the slice before
};

std::string_view to_string(opcode code);

/// A place for a tensor of one launch: rows x width fp32. Tensors whose lives do not overlap share
/// a buffer.
using buffer_id = uint32_t;

struct instruction {
  opcode code;
  uint32_t layer = 0;
  std::vector<buffer_id> inputs;
  std::vector<buffer_id> outputs;
  std::vector<weight_id> weights; ///< matmul: one per output
  uint32_t heads = 0;             ///< rope, rms_norm
  float factor = 1;               ///< scale
  std::vector<tensor_id> results; ///< the tensors behind `outputs`, for people
  bool ends_inputs = false;       ///< nothing reads the tensors behind `inputs` after it
};

/// A tensor that later slices need: it stays in its buffer, or migrates with the batch (L-M21).
struct context_tensor {
  tensor_id tensor;
  buffer_id buffer;
  uint64_t bytes_per_row;
};

struct slice_program {
  uint32_t index = 0;
  std::vector<instruction> instructions;
  std::vector<context_tensor> context; ///< handed to slice index + 1
};

/// A whole model, or one rank's share of it, ready for any kernel set: L + 1 slices over shared
/// buffers.
struct model_program {
  model_spec spec; ///< of the whole model
  operator_graph graph;
  std::vector<uint32_t> buffer_width; ///< elements per row, by buffer_id
  std::vector<bool> buffer_selected;  ///< its rows are those sampled from, not those of the launch
  std::vector<slice_program> slices;

  uint32_t ranks() const { return graph.ranks; }

  /// Of the slice that hands on most.
  uint64_t context_bytes_per_row() const;
};

/// When queries go to the shards.
enum class query_order : uint8_t {
  early,   ///< as soon as they are there: K and V are computed meanwhile (L-M16)
  with_kv, ///< with K and V: the three come of one product, and nothing overlaps
};

/// Lists the instructions of every slice: Q and all it needs first, `send_q` at once, the rest in
/// the order of the trace with products of one input taken together, `send_kv` at the end.
/// `recv_attention` comes where the output is first needed, at the head of the next slice.
/// `send_context` follows `send_kv`, and `recv_context` comes before the first reader: the context
/// migrates while the shards attend.
/// The order changes no bit.
model_program make_program(const model_spec& spec, operator_graph graph, const model_slices& slices,
                           query_order order = query_order::early);

/// The slices as stable JSON (version 1), as Graphviz, or as text for a terminal.
std::string to_json(const model_program& program);
std::string to_dot(const model_program& program);
std::string to_text(const model_program& program);

} // namespace lamella::model

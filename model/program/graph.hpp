/// A model as a graph of operators whose edges are weighted with the bytes they carry (L-M12).
///
/// The graph is made by running the model's definition once on symbols instead of numbers (tracer).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::model {

enum class op_kind : uint8_t {
  embed,
  rms_norm,
  matmul,
  rope,
  attention,
  silu_mul,
  add,
  select,
  sample,
  all_reduce, ///< the sum of what the ranks of a tensor-parallel group have
  add_bias,   ///< the same vector to each row
  scale       ///< times one number
};

std::string_view to_string(op_kind kind);

/// Is its weight a vector, which is kept in fp32, and no matrix of a product or a table?
constexpr bool takes_vector(op_kind kind) {
  return kind == op_kind::rms_norm || kind == op_kind::add_bias;
}

using tensor_id = uint32_t;
using node_id = uint32_t;
using weight_id = uint32_t;

constexpr uint32_t none = ~uint32_t{0};

/// What a rank of a tensor-parallel group has of a weight (L-M03): an equal share, in the order of
/// the ranks, or all of it.
enum class weight_split : uint8_t {
  whole,
  outputs, ///< column-parallel: the ranks have parts of the result
  inputs,  ///< row-parallel: the ranks have parts of every sum; of a vector, of its elements
};

/// A weight the model uses, by its name in the file: all of a tensor, or some of its rows. Vectors
/// have one row.
struct weight_use {
  std::string name;
  uint32_t outputs = 1; ///< rows of the matrix
  uint32_t inputs = 0;  ///< elements per row, in the file
  weight_split split = weight_split::whole;
  uint32_t first_row = 0, rows_in_file = 0; ///< of a part of a tensor; 0: the weight is all of it

  uint32_t rows_of_tensor() const { return rows_in_file == 0 ? outputs : rows_in_file; }

  /// The shape of one rank's share.
  uint32_t outputs_of_rank(uint32_t ranks) const {
    return split == weight_split::outputs ? outputs / ranks : outputs;
  }
  uint32_t inputs_of_rank(uint32_t ranks) const {
    return split == weight_split::inputs ? inputs / ranks : inputs;
  }
};

/// "blk.0.attn_q.weight", or "blk.0.attn_qkv.weight[0:3072]" of some rows.
std::string label(const weight_use& weight);

/// One operator. Inputs that come with every launch (token ids, positions) are not edges: each
/// replica has them, so they cost nothing to cut.
struct graph_node {
  op_kind kind;
  std::vector<tensor_id> inputs; ///< attention: q, k, v
  tensor_id output;              ///< none for sample
  weight_id weight = none;
  uint32_t heads = 0; ///< rope and rms_norm: heads in the row, each of which is treated by itself
  float factor = 1;   ///< scale
  uint32_t layer = 0;
};

/// A value between operators: `width` fp32 elements for each row.
struct graph_tensor {
  std::string name;
  uint32_t width;
  node_id producer;
  std::vector<node_id> consumers;
  uint64_t bytes_per_row() const { return uint64_t{width} * sizeof(float); }
};

struct operator_graph {
  std::vector<graph_node> nodes; ///< in a topological order: the order of the trace
  std::vector<graph_tensor> tensors;
  std::vector<weight_use> weights;
  std::vector<node_id> attentions; ///< in order of layers
  uint32_t ranks = 1;              ///< of the group that one replica is; the graph is one rank's
};

/// What a model definition is written against: every call appends one operator and returns the
/// symbol of its result. Widths and row counts are checked; a mismatch throws std::logic_error,
/// since it is a bug of the definition.
///
/// With several ranks it traces what one of them does (L-M03): the definition names weights in
/// their whole shapes and says how they are split, and widths are those of the rank's share.
class tracer {
public:
  struct symbol {
    tensor_id id;
  };

  explicit tracer(uint32_t ranks = 1) { graph_.ranks = ranks; }

  uint32_t ranks() const { return graph_.ranks; }

  /// Elements per row, of this rank.
  uint32_t width_of(symbol x) const { return graph_.tensors[x.id].width; }

  /// Rows of the table, chosen by the launch's token ids.
  symbol embed(const weight_use& table);
  /// Of each of `heads` equal parts of a row by itself, all with the same weight.
  symbol rms_norm(symbol x, const std::string& weight, uint32_t heads = 1);
  /// With inputs split over several ranks the parts of the sum are added up over them at once.
  symbol matmul(symbol x, const weight_use& weight);
  /// A vector of one row, split as x is.
  symbol add_bias(symbol x, const weight_use& bias);
  symbol scale(symbol x, float factor);
  /// Rotary embedding by the launch's positions.
  symbol rope(symbol x, uint32_t heads);
  /// Attention of q over the cache and k, v; this is where the model is cut.
  symbol attention(symbol q, symbol k, symbol v);
  symbol silu_mul(symbol gate, symbol up);
  symbol add(symbol a, symbol b);
  /// The rows of x that are sampled from.
  symbol select(symbol x);
  /// Draws the next tokens from the logits.
  void sample(symbol logits);

  /// The layer that the following operators belong to; names and messages only.
  void enter_layer(uint32_t layer) { layer_ = layer; }

  /// The finished graph.
  operator_graph take() { return std::move(graph_); }

private:
  weight_id use(const weight_use& weight);
  symbol append(op_kind kind, std::vector<tensor_id> inputs, uint32_t width, std::string name,
                weight_id weight = none, uint32_t heads = 0);

  operator_graph graph_;
  std::map<std::pair<std::string, uint32_t>, weight_id> weight_of_; ///< by name and first row
  std::vector<bool> selected_; ///< by tensor: its rows are those sampled from
  uint32_t layer_ = 0;
};

} // namespace lamella::model

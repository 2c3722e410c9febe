// The printed forms of a program. No JSON library: names come from the model definition, and the
// few characters that need escaping are escaped here.
#include "model/program/program.hpp"

#include <sstream>

namespace lamella::model {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

/// "matmul blk.0.attn_k.weight blk.0.attn_v.weight"
std::string describe(const model_program& program, const instruction& x) {
  std::string out{to_string(x.code)};
  for (auto w : x.weights) out += " " + label(program.graph.weights[w]);
  if (x.code == opcode::send_q || x.code == opcode::send_kv || x.code == opcode::recv_attention)
    out += " layer " + std::to_string(x.layer);
  return out;
}

} // namespace

std::string to_json(const model_program& program) {
  std::ostringstream out;
  out << R"({"version":1,"model":)" << quoted(program.spec.architecture) << R"(,"slices":[)";
  for (const auto& slice : program.slices) {
    out << (slice.index ? "," : "") << R"({"index":)" << slice.index << R"(,"instructions":[)";
    for (size_t i = 0; i < slice.instructions.size(); ++i) {
      const auto& x = slice.instructions[i];
      out << (i ? "," : "") << R"({"op":)" << quoted(std::string{to_string(x.code)})
          << R"(,"layer":)" << x.layer;
      if (!x.weights.empty()) {
        out << R"(,"weights":[)";
        for (size_t w = 0; w < x.weights.size(); ++w)
          out << (w ? "," : "") << quoted(label(program.graph.weights[x.weights[w]]));
        out << "]";
      }
      out << "}";
    }
    out << R"(],"context":[)";
    for (size_t i = 0; i < slice.context.size(); ++i)
      out << (i ? "," : "") << R"({"tensor":)"
          << quoted(program.graph.tensors[slice.context[i].tensor].name) << R"(,"bytes_per_row":)"
          << slice.context[i].bytes_per_row << "}";
    out << "]}";
  }
  out << "]}";
  return out.str();
}

std::string to_dot(const model_program& program) {
  std::ostringstream out;
  out << "digraph slices {\n  rankdir=LR; node [shape=box];\n  shards [shape=cylinder];\n";
  for (const auto& slice : program.slices) {
    out << "  s" << slice.index << " [label=\"slice " << slice.index << "\\l";
    for (const auto& x : slice.instructions) out << describe(program, x) << "\\l";
    out << "\"];\n";
    uint64_t bytes = 0;
    for (const auto& t : slice.context) bytes += t.bytes_per_row;
    if (slice.index + 1 < program.slices.size())
      out << "  s" << slice.index << " -> s" << slice.index + 1 << " [label=\"" << bytes
          << " B/row\"];\n  s" << slice.index << " -> shards [label=\"q, kv\"];\n  shards -> s"
          << slice.index + 1 << " [label=\"attention\"];\n";
  }
  out << "}\n";
  return out.str();
}

std::string to_text(const model_program& program) {
  std::ostringstream out;
  const auto& spec = program.spec;
  out << spec.architecture << ": " << spec.layers << " layers, " << program.slices.size()
      << " slices\n";
  for (const auto& slice : program.slices) {
    out << "slice " << slice.index << "\n";
    for (const auto& x : slice.instructions) out << "  " << describe(program, x) << "\n";
    for (const auto& t : slice.context)
      out << "  context " << program.graph.tensors[t.tensor].name << ": " << t.bytes_per_row
          << " bytes per row\n";
  }
  return out.str();
}

} // namespace lamella::model

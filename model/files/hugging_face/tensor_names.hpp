/// What the tensors of Hugging Face files are called in GGUF files, and the other way round.
#pragma once

#include <string>
#include <string_view>

namespace lamella::model::hugging_face {

/// "model.layers.0.self_attn.q_proj.weight" is "blk.0.attn_q.weight". Empty for buffers that are no
/// weights and need not be read; a name that is not known stays as it is.
std::string gguf_name(std::string_view name, std::string_view architecture);

/// The inverse, for messages.
std::string hugging_face_name(std::string_view name, std::string_view architecture);

/// Of a GGUF name: "attn_q" of "blk.0.attn_q.weight"; empty where there is no such part.
std::string_view part_of_layer(std::string_view name);

} // namespace lamella::model::hugging_face

#include "model/files/hugging_face/safetensors.hpp"

#include "base/printable.hpp"
#include "model/files/hugging_face/json_file.hpp"

#include <algorithm>
#include <cstring>

namespace lamella::model::hugging_face {

namespace {

constexpr uint64_t length_bytes = 8;

struct placed_tensor {
  tensor_view view;
  uint64_t begin = 0, end = 0; ///< in the data section
};

std::string field_of(std::string_view name) { return "tensor '" + printable(name) + "'"; }

tensor_type type_of(const json_value& value, const std::string& path) {
  const auto name = json_string(value, path, {1, 16});
  if (name == "F32") return tensor_type::f32;
  if (name == "F16") return tensor_type::f16;
  if (name == "BF16") return tensor_type::bf16;
  throw json_field_error(path, path + " is " + printable(name) + "; F32 F16 BF16 are read");
}

/// Fills in rows and elements per row.
void read_shape(const json_value& value, const std::string& path, tensor_view& view) {
  const auto& sizes = json_items(value, path, {1, 4});
  uint64_t elements = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto at = json_index(path, d);
    const auto size = json_as<uint64_t>(sizes[d], at, {1, uint64_t{1} << 56});
    if (__builtin_mul_overflow(elements, size, &elements) || elements > uint64_t{1} << 56)
      throw json_field_error(at, at + " is " + std::to_string(size)
                                     + ", which makes the tensor too large");
    view.inner = size;
  }
  view.rows = elements / view.inner;
}

placed_tensor read_tensor(const std::string& name, const json_value& value) {
  const auto field = field_of(name);
  if (name.empty() || name.size() > safetensors_limit::name_bytes)
    throw json_field_error(field, field + " must have a name of 1 to "
                                      + std::to_string(safetensors_limit::name_bytes) + " bytes");
  json_object_reader fields{value, field};
  placed_tensor x;
  x.view.name = name;
  x.view.type = type_of(fields.require("dtype"), fields.path("dtype"));
  read_shape(fields.require("shape"), fields.path("shape"), x.view);
  const auto path = fields.path("data_offsets");
  const auto& offsets = json_items(fields.require("data_offsets"), path, {2, 2});
  x.begin = json_as<uint64_t>(offsets[0], json_index(path, 0));
  x.end = json_as<uint64_t>(offsets[1], json_index(path, 1));
  const auto bytes = row_bytes(x.view.type, x.view.inner) * x.view.rows; // at most 2^58
  if (x.end < x.begin || x.end - x.begin != bytes)
    throw json_field_error(path, path + " are " + std::to_string(x.begin) + " and "
                                     + std::to_string(x.end) + ", but type and shape make "
                                     + std::to_string(bytes) + " bytes");
  for (const auto unknown : fields.unread())
    throw json_field_error(field, field + " has an unknown field '" + printable(unknown) + "'");
  return x;
}

/// Free texts about the file, which nothing here reads.
void check_metadata(const json_value& value) {
  const auto* texts = value.get_if<json_value::object>();
  const auto is_text = [](const auto& x) {
    return x.second.template get_if<std::string>() != nullptr;
  };
  if (texts == nullptr || !std::all_of(texts->begin(), texts->end(), is_text))
    throw json_field_error("__metadata__", "__metadata__ must be an object of strings");
}

/// The tensors lie one after the other, from the first byte of the data to the last one.
void check_places(const mapped_file& file, std::vector<placed_tensor>& tensors,
                  uint64_t data_begin) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  const auto data = file.bytes().subspan(data_begin);
  const auto refuse = [&](const std::string& name, const std::string& problem) {
    return file_error(file.path(), {}, field_of(name) + ".data_offsets", problem);
  };
  uint64_t end = 0;
  for (auto& x : tensors) {
    if (x.begin != end)
      throw refuse(x.view.name, "begin at " + std::to_string(x.begin)
                                    + ", but the tensor before ends at " + std::to_string(end)
                                    + (x.begin < end ? ": the two overlap"
                                                     : ": between them are bytes of none"));
    if (x.end > data.size())
      throw refuse(x.view.name, "end at " + std::to_string(x.end) + ", beyond the "
                                    + std::to_string(data.size())
                                    + " bytes of the data (is the file cut off?)");
    x.view.data = data.subspan(x.begin, x.end - x.begin);
    end = x.end;
  }
  if (end != data.size())
    throw file_error(file.path(), data_begin + end, "data",
                     "goes on for " + std::to_string(data.size() - end)
                         + " bytes after the last tensor");
}

} // namespace

safetensors_file::safetensors_file(const std::filesystem::path& path) : file_(path) {
  const auto bytes = file_.bytes();
  const auto refuse = [&](const std::string& problem) {
    return file_error(file_.path(), 0, "header length", problem);
  };
  if (bytes.size() < length_bytes)
    throw refuse("needs 8 bytes, the file has " + std::to_string(bytes.size()));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), length_bytes);
  if (header_bytes > safetensors_limit::header_bytes)
    throw refuse("is " + std::to_string(header_bytes) + ", at most "
                 + std::to_string(safetensors_limit::header_bytes)
                 + " is allowed (is this a safetensors file?)");
  if (header_bytes > bytes.size() - length_bytes)
    throw refuse("is " + std::to_string(header_bytes) + ", the file has "
                 + std::to_string(bytes.size() - length_bytes)
                 + " more bytes (is the file cut off?)");
  const std::string_view header{reinterpret_cast<const char*>(bytes.data()) + length_bytes,
                                header_bytes};
  std::vector<placed_tensor> placed;
  try {
    const auto root = parse_json(header, {.text_bytes = safetensors_limit::header_bytes,
                                          .depth = 4,
                                          .string_bytes = size_t{1} << 20,
                                          .object_members = safetensors_limit::tensors + 1,
                                          .array_items = 64,
                                          .values = size_t{1} << 20});
    const auto* entries = root.get_if<json_value::object>();
    if (entries == nullptr) throw json_field_error("header", "header must be an object");
    for (const auto& [name, value] : *entries)
      if (name == "__metadata__")
        check_metadata(value);
      else
        placed.push_back(read_tensor(name, value));
  } catch (const json_syntax_error& wrong) {
    throw file_error(file_.path(), length_bytes + wrong.offset, "header",
                     printable(wrong.what(), 256));
  } catch (const json_field_error& wrong) {
    throw at_field(file_.path(), wrong);
  }
  check_places(file_, placed, length_bytes + header_bytes);
  for (auto& x : placed) tensors_.push_back(std::move(x.view));
  file_.check_intact();
}

} // namespace lamella::model::hugging_face

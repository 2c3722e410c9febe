#include "model/files/hugging_face/weight_files.hpp"

#include "base/printable.hpp"

#include <map>
#include <set>
#include <string>

namespace lamella::model::hugging_face {

namespace {

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

/// Tensors by name, and the file that each is in.
using weight_map = std::map<std::string, std::string, std::less<>>;

/// A file's name and no path: the files of a model lie beside each other.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.find('/') == std::string_view::npos
         && name.find('\0') == std::string_view::npos && name.ends_with(".safetensors");
}

weight_map read_index(const json_file& index) {
  return index.read([&](json_object_reader& fields) {
    weight_map map;
    constexpr const char* field = "weight_map";
    const auto& listed = fields.require(field);
    const auto* entries = listed.get_if<json_value::object>();
    if (entries == nullptr || entries->empty())
      throw json_field_error(field, "weight_map must be an object of tensors and their files");
    for (const auto& [tensor, file] : *entries) {
      const auto path = "weight_map." + printable(tensor);
      const auto name = json_string(file, path);
      if (!is_plain_name(name))
        throw json_field_error(path, path + " is '" + printable(name)
                                         + "', must be the name of a .safetensors file beside this "
                                           "one");
      map.emplace(tensor, name);
    }
    return map;
  });
}

/// Each tensor is in the file that is said, and in no other.
void check_index(const json_file& index, const weight_map& map, const std::string& name,
                 const safetensors_file& file) {
  std::set<std::string_view> there;
  for (const auto& x : file.tensors()) {
    there.insert(x.name);
    const auto listed = map.find(x.name);
    if (listed == map.end() || listed->second != name)
      throw file_error(file.file().path(), {}, "tensor '" + printable(x.name) + "'",
                       "is not listed for this file in " + std::string{index_name});
  }
  for (const auto& [tensor, in] : map)
    if (in == name && !there.contains(tensor))
      throw index.error("weight_map." + printable(tensor), "is not in " + printable(name));
}

std::string other_formats(const std::filesystem::path& folder) {
  for (const auto* name : {"pytorch_model.bin", "pytorch_model.bin.index.json",
                           "consolidated.safetensors", "tf_model.h5", "flax_model.msgpack"})
    if (std::filesystem::exists(folder / name)) return std::string{"; "} + name + " is not read";
  return {};
}

} // namespace

std::vector<std::unique_ptr<safetensors_file>> open_weights(const std::filesystem::path& folder) {
  std::vector<std::unique_ptr<safetensors_file>> files;
  const bool single = std::filesystem::exists(folder / single_name);
  if (!std::filesystem::exists(folder / index_name)) {
    if (!single)
      throw file_error(folder, {}, "weights",
                       std::string{"there is neither "} + single_name + " nor " + index_name
                           + other_formats(folder));
    files.push_back(std::make_unique<safetensors_file>(folder / single_name));
    return files;
  }
  const json_file index{folder / index_name,
                        {.depth = 4, .object_members = safetensors_limit::tensors}};
  const auto map = read_index(index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  if (single && !names.contains(single_name))
    throw file_error(folder, {}, "weights",
                     std::string{"there are two sets: "} + single_name + ", and the files that "
                         + index_name + " lists; remove the one that is not this model's");
  for (const auto& name : names) {
    files.push_back(std::make_unique<safetensors_file>(folder / name));
    check_index(index, map, name, *files.back());
  }
  return files;
}

} // namespace lamella::model::hugging_face

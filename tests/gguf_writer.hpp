/// Writes GGUF files, right ones and wrong ones.
#pragma once

#include "model/tensor.hpp"
#include "tests/quantisers.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::tests {

/// Number of a tensor type in a GGUF file.
constexpr uint32_t gguf_number(model::tensor_type type) { return facts_of(type).gguf_number; }

/// Collects keys and tensors and gives the bytes of the file. The public members may be changed to
/// make files that lie.
class gguf_writer {
public:
  /// A key with a value of type number `type` and these bytes.
  struct key {
    std::string name;
    uint32_t type = 0;
    std::string bytes;
  };
  struct tensor {
    std::string name;
    std::vector<uint64_t> dimensions; ///< innermost first
    uint32_t type = 0;
    std::string data;
    std::optional<uint64_t> offset; ///< claimed instead of the true one
  };

  uint32_t magic = 0x46554747;
  uint32_t version = 3;
  uint64_t alignment = 32;
  std::optional<uint64_t> tensor_count, key_count; ///< claimed instead of the true ones
  std::vector<key> keys;
  std::vector<tensor> tensors;

  /// The bytes of a number, little-endian.
  template <class T> static std::string raw(const T& value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string counted(std::string_view text) {
    return raw(uint64_t{text.size()}) + std::string(text);
  }

  /// Sets a key; a key that is there already gets the new value at its place.
  void set(const std::string& name, uint32_t type, std::string bytes) {
    for (key& each : keys) {
      if (each.name != name) continue;
      each.type = type;
      each.bytes = std::move(bytes);
      return;
    }
    keys.push_back({name, type, std::move(bytes)});
  }
  void set_u32(const std::string& name, uint32_t value) { set(name, 4, raw(value)); }
  void set_f32(const std::string& name, float value) { set(name, 6, raw(value)); }
  void set_bool(const std::string& name, bool value) {
    set(name, 7, std::string(1, value ? 1 : 0));
  }
  void set_text(const std::string& name, std::string_view value) { set(name, 8, counted(value)); }
  void set_texts(const std::string& name, std::span<const std::string> values) {
    std::string bytes = raw(uint32_t{8}) + raw(uint64_t{values.size()});
    for (const std::string& value : values) bytes += counted(value);
    set(name, 9, std::move(bytes));
  }
  void set_i32s(const std::string& name, std::span<const int32_t> values) {
    std::string bytes = raw(uint32_t{5}) + raw(uint64_t{values.size()});
    for (const int32_t value : values) bytes += raw(value);
    set(name, 9, std::move(bytes));
  }
  void set_f32s(const std::string& name, std::span<const float> values) {
    std::string bytes = raw(uint32_t{6}) + raw(uint64_t{values.size()});
    for (const float value : values) bytes += raw(value);
    set(name, 9, std::move(bytes));
  }
  void remove(std::string_view name) {
    std::erase_if(keys, [&](const key& each) { return each.name == name; });
  }

  void add_tensor(const std::string& name, model::tensor_type type, uint64_t inner, uint64_t rows,
                  std::span<const float> values) {
    std::vector<uint64_t> dimensions{inner};
    if (rows != 1) dimensions.push_back(rows);
    tensors.push_back({name, dimensions, gguf_number(type), pack(type, values), {}});
  }
  tensor& named(std::string_view name) {
    for (tensor& each : tensors)
      if (each.name == name) return each;
    throw std::out_of_range("no tensor " + std::string(name));
  }

  /// Bytes of everything before the data section, padding included.
  std::string header() const {
    std::string out = raw(magic) + raw(version);
    out += raw(tensor_count.value_or(tensors.size())) + raw(key_count.value_or(keys.size()));
    for (const key& each : keys) out += counted(each.name) + raw(each.type) + each.bytes;
    uint64_t offset = 0;
    for (const tensor& each : tensors) {
      out += counted(each.name) + raw(static_cast<uint32_t>(each.dimensions.size()));
      for (const uint64_t size : each.dimensions) out += raw(size);
      out += raw(each.type) + raw(each.offset.value_or(offset));
      offset += padded(each.data.size());
    }
    out.resize(padded(out.size()), '\0');
    return out;
  }

  std::string file() const {
    std::string out = header();
    for (const tensor& each : tensors) {
      out += each.data;
      out.resize(padded(out.size()), '\0');
    }
    return out;
  }

  void write(const std::filesystem::path& path) const { write_file(path, file()); }

  static void write_file(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
  }

private:
  uint64_t padded(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }
};

/// The bytes of an array value: type of its elements, their number, and `bytes`, their values.
inline std::string gguf_array(uint32_t element, uint64_t count, const std::string& bytes = {}) {
  return gguf_writer::raw(element) + gguf_writer::raw(count) + bytes;
}

} // namespace lamella::tests

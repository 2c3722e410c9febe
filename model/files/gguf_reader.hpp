/// The header of a GGUF file, parsed and checked but not interpreted.
#pragma once

#include "base/mapped_file.hpp"
#include "model/files/gguf_type.hpp"
#include "model/tensor.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lamella::model {

/// An array: only its place is kept, elements are decoded by those who need them.
struct gguf_array {
  gguf_type element = gguf_type::u8;
  uint64_t count = 0;
  uint64_t offset = 0; ///< of the first element in the file
};

/// A value: integers are widened, with the sign kept in the type.
struct gguf_value {
  gguf_type type = gguf_type::u8;
  uint64_t offset = 0; ///< of the value in the file
  std::variant<uint64_t, int64_t, double, bool, std::string, gguf_array> content;
};

/// A parsed header. Tensor views point into the mapping.
struct gguf_header {
  uint32_t version = 0;
  std::vector<std::string> keys; ///< in the order of the file
  std::map<std::string, gguf_value, std::less<>> values;
  std::vector<tensor_view> tensors;
  std::vector<uint64_t> tensor_entries; ///< place of each tensor's entry in the table
  uint64_t data_begin = 0;              ///< place of the first tensor's bytes
};

/// Parses and checks the header; throws file_error.
gguf_header read_gguf_header(const mapped_file& file);

/// Elements of a text array; each at most `bytes_max` long. `field` names the array in errors.
std::vector<std::string> read_texts(const mapped_file& file, const gguf_array& array,
                                    const std::string& field, uint64_t bytes_max);

/// Elements of an array of numbers, of any numeric type. Throws file_error for other types.
std::vector<double> read_numbers(const mapped_file& file, const gguf_array& array,
                                 const std::string& field);

} // namespace lamella::model

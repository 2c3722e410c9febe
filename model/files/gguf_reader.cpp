#include "model/files/gguf_reader.hpp"

#include "base/printable.hpp"
#include "model/files/gguf_cursor.hpp"
#include "model/files/gguf_limit.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>

namespace lamella::model {

namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

/// Bytes of a fixed-size value; 0 for texts and arrays.
uint64_t value_bytes(gguf_type type) {
  switch (type) {
  case gguf_type::u8:
  case gguf_type::i8:
  case gguf_type::boolean:
    return 1;
  case gguf_type::u16:
  case gguf_type::i16:
    return 2;
  case gguf_type::u32:
  case gguf_type::i32:
  case gguf_type::f32:
    return 4;
  case gguf_type::u64:
  case gguf_type::i64:
  case gguf_type::f64:
    return 8;
  case gguf_type::text:
  case gguf_type::array:
    break;
  }
  return 0;
}

bool read_bool(gguf_cursor& in, const std::string& field) {
  const uint64_t offset = in.at();
  const auto value = in.number<uint8_t>(field);
  if (value > 1) in.fail(offset, field, "is " + std::to_string(value) + ", a bool is 0 or 1");
  return value == 1;
}

gguf_array read_array(gguf_cursor& in, const std::string& field) {
  gguf_array array;
  const uint64_t type_offset = in.at();
  array.element = in.type({field, " (element type)"});
  if (array.element == gguf_type::array)
    in.fail(type_offset, {field, " (element type)"}, "is array; arrays of arrays are not read");
  array.count = in.count({field, " (elements)"}, gguf_limit::array_elements);
  array.offset = in.at();
  if (array.element == gguf_type::text) {
    for (uint64_t i = 0; i < array.count; ++i) in.text({field, "", i}, gguf_limit::string_bytes);
  } else {
    in.skip(array.count * value_bytes(array.element), field); // at most 2^24 * 8
  }
  return array;
}

gguf_value read_value(gguf_cursor& in, const std::string& field) {
  gguf_value value;
  value.type = in.type({field, " (type)"});
  value.offset = in.at();
  switch (value.type) {
  case gguf_type::u8:
    value.content = uint64_t{in.number<uint8_t>(field)};
    break;
  case gguf_type::u16:
    value.content = uint64_t{in.number<uint16_t>(field)};
    break;
  case gguf_type::u32:
    value.content = uint64_t{in.number<uint32_t>(field)};
    break;
  case gguf_type::u64:
    value.content = in.number<uint64_t>(field);
    break;
  case gguf_type::i8:
    value.content = int64_t{in.number<int8_t>(field)};
    break;
  case gguf_type::i16:
    value.content = int64_t{in.number<int16_t>(field)};
    break;
  case gguf_type::i32:
    value.content = int64_t{in.number<int32_t>(field)};
    break;
  case gguf_type::i64:
    value.content = in.number<int64_t>(field);
    break;
  case gguf_type::f32:
    value.content = double{in.number<float>(field)};
    break;
  case gguf_type::f64:
    value.content = in.number<double>(field);
    break;
  case gguf_type::boolean:
    value.content = read_bool(in, field);
    break;
  case gguf_type::text:
    value.content = std::string(in.text(field, gguf_limit::string_bytes));
    break;
  case gguf_type::array:
    value.content = read_array(in, field);
    break;
  }
  return value;
}

/// Names of the format's tensor types by number; empty where the format has none (any more).
constexpr std::array<std::string_view, 40> type_names{
    "F32",     "F16",    "Q4_0",    "Q4_1",  "",       "",      "Q5_0",  "Q5_1",
    "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
    "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
    "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16",  "",
    "",        "",       "TQ1_0",   "TQ2_0", "",       "",      "",      "MXFP4"};

std::optional<tensor_type> known_type(uint32_t number) {
  for (const auto& known : tensor_types)
    if (known.gguf_number == number) return known.type;
  return {};
}

/// "is Q4_K (12); F32 F16 ... are read": what is said of a type that is not.
std::string unknown_type(uint32_t number) {
  const auto name = number < type_names.size() ? type_names[number] : std::string_view{};
  std::string text = name.empty() ? "is unknown" : "is " + std::string(name);
  text += " (" + std::to_string(number) + ");";
  for (const auto& known : tensor_types) text += " " + std::string(type_names[known.gguf_number]);
  return text + " are read";
}

/// A tensor's entry in the table, before the place of the data section is known.
struct tensor_entry {
  tensor_view view;
  uint64_t place = 0;
  uint64_t begin = 0; ///< relative to the data section
  uint64_t begin_place = 0;
  uint64_t bytes = 0;
};

tensor_entry read_tensor_entry(gguf_cursor& in, uint64_t index) {
  tensor_entry entry;
  entry.place = in.at();
  entry.view.name =
      in.text("name of tensor " + std::to_string(index), gguf_limit::tensor_name_bytes);
  const std::string field = "tensor '" + printable(entry.view.name) + "'";
  uint64_t offset = in.at();
  const auto rank = in.number<uint32_t>(field + " rank");
  if (rank < 1 || rank > 4)
    in.fail(offset, field + " rank", "is " + std::to_string(rank) + ", must be 1 to 4");
  uint64_t elements = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    offset = in.at();
    const std::string name = field + " dimension " + std::to_string(d);
    const auto size = in.number<uint64_t>(name);
    if (size == 0) in.fail(offset, name, "is 0");
    if (__builtin_mul_overflow(elements, size, &elements) || elements > uint64_t{1} << 56)
      in.fail(offset, name, "is " + std::to_string(size) + ", which makes the tensor too large");
    if (d == 0) entry.view.inner = size;
  }
  entry.view.rows = elements / entry.view.inner;
  offset = in.at();
  const auto number = in.number<uint32_t>(field + " type");
  const auto type = known_type(number);
  if (!type) in.fail(offset, field + " type", unknown_type(number));
  entry.view.type = *type;
  if (entry.view.inner % block_elements(*type) != 0)
    in.fail(offset, field + " dimension 0",
            "is " + std::to_string(entry.view.inner) + ", must be a multiple of "
                + std::to_string(block_elements(*type)) + " in type "
                + std::string(to_string(*type)));
  entry.bytes = row_bytes(*type, entry.view.inner) * entry.view.rows; // at most 2^58
  entry.begin_place = in.at();
  entry.begin = in.number<uint64_t>(field + " offset");
  return entry;
}

uint64_t read_alignment(const mapped_file& file, const gguf_header& header) {
  const auto found = header.values.find("general.alignment");
  if (found == header.values.end()) return 32;
  const auto* value = std::get_if<uint64_t>(&found->second.content);
  if (!value || !std::has_single_bit(*value) || *value < 8 || *value > gguf_limit::alignment)
    throw file_error(file.path(), found->second.offset, "general.alignment",
                     "must be a power of two from 8 to " + std::to_string(gguf_limit::alignment)
                         + (value ? ", is " + std::to_string(*value) : ""));
  return *value;
}

/// Every tensor lies aligned inside the data section, and no two share a byte.
void check_places(const mapped_file& file, std::vector<tensor_entry>& entries, uint64_t data_begin,
                  uint64_t alignment) {
  const uint64_t size = file.bytes().size();
  const uint64_t data_bytes = size > data_begin ? size - data_begin : 0;
  std::vector<const tensor_entry*> order;
  for (tensor_entry& entry : entries) {
    const std::string field = "tensor '" + printable(entry.view.name) + "' offset";
    if (entry.begin % alignment != 0)
      throw file_error(file.path(), entry.begin_place, field,
                       "is " + std::to_string(entry.begin) + ", must be a multiple of "
                           + std::to_string(alignment));
    if (entry.begin > data_bytes || entry.bytes > data_bytes - entry.begin)
      throw file_error(file.path(), entry.begin_place, field,
                       "is " + std::to_string(entry.begin) + ": its " + std::to_string(entry.bytes)
                           + " bytes do not fit into the " + std::to_string(data_bytes)
                           + " bytes of the data section (is the file cut off?)");
    entry.view.data = file.bytes().subspan(data_begin + entry.begin, entry.bytes);
    order.push_back(&entry);
  }
  // Of two that begin at the same place the later entry of the table is the one at fault.
  std::stable_sort(order.begin(), order.end(), [](const tensor_entry* a, const tensor_entry* b) {
    return a->begin < b->begin;
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->begin < order[i - 1]->begin + order[i - 1]->bytes)
      throw file_error(file.path(), order[i]->begin_place,
                       "tensor '" + printable(order[i]->view.name) + "' offset",
                       "overlaps tensor '" + printable(order[i - 1]->view.name) + "'");
}

} // namespace

gguf_header read_gguf_header(const mapped_file& file) {
  gguf_cursor in(file);
  gguf_header header;
  if (in.number<uint32_t>("magic") != 0x46554747u) in.fail(0, "magic", "is not 'GGUF'");
  header.version = in.number<uint32_t>("version");
  if (header.version == 2u << 24 || header.version == 3u << 24)
    in.fail(4, "version", "the file is big-endian; only little-endian files are read");
  if (header.version != 2 && header.version != 3)
    in.fail(4, "version", "is " + std::to_string(header.version) + "; 2 and 3 are read");
  const uint64_t tensors = in.count("tensor count", gguf_limit::tensors);
  const uint64_t keys = in.count("key count", gguf_limit::keys);
  // A key takes at least 8 + 1 + 4 + 1 bytes and a tensor 8 + 1 + 4 + 8 + 4 + 8.
  in.need(keys * 14 + tensors * 33, "keys and tensors");

  for (uint64_t i = 0; i < keys; ++i) {
    const uint64_t offset = in.at();
    std::string key(in.text("key " + std::to_string(i), gguf_limit::key_bytes));
    const std::string field = printable(key);
    if (key.empty()) in.fail(offset, "key " + std::to_string(i), "is empty");
    gguf_value value = read_value(in, field);
    if (!header.values.emplace(key, std::move(value)).second)
      in.fail(offset, field, "appears twice");
    header.keys.push_back(std::move(key));
  }
  const uint64_t alignment = read_alignment(file, header);

  std::vector<tensor_entry> entries;
  std::set<std::string_view> names;
  entries.reserve(tensors);
  for (uint64_t i = 0; i < tensors; ++i) {
    entries.push_back(read_tensor_entry(in, i));
    const tensor_entry& entry = entries.back();
    if (entry.view.name.empty())
      in.fail(entry.place, "name of tensor " + std::to_string(i), "is empty");
    if (!names.insert(entry.view.name).second)
      in.fail(entry.place, "tensor '" + printable(entry.view.name) + "'", "appears twice");
  }
  header.data_begin = (in.at() + alignment - 1) / alignment * alignment;
  check_places(file, entries, header.data_begin, alignment);
  for (tensor_entry& entry : entries) {
    header.tensors.push_back(std::move(entry.view));
    header.tensor_entries.push_back(entry.place);
  }
  return header;
}

std::vector<std::string> read_texts(const mapped_file& file, const gguf_array& array,
                                    const std::string& field, uint64_t bytes_max) {
  gguf_cursor in(file, array.offset);
  if (array.element != gguf_type::text)
    in.fail(array.offset, field,
            "has elements of type " + std::string(to_string(array.element)) + ", must have texts");
  std::vector<std::string> texts;
  texts.reserve(array.count);
  for (uint64_t i = 0; i < array.count; ++i) texts.emplace_back(in.text({field, "", i}, bytes_max));
  return texts;
}

std::vector<double> read_numbers(const mapped_file& file, const gguf_array& array,
                                 const std::string& field) {
  gguf_cursor in(file, array.offset);
  std::vector<double> numbers;
  numbers.reserve(array.count);
  for (uint64_t i = 0; i < array.count; ++i) {
    switch (array.element) {
    case gguf_type::u8:
      numbers.push_back(in.number<uint8_t>(field));
      break;
    case gguf_type::i8:
      numbers.push_back(in.number<int8_t>(field));
      break;
    case gguf_type::u16:
      numbers.push_back(in.number<uint16_t>(field));
      break;
    case gguf_type::i16:
      numbers.push_back(in.number<int16_t>(field));
      break;
    case gguf_type::u32:
      numbers.push_back(in.number<uint32_t>(field));
      break;
    case gguf_type::i32:
      numbers.push_back(in.number<int32_t>(field));
      break;
    case gguf_type::u64:
      numbers.push_back(static_cast<double>(in.number<uint64_t>(field)));
      break;
    case gguf_type::i64:
      numbers.push_back(static_cast<double>(in.number<int64_t>(field)));
      break;
    case gguf_type::f32:
      numbers.push_back(double{in.number<float>(field)});
      break;
    case gguf_type::f64:
      numbers.push_back(in.number<double>(field));
      break;
    case gguf_type::boolean:
    case gguf_type::text:
    case gguf_type::array:
      in.fail(array.offset, field,
              "has elements of type " + std::string(to_string(array.element))
                  + ", must have numbers");
    }
  }
  return numbers;
}

} // namespace lamella::model

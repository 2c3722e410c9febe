#include "base/json_reader.hpp"

#include "base/json_writer.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace lamella {

namespace {

/// The value for a message: short, and never a whole prompt.
std::string seen(const json_value& value) {
  if (const auto* text = value.get_if<std::string>()) {
    if (text->size() <= 40) return to_json(value);
    return "a string of " + std::to_string(text->size()) + " bytes";
  }
  if (value.get_if<json_value::array>() || value.get_if<json_value::object>())
    return std::string(value.kind());
  return to_json(value);
}

std::string number_text(double value) {
  std::string text = to_json(json_value(value));
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}
template <class T>
requires std::is_integral_v<T> std::string number_text(T value) { return std::to_string(value); }

template <class T> std::string range_text(const json_range<T>& range) {
  const bool low = range.min != std::numeric_limits<T>::lowest() || std::is_unsigned_v<T>;
  const bool high = range.max != std::numeric_limits<T>::max();
  if (low && high) return " between " + number_text(range.min) + " and " + number_text(range.max);
  if (low) return " of at least " + number_text(range.min);
  if (high) return " of at most " + number_text(range.max);
  return "";
}

[[noreturn]] void refuse(const std::string& path, const std::string& expected,
                         const json_value& value) {
  throw json_field_error(path, (path.empty() ? std::string("the body") : path) + " must be "
                                   + expected + ", not " + seen(value));
}

template <class T>
T integer_as(const json_value& value, const std::string& path, const json_range<T>& range) {
  const std::string expected = "an integer" + range_text(range);
  const auto checked = [&](auto number) {
    if (std::cmp_less(number, range.min) || std::cmp_greater(number, range.max))
      refuse(path, expected, value);
    return static_cast<T>(number);
  };
  if (const auto* number = value.get_if<int64_t>()) return checked(*number);
  if (const auto* number = value.get_if<uint64_t>()) return checked(*number);
  if (const auto* number = value.get_if<double>()) {
    // Beyond 2^53 a double no longer names one integer.
    constexpr double exact = 9007199254740992.0;
    if (std::trunc(*number) == *number && std::abs(*number) <= exact)
      return checked(static_cast<int64_t>(*number));
  }
  refuse(path, expected, value);
}

std::string length_text(const json_range<size_t>& range, std::string_view unit) {
  if (range.max == std::numeric_limits<size_t>::max())
    return range.min == 0 ? ""
                          : " of at least " + std::to_string(range.min) + " " + std::string(unit);
  return " of " + std::to_string(range.min) + " to " + std::to_string(range.max) + " "
         + std::string(unit);
}

} // namespace

template <> bool json_as(const json_value& value, const std::string& path, json_range<bool>) {
  if (const auto* flag = value.get_if<bool>()) return *flag;
  refuse(path, "true or false", value);
}

template <>
int32_t json_as(const json_value& value, const std::string& path, json_range<int32_t> range) {
  return integer_as(value, path, range);
}

template <>
uint32_t json_as(const json_value& value, const std::string& path, json_range<uint32_t> range) {
  return integer_as(value, path, range);
}

template <>
int64_t json_as(const json_value& value, const std::string& path, json_range<int64_t> range) {
  return integer_as(value, path, range);
}

template <>
uint64_t json_as(const json_value& value, const std::string& path, json_range<uint64_t> range) {
  return integer_as(value, path, range);
}

template <>
double json_as(const json_value& value, const std::string& path, json_range<double> range) {
  const std::string expected = "a number" + range_text(range);
  double number = 0;
  if (const auto* i = value.get_if<int64_t>())
    number = static_cast<double>(*i);
  else if (const auto* u = value.get_if<uint64_t>())
    number = static_cast<double>(*u);
  else if (const auto* d = value.get_if<double>())
    number = *d;
  else if (const auto* big = value.get_if<big_integer>())
    number = big->nearest();
  else
    refuse(path, expected, value);
  if (!(number >= range.min && number <= range.max)) refuse(path, expected, value);
  return number;
}

std::string json_string(const json_value& value, const std::string& path,
                        json_range<size_t> range) {
  const auto* text = value.get_if<std::string>();
  if (!text || text->size() < range.min || text->size() > range.max)
    refuse(path, "a string" + length_text(range, "bytes"), value);
  return *text;
}

const json_value::array& json_items(const json_value& value, const std::string& path,
                                    json_range<size_t> range) {
  const auto* items = value.get_if<json_value::array>();
  if (!items) refuse(path, "an array" + length_text(range, "items"), value);
  if (items->size() < range.min || items->size() > range.max)
    throw json_field_error(path, path + " must be an array" + length_text(range, "items")
                                     + ", not of " + std::to_string(items->size()));
  return *items;
}

std::string json_index(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

json_object_reader::json_object_reader(const json_value& value, std::string path,
                                       std::shared_ptr<std::deque<object>> all)
    : all_(std::move(all)) {
  const auto* members = value.get_if<json_value::object>();
  if (!members) refuse(path, "an object", value);
  self_ = &all_->emplace_back(object{members, std::move(path), std::vector<bool>(members->size())});
}

json_object_reader::json_object_reader(const json_value& value, std::string path)
    : json_object_reader(value, std::move(path), std::make_shared<std::deque<object>>()) {}

json_object_reader::json_object_reader(const json_value& value, std::string path,
                                       const json_object_reader& outer)
    : json_object_reader(value, std::move(path), outer.all_) {}

const json_value* json_object_reader::find(std::string_view key) {
  for (size_t i = 0; i < self_->members->size(); ++i) {
    if ((*self_->members)[i].first != key) continue;
    self_->read[i] = true;
    const json_value& value = (*self_->members)[i].second;
    return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

const json_value& json_object_reader::require(std::string_view key) {
  if (const json_value* value = find(key)) return *value;
  throw json_field_error(path(key), path(key) + " is required");
}

std::optional<std::string> json_object_reader::optional_string(std::string_view key,
                                                               json_range<size_t> range) {
  const json_value* value = find(key);
  if (!value) return std::nullopt;
  return json_string(*value, path(key), range);
}

std::string json_object_reader::required_string(std::string_view key, json_range<size_t> range) {
  return json_string(require(key), path(key), range);
}

std::string json_object_reader::path(std::string_view key) const {
  return self_->path.empty() ? std::string(key) : self_->path + "." + std::string(key);
}

std::vector<std::string_view> json_object_reader::unread() const {
  std::vector<std::string_view> keys;
  for (size_t i = 0; i < self_->members->size(); ++i)
    if (!self_->read[i]) keys.push_back((*self_->members)[i].first);
  return keys;
}

std::vector<std::string> json_object_reader::unread_within() const {
  std::vector<std::string> paths;
  for (const auto& x : *all_) {
    if (&x == self_) continue;
    for (size_t i = 0; i < x.members->size(); ++i)
      if (const auto& [key, value] = (*x.members)[i]; !x.read[i] && !value.is_null())
        paths.push_back(x.path + "." + key.substr(0, 64));
  }
  return paths;
}

} // namespace lamella

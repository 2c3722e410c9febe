/// A list of values by name, whose order does not change when values are added.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <stdexcept>
#include <string>
#include <utility>

namespace lamella::config {

/// Values made by operator[] are in order of names, appended ones come behind them: the place of a
/// value is a number that it keeps. References stay valid. Lookup is O(size).
template <class T> class named_list {
public:
  using value_type = std::pair<std::string, T>;
  using iterator = typename std::list<value_type>::iterator;
  using const_iterator = typename std::list<value_type>::const_iterator;

  iterator begin() { return list_.begin(); }
  iterator end() { return list_.end(); }
  const_iterator begin() const { return list_.begin(); }
  const_iterator end() const { return list_.end(); }
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }

  iterator find(const std::string& name) {
    return std::ranges::find(list_, name, &value_type::first);
  }
  const_iterator find(const std::string& name) const {
    return std::ranges::find(list_, name, &value_type::first);
  }
  bool contains(const std::string& name) const { return find(name) != end(); }
  /// Throws std::out_of_range where there is none of that name.
  T& at(const std::string& name) { return there(*this, name)->second; }
  const T& at(const std::string& name) const { return there(*this, name)->second; }

  /// The one of that name; a new one before those of larger names.
  T& operator[](const std::string& name) {
    if (const auto found = find(name); found != end()) return found->second;
    const auto behind =
        std::ranges::find_if(list_, [&](const value_type& x) { return x.first > name; });
    return list_.emplace(behind, name, T{})->second;
  }
  /// Of a new name, behind all others.
  void append(std::string name, T x) { list_.emplace_back(std::move(name), std::move(x)); }
  /// Without all from that place on.
  void shorten(size_t places) {
    if (places < size()) list_.resize(places);
  }
  void erase(const std::string& name) {
    list_.remove_if([&](const value_type& x) { return x.first == name; });
  }
  void clear() { list_.clear(); }

private:
  template <class Self> static auto there(Self& self, const std::string& name) {
    const auto found = self.find(name);
    if (found == self.end()) throw std::out_of_range{"nothing is named '" + name + "'"};
    return found;
  }

  std::list<value_type> list_;
};

} // namespace lamella::config

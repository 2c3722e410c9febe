/// A library that is looked for when the program runs, so that the program starts without it.
#pragma once

#include <optional>
#include <string>

namespace lamella {

/// A library that could not be used, or why its part of a table of calls is empty.
using load_error = std::optional<std::string>;

/// One library, which stays loaded, and whether all that was asked of it was there.
class shared_library {
public:
  explicit shared_library(const char* name);

  /// Null, and an error, when the library lacks it. `version`: null for the default one.
  template <class F> F* symbol(const char* name, const char* version = nullptr) {
    return reinterpret_cast<F*>(find(name, version));
  }

  /// A symbol that newer versions have: null and no error where this one lacks it.
  template <class F> F* optional_symbol(const char* name) {
    return reinterpret_cast<F*>(find_optional(name));
  }

  const load_error& error() const { return error_; }

private:
  void* find(const char* name, const char* version);
  void* find_optional(const char* name) const;

  void* handle_;
  load_error error_;
};

} // namespace lamella

/// Builds the table of options: one call per option, with the member it stands for.
#pragma once

#include "config/option.hpp"

#include <type_traits>
#include <utility>

namespace lamella::config {

// Units of options; durations are kept in milliseconds.
constexpr uint64_t kib = 1024, mib = kib * 1024, gib = mib * 1024, tib = gib * 1024;
constexpr uint64_t second = 1000;

/// The words of a choice and what they mean.
template <class E> using words = std::vector<std::pair<E, std::string>>;

/// Getter and setter from one accessor: `field(settings&)` names the member.
template <class F> void bind(option& x, F field) {
  using member = std::remove_cvref_t<std::invoke_result_t<F, settings&>>;
  const auto read = [field](const settings& s) -> const member& {
    return field(const_cast<settings&>(s)); // the accessor changes nothing
  };
  if constexpr (std::is_same_v<
                    member,
                    std::optional<uint32_t>> || std::is_same_v<member, std::optional<uint64_t>>) {
    x.accepts_auto = true;
    x.get = [read](const settings& s) -> value {
      const auto& m = read(s);
      return m ? value{uint64_t{*m}} : value{automatic{}};
    };
    x.set = [field](settings& s, const value& v) {
      auto& m = field(s);
      if (const auto* n = std::get_if<uint64_t>(&v))
        m = static_cast<typename member::value_type>(*n);
      else
        m.reset();
    };
  } else if constexpr (std::is_same_v<member, milliseconds>) {
    x.get = [read](const settings& s) -> value { return uint64_t(read(s).count()); };
    x.set = [field](settings& s, const value& v) {
      field(s) = milliseconds{static_cast<int64_t>(std::get<uint64_t>(v))};
    };
  } else if constexpr (std::is_same_v<member, std::filesystem::path>) {
    x.get = [read](const settings& s) -> value { return read(s).string(); };
    x.set = [field](settings& s, const value& v) { field(s) = std::get<std::string>(v); };
  } else if constexpr (std::is_same_v<member, uint32_t> || std::is_same_v<member, uint64_t>) {
    x.get = [read](const settings& s) -> value { return uint64_t{read(s)}; };
    x.set = [field](settings& s, const value& v) {
      field(s) = static_cast<member>(std::get<uint64_t>(v));
    };
  } else {
    x.get = [read](const settings& s) -> value { return read(s); };
    x.set = [field](settings& s, const value& v) { field(s) = std::get<member>(v); };
  }
}

/// The options so far, in order. Each call adds one.
class table {
public:
  template <class F>
  void number(std::string key, option_kind kind, reload when, uint64_t minimum, uint64_t maximum,
              std::string sentence, F field) {
    auto& x = add(std::move(key), kind, when, std::move(sentence));
    x.minimum = minimum;
    x.maximum = maximum;
    bind(x, field);
  }

  template <class F>
  void integer(std::string key, reload when, uint64_t minimum, uint64_t maximum,
               std::string sentence, F field) {
    number(std::move(key), option_kind::integer, when, minimum, maximum, std::move(sentence),
           field);
  }

  template <class F>
  void bytes(std::string key, reload when, uint64_t minimum, uint64_t maximum, std::string sentence,
             F field) {
    number(std::move(key), option_kind::bytes, when, minimum, maximum, std::move(sentence), field);
  }

  template <class F>
  void seconds(std::string key, reload when, uint64_t minimum, uint64_t maximum,
               std::string sentence, F field) {
    number(std::move(key), option_kind::seconds, when, minimum, maximum, std::move(sentence),
           field);
  }

  /// boolean, text, address, path, text_list
  template <class F>
  option& plain(std::string key, option_kind kind, reload when, std::string sentence, F field) {
    auto& x = add(std::move(key), kind, when, std::move(sentence));
    bind(x, field);
    return x;
  }

  template <class E, class F>
  void choice(std::string key, reload when, words<E> list, std::string sentence, F field) {
    auto& x = add(std::move(key), option_kind::choice, when, std::move(sentence));
    for (const auto& [e, word] : list) x.choices.push_back(word);
    x.get = [field, list](const settings& s) -> value {
      for (const auto& [e, word] : list)
        if (e == field(const_cast<settings&>(s))) return word;
      return std::string{};
    };
    x.set = [field, list](settings& s, const value& v) {
      for (const auto& [e, word] : list)
        if (word == std::get<std::string>(v)) field(s) = e;
    };
  }

  std::vector<option> take() { return std::move(options_); }

private:
  option& add(std::string key, option_kind kind, reload when, std::string sentence) {
    option x;
    x.key = std::move(key);
    x.kind = kind;
    x.when = when;
    x.sentence = std::move(sentence);
    return options_.emplace_back(std::move(x));
  }

  std::vector<option> options_;
};

/// Adds the options of the pools: who is in them, where, and on which devices.
void add_pools(table& t);

/// Adds the options of the autoscaler.
void add_autoscale(table& t);

/// batching.*: batches, launches, chunks of prompts.
void add_batching(table& t);

/// Adds the options of what a service tells of itself: log and traces.
void add_observing(table& t);

} // namespace lamella::config

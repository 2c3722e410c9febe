/// Values of the template interpreter, and the pool they live in.
#pragma once

#include "model/jinja/ast.hpp"
#include "model/jinja/data.hpp"
#include "model/jinja/text.hpp"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lamella::model::jinja {

/// Data deeper than this is refused. It is more than JSON of clients has (base/json.hpp) with what
/// stands around it.
constexpr int value_depth_max = 120;

struct list_object;
struct dict_object;
struct namespace_object;
struct function_object;
struct loop_object;
struct cycler_object;

/// A name or member that is not there. Printing it gives nothing, reading from it is an error.
struct undefined {
  const std::string* what = nullptr; ///< for the message; may be null
};
struct none {};

/// Any value. Objects belong to the heap of the rendering, so values are copied freely and cycles
/// need no care.
using value = std::variant<undefined, none, bool, int64_t, double, const text*, const list_object*,
                           const dict_object*, namespace_object*, const function_object*,
                           const loop_object*, cycler_object*, const big_integer*>;

/// What a list_object is to Python. All can be looped over; what is `lazy`, such as the result of
/// |map, once and without a length, and dict views have no places.
enum class list_kind : uint8_t { list, tuple, group, lazy, keys, values, items };

struct list_object {
  mutable std::vector<value> items; ///< of a lazy one those that were not read yet
  list_kind kind = list_kind::list;

  bool is_tuple() const { return kind == list_kind::tuple || kind == list_kind::group; }
  bool is_lazy() const { return kind == list_kind::lazy; }
  bool has_places() const { return kind == list_kind::list || is_tuple(); }
};

/// Members in order of insertion. Equal keys (1, 1.0 and true are equal) are one member.
struct dict_object {
  std::vector<std::pair<value, value>> members;
  std::map<std::string, size_t, std::less<>> index; ///< key_of(key) to its member
};

struct namespace_object {
  std::map<std::string, value, std::less<>> members;
};

/// Variables of a loop, macro or block; names not here are looked up in the parent.
struct scope {
  scope* parent = nullptr;
  std::map<std::string, value, std::less<>> names;
};

/// Something that can be called.
struct function_object {
  enum class kind : uint8_t { global, method, macro, loop, joiner };
  kind what = kind::global;
  std::string name;            ///< of a global or method
  value self;                  ///< of a method; what a joiner puts between
  const node* macro = nullptr; ///< also the loop node of a recursive loop
  scope* closure = nullptr;    ///< where a macro was defined
  uint32_t depth = 0;          ///< of a recursive loop
  mutable bool called = false; ///< a joiner
};

/// What cycler() makes: values that come one after the other, again and again.
struct cycler_object {
  std::vector<value> items;
  size_t at = 0;
};

/// The `loop` variable.
struct loop_object {
  const list_object* items = nullptr;
  size_t at = 0;
  uint32_t depth = 0;
  const function_object* again = nullptr; ///< calls the loop recursively
  mutable const list_object* changed = nullptr;
};

/// Owns everything made during one rendering and counts it against the limits.
class heap {
public:
  explicit heap(const template_limits& limits) : limits_{limits} {}

  const text* make_text(text x);
  const text* make_text(std::string_view bytes, bool trusted = true) {
    return make_text(text{bytes, trusted});
  }
  const list_object* make_list(std::vector<value> items, list_kind kind = list_kind::list);
  dict_object* make_dict();
  namespace_object* make_namespace();
  function_object* make_function();
  loop_object* make_loop();
  cycler_object* make_cycler(std::vector<value> items);
  const big_integer* make_big(big_integer x);
  scope* make_scope(scope* parent);

  /// Adds or replaces a member. The key must be a text, number, boolean, none or tuple of such.
  void put(dict_object& to, const value& key, const value& item);

  /// Counts work; throws chat_template_error (limit) when there is too much of it.
  void step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps) fail_limit("the template takes too many steps");
  }
  /// Counts memory, and the work of filling it.
  void charge(size_t bytes);

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_limit(const std::string& message) const;

  const template_limits& limits() const { return limits_; }
  uint32_t line = 1; ///< of the node being evaluated, for messages

private:
  template_limits limits_;
  uint64_t steps_ = 0;
  size_t bytes_ = 0;
  std::deque<text> texts_;
  std::deque<list_object> lists_;
  std::deque<dict_object> dicts_;
  std::deque<namespace_object> namespaces_;
  std::deque<function_object> functions_;
  std::deque<loop_object> loops_;
  std::deque<cycler_object> cyclers_;
  std::deque<big_integer> bigs_;
  std::deque<scope> scopes_;
};

/// Request data as values; all of its text is untrusted.
value from_data(heap& h, const template_data& x, int depth = 0);

bool truth(const value& x);
const char* type_name(const value& x);
bool is_number(const value& x); ///< booleans count, as in Python
double as_real(const value& x);
std::optional<int64_t> as_whole(const value& x); ///< of integers of 64 bits and booleans
const big_integer* as_big(const value& x);       ///< null: no integer, or one of 64 bits

/// The key of a dict member, one text for equal keys. Fails for values that cannot be keys.
std::string key_of(const heap& h, const value& x, int depth = 0);
bool can_be_key(const value& x, int depth = 0);
/// The member with this key, or null.
const value* find(const heap& h, const dict_object& in, const value& key);
const value* find_text(const dict_object& in, std::string_view key);

bool equal(heap& h, const value& a, const value& b, int depth = 0);
/// Below 0, 0 or above 0. Fails where Python has no order.
int compare(heap& h, const value& a, const value& b, int depth = 0);
bool contains(heap& h, const value& in, const value& x);

/// str(x) and repr(x).
text to_text(heap& h, const value& x);
text to_repr(heap& h, const value& x, int depth = 0);
std::string real_text(double x);

/// JSON as Python's json.dumps(ensure_ascii=False) writes it. `indent` below 0 is one line.
struct json_style {
  int indent = -1;
  bool sort_keys = false;
  bool ensure_ascii = false;
  std::optional<std::string> item_separator; ///< nothing: ", ", or "," at the end of a line
  std::string key_separator = ": ";
};
void write_json(heap& h, text& out, const value& x, const json_style& style, int depth = 0);

/// The elements a loop would visit: items, keys, characters. Undefined has none; others fail. What
/// is lazy has none left then.
std::vector<value> elements(heap& h, const value& x);

/// What is undefined, as a sentence.
std::string undefined_message(const undefined& x);

} // namespace lamella::model::jinja

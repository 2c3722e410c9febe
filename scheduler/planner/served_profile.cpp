#include "scheduler/planner/served_profile.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace lamella::scheduler {

namespace {

constexpr double rows_max = 65'536, tokens_max = 10'000'000, seconds_least = 1e-9,
                 seconds_most = 3600, rate_least = 1e-3, rate_most = 1;

struct limit_field {
  const char* name;
  uint32_t served_limits::*field;
  uint64_t least, most;
};
constexpr std::array limit_fields{
    limit_field{"slots", &served_limits::slots, 1, 1u << 28},
    limit_field{"window_slots", &served_limits::window_slots, 1, 1u << 20},
    limit_field{"chunk_tokens", &served_limits::chunk_tokens, 1, 1u << 20},
    limit_field{"seats", &served_limits::seats, 1, 65'536},
    limit_field{"context_tokens", &served_limits::context_tokens, 2, 10'000'000},
};

/// Text from outside that is printed later: short, and of visible characters.
std::string label(const csv_reader& csv, size_t column) {
  const auto& text = csv.text(column);
  constexpr size_t longest = 200;
  if (text.empty() || text.size() > longest)
    throw table_error{csv.line(), "a name must have 1 to 200 characters"};
  for (const unsigned char c : text)
    if (c < ' ' || c == 127) throw table_error{csv.line(), "a name with control characters"};
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

/// What a fact is for: rows, context and prompt, each 0 where it does not matter.
using place = std::tuple<double, double, double>;

/// The rates by their place, until both of a pair are known.
using rate_table = std::map<place, std::pair<double, double>>;

void check_complete(const served_profile& p, const std::set<std::string>& seen) {
  for (const char* what :
       {"model", "kernels", "threads", "slots", "window_slots", "chunk_tokens", "seats",
        "context_tokens", "decode_s", "prefill_s", "decode_rate", "prefill_rate"})
    if (!seen.contains(what)) throw table_error{std::string{"the profile has no row of "} + what};
  for (const auto& x : p.sharing)
    if (x.decode_rate == 0 || x.prefill_rate == 0)
      throw table_error{"the profile has one of decode_rate and prefill_rate for "
                        + std::to_string(static_cast<long>(x.rows)) + " rows, not both"};
}

} // namespace

served_profile read_served_profile(std::istream& in) {
  csv_reader csv{in};
  const auto what = csv.column("what"), value = csv.column("value");
  if (!csv.next() || csv.text(what) != "version")
    throw table_error{csv.line(), "a profile begins with its version"};
  if (csv.whole(value, 0, std::numeric_limits<uint32_t>::max()) != served_profile_version)
    throw table_error{csv.line(), "a profile of version " + csv.text(value) + ", this reads "
                                      + std::to_string(served_profile_version)
                                      + ": measure a new profile"};
  const auto rows = csv.column("rows"), context = csv.column("context"),
             prompt = csv.column("prompt");
  served_profile p;
  rate_table rates;
  std::set<std::string> seen;
  std::set<std::pair<std::string, place>> keys;
  while (csv.next()) {
    const auto& name = csv.text(what);
    const bool is_rate = name.ends_with("_rate");
    const auto number_if = [&](bool wanted, size_t column, double least, double most) {
      return wanted ? csv.number(column, least, most) : 0;
    };
    const auto at_rows = number_if(name == "decode_s" || is_rate, rows, 1, rows_max);
    const auto at_context =
        number_if(name == "decode_s" || (is_rate && !csv.empty(context)), context, 0, tokens_max);
    const auto at_prompt =
        number_if(name == "prefill_s" || (is_rate && !csv.empty(prompt)), prompt, 1, tokens_max);
    const place key{at_rows, at_context, at_prompt};
    const auto limit = std::find_if(limit_fields.begin(), limit_fields.end(),
                                    [&](const auto& f) { return name == f.name; });
    if (name == "model")
      p.model = label(csv, value);
    else if (name == "kernels")
      p.kernels = label(csv, value);
    else if (name == "threads")
      p.threads = static_cast<uint32_t>(csv.whole(value, 1, 4096));
    else if (limit != limit_fields.end())
      p.limits.*limit->field = static_cast<uint32_t>(csv.whole(value, limit->least, limit->most));
    else if (name == "decode_s")
      p.decode.push_back({at_rows, at_context, csv.number(value, seconds_least, seconds_most)});
    else if (name == "prefill_s")
      p.prefill.push_back({at_prompt, csv.number(value, seconds_least, seconds_most)});
    else if (name == "decode_rate")
      rates[key].first = csv.number(value, rate_least, rate_most);
    else if (name == "prefill_rate")
      rates[key].second = csv.number(value, rate_least, rate_most);
    else
      throw table_error{csv.line(), "'" + name.substr(0, 40) + "' is nothing that a profile has"};
    if (!keys.emplace(name, key).second) throw table_error{csv.line(), name + " is given twice"};
    seen.insert(name);
  }
  for (const auto& [at, x] : rates) {
    const auto& [at_rows, at_context, at_prompt] = at;
    p.sharing.push_back({at_rows, x.first, x.second, at_context, at_prompt});
  }
  check_complete(p, seen);
  return p;
}

void write_served_profile(std::ostream& out, const served_profile& p) {
  const auto before = out.precision(std::numeric_limits<double>::max_digits10);
  out << "what,rows,context,prompt,value\nversion,,,," << served_profile_version << "\nmodel,,,,"
      << quoted(p.model) << "\nkernels,,,," << quoted(p.kernels) << "\nthreads,,,," << p.threads
      << "\n";
  for (const auto& f : limit_fields) out << f.name << ",,,," << p.limits.*f.field << "\n";
  for (const auto& x : p.decode)
    out << "decode_s," << x.rows << "," << x.context << ",," << x.seconds << "\n";
  for (const auto& x : p.prefill) out << "prefill_s,,," << x.tokens << "," << x.seconds << "\n";
  const auto rate = [&](const char* what, const sharing_point& x, double value) {
    out << what << "," << x.rows << ",";
    if (x.context > 0) out << x.context;
    out << ",";
    if (x.prompt > 0) out << x.prompt;
    out << "," << value << "\n";
  };
  for (const auto& x : p.sharing) {
    rate("decode_rate", x, x.decode_rate);
    rate("prefill_rate", x, x.prefill_rate);
  }
  out.precision(before);
}

} // namespace lamella::scheduler

#include "config/yaml.hpp"

#include "config/reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace lamella::config {
namespace {

namespace fs = std::filesystem;

/// The file to read by the search order, or nothing.
std::optional<fs::path> find_file(const inputs& from) {
  if (from.file) return from.file;
  const auto variable = [&](const char* name) {
    const auto found = from.environment.find(name);
    return found == from.environment.end() ? std::string{} : found->second;
  };
  if (const auto named = variable("LAMELLA_CONFIG"); !named.empty()) return named;
  std::vector<fs::path> places{from.working_directory / "lamella.yaml"};
  if (const auto xdg = variable("XDG_CONFIG_HOME"); !xdg.empty())
    places.push_back(fs::path{xdg} / "lamella/lamella.yaml");
  else if (const auto home = variable("HOME"); !home.empty())
    places.push_back(fs::path{home} / ".config/lamella/lamella.yaml");
  places.push_back(from.system_directory / "lamella.yaml");
  std::error_code ignored;
  for (const auto& place : places)
    if (fs::exists(place, ignored)) return place.lexically_normal();
  return std::nullopt;
}

/// The files of conf.d beside `file`, in name order. One that is there and cannot be read is a
/// problem: what it says would be missed.
std::vector<fs::path> fragments_of(const fs::path& file, loaded& result) {
  std::vector<fs::path> found;
  std::error_code failure;
  const auto folder = file.has_parent_path() ? file.parent_path() / "conf.d" : fs::path{"conf.d"};
  if (!fs::exists(folder, failure) && !failure) return found;
  if (!failure)
    for (fs::directory_iterator i{folder, failure}, end; !failure && i != end; i.increment(failure))
      if (i->path().extension() == ".yaml") found.push_back(i->path());
  if (failure)
    result.problems.push_back({folder.string(),
                               {},
                               {},
                               "cannot be read: " + failure.message(),
                               "check that it is a folder and its permissions"});
  std::ranges::sort(found);
  return found;
}

/// The whole text, or nothing after saying why.
std::optional<std::string> read_file(const fs::path& file, loaded& result) {
  const auto fail = [&](std::string message, std::string hint) {
    result.problems.push_back({file.string(), {}, {}, std::move(message), std::move(hint)});
  };
  std::error_code failure;
  if (!fs::is_regular_file(file, failure)) {
    result.missing_file = true;
    fail(fs::exists(file, failure) ? "is not a file" : "does not exist",
         "name an existing file with --config");
    return std::nullopt;
  }
  std::ifstream in{file, std::ios::binary};
  std::string text(document_bytes_max + 1, '\0');
  if (!in || (in.read(text.data(), static_cast<std::streamsize>(text.size())), in.bad())) {
    result.missing_file = true;
    fail("cannot be read", "check its permissions");
    return std::nullopt;
  }
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

void read_environment(const inputs& from, reader& to, loaded& result) {
  std::map<std::string, std::string> flat; // LAMELLA_HTTP_LISTEN -> LAMELLA_HTTP__LISTEN
  for (const auto& x : options()) {
    const auto name = environment_name(x.key);
    auto single = name;
    for (size_t i; (i = single.find("__")) != std::string::npos;) single.erase(i, 1);
    flat[single] = name;
  }
  constexpr std::string_view prefix = "LAMELLA_";
  for (const auto& [name, text] : from.environment) {
    if (!name.starts_with(prefix)) continue;
    // Names without two underscores are not ours: container platforms make LAMELLA_PORT and the
    // like.
    if (name.find("__", prefix.size()) == std::string::npos) {
      if (const auto near = flat.find(name); near != flat.end())
        result.warnings.push_back(name + " is ignored; did you mean " + near->second + "?");
      continue;
    }
    std::string key;
    for (size_t i = prefix.size(); i < name.size(); ++i) {
      if (name.compare(i, 2, "__") == 0) {
        key += '.';
        ++i;
      } else {
        key +=
            (name[i] >= 'A' && name[i] <= 'Z') ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
      }
    }
    to.apply_text({origin::kind::environment, name, {}}, key, text);
  }
}

} // namespace

loaded load(const inputs& from) {
  loaded result;
  reader to{result, from.environment};
  if (const auto file = find_file(from)) {
    auto files = fragments_of(*file, result);
    files.insert(files.begin(), *file);
    for (const auto& each : files) {
      const auto text = read_file(each, result);
      if (!text) continue;
      result.files.push_back(each);
      to.apply_file(each, *text, each == *file);
    }
  }
  read_environment(from, to, result);
  for (const auto& assignment : from.set) {
    const origin where{origin::kind::set, "--set", {}};
    const auto equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos) {
      result.problems.push_back({"--set " + assignment,
                                 {},
                                 {},
                                 "is not of the form key=value",
                                 "for example --set http.listen=127.0.0.1:8080"});
      continue;
    }
    to.apply_text(where, assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  for (const auto& flag : from.flags)
    to.apply_text({origin::kind::flag, flag.flag, {}}, flag.key, flag.text);
  to.finish();
  return result;
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> all;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view pair{*each};
    if (const auto equals = pair.find('='); equals != std::string_view::npos)
      all.emplace(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return all;
}

} // namespace lamella::config

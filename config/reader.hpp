/// Applies the parts of a configuration, one source after the other, to settings.
#pragma once

#include "config/inputs.hpp"
#include "config/options.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace lamella::config {

/// One load(): sources are applied weakest first and later ones replace scalars and lists of
/// earlier ones.
class reader {
public:
  /// Writes into `result`, which must outlive the reader. `environment` is asked for HOME.
  reader(loaded& result, const std::map<std::string, std::string>& environment);

  /// A whole file. The main one must start with `version: 1`; fragments may.
  void apply_file(const std::filesystem::path& file, std::string_view text, bool is_main);

  /// One key from the environment, `--set` or a flag. The text of a single-valued option stands for
  /// itself unless it is quoted; anything else is YAML.
  void apply_text(const origin& where, const std::string& key, const std::string& text);

  /// Gives cells what they inherit and checks the rules between keys.
  void finish();

private:
  void complain(const position& at, const std::string& key, std::string message,
                std::string hint = {});
  void complain_about_unknown(const position& at, const std::string& prefix,
                              const std::string& name);
  void complain_about_both_names(const node& map, const std::string& prefix);
  void apply_map(const node& map, const std::string& prefix);
  void apply_entry(const node& item, const position& at, const std::string& prefix,
                   const std::string& name);
  void apply_option(const option& x, const node& item, const position& at, const std::string& key);
  void apply_list_item(const std::string& key, size_t bracket, const std::string& text);
  void store(const option& x, const std::string& key, const position& at, value v);
  void check_version(const node& root, bool is_main);
  std::string rooted(const std::string& path) const;

  loaded& result_;
  const std::map<std::string, std::string>& environment_;
  origin where_;                                              ///< the source being applied
  std::map<std::string, std::map<std::string, value>> cells_; ///< what each cell says itself
};

} // namespace lamella::config

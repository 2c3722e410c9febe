/// `lamella version`.
#include "actors/shared/build_info.hpp"
#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"

#include <boost/version.hpp>
#include <caf/config.hpp>

#include <cstdio>

namespace lamella::cli {

run_function setup_version(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Write JSON, including the versions of the libraries");
  return [json] {
    if (!*json) {
      std::printf("lamella %s\n", LAMELLA_VERSION);
      return int{exit_success};
    }
    const auto dotted = [](int major, int minor, int patch) {
      return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    };
    json_writer out;
    out.begin_object().member("version", LAMELLA_VERSION);
    out.member("commit", actors::build_commit()).member("build_date", actors::build_date());
    out.member("caf", dotted(CAF_VERSION / 10000, CAF_VERSION / 100 % 100, CAF_VERSION % 100));
    out.member("boost",
               dotted(BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100));
    out.member("compiler", __VERSION__).end_object();
    std::printf("%s\n", out.text().c_str());
    return int{exit_success};
  };
}

} // namespace lamella::cli

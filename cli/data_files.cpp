#include "cli/data_files.hpp"

#include "base/errno_text.hpp"
#include "cli/commands.hpp"
#include "config/nearest.hpp"

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/lzma.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace lamella::cli {

namespace io = boost::iostreams;

namespace {

constexpr std::streamsize decompressed_max = std::streamsize{1} << 30;

/// Ends with an error instead of filling the memory from a small file.
struct bounded : io::multichar_input_filter {
  std::streamsize seen = 0;
  template <class Source> std::streamsize read(Source& source, char* to, std::streamsize n) {
    const auto got = io::read(source, to, n);
    if (got > 0 && (seen += got) > decompressed_max)
      throw std::runtime_error{"it is longer than 1 GiB when decompressed"};
    return got;
  }
};

struct shipped_trace {
  const char *name, *file;
};
constexpr std::array traces{
    shipped_trace{"azure_conv_2023", "azure_conv_2023.csv.gz"},
    shipped_trace{"azure_code_2023", "azure_code_2023.csv.gz"},
    shipped_trace{"kimi_conv", "kimi_conv.csv.xz"},
    shipped_trace{"kimi_toolagent_reconstructed", "kimi_toolagent_reconstructed.csv.xz"},
    shipped_trace{"mooncake_synthetic", "mooncake_synthetic.csv.xz"},
    shipped_trace{"neo_osc", "neo_osc.csv.gz"},
};

std::string hint_for(const std::string& word, const std::vector<std::string>& known,
                     const std::string& what) {
  if (const auto near = config::nearest(word, known)) return "did you mean " + *near + "?";
  std::string all;
  for (const auto& x : known) all += (all.empty() ? "" : ", ") + x;
  return what + ": " + all;
}

template <class T>
const T& named(const std::vector<T>& all, const std::string& name, const std::string& flag,
               const std::string& what) {
  std::vector<std::string> known;
  for (const auto& x : all) {
    if (x.name == name) return x;
    known.push_back(x.name);
  }
  throw command_error{exit_usage, flag + ": there is no " + what + " '" + name + "'",
                      hint_for(name, known, "known")};
}

/// "uniform:2000,1000,100": lengths drawn around the means, always the same ones.
scheduler::request_trace synthetic_trace(const std::string& text) {
  constexpr uint32_t most[] = {1'000'000, 1'000'000, 1'000'000};
  constexpr size_t numbers = std::size(most);
  std::array<uint32_t, numbers> value{};
  const char *at = text.data() + text.find(':') + 1, *last = text.data() + text.size();
  for (size_t i = 0; i < numbers; ++i) {
    const auto [end, error] = std::from_chars(at, last, value[i]);
    const bool ends = i + 1 == numbers ? end == last : end != last && *end == ',';
    if (error != std::errc{} || !ends || value[i] == 0 || value[i] > most[i])
      throw command_error{exit_usage, "--trace: '" + text + "' is not a synthetic trace",
                          "write uniform:REQUESTS,PROMPT,OUTPUT, such as uniform:2000,1000,100: "
                          "mean tokens, each from 1 to 1000000"};
    at = end + 1;
  }
  return scheduler::uniform_trace(value[0], value[1], value[2], 1);
}

} // namespace

void read_data_file(const std::string& path, const std::function<void(std::istream&)>& read) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure))
    throw command_error{exit_missing_input, path + " is a folder, not a file"};
  std::ifstream file{path, std::ios::binary};
  if (!file) throw command_error{exit_missing_input, "cannot open " + path + ": " + errno_text()};
  char magic[6] = {};
  file.read(magic, sizeof magic);
  file.clear();
  file.seekg(0);
  try {
    io::filtering_istream in;
    in.push(bounded{});
    if (magic[0] == '\x1f' && magic[1] == '\x8b')
      in.push(io::gzip_decompressor{});
    else if (std::memcmp(magic,
                         "\xfd"
                         "7zXZ",
                         6)
             == 0)
      in.push(io::lzma_decompressor{});
    in.push(file);
    in.exceptions(std::ios::badbit); // a damaged archive throws instead of ending early
    read(in);
  } catch (const command_error&) {
    throw;
  } catch (const std::exception& e) {
    throw command_error{exit_damaged_input, path + ": " + e.what()};
  }
}

std::string shipped_data(const std::string& name) {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  if (const char* own = std::getenv("LAMELLA_DATA_DIR")) folders.emplace_back(own);
  std::error_code failure;
  const auto program = fs::read_symlink("/proc/self/exe", failure);
  if (!failure) folders.push_back(program.parent_path().parent_path() / "share/lamella/data");
  folders.emplace_back(LAMELLA_BUILD_DATA);
  for (const auto& folder : folders)
    if (fs::exists(folder / name, failure)) return (folder / name).string();
  throw command_error{exit_missing_input, "the data file " + name + " is not installed",
                      "set LAMELLA_DATA_DIR to the folder deploy/reproduction/data of the sources"};
}

scheduler::request_trace load_trace(const std::string& name_or_path) {
  std::string path = name_or_path;
  std::vector<std::string> known;
  for (const auto& t : traces) {
    known.emplace_back(t.name);
    if (name_or_path == t.name) path = shipped_data(t.file);
  }
  std::error_code failure;
  if (path.starts_with("uniform:") && !std::filesystem::exists(path, failure))
    return synthetic_trace(path);
  if (path == name_or_path && !std::filesystem::exists(path, failure))
    throw command_error{exit_missing_input,
                        "--trace: there is no file '" + path + "', and no trace of that name",
                        hint_for(path, known, "traces that come with the program")};
  scheduler::request_trace trace;
  read_data_file(path, [&](std::istream& in) { trace = scheduler::read_trace(in); });
  return trace;
}

std::vector<scheduler::profile_row> load_profile() {
  std::vector<scheduler::profile_row> rows;
  read_data_file(shipped_data("splitwise_perf_model.csv.gz"),
                 [&](std::istream& in) { rows = scheduler::read_profile_rows(in); });
  return rows;
}

std::vector<scheduler::device> load_devices(const std::string& path) {
  if (path.empty()) return scheduler::built_in_devices();
  std::vector<scheduler::device> all;
  read_data_file(path, [&](std::istream& in) { all = scheduler::read_devices(in); });
  return all;
}

std::vector<scheduler::model_shape> load_models(const std::string& path) {
  if (path.empty()) return scheduler::built_in_models();
  std::vector<scheduler::model_shape> all;
  read_data_file(path, [&](std::istream& in) { all = scheduler::read_models(in); });
  return all;
}

const scheduler::device& device_named(const std::vector<scheduler::device>& all,
                                      const std::string& name, const char* flag) {
  return named(all, name, flag, "device");
}

const scheduler::model_shape& model_named(const std::vector<scheduler::model_shape>& all,
                                          const std::string& name) {
  return named(all, name, "--model", "model");
}

} // namespace lamella::cli

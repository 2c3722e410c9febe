/// `lamella model slices` and `lamella model inspect`: what a model file becomes, without running
/// it.
#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "model/chat/chat_template.hpp"
#include "model/files/open_checkpoint.hpp"
#include "model/program/load.hpp"

#include <cstdio>

namespace lamella::cli {

namespace {

/// The file of these commands: --model, else the default model.
struct model_choice {
  std::string path;
  bool json = false, dot = false;
};

std::filesystem::path path_of(const model_choice& x) {
  auto path = x.path.empty() ? model::default_model_path() : std::filesystem::path{x.path};
  if (!std::filesystem::exists(path))
    throw command_error{exit_missing_input, "model file not found: " + path.string(),
                        x.path.empty() ? "run 'lamella model fetch', or give --model PATH"
                                       : "check the path given with --model"};
  return path;
}

/// Opens what is asked for; a damaged file is exit code 65.
template <class F> int with_file(const model_choice& x, F&& f) {
  const auto path = path_of(x);
  try {
    return f(path);
  } catch (const file_error& e) {
    throw command_error{exit_damaged_input, e.what()};
  }
}

std::shared_ptr<model_choice> add_model_flags(CLI::App& app) {
  auto choice = std::make_shared<model_choice>();
  app.add_option("--model", choice->path,
                 "GGUF file or Hugging Face directory (default: the default model)")
      ->type_name("PATH");
  app.add_flag("--json", choice->json, "Write JSON");
  return choice;
}

int slices(const model_choice& x) {
  return with_file(x, [&](const auto& path) {
    const auto loaded = model::load_model(path);
    const auto text = x.json  ? to_json(*loaded.program) + "\n"
                      : x.dot ? model::to_dot(*loaded.program)
                              : model::to_text(*loaded.program);
    std::fputs(text.c_str(), stdout);
    return exit_success;
  });
}

/// Why the model's chat template cannot be used; empty where it can, and where there is none.
std::string template_fault(const model::checkpoint& file) {
  try {
    if (!file.chat_template().empty()) model::chat_template::compile(file.chat_template());
    return {};
  } catch (const model::chat_template_error& e) {
    return e.told();
  }
}

std::string inspection_json(const model::checkpoint& file) {
  json_writer out;
  out.begin_object().member("version", 1).member("path", file.path().string());
  out.member("format", file.format()).member("name", file.name());
  out.member("architecture", file.architecture()).member("bytes", file.file_bytes());
  if (const auto fault = template_fault(file); !fault.empty())
    out.member("chat_template_fault", fault);
  out.key("keys").begin_object();
  for (const auto& [key, value] : file.describe()) out.member(key, value);
  out.end_object().key("tensors").begin_array();
  for (const auto& t : file.tensors())
    out.begin_object()
        .member("name", t.name)
        .member("type", model::to_string(t.type))
        .member("rows", t.rows)
        .member("inner", t.inner)
        .end_object();
  out.end_array().end_object();
  return out.take();
}

void print_inspection(const model::checkpoint& file) {
  std::printf("%s\n%s, architecture %s, %.1f MB, %zu tensors\n", file.path().c_str(),
              file.format().c_str(), file.architecture().c_str(),
              static_cast<double>(file.file_bytes()) / 1e6, file.tensors().size());
  for (const auto& [key, value] : file.describe())
    std::printf("  %-44s %s\n", key.c_str(), value.c_str());
  if (const auto fault = template_fault(file); !fault.empty())
    std::printf("  the chat template cannot be used: %s\n", fault.c_str());
  for (const auto& t : file.tensors())
    std::printf("  %-44s %-6s [%llu, %llu]\n", t.name.c_str(),
                std::string{model::to_string(t.type)}.c_str(),
                static_cast<unsigned long long>(t.rows), static_cast<unsigned long long>(t.inner));
}

int inspect(const model_choice& x) {
  return with_file(x, [&](const auto& path) {
    const auto file = model::open_checkpoint(path);
    if (x.json)
      std::printf("%s\n", inspection_json(*file).c_str());
    else
      print_inspection(*file);
    return exit_success;
  });
}

} // namespace

run_function setup_model_slices(CLI::App& app) {
  auto choice = add_model_flags(app);
  app.add_flag("--dot", choice->dot, "Write Graphviz")->excludes("--json");
  return [choice] { return slices(*choice); };
}

run_function setup_model_inspect(CLI::App& app) {
  auto choice = add_model_flags(app);
  return [choice] { return inspect(*choice); };
}

} // namespace lamella::cli

#include "model/program/load.hpp"

#include "model/tokenizer/make_tokenizer.hpp"

#include <cstdlib>

namespace lamella::model {

loaded_model load_model(const std::filesystem::path& path) {
  auto result = load_program(path);
  result.text = make_tokenizer(result.file->tokenizer());
  return result;
}

std::filesystem::path default_model_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const auto base = cache != nullptr && *cache != 0
                        ? std::filesystem::path{cache}
                        : std::filesystem::path{home != nullptr ? home : "/root"} / ".cache";
  return base / "lamella" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

} // namespace lamella::model

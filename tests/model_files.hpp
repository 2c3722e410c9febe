/// Model files that tests use where they are there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace lamella::tests {

/// ${XDG_CACHE_HOME:-~/.cache}/lamella
inline std::filesystem::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::filesystem::path(cache) / "lamella";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/") / ".cache/lamella";
}

/// The default model: LAMELLA_TEST_MODEL, else where deploy/quickstart keeps it; nothing if the
/// file is not there.
inline std::optional<std::filesystem::path> default_model() {
  const char* named = std::getenv("LAMELLA_TEST_MODEL");
  const std::filesystem::path path =
      named && *named ? std::filesystem::path(named)
                      : cache_folder() / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) return {};
  return path;
}

/// A vocabulary file fetched by tests/golden/fetch_vocabularies, e.g. "ggml-vocab-gpt-2.gguf".
inline std::optional<std::filesystem::path> vocabulary_file(const std::string& name) {
  const std::filesystem::path path = cache_folder() / "vocab" / name;
  if (!std::filesystem::exists(path)) return {};
  return path;
}

} // namespace lamella::tests

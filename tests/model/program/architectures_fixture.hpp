/// A tiny model of any architecture, written and loaded.
#pragma once

#include "model/program/load.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <filesystem>

namespace lamella::model::test {

struct fixture {
  tests::scratch_folder folder;
  std::filesystem::path path = folder / "tiny.gguf";

  loaded_model load(const tests::tiny_model_options& options = {}) {
    tests::write_tiny_model(path, options);
    return load_model(path);
  }
};

} // namespace lamella::model::test

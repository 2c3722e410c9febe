/// write_families FOLDER: writes the models of families.hpp as FOLDER/NAME.gguf, for the oracle.
#include "tests/golden/families.hpp"

#include <cstdio>

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: write_families FOLDER\n", stderr);
    return 2;
  }
  for (const auto& family : lamella::tests::families())
    lamella::tests::write_tiny_model(std::filesystem::path{words[1]} / (family.name + ".gguf"),
                                     family.options);
  return 0;
}

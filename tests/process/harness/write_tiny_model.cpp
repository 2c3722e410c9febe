/// Writes the complete tiny model of tests/tiny_model.hpp to a file, for tests of the real program.
///
/// usage: write_tiny_model FILE [CONTEXT]
#include "tests/tiny_model.hpp"

#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  if (count < 2 || count > 3) {
    std::fputs("usage: write_tiny_model FILE [CONTEXT]\n", stderr);
    return 2;
  }
  lamella::tests::tiny_model_options options;
  options.context = count == 3 ? static_cast<uint32_t>(std::strtoul(words[2], nullptr, 10)) : 2048;
  lamella::tests::make_tiny_model(options).write(words[1]);
  return 0;
}

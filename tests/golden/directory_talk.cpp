/// For directories_oracle.py: what the program makes of directories of Hugging Face.
///
/// directory_talk logits FOLDER: token ids on stdin, all logits of all positions on stdout, as
/// fp32, of the reference operators with nothing rounded on the wire or in the cache.
/// directory_talk tokens FOLDER: texts on stdin, each with a NUL behind it; a line of ids of each.
#define DOCTEST_CONFIG_IMPLEMENT
#include "model/tokenizer/make_tokenizer.hpp"
#include "tests/pipeline_runs.hpp"

#include "model/files/hugging_face/tokenizer_file.hpp"

#include <cstdio>
#include <iostream>
#include <iterator>
#include <string_view>

using namespace lamella;
using namespace lamella::test;

namespace {

void write_logits(const std::filesystem::path& folder) {
  const std::vector<uint32_t> tokens{std::istream_iterator<uint32_t>{std::cin}, {}};
  const auto model = model::load_program(folder);
  pipeline p{model, {.wire = gpu::half_type::f32, .kv = gpu::half_type::f32}};
  for (const auto& row : run_chunked(p, tokens, 100, whole(static_cast<uint32_t>(tokens.size()))))
    std::fwrite(row.data(), sizeof(float), row.size(), stdout);
}

/// The folder needs no weights.
void write_tokens(const std::filesystem::path& folder) {
  using namespace model::hugging_face;
  auto source = read_tokenizer(open_tokenizer_file(folder / "tokenizer.json"));
  read_tokenizer_settings(json_file{folder / "tokenizer_config.json"}, source);
  const auto text = model::make_tokenizer(source);
  for (std::string line; std::getline(std::cin, line, '\0');) {
    for (const auto id : text->encode(line, model::special::allowed)) std::printf("%u ", id);
    std::printf("\n");
  }
}

} // namespace

int main(int count, char** words) {
  const std::string_view what = count == 3 ? words[1] : "";
  if (what != "logits" && what != "tokens") {
    std::fputs("usage: directory_talk logits|tokens FOLDER\n", stderr);
    return 2;
  }
  doctest::Context checks; // of what tests and this program share
  checks.setAsDefaultForAssertsOutOfTestCases();
  checks.setAssertHandler([](const doctest::AssertData& failed) {
    if (failed.m_failed) throw std::runtime_error{failed.m_expr};
  });
  try {
    what == "logits" ? write_logits(words[2]) : write_tokens(words[2]);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 1;
  }
  return 0;
}

/// Damaging model files in many ways and opening them.
#pragma once

#include "model/files/checkpoint.hpp"
#include "model/files/open_checkpoint.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "tests/random.hpp"

#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace lamella::tests {

/// How damaged files were met. Anything but these two outcomes ends the test.
struct damage_report {
  size_t accepted = 0;
  size_t refused = 0;
};

/// Opens the file, and with `use` also makes its tokeniser, encodes, and touches every tensor.
inline void open_damaged(const std::filesystem::path& path, bool use, damage_report& report) {
  try {
    const auto opened = model::open_checkpoint(path);
    if (use) {
      uint64_t sum = 0;
      for (const auto& tensor : opened->tensors())
        for (size_t at = 0; at < tensor.data.size(); at += 4096)
          sum += std::to_integer<uint64_t>(tensor.data[at]);
      const auto tokens = model::make_tokenizer(opened->tokenizer());
      const auto ids = tokens->encode("Hello there, <|im_end|> 42", model::special::allowed);
      if (tokens->decode(ids).size() > 1u << 20 || sum == ~uint64_t{0})
        throw std::logic_error("unreasonable");
    }
    ++report.accepted;
  } catch (const file_error& error) {
    if (std::string(error.what()).empty() || error.field().empty())
      throw std::logic_error("an error without a field");
    ++report.refused;
  }
}

/// Opens `copy`, a file of `file_bytes`, cut after each of 99 % … 1 % of its bytes.
inline damage_report open_cut(const std::filesystem::path& copy, uint64_t file_bytes) {
  damage_report report;
  for (uint64_t percent = 99; percent >= 1; --percent) {
    if (truncate(copy.c_str(), static_cast<off_t>(file_bytes * percent / 100)) != 0)
      throw std::runtime_error("cannot cut " + copy.string());
    open_damaged(copy, true, report);
  }
  return report;
}

/// Flips 1 to 8 bits of one random byte before `header_bytes`, opens the file, and puts the byte
/// back, `flips` times. Every `use_every`th file that opens is also used.
inline damage_report open_flipped(const std::filesystem::path& copy, uint64_t header_bytes,
                                  size_t flips, uint64_t seed, size_t use_every) {
  damage_report report;
  splitmix random(seed);
  const int descriptor = open(copy.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error("cannot open " + copy.string());
  for (size_t i = 0; i < flips; ++i) {
    const auto at = static_cast<off_t>(random.below(header_bytes));
    uint8_t byte = 0;
    if (pread(descriptor, &byte, 1, at) != 1) throw std::runtime_error("cannot read");
    const auto flipped = static_cast<uint8_t>(byte ^ (1 + random.below(255)));
    if (pwrite(descriptor, &flipped, 1, at) != 1) throw std::runtime_error("cannot write");
    open_damaged(copy, i % use_every == 0, report);
    if (pwrite(descriptor, &byte, 1, at) != 1) throw std::runtime_error("cannot write");
  }
  close(descriptor);
  return report;
}

} // namespace lamella::tests

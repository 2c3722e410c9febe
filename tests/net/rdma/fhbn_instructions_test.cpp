// What the compiler makes of the kernels that send and wait: the stores of a post in their order,
// loads in the loop of a wait and one fence behind it. Read in PTX, and in machine code where there
// is a disassembler; needs nvcc and no GPU.
#include "tests/folders.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

/// The path of a tool of the CUDA toolkit, or nothing: in $CUDA_HOME/bin, in PATH, or where the
/// toolkit installs itself.
std::string tool(const std::string& name) {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path{home} / "bin");
  if (const char* path = std::getenv("PATH")) {
    std::istringstream in{path};
    for (std::string folder; std::getline(in, folder, ':');) folders.emplace_back(folder);
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const auto& folder : folders)
    if (std::error_code ignored; fs::is_regular_file(folder / name, ignored))
      return (folder / name).string();
  return {};
}

std::string run(const std::string& command, const fs::path& output) {
  const auto whole = "timeout 240 " + command + " > '" + output.string() + "' 2>&1";
  const int status = std::system(whole.c_str());
  std::ifstream in{output};
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE_MESSAGE(status == 0, whole << "\n" << text.str());
  return text.str();
}

/// Names are looked for as they are mangled: length, name, E.
/// The part of `text` from the first line that begins with `from` and holds `name`, to the next
/// such beginning.
std::string part_of(const std::string& text, std::string from, std::string_view name) {
  from.insert(0, "\n");
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
    const auto line = text.substr(at, text.find('\n', at + 1) - at);
    if (line.find(name) == std::string::npos) continue;
    return text.substr(at, text.find(from, at + from.size()) - at);
  }
  FAIL("no " << from << " of " << name);
  return {};
}

size_t count(std::string_view text, std::string_view word) {
  size_t n = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// The words stand in `text` in this order.
void check_order(const std::string& text, std::initializer_list<std::string_view> words) {
  size_t at = 0;
  for (const auto word : words) {
    INFO(word);
    at = text.find(word, at);
    REQUIRE(at != std::string::npos);
    at += word.size();
  }
}

struct compiled {
  std::string ptx, machine_code; ///< the second is empty without a disassembler
};

compiled compile(const std::string& source) {
  const auto nvcc = tool("nvcc");
  if (nvcc.empty()) {
    MESSAGE("skipped: there is no nvcc (CUDA toolkit)");
    return {};
  }
  const lamella::tests::scratch_folder folder;
  const auto at = [&](const char* name) { return folder / name; };
  const auto command = nvcc + " -std=c++20 -O2 -arch=sm_90 -I '" + lamella::tests::source_folder
                       + "' '" + lamella::tests::source_folder + "/" + source + "' -o '";
  compiled c;
  run(command + at("x.ptx").string() + "' -ptx", at("log"));
  c.ptx = run("cat '" + at("x.ptx").string() + "'", at("log"));
  if (const auto disassembler = tool("nvdisasm"); !disassembler.empty()) {
    run(command + at("x.cubin").string() + "' -cubin", at("log"));
    c.machine_code = run(disassembler + " '" + at("x.cubin").string() + "'", at("log"));
  } else {
    MESSAGE("machine code is not looked at: there is no nvdisasm");
  }
  return c;
}

void check_no_local_memory(const compiled& c) {
  CHECK(count(c.ptx, ".local") == 0);
  CHECK(count(c.machine_code, "LDL") + count(c.machine_code, "STL") == 0);
}

} // namespace

TEST_CASE(
    "fhbn: L-M08 V-M09 a wait polls with plain system loads and fences once, behind the loop") {
  const auto c = compile("gpu/cuda/stream/channel.cu");
  if (c.ptx.empty()) return;
  const auto wait = part_of(c.ptx, ".entry", "channel_wait");
  // The word before the loop and in it; there also, now and then, whether the ring has ended. Where
  // it has, the word once more, and a fence of its own.
  CHECK(count(wait, "ld.relaxed.sys.global.u64") == 4);
  CHECK(count(wait, "ld.acquire") == 0);
  CHECK(count(wait, "fence.") == 2);
  check_order(wait, {"ld.relaxed.sys.global.u64", "globaltimer", "ld.relaxed.sys.global.u64",
                     "fence.acquire.sys", "atom.global.sys.cas"});
  check_no_local_memory(c);
  if (c.machine_code.empty()) return;
  const auto code = part_of(c.machine_code, ".text.", "channel_wait");
  CHECK(count(code, "CCTL.IVALL") == 2);
  CHECK(count(code, "MEMBAR") == 0);
  check_order(code, {"LDG.E.64.STRONG.SYS", "LDG.E.64.STRONG.SYS", "CCTL.IVALL"});
}

TEST_CASE("fhbn: a post is one release at system scope") {
  const auto c = compile("gpu/cuda/stream/channel.cu");
  if (c.ptx.empty()) return;
  const auto post = part_of(c.ptx, ".entry", "channel_post");
  CHECK(count(post, "st.release.sys.global.u64") == 1);
  CHECK(count(post, "fence.") == 0);
  if (c.machine_code.empty()) return;
  check_order(part_of(c.machine_code, ".text.", "channel_post"),
              {"MEMBAR.ALL.SYS", "STG.E.64.STRONG.SYS"});
}

TEST_CASE(
    "fhbn: L-M10 a send writes entries, fences, record, fences, and rings with one MMIO store") {
  const auto c = compile("net/rdma/fhbn_device.cu");
  if (c.ptx.empty()) return;
  const auto send = part_of(c.ptx, ".entry", "9fhbn_sendE");
  CHECK(count(send, "st.v4.") == 8); // two blocks of four segments
  CHECK(count(send, "fence.release.sys") == 2);
  CHECK(count(send, "st.mmio.relaxed.sys.global.u64") == 2); // doorbell; count for a proxy
  check_order(send, {"st.v4.", "st.v4.", "st.v4.", "st.v4.", "st.v4.", "st.v4.", "st.v4.", "st.v4.",
                     "fence.release.sys", "st.relaxed.sys.global.u32", "fence.release.sys",
                     "st.mmio.relaxed.sys.global.u64"});
  check_no_local_memory(c);
  if (c.machine_code.empty()) return;
  const auto code = part_of(c.machine_code, ".text.", "9fhbn_sendE");
  CHECK(count(code, "ST.E.128") == 8);
  check_order(code, {"ST.E.128", "MEMBAR.ALL.SYS", "STG.E.STRONG.SYS", "MEMBAR.ALL.SYS",
                     "STG.E.64.MMIO.SYS"});
}

TEST_CASE(
    "fhbn: L-M10 a ring's post writes header and entries, fences, record, fences, and rings") {
  const auto c = compile("net/rdma/ring_posts.cu");
  if (c.ptx.empty()) return;
  const auto post = part_of(c.ptx, ".entry", "post_to_adapter");
  CHECK(count(post, "fence.release.sys") == 2);
  CHECK(count(post, "st.mmio.relaxed.sys.global.u64") == 2); // how far the queue is; doorbell
  CHECK(count(post, "st.v4.") >= 12);                        // three blocks of four segments
  check_order(post, {"st.v4.", "st.v4.", "st.v4.", "st.v4.", "fence.release.sys",
                     "st.mmio.relaxed.sys.global.u64", "st.relaxed.sys.global.u32",
                     "fence.release.sys", "st.mmio.relaxed.sys.global.u64"});
  check_no_local_memory(c);
  if (c.machine_code.empty()) return;
  check_order(part_of(c.machine_code, ".text.", "post_to_adapter"),
              {"MEMBAR.ALL.SYS", "STG.E.STRONG.SYS", "MEMBAR.ALL.SYS", "STG.E.64.MMIO.SYS"});
}

TEST_CASE("fhbn: L-M11 a push leaves the GPU as one store of 64 bytes, behind ring and record") {
  const auto c = compile("net/rdma/fhbn_device.cu");
  if (c.ptx.empty()) return;
  const auto push = part_of(c.ptx, ".entry", "9fhbn_pushE");
  CHECK(count(push, "cp.async.bulk.global.shared::cta") == 1);
  check_order(push, {"st.v4.", "fence.release.sys", "st.relaxed.sys.global.u32",
                     "fence.release.sys", "st.shared.v4", "fence.proxy.async;",
                     "cp.async.bulk.global.shared::cta.bulk_group", "cp.async.bulk.wait_group 0"});
  if (c.machine_code.empty()) return;
  check_order(part_of(c.machine_code, ".text.", "9fhbn_pushE"),
              {"ST.E.128", "MEMBAR.ALL.SYS", "STG.E.STRONG.SYS", "MEMBAR.ALL.SYS", "STS.128",
               "FENCE.VIEW.ASYNC", "UBLKCP"});
}

// A process that is killed between two instructions of a ring.
#include "gpu/host/host_engine.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/ring/doorbell.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include <sys/mman.h>

using namespace lamella;
using namespace lamella::gpu;

namespace {

/// The words of a doorbell as another process has them: rings, and how the waiter sleeps.
struct foreign_words {
  explicit foreign_words(const doorbell& bell) {
    auto* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, bell.descriptors()[0], 0);
    if (p == MAP_FAILED) throw std::runtime_error{"mmap"};
    words = static_cast<std::atomic<uint32_t>*>(p);
  }
  ~foreign_words() { munmap(words, 4096); }
  std::atomic<uint32_t>& armed() { return words[1]; }
  std::atomic<uint32_t>* words;
};

class nothing final : public work {
public:
  progress advance(kernel_context) override { return progress::done; }
};

} // namespace

TEST_CASE("an engine that sleeps without jobs wakes up though its flag was taken and nobody rang") {
  host_engine engine{1, reference_operators()};
  const auto where = engine.make_device("device");
  const auto stream = where->make_stream("one");
  const outside_channel peer{engine.bell()};
  foreign_words words{*engine.bell()};
  while (words.armed().exchange(0) == 0) std::this_thread::yield();
  std::promise<work_status> end;
  stream->launch(std::make_shared<nothing>(), clock::time_point::max(),
                 [&](work_status status) { end.set_value(status); });
  CHECK(end.get_future().get() == work_status::done);
}

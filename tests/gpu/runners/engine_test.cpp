// The host engine: streams that take turns on one driver thread. Tests wait for marks, never for
// time.
#include "gpu/host/host_engine.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/urgent_work.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace lamella;
using namespace lamella::gpu;
using progress = work::progress;

namespace {

/// Work that calls a function for each step.
class steps final : public work {
public:
  explicit steps(std::function<progress()> step) : step_{std::move(step)} {}
  progress advance(kernel_context) override { return step_(); }

private:
  std::function<progress()> step_;
};

/// The same, each step urgent until the last.
class urgent_steps final : public work, public urgent_work {
public:
  explicit urgent_steps(std::function<progress()> step) : step_{std::move(step)} {}
  progress advance(kernel_context) override { return step_(); }
  bool is_urgent() const override { return true; }

private:
  std::function<progress()> step_;
};

std::shared_ptr<work> make(std::function<progress()> step) {
  return std::make_shared<steps>(std::move(step));
}

/// Never: tests that hang are ended by CTest, not by a deadline.
constexpr auto never = clock::time_point::max();

std::future<work_status> start(stream& on, std::shared_ptr<work> x,
                               clock::time_point deadline = never) {
  auto end = std::make_shared<std::promise<work_status>>();
  auto result = end->get_future();
  on.launch(std::move(x), deadline, [end](work_status status) { end->set_value(status); });
  return result;
}

struct engine_fixture {
  host_engine engine{2, reference_operators()};
  std::unique_ptr<device> where = engine.make_device("device");
};

} // namespace

TEST_CASE_FIXTURE(engine_fixture, "work on one stream runs in the order of its launches") {
  auto one = where->make_stream("one");
  std::vector<int> order; // only the driver writes
  std::vector<std::future<work_status>> ends;
  for (int i = 0; i < 54; ++i)
    ends.push_back(start(*one, make([&, i, left = 7]() mutable {
      order.push_back(i);
      return --left == 0 ? progress::done : progress::advanced;
    })));
  for (auto& end : ends) CHECK(end.get() == work_status::done);
  REQUIRE(order.size() == 54 * 7);
  for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == static_cast<int>(i / 7));
}

TEST_CASE_FIXTURE(engine_fixture, "streams that wait for each other pass the turn") {
  auto one = where->make_stream("one"), two = where->make_stream("two");
  int turn = 0; // only the driver touches it
  const auto play = [&turn](int mine) {
    return make([&turn, mine, left = 170]() mutable {
      if (turn != mine) return progress::blocked;
      turn = 1 - mine;
      return --left == 0 ? progress::done : progress::advanced;
    });
  };
  auto second = start(*two, play(1));
  auto first = start(*one, play(0));
  CHECK(first.get() == work_status::done);
  CHECK(second.get() == work_status::done);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "L-M18 urgent steps go before those of streams that have used less time") {
  auto gate = where->make_stream("gate"), one = where->make_stream("one"),
       two = where->make_stream("two");
  std::promise<void> launched;
  auto held = start(*gate, make([&] {
    launched.get_future().wait();
    return progress::done;
  }));
  std::string order; // only the driver writes
  const auto say = [&order](char name, int blocks_at) {
    return [&order, name, blocks_at, step = 0]() mutable {
      if (++step == blocks_at) return progress::blocked; // once
      order += name;
      const auto began = clock::now();
      while (clock::now() == began) {
      } // it has used some time
      return step >= 7 ? progress::done : progress::advanced;
    };
  };
  auto first = start(*one, std::make_shared<urgent_steps>(say('u', 4)));
  auto second = start(*two, make(say('o', 0)));
  launched.set_value();
  CHECK(held.get() == work_status::done);
  CHECK(first.get() == work_status::done);
  CHECK(second.get() == work_status::done);
  // Whoever is first: from its first step on the urgent one goes on until it is blocked, and after
  // one step of the other again.
  const auto begin = order.find('u');
  REQUIRE(begin <= 1);
  CHECK(order.substr(begin, 7) == "uuuouuu");
}

TEST_CASE_FIXTURE(engine_fixture, "N-M19 launches return while a kernel computes") {
  auto one = where->make_stream("one"), two = where->make_stream("two");
  std::promise<void> begun, launched;
  auto kernel = start(*one, make([&] {
    begun.set_value();
    launched.get_future().wait();
    return progress::done;
  }));
  begun.get_future().wait();
  // If a launch waited for the kernel, this one would never return.
  auto next = start(*two, make([] { return progress::done; }));
  launched.set_value();
  CHECK(kernel.get() == work_status::done);
  CHECK(next.get() == work_status::done);
}

TEST_CASE_FIXTURE(engine_fixture, "blocked work does nothing to its deadline, then ends with it") {
  auto one = where->make_stream("one");
  int after = 0;
  auto late = start(*one, make([] { return progress::blocked; }),
                    clock::now() + std::chrono::milliseconds{1});
  auto next = start(*one, make([&] {
    ++after;
    return progress::done;
  }));
  CHECK(late.get() == work_status::deadline);
  CHECK(next.get() == work_status::done); // the stream goes on
  CHECK(after == 1);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "a deadline passes on time although another stream is never idle") {
  auto busy = where->make_stream("busy"), waiting = where->make_stream("waiting");
  std::atomic<bool> expired{false};
  bool begun = false;
  int steps_left = 2'000'000; // some seconds: long enough to tell, short enough to fail
  auto hog = start(*busy, make([&] {
    if (!std::exchange(begun, true))
      waiting->launch(make([] { return progress::blocked; }), clock::now(),
                      [&](work_status status) { expired = status == work_status::deadline; });
    return expired || --steps_left == 0 ? progress::done : progress::advanced;
  }));
  CHECK(hog.get() == work_status::done);
  CHECK(steps_left > 0);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "a stream that was idle has no credit to starve a busy one with") {
  // The busy stream works for a while alone. Then, in one moment in which it has nothing to do, an
  // idle stream gets much work and the busy one a little. The little must not wait for the much.
  auto busy = where->make_stream("busy"), idle = where->make_stream("idle");
  auto conductor = where->make_stream("conductor");
  const auto many = [](int count, std::function<bool()> stop) {
    return make([count, stop]() mutable {
      volatile int spin = 0;
      for (int i = 0; i < 200; ++i) spin = spin + 1;
      return --count == 0 || stop() ? progress::done : progress::advanced;
    });
  };
  CHECK(start(*busy, many(200'000, [] { return false; })).get() == work_status::done);
  std::atomic<bool> served{false}, was_served{false};
  std::promise<void> all;
  auto end = start(*conductor, make([&] {
    idle->launch(many(100'000, [&] { return served.load(); }), never, [&](work_status) {
      was_served = served.load();
      all.set_value();
    });
    busy->launch(make([&] {
                   served = true;
                   return progress::done;
                 }),
                 never, [](work_status) {});
    return progress::done;
  }));
  CHECK(end.get() == work_status::done);
  all.get_future().get();
  CHECK(was_served);
  CHECK(start(*busy, make([] { return progress::done; })).get() == work_status::done);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "abort ends everything launched so far, blocked or waiting, and nothing later") {
  auto one = where->make_stream("one");
  std::vector<std::future<work_status>> ends;
  for (int i = 0; i < 7; ++i) ends.push_back(start(*one, make([] { return progress::blocked; })));
  one->abort();
  auto later = start(*one, make([] { return progress::done; }));
  for (auto& end : ends) CHECK(end.get() == work_status::aborted);
  CHECK(later.get() == work_status::done);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "work that throws ends as failed, and takes nothing else with it") {
  auto one = where->make_stream("one"), two = where->make_stream("two");
  auto bad = start(*one, make([]() -> progress { throw std::runtime_error{"broken"}; }));
  auto next = start(*one, make([] { return progress::done; }));
  auto other = start(*two, make([] { return progress::done; }));
  CHECK(bad.get() == work_status::failed);
  CHECK(next.get() == work_status::done);
  CHECK(other.get() == work_status::done);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "destroying a stream ends its work with aborted, whatever it does") {
  for (int round = 0; round < 54; ++round) {
    auto one = where->make_stream("one"), two = where->make_stream("two");
    std::vector<std::future<work_status>> ends;
    std::atomic<bool> running{false};
    ends.push_back(start(*one, make([&] {
      running = true;
      return round % 2 == 0 ? progress::blocked : progress::advanced;
    })));
    ends.push_back(start(*one, make([] { return progress::done; })));
    auto other = start(*two, make([left = 17]() mutable {
      return --left == 0 ? progress::done : progress::advanced;
    }));
    if (round % 3 == 0)
      while (!running) std::this_thread::yield();
    one.reset();
    for (auto& end : ends) CHECK(end.get() == work_status::aborted);
    CHECK(other.get() == work_status::done);
  }
}

TEST_CASE_FIXTURE(engine_fixture,
                  "a stream may be destroyed by its own mark: the rest still ends") {
  auto one = where->make_stream("one");
  std::promise<work_status> second;
  std::atomic<bool> go{false};
  one->launch(make([&] { return go ? progress::done : progress::advanced; }), never,
              [&](work_status) { one.reset(); });
  one->launch(make([] { return progress::done; }), never,
              [&](work_status status) { second.set_value(status); });
  go = true;
  CHECK(second.get_future().get() == work_status::aborted);
  auto two = where->make_stream("two");
  CHECK(start(*two, make([] { return progress::done; })).get() == work_status::done);
}

TEST_CASE_FIXTURE(engine_fixture, "work that owns a stream may be the last to go") {
  // Its destructor takes the engine's lock, so the engine must not hold it then.
  auto one = where->make_stream("one");
  auto owned = std::shared_ptr<stream>{where->make_stream("owned")};
  auto end = start(*one, make([owned] { return progress::done; }));
  owned.reset();
  CHECK(end.get() == work_status::done);
  CHECK(start(*one, make([] { return progress::done; })).get() == work_status::done);
}

TEST_CASE("an engine that goes ends what its streams still had") {
  std::future<work_status> end;
  {
    host_engine engine{1, reference_operators()};
    auto where = engine.make_device("device");
    auto one = where->make_stream("one");
    end = start(*one, make([] { return progress::blocked; }));
  }
  CHECK(end.get() == work_status::aborted);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "no launch is lost when many threads launch, also onto an idle engine") {
  constexpr int threads = 4, each = 700;
  std::atomic<int> ran{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t)
    callers.emplace_back([&, t] {
      auto mine = where->make_stream(std::to_string(t));
      for (int i = 0; i < each; ++i) {
        auto end = start(*mine, make([&] {
          ++ran;
          return progress::done;
        }));
        if (i % 7 != 0) end.get(); // mostly one at a time: the engine falls asleep in between
      }
      start(*mine, make([] { return progress::done; })).get();
    });
  for (auto& c : callers) c.join();
  CHECK(ran == threads * each);
  CHECK(engine.steps() >= threads * each);
}

TEST_CASE_FIXTURE(engine_fixture,
                  "memory of a device is zeroed, aligned, and zero again after a trim") {
  auto m = where->allocate(54'000);
  CHECK(m->size() == 54'000);
  CHECK(reinterpret_cast<uintptr_t>(m->data()) % 64 == 0);
  const auto sum = [&] {
    unsigned total = 0;
    for (size_t i = 0; i < m->size(); ++i) total += std::to_integer<unsigned>(m->data()[i]);
    return total;
  };
  CHECK(sum() == 0);
  for (size_t i = 0; i < m->size(); ++i) m->data()[i] = std::byte{7};
  CHECK(sum() == 7 * 54'000);
  m->trim();
  CHECK(sum() == 0);
  CHECK(where->allocate(0)->size() == 0);
}

TEST_CASE("an arena gives aligned memory that lives as long as its scope") {
  arena a;
  auto* first = a.allocate<float>(7);
  CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
  const float* inside = nullptr;
  {
    arena::scope scope{a};
    inside = a.allocate<float>(17);
    CHECK(inside != first);
    a.allocate<std::byte>(54 << 20); // needs a block of its own
  }
  CHECK(a.allocate<float>(17) == inside);
  const auto held = a.capacity();
  for (int round = 0; round < 7; ++round) {
    a.reset();
    CHECK(a.allocate<float>(7) == first);
    arena::scope scope{a};
    a.allocate<std::byte>(54 << 20);
  }
  CHECK(a.capacity() == held); // grown once, reused after
}

TEST_CASE("an arena takes what it must have where there is no room for more") {
  constexpr size_t all = size_t{54} << 20;
  std::vector<std::byte> memory(all + 64);
  auto* const base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  size_t taken = 0;
  arena a{[&](size_t bytes) {
    if (bytes > all - taken) throw std::bad_alloc{};
    return std::shared_ptr<std::byte>{base + std::exchange(taken, taken + bytes),
                                      [](std::byte*) {}};
  }};
  a.allocate<std::byte>(size_t{40} << 20);
  CHECK(a.allocate<std::byte>(size_t{7} << 20) == base + (size_t{40} << 20)); // not twice 40
  CHECK(a.capacity() == size_t{47} << 20);
  CHECK_THROWS_AS(a.allocate<std::byte>(size_t{17} << 20), std::bad_alloc);
  a.allocate<std::byte>(size_t{7} << 20);
  CHECK(a.capacity() == all);
}

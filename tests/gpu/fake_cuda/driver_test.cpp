// The driver thread and the ring ends of CUDA devices over a runtime made of threads: order, marks,
// aborts, deadlines, lost devices, and that nothing waits for a device whose streams wait for each
// other.
#include "gpu/cuda/rows/sample.hpp"
#include "tests/gpu/fake_cuda/driver_bench.hpp"

using namespace lamella;
using namespace lamella::test;

TEST_CASE_FIXTURE(bench, "CUDA driver: works of a line end in order, with their results") {
  std::vector<std::future<work_status>> ends;
  std::vector<int> order;
  std::array<uint32_t*, 17> results{};
  for (int i = 0; i < 17; ++i)
    ends.push_back(run(a, {[&, i](kernel_context) {
                         auto& q = cuda::queue::current();
                         results[static_cast<size_t>(i)] = q.results<uint32_t>(1);
                         *results[static_cast<size_t>(i)] = 0;
                         cuda::launch_raise(results[static_cast<size_t>(i)], q.stream("test"));
                         q.at_end([&, i] {
                           CHECK(*results[static_cast<size_t>(i)] == 1);
                           order.push_back(i);
                         });
                         return on();
                       }}));
  for (auto& e : ends) CHECK(end_of(e) == work_status::done);
  REQUIRE(order.size() == 17);
  for (int i = 0; i < 17; ++i) CHECK(order[static_cast<size_t>(i)] == i);
}

TEST_CASE_FIXTURE(bench, "a work tells how long its stream stood idle before it") {
  std::vector<std::shared_ptr<listed_work>> works;
  for (int i = 0; i < 5; ++i) {
    std::promise<work_status> end;
    works.push_back(std::make_shared<listed_work>(
        std::vector<listed_work::step>{[](kernel_context) { return on(); }}));
    d.launch(a, {works.back(), gpu::clock::now() + 240s, [&](work_status s) { end.set_value(s); }});
    CHECK(end.get_future().get() == work_status::done);
  }
  CHECK_FALSE(works.front()->gap());
  for (size_t i = 1; i < works.size(); ++i) {
    REQUIRE(works[i]->gap());
    CHECK(works[i]->gap()->count() > 0); // it was launched after the one before had ended
  }
}

TEST_CASE_FIXTURE(bench, "L-M08 V-M09 streams wait for each other, whichever is launched first") {
  for (bool receiver_first : {true, false}) {
    CAPTURE(receiver_first);
    std::vector<std::future<work_status>> ends;
    std::vector<std::array<uint64_t, 2>> seen(54);
    const uint64_t base = receiver_first ? 1 : 1000;
    for (uint64_t work = 0; work < 6; ++work) {
      std::vector<listed_work::step> sends, receives;
      for (uint64_t i = 0; i < 9; ++i) {
        const auto n = work * 9 + i;
        sends.push_back(send(base + n));
        receives.push_back(receive(base + n, seen[n].data()));
      }
      if (receiver_first) ends.push_back(run(b, receives));
      ends.push_back(run(a, sends));
      if (!receiver_first) ends.push_back(run(b, receives));
    }
    for (auto& e : ends) REQUIRE(end_of(e) == work_status::done);
    for (uint64_t n = 0; n < seen.size(); ++n) {
      CHECK(seen[n][0] == base + n);
      CHECK(seen[n][1] == (base + n) * (base + n));
    }
  }
}

TEST_CASE_FIXTURE(bench,
                  "a stream that grows while another waits for it does not wait for the device") {
  // More than a line has room for by itself. What that pins and gives back is done when it returns:
  // nothing of it waits for streams that run later.
  d.reserve(size_t{4} << 20);
  fake::reset();
  // Opened after it was asked for; the closed line has less room than those that were spare.
  d.close(a);
  a = d.open();
  CHECK(fake::pinned() == 0);
  std::array<uint64_t, 2> seen{};
  auto waits = run(b, {receive(7, seen.data())});
  auto grows = run(a, {[](kernel_context context) {
                         context.workspace->allocate<std::byte>(size_t{64} << 20);
                         context.scratch.allocate<std::byte>(size_t{64} << 20);
                         return on();
                       },
                       [](kernel_context) {
                         const std::vector<uint32_t> many(800'000, 7);
                         return cuda::queue::current().upload(std::span{many}) != nullptr
                                    ? on()
                                    : work::progress::blocked;
                       },
                       send(7)});
  CHECK(end_of(grows) == work_status::done);
  CHECK(end_of(waits) == work_status::done);
  CHECK(seen[0] == 7);
  CHECK(fake::calls_that_waited() == 0);
}

TEST_CASE_FIXTURE(bench, "a work with more arguments than were reserved fails alone") {
  auto large = run(a, {[](kernel_context) {
                     const std::vector<uint32_t> many(800'000, 7);
                     cuda::queue::current().upload(std::span{many});
                     return on();
                   }});
  CHECK(end_of(large) == work_status::failed);
  auto later = run(a, {[](kernel_context) { return on(); }});
  CHECK(end_of(later) == work_status::done);
}

TEST_CASE_FIXTURE(bench, "what a work lacked room for is there for the next, and in other lines") {
  const auto step = [](kernel_context) {
    const std::vector<uint32_t> many(2'000'000, 7);
    return cuda::queue::current().upload(std::span{many}) != nullptr ? on()
                                                                     : work::progress::blocked;
  };
  auto first = run(a, {step});
  CHECK(end_of(first) == work_status::failed);
  auto again = run(a, {step});
  CHECK(end_of(again) == work_status::done);
  CHECK(d.prepare(3));
  fake::reset();
  const auto c = d.open();
  CHECK(fake::pinned() == 0);
  auto elsewhere = run(c, {step});
  CHECK(end_of(elsewhere) == work_status::done);
  d.close(c);
}

TEST_CASE_FIXTURE(bench,
                  "works that draw tokens with masks and penalties have room from the start") {
  constexpr uint32_t draws = 64, vocabulary = 152'064;
  d.reserve(cuda::draw_argument_bytes(draws, vocabulary));
  d.close(a);
  CHECK(d.prepare(2));
  a = d.open();
  auto drawn = run(a, {[](kernel_context) {
                     auto& q = cuda::queue::current();
                     const std::vector<sample_record> records(draws);
                     const std::vector<logit_edit> edits(draws * cuda::usual_edits);
                     const std::vector<uint32_t> masks(draws * mask_words(vocabulary));
                     const std::vector<uint32_t> seats(draws), tokens(draws);
                     q.upload(std::span{records});
                     q.upload(std::span{edits});
                     q.upload(std::span{masks});
                     q.upload(std::span{seats});
                     q.upload(std::span{tokens});
                     return on();
                   }});
  CHECK(end_of(drawn) == work_status::done);
}

TEST_CASE_FIXTURE(bench, "a call that asks for what cannot be fails its work alone") {
  for (const auto code : {cudaErrorInvalidValue, cudaErrorLaunchOutOfResources}) {
    auto bad = run(a, {[code](kernel_context) -> work::progress {
                     throw cuda::cuda_error{code, "launch"};
                   }});
    CHECK(end_of(bad) == work_status::failed);
    auto later = run(a, {[](kernel_context) { return on(); }});
    CHECK(end_of(later) == work_status::done);
  }
  CHECK_FALSE(d.lost());
}

TEST_CASE_FIXTURE(bench, "a kernel left open that cannot be launched fails its work alone") {
  struct refused final : cuda::open_kernel {
    void launch(cuda::queue&) override { throw std::invalid_argument{"no"}; }
  };
  auto bad = run(a, {[](kernel_context) {
                   cuda::queue::current().open(std::make_unique<refused>());
                   return on();
                 }});
  CHECK(end_of(bad) == work_status::failed);
  auto later = run(a, {[](kernel_context) { return on(); }});
  CHECK(end_of(later) == work_status::done);
}

TEST_CASE_FIXTURE(bench, "a device that is lost between two works of a stream ends what follows") {
  auto end = std::make_shared<std::promise<work_status>>();
  auto first = end->get_future();
  const auto bad = [](kernel_context) -> work::progress { throw std::runtime_error{"no"}; };
  d.launch(a, {std::make_shared<listed_work>(std::vector<listed_work::step>{bad}),
               gpu::clock::now() + 240s, [end](work_status s) {
                 fake::break_device(); // before the stream is made ready for others
                 end->set_value(s);
               }});
  CHECK(end_of(first) == work_status::failed);
  auto later = run(a, {[](kernel_context) { return on(); }});
  CHECK(end_of(later) == work_status::lost);
  CHECK(d.lost());
  fake::reset();
}

TEST_CASE_FIXTURE(bench, "an aborted wait ends its work and those behind it; later ones run") {
  std::array<uint64_t, 2> seen{};
  std::promise<void> put;
  auto first = run(b, {receive(7, seen.data()), [&](kernel_context) {
                         put.set_value();
                         return on();
                       }});
  auto second = run(b, {[](kernel_context) { return on(); }});
  auto third = run(b, {[](kernel_context) { return on(); }});
  put.get_future().wait();
  d.abort(b);
  CHECK(end_of(first) == work_status::aborted);
  CHECK(end_of(second) == work_status::aborted);
  CHECK(end_of(third) == work_status::aborted);
  auto later = run(b, {[](kernel_context) { return on(); }});
  CHECK(end_of(later) == work_status::done);
}

TEST_CASE_FIXTURE(bench, "a driver says that it cannot have the streams of two epochs at once") {
  CHECK(d.prepare(cuda::driver::lines_max));
  CHECK_FALSE(d.prepare(cuda::driver::lines_max + 1));
}

TEST_CASE_FIXTURE(bench, "an abort ends what was launched before it, and nothing behind it") {
  std::array<uint64_t, 2> seen{};
  std::promise<void> put, held, go;
  auto first = run(b, {receive(7, seen.data()), [&](kernel_context) {
                         put.set_value();
                         return on();
                       }});
  put.get_future().wait();
  // The driver is busy with another stream meanwhile, and hears of all at once.
  auto other = run(a, {[&](kernel_context) {
                     held.set_value();
                     go.get_future().wait();
                     return on();
                   }});
  held.get_future().wait();
  auto second = run(b, {[](kernel_context) { return on(); }});
  d.abort(b);
  auto later = run(b, {[](kernel_context) { return on(); }});
  go.set_value();
  CHECK(end_of(other) == work_status::done);
  CHECK(end_of(first) == work_status::aborted);
  CHECK(end_of(second) == work_status::aborted);
  CHECK(end_of(later) == work_status::done);
}

TEST_CASE_FIXTURE(bench,
                  "L-M09 a wait ends with its deadline, and what is behind it sends nothing") {
  std::array<uint64_t, 2> seen{};
  std::promise<void> put;
  auto late = run(b, {receive(7, seen.data())}, 3s);
  // On the device behind the wait before that ends: what it computes is garbage.
  auto behind = run(b, {send(1), [&](kernel_context) {
                          put.set_value();
                          return on();
                        }});
  REQUIRE(put.get_future().wait_for(2s) == std::future_status::ready);
  CHECK(end_of(late) == work_status::deadline);
  CHECK(end_of(behind) != work_status::done);
  auto nothing = run(a, {receive(1, seen.data())}, 50ms);
  CHECK(end_of(nothing) == work_status::deadline);
}

TEST_CASE_FIXTURE(bench,
                  "L-M09 waits one after another do not stretch the deadline of their work") {
  std::array<uint64_t, 2> seen{};
  auto sends = run(a, {send(7)});
  CHECK(end_of(sends) == work_status::done);
  // A kernel that is still there when the deadline passes, and behind it a wait whose own clock
  // would only start then; its frame has come.
  const auto holds = [](kernel_context) {
    auto& q = cuda::queue::current();
    fake::put(q.stream("test"), [control = &q.control()] {
      const auto until = gpu::clock::now() + 20s;
      while (std::atomic_ref{control->abort}.load() == 0 && gpu::clock::now() < until)
        std::this_thread::yield();
    });
    return on();
  };
  auto late = run(b, {holds, receive(7, seen.data())}, 100ms);
  CHECK(end_of(late) == work_status::deadline);
  auto later = run(b, {[](kernel_context) { return on(); }});
  CHECK(end_of(later) == work_status::done);
}

TEST_CASE_FIXTURE(bench, "another frame than the expected one cuts the work") {
  std::array<uint64_t, 2> seen{};
  auto sends = run(a, {send(7)});
  CHECK(end_of(sends) == work_status::done);
  auto receives = run(b, {receive(8, seen.data())});
  CHECK(end_of(receives) == work_status::cut);
}

TEST_CASE_FIXTURE(bench, "a work that meets an ended channel is cut, and the device goes on") {
  std::array<uint64_t, 2> seen{};
  from->end(channel_state::closed);
  auto sends = run(a, {[](kernel_context) { return on(); }, send(7)});
  CHECK(end_of(sends) == work_status::cut);
  auto receives = run(b, {receive(7, seen.data())});
  CHECK(end_of(receives) == work_status::cut);
  for (const auto& line : {a, b}) {
    auto later = run(line, {[](kernel_context) { return on(); }});
    CHECK(end_of(later) == work_status::done);
  }
}

TEST_CASE_FIXTURE(bench, "the end of a ring ends the waits that are on the device for it") {
  std::array<uint64_t, 2> seen{};
  std::promise<void> put;
  auto waits = run(b, {receive(7, seen.data()), [&](kernel_context) {
                         put.set_value();
                         return on();
                       }});
  put.get_future().wait();
  to->end(channel_state::closed);
  CHECK(end_of(waits) == work_status::cut);
  auto later = run(b, {[](kernel_context) { return on(); }});
  CHECK(end_of(later) == work_status::done);
}

TEST_CASE_FIXTURE(bench, "a work that throws fails alone") {
  auto bad = run(a, {[](kernel_context) -> work::progress { throw std::runtime_error{"no"}; }});
  CHECK(end_of(bad) == work_status::failed);
  auto good = run(a, {[](kernel_context) { return on(); }});
  CHECK(end_of(good) == work_status::done);
}

TEST_CASE_FIXTURE(bench, "a sticky error ends everything as lost, then and later") {
  std::array<uint64_t, 2> seen{};
  std::promise<void> put;
  auto waits = run(b, {receive(7, seen.data()), [&](kernel_context) {
                         put.set_value();
                         return on();
                       }});
  put.get_future().wait();
  fake::break_device();
  auto later = run(a, {[](kernel_context) {
                     cuda::check(cudaGetLastError(), "anything");
                     return on();
                   }});
  CHECK(end_of(later) == work_status::lost);
  const auto end = end_of(waits);
  CHECK(end == work_status::lost);
  CHECK(d.lost());
  auto much_later = run(a, {[](kernel_context) { return on(); }});
  CHECK(end_of(much_later) == work_status::lost);
  fake::reset();
}

TEST_CASE("a device opens no more streams than it has queues for") {
  fake::reset();
  cuda::driver d{0};
  std::vector<std::shared_ptr<cuda::driver::line>> lines;
  while (lines.size() < cuda::driver::lines_max) lines.push_back(d.open());
  CHECK_THROWS_WITH_AS(d.open(), doctest::Contains("no more than 28 streams"), std::runtime_error);
  d.close(lines.back());
  lines.back() = d.open();
  for (const auto& x : lines) d.close(x);
}

TEST_CASE("closing a line in a mark and a driver with work under way leave nothing behind") {
  fake::reset();
  const auto before = fake::allocations();
  {
    bench x;
    std::array<uint64_t, 2> seen{};
    auto waits = x.run(x.b, {x.receive(7, seen.data())});
    std::promise<void> closed;
    auto c = x.d.open();
    x.d.launch(c, {std::make_shared<listed_work>(
                       std::vector<listed_work::step>{[](kernel_context) { return on(); }}),
                   gpu::clock::now() + 240s, [&](work_status) {
                     x.d.close(c);
                     closed.set_value();
                   }});
    REQUIRE(closed.get_future().wait_for(30s) == std::future_status::ready);
    x.d.close(x.b);
    CHECK(end_of(waits) == work_status::aborted);
    x.b = x.d.open();
  }
  CHECK(fake::allocations() == before);
}

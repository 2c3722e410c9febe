// Devices of a process, and what a lost one ends.
#include "actors/device/gpu_executor.hpp"
#include "actors/machine/devices.hpp"
#include "actors/protocol/kv.hpp"
#include "tests/actors/device/stepped_device.hpp"
#include "tests/actors/stage.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {
namespace {

/// A device whose work ends as it is told.
class doomed_device final : public gpu::host_memory_device {
public:
  explicit doomed_device(gpu::work_status ends) : ends_{ends} {}
  std::string name() const override { return "cuda:0 doomed"; }
  const gpu::operators& ops() const override { return gpu::reference_operators(); }
  team& workers() override { return workers_; }
  bool lost() const override { return lost_; }
  void next_ends(gpu::work_status ends) { ends_ = ends; }
  std::unique_ptr<gpu::memory> allocate(size_t bytes) override {
    return std::make_unique<plain_memory>(bytes);
  }
  std::unique_ptr<gpu::stream> make_stream(std::string) override {
    return std::make_unique<stream>(*this);
  }

private:
  struct stream final : gpu::stream {
    explicit stream(doomed_device& x) : of{x} {}
    void launch(std::shared_ptr<gpu::work>, gpu::clock::time_point, mark on_end) override {
      of.lost_ = of.ends_ == gpu::work_status::lost;
      on_end(of.ends_);
    }
    void abort() override {}
    doomed_device& of;
  };
  gpu::work_status ends_;
  bool lost_ = false;
  team workers_{1};
};

} // namespace

TEST_CASE_FIXTURE(stage, "a lost device ends its executor at once; an aborted work does not") {
  for (auto ends : {gpu::work_status::aborted, gpu::work_status::lost}) {
    CAPTURE(gpu::to_string(ends));
    std::optional<caf::error> why;
    auto executor =
        spawn(gpu_executor, std::make_shared<doomed_device>(ends), failed_work::ends_executor);
    spawn([&](caf::event_based_actor* self) -> caf::behavior {
      self->set_down_handler([&](const caf::down_msg& x) { why = x.reason; });
      self->monitor(executor);
      return {[](const actors::kv_freed&) {}};
    });
    auto answer = ask<bool>(executor, stream_id{0}, work_ptr{}, caf::timespan{1});
    settle();
    CHECK(answer->came);
    CHECK(why.has_value() == (ends == gpu::work_status::lost));
    if (why) CHECK(*why == ec::device_lost);
    end_all();
  }
}

TEST_CASE_FIXTURE(stage,
                  "F3 work of a stream that fails twice ends the executor, unless some ended "
                  "well between or nobody could make it anew") {
  auto device = std::make_shared<doomed_device>(gpu::work_status::failed);
  auto executor = spawn(gpu_executor, device, failed_work::ends_executor);
  const auto why = end_of(executor);
  const auto run = [&](uint32_t stream, gpu::work_status ends) {
    device->next_ends(ends);
    auto answer = ask<bool>(executor, stream_id{stream}, work_ptr{}, caf::timespan{1});
    settle();
    CHECK(answer->came);
    if (ends == gpu::work_status::failed) CHECK(answer->error == ec::device_lost);
  };
  run(0, gpu::work_status::failed);
  run(0, gpu::work_status::done);
  run(0, gpu::work_status::failed);
  run(1, gpu::work_status::failed); // another request's trouble
  run(1, gpu::work_status::done);
  run(0, gpu::work_status::aborted); // says nothing of the device
  CHECK_FALSE(*why);
  run(0, gpu::work_status::failed);
  CHECK(*why == ec::device_lost);

  executor = spawn(gpu_executor, device, failed_work::is_told);
  const auto why_not = end_of(executor);
  for (int i = 0; i < 5; ++i) run(0, gpu::work_status::failed);
  CHECK_FALSE(*why_not);
}

TEST_CASE("a CUDA device is opened once, and named when it is lost") {
  auto engine = std::make_shared<gpu::host_engine>(1, gpu::reference_operators());
  std::vector<unsigned> opened;
  device_set devices{engine, [&](unsigned index) {
                       opened.push_back(index);
                       return std::make_shared<doomed_device>(gpu::work_status::lost);
                     }};
  CHECK(devices.get("host", "host/a") != nullptr);
  auto one = devices.get("cuda:3", "replica");
  CHECK(devices.get("cuda:3", "shard") == one);
  CHECK(opened == std::vector<unsigned>{3});
  CHECK_FALSE(devices.lost());
  one->make_stream("")->launch(nullptr, {}, [](gpu::work_status) {});
  REQUIRE(devices.lost());
  CHECK(*devices.lost() == "cuda:0 doomed");
}

} // namespace lamella::actors::test

/// The side of a link that accepts: in this process, or told what to do in another one.
#pragma once

#include "gpu/host/host_engine.hpp"
#include "tests/net/data_plane/test_plane.hpp"
#include "tests/net/link/link_traffic.hpp"

#include <future>

namespace lamella::tests {

/// A plane that accepts links, and what is done with their ends. exchange() and play() are about
/// the last link accepted.
class far_side {
public:
  virtual ~far_side() = default;
  virtual std::string address() = 0;
  virtual net::link_end accept(const net::link_key& key, const net::link_terms& terms) = 0;
  virtual void end_epoch(uint64_t epoch) = 0;
  virtual void go() = 0; ///< ends the plane, as the end of a process does

  /// Waits for such an event; its text.
  virtual std::string wait_for(net::link_event::kind what, const std::string& part) = 0;
  /// Of the first link that came up.
  virtual std::chrono::nanoseconds round_trip() = 0;

  /// Sends and takes `count` messages; how many were wrong or missing.
  virtual std::future<uint64_t> exchange(uint64_t count) = 0;
  /// A player on a stream of an engine of its own.
  virtual std::future<gpu::work_status> play(uint64_t count, bool first) = 0;
};

/// In this process.
class local_far final : public far_side {
public:
  /// A plane and an engine of its own.
  local_far(const std::string& transport, const scratch_folder& folder,
            const std::function<void(net::data_plane_options&)>& change = {})
      : engine_{std::make_unique<gpu::host_engine>(1, gpu::reference_operators())},
        device_{engine_->make_device("far")}, stream_{device_->make_stream("s")},
        own_{std::make_unique<test_plane>(transport, folder, "far",
                                          [&](net::data_plane_options& o) {
                                            o.bell = engine_->bell();
                                            if (change) change(o);
                                          })},
        at_{own_.get()} {}

  /// The plane of the other side: both are one process.
  explicit local_far(test_plane& both) : at_{&both} {}

  std::string address() override { return at_->plane->address(); }
  net::link_end accept(const net::link_key& key, const net::link_terms& terms) override {
    return last_ = at_->plane->accept(key, terms, timeout);
  }
  void end_epoch(uint64_t epoch) override { at_->plane->end_epoch(epoch); }
  void go() override { at_->plane.reset(); }
  std::string wait_for(net::link_event::kind what, const std::string& part) override {
    return at_->log->wait_for(what, part);
  }
  std::chrono::nanoseconds round_trip() override {
    return at_->log->first(net::link_event::kind::up).round_trip;
  }
  std::future<uint64_t> exchange(uint64_t count) override {
    return std::async(std::launch::async,
                      [link = last_, count] { return tests::exchange(link, count); });
  }
  std::future<gpu::work_status> play(uint64_t count, bool first) override {
    return launch(*stream_, std::make_shared<player>(last_, count, first));
  }

private:
  std::unique_ptr<gpu::host_engine> engine_;
  std::unique_ptr<gpu::device> device_;
  std::unique_ptr<gpu::stream> stream_;
  std::unique_ptr<test_plane> own_;
  test_plane* at_;
  net::link_end last_;
};

} // namespace lamella::tests

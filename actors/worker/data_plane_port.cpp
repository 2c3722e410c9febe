#include "actors/worker/data_plane_port.hpp"

#include "actors/worker/control_link.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/peer_address.hpp"
#include "net/data_plane/private_folder.hpp"
#include "net/data_plane/shared_secret.hpp"
#include "net/link/round_trips.hpp"
#include "scheduler/types.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <set>

namespace lamella::actors {

namespace {

/// A link as logs name it.
std::string name_of(const net::link_key& key) {
  if (!scheduler::is_context(key.stream)) return net::to_string(key);
  return fmt::format("epoch {}, context of batch {}, replica {} to {}", key.epoch,
                     key.stream - scheduler::context_streams, key.replica, key.shard);
}

/// Choices that are told at most; reasons have the peer's words in them.
constexpr size_t chosen_max = 256;

/// What is known of the links that stand. Written on the plane's thread, read by WORKER.
class link_book {
public:
  void note(const net::link_event& x) {
    const auto tier = net::to_string(x.transport);
    using kind = net::link_event::kind;
    if (x.what == kind::up) {
      std::lock_guard lock{mutex_};
      // What was chosen and why is told once for two seats; the same for each stream and epoch is
      // not.
      const auto choice = fmt::format("{} {} {} {} {}", x.key.replica, x.key.shard,
                                      scheduler::is_context(x.key.stream), tier, x.text);
      const auto level = chosen_.size() < chosen_max && chosen_.insert(choice).second
                             ? spdlog::level::info
                             : spdlog::level::debug;
      spdlog::log(level, "link up {} tier={} reason=\"{}\"", name_of(x.key), tier, x.text);
      links_[x.key] = {std::string{tier}, x.trips};
    } else if (x.key.epoch == 0) {
      const auto level = x.what == kind::refused ? spdlog::level::warn : spdlog::level::debug;
      spdlog::log(level, "peer unreachable tier={} reason=\"{}\"", tier, x.text);
    } else if (x.what == kind::refused) {
      spdlog::warn("link refused {} tier={} reason=\"{}\"", name_of(x.key), tier, x.text);
    } else {
      spdlog::debug("link ended {} tier={} reason=\"{}\"", name_of(x.key), tier, x.text);
    }
  }
  link_report of(const net::link_key& key) {
    std::lock_guard lock{mutex_};
    const auto found = links_.find(key);
    if (found == links_.end()) return {};
    const auto& [tier, trips] = found->second;
    const auto now = trips->at(net::round_trips::clock::now());
    return {tier, std::chrono::duration<double, std::micro>{now.least}.count(), now.measured};
  }
  void forget(uint64_t epoch) {
    std::lock_guard lock{mutex_};
    std::erase_if(links_, [&](const auto& x) { return x.first.epoch == epoch; });
  }

private:
  struct link {
    std::string tier;
    std::shared_ptr<const net::round_trips> trips;
  };
  std::mutex mutex_;
  std::map<net::link_key, link> links_;
  std::set<std::string> chosen_; ///< ways that were told
};

/// Where peers of this host reach us.
std::string socket_path(const std::filesystem::path& folder) {
  return (folder / ("lamella-" + net::hex_of(net::random_bytes(8)) + ".sock")).string();
}

/// As net::advertised; a worker that cannot be reached is none.
std::string told_to_others(const std::string& listen, const std::string& here) {
  try {
    return net::advertised(listen, here);
  } catch (const std::invalid_argument& e) {
    throw refused_error{e.what()};
  }
}

} // namespace

link_port_maker data_plane_links(std::string listen) {
  return [listen = std::move(listen)](const link_setup& setup) {
    auto book = std::make_shared<link_book>();
    net::data_plane_options options;
    // Children use their parent's.
    const auto folder = setup.folder.empty() ? std::make_shared<net::private_folder>() : nullptr;
    options.unix_path = socket_path(folder ? folder->path() : std::filesystem::path{setup.folder});
    options.listen = listen;
    options.advertise = told_to_others(listen, setup.here);
    options.home = setup.home;
    options.secret = setup.secret;
    options.cluster = setup.cluster;
    options.transport = setup.transport;
    options.bell = setup.bell;
    options.asking.timeout = setup.reply_timeout;
    options.on_event = [book](const net::link_event& x) { book->note(x); };
    auto plane = std::make_shared<net::data_plane>(std::move(options));
    link_port port;
    const auto forced = net::transport_of(setup.transport);
    port.direct = forced && net::in_device_memory(*forced);
    port.address = plane->address();
    port.open = [folder, plane](const link_order& order) {
      net::link_terms terms;
      terms.slots = order.frames;
      terms.slot_bytes = order.frame_bytes;
      terms.self = order.self;
      terms.peer = order.other;
      return order.side == link_side::replica
                 ? plane->connect(order.peer, order.key, terms, order.timeout, order.device)
                 : plane->accept(order.key, terms, order.timeout, order.device);
    };
    port.report = [book](const net::link_key& key) { return book->of(key); };
    port.watch = [plane](const std::string& address) { return plane->watch(address); };
    port.isolate = [plane](std::chrono::milliseconds how_long) { plane->isolate(how_long); };
    port.close = [plane, book](uint64_t epoch) {
      plane->end_epoch(epoch);
      book->forget(epoch);
    };
    return port;
  };
}

} // namespace lamella::actors

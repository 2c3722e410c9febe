#include "actors/data_plane_port.hpp"

#include "net/data_plane.hpp"
#include "net/shared_secret.hpp"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <map>
#include <mutex>

namespace lamella::actors {

namespace {

/// Q and KV of two layers: a replica may run ahead of a shard by a layer.
constexpr uint32_t slots_per_link = 4;

/// What is known of the links that stand. Written on the plane's thread, read by WORKER.
class link_book {
public:
  void note(const net::link_event& x) {
    const auto tier = net::to_string(x.transport);
    using kind = net::link_event::kind;
    if (x.what == kind::up) {
      spdlog::debug("link up {} tier={} reason=\"{}\"", net::to_string(x.key), tier, x.text);
      std::lock_guard lock{mutex_};
      links_[x.key] = {std::string{tier},
                       std::chrono::duration<double, std::micro>{x.round_trip}.count()};
    } else if (x.what == kind::refused) {
      spdlog::warn("link refused {} tier={} reason=\"{}\"", net::to_string(x.key), tier, x.text);
    } else {
      spdlog::debug("link ended {} tier={} reason=\"{}\"", net::to_string(x.key), tier, x.text);
    }
  }
  link_report of(const net::link_key& key) {
    std::lock_guard lock{mutex_};
    const auto found = links_.find(key);
    return found == links_.end() ? link_report{} : found->second;
  }
  void forget(uint64_t epoch) {
    std::lock_guard lock{mutex_};
    std::erase_if(links_, [&](const auto& x) { return x.first.epoch <= epoch; });
  }

private:
  std::mutex mutex_;
  std::map<net::link_key, link_report> links_;
};

/// Where peers of this host reach us.
std::string socket_path(const std::string& folder) {
  const auto base =
      folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path{folder};
  return (base / ("lamella-" + net::hex_of(net::random_bytes(8)) + ".sock")).string();
}

} // namespace

link_port_maker data_plane_links(std::string listen) {
  return [listen = std::move(listen)](const link_setup& setup) {
    auto book = std::make_shared<link_book>();
    net::data_plane_options options;
    options.unix_path = socket_path(setup.folder);
    options.listen = listen;
    options.secret = setup.secret;
    options.cluster = setup.cluster;
    options.transport = setup.transport;
    options.bell = setup.bell;
    options.on_event = [book](const net::link_event& x) { book->note(x); };
    auto plane = std::make_shared<net::data_plane>(std::move(options));
    link_port port;
    port.address = plane->address();
    port.open = [plane](const link_order& order) {
      net::link_terms terms;
      terms.slots = slots_per_link;
      terms.slot_bytes = order.frame_bytes;
      terms.self = order.self;
      return order.side == link_side::replica
                 ? plane->connect(order.peer, order.key, terms, order.patience)
                 : plane->accept(order.key, terms, order.patience);
    };
    port.report = [book](const net::link_key& key) { return book->of(key); };
    port.close = [plane, book](uint64_t epoch) {
      plane->end_epoch(epoch);
      book->forget(epoch);
    };
    return port;
  };
}

} // namespace lamella::actors

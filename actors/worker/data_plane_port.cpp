#include "actors/worker/data_plane_port.hpp"

#include "actors/worker/control_link.hpp"
#include "actors/worker/link_book.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/peer_address.hpp"
#include "net/data_plane/private_folder.hpp"
#include "net/data_plane/shared_secret.hpp"

#include <filesystem>

namespace lamella::actors {

namespace {

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

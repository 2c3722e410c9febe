#include "actors/node/loss_reports.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/membership/membership_config.hpp"
#include "actors/node/own_seats.hpp"
#include "actors/protocol/work_reports.hpp"

#include <utility>

namespace lamella::actors {

void tell_losses(membership_config& m, loss_listeners to) {
  const auto suspects = to.suspects;
  const auto epoch_here = std::make_shared<uint64_t>(0); ///< in which one here had a part
  // Numbers that no process of this host has.
  m.on_part_lost = [=, of_other_hosts = uint32_t{1} << 31](const worker_info& x, uint64_t epoch,
                                                           std::vector<scheduler::stream_id> served,
                                                           bool own_fault) mutable {
    if (x.here) *epoch_here = epoch;
    if (x.host == host_name()) {
      suspects->lost({x.pid, epoch, std::move(served)});
    } else if (own_fault) {
      suspects->lost({++of_other_hosts, epoch, std::move(served)});
      suspects->ended(of_other_hosts, true);
    }
  };
  m.on_worker = [=, told = to.keeper, own = to.own](const worker_info& x, bool lost,
                                                    bool own_fault) {
    if (x.here) {
      if (!lost) return;
      own_seat_lost gone{x.seat, x.trouble, std::exchange(*epoch_here, 0)};
      if (gone.epoch != 0) gone.budget = suspects->ended(x.pid, own_fault);
      caf::anon_send(own, gone);
      return;
    }
    const auto news = lost ? worker_news::lost : worker_news::joined;
    if (x.host == host_name() && !told->tell(x.pid, news))
      suspects->ended(x.pid, lost && own_fault);
  };
  m.on_serving = [=, told = to.keeper](const worker_info& x) {
    if (x.host == host_name() && !x.here) told->tell(x.pid, worker_news::serves);
  };
}

} // namespace lamella::actors

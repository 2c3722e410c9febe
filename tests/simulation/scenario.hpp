/// What one seed means: a cluster, its clients, its troubles, and what must hold at the end.
#pragma once

#include "actors/device/iteration.hpp"
#include "base/buggify.hpp"
#include "tests/simulation/rest.hpp"
#include "tests/simulation/workload.hpp"

#include <numeric>

namespace lamella::simulation {

/// What came of a run.
struct outcome {
  std::vector<std::string> wrong; ///< nothing: all is well
  uint64_t log = 0;               ///< hash of all that happened
  uint64_t events = 0, frames = 0;
  uint32_t epochs = 0, troubles = 0;
  uint32_t hits = 0; ///< troubles while a request ran
  uint64_t odd = 0;  ///< passes of places that act oddly
  duration took{0};  ///< virtual
};

/// What a run is, beside its seed.
struct kind {
  bool parity = false;  ///< a pool by head, or some cells, that have it, whatever the seed says
  bool odd = false;     ///< places in the product act oddly (base/buggify.hpp)
  bool here = false;    ///< all seats are of the control process
  bool gray = false;    ///< hosts do not hear each other on the data network; control links live
  bool scales = false;  ///< pools change their sizes, and workers are drained
  bool rotates = false; ///< batches rotate over two replicas or more
  bool chooses = false; ///< each epoch's pipeline is chosen
  bool cells = false;   ///< the attention pool is two or three cells
  bool mixes = false;   ///< prompts on replicas share the launches of batches
  bool cuts = false;  ///< some of these are cut by requests, and are cut otherwise where it scales
  bool tight = false; ///< hosts have no memory for a copy of the KV in use
  bool comes = false; ///< new cells come, where it scales
  bool fewer = false; ///< no spares, and pools may serve with fewer members after a loss
};

class scenario {
public:
  explicit scenario(uint64_t seed, kind what = {})
      : odd_{what.odd, seed}, gray_{what.gray}, scales_{what.scales}, cuts_{what.cuts},
        comes_{what.comes}, dice_{mix(seed, 1)}, cluster_{draw_shape(dice_, what), mix(seed, 2)} {}

  outcome run() {
    auto& c = cluster_;
    if (!c.run_until([&] { return c.server != nullptr; }, 60s)) {
      wrong("the service does not start");
      return result();
    }
    clients_.resize(2 + dice_.below(7));
    const duration spread = dice_.below(2) == 0 ? 10ms : 250ms;
    for (auto& x : clients_) {
      x = draw_client(dice_);
      c.time.in(dice_.below(5) == 0 ? some(0ms, 4s) : some(0ms, spread),
                [this, &x] { begin(cluster_, x); });
    }
    plan_troubles();
    const auto all_over = [&] {
      for (auto& x : clients_) // as the answer tells them to
        if (x.refused() && c.time.now() - x.began >= 1s) begin(c, x);
      return std::all_of(clients_.begin(), clients_.end(),
                         [](auto& x) { return x.over() && !x.refused(); });
    };
    if (!c.run_until(all_over, 601s)) wrong("a request outlives its deadline");
    for (size_t i = 0; i < clients_.size(); ++i)
      if (clients_[i].exchange)
        if (const auto why = check(clients_[i]); !why.empty())
          wrong("request " + std::to_string(i) + ": " + why);
    if (result_.wrong.empty()) check_rest();
    return result();
  }

  cluster& where() { return cluster_; }

private:
  /// A pipeline may end so often by its own fault before it is given up, and once less.
  static constexpr uint32_t kills_max = 4;

  static cluster_shape draw_shape(tests::splitmix& dice, const kind& what) {
    cluster_shape s;
    s.replicas = 1 + static_cast<uint32_t>(dice.below(3));
    s.by_request = dice.below(3) == 0;
    s.shards = 1 + static_cast<uint32_t>(dice.below(s.by_request ? 3 : 2));
    s.spares = static_cast<uint32_t>(dice.below(2));
    s.prefill = dice.below(3) == 0 ? 1 + static_cast<uint32_t>(dice.below(2)) : 0;
    // The longest sequence fits, and often not much more.
    s.slots = longest_sequence + static_cast<uint32_t>(dice.below(dice.below(2) == 0 ? 40 : 250));
    s.max_batch = 2 + static_cast<uint32_t>(dice.below(3));
    s.slowest_step = duration{20'000 + dice.below(400'000)};
    s.slowest_message = duration{200'000 + dice.below(dice.below(4) == 0 ? 50'000'000 : 2'000'000)};
    s.starved_per_mille = dice.below(2) == 0 ? static_cast<uint32_t>(dice.below(10)) : 0;
    s.chunk_tokens = 3 + static_cast<uint32_t>(dice.below(30));
    if (what.scales) s.more_slots = static_cast<uint32_t>(dice.below(3)) * 20;
    if (what.scales) s.slots += s.more_slots * s.shards; // those of one suffice, too
    if (what.tight) s.free_bytes = 1 << 20;
    s.here = what.here;
    s.hosts = 1 + s.chunk_tokens % 2; // not drawn, so that all else is drawn as before
    if (s.here) s.spares = 0;
    if (what.fewer) {
      s.spares = 0;
      s.slots *= 2; // half of them suffice, too
      s.least_slots = longest_sequence;
    }
    s.rotates = what.rotates;
    if (what.chooses) s.chosen_for = dice.below(3) == 0 ? 4 : 400; // either side of the bound
    if (s.rotates) s.replicas = std::max(2u, s.replicas);
    s.mixes = what.mixes;
    if (s.mixes) s.stand_backs = static_cast<uint32_t>(dice.below(4));
    s.prefill_at_shards = s.mixes && dice.below(2) == 0;
    if (what.cells) draw_cells(dice, s);
    for (uint32_t i = 0; what.cuts && i < s.cells.size(); ++i)
      if (dice.below(2) == 0) s.cells_by_request.push_back(i);
    if (what.cells && what.parity) {
      for (size_t i = 0; i < s.cells.size(); ++i)
        s.cells_with_parity.push_back((i == 0 || dice.below(2) == 0)
                                      && std::ranges::count(s.cells_by_request, i) == 0);
      s.spares = std::max(1u, s.spares);
    }
    if (!what.parity || what.cells) return s;
    s.parity = true;
    s.by_request = false;
    s.shards = 1 + s.shards % 2;
    return s;
  }

  static void draw_cells(tests::splitmix& dice, cluster_shape& s) {
    s.by_request = false;
    for (auto n = 2 + dice.below(2); n > 0; --n)
      s.cells.push_back(static_cast<uint32_t>(dice.below(3)));
    if (std::ranges::count(s.cells, 0u) == static_cast<ptrdiff_t>(s.cells.size()))
      s.cells.front() = 1;
    s.shards = std::accumulate(s.cells.begin(), s.cells.end(), 0u);
    s.more_in_next = static_cast<uint32_t>(dice.below(3)) * 30;
    s.cells_apart = static_cast<uint32_t>(dice.below(s.cells.size() + 1));
  }

  worker_box& anybody() {
    auto& all = cluster_.workers;
    return *all[dice_.below(all.size())];
  }

  void plan_troubles() {
    // Often close together: what is being repaired breaks again.
    auto when = some(0ms, 400ms);
    for (auto n = dice_.below(dice_.below(4) == 0 ? 14 : 7); n > 0; --n) {
      cluster_.time.in(when, [this] { trouble(); });
      when += dice_.below(2) == 0 ? some(0ms, 20ms) : some(0ms, 300ms);
    }
  }

  duration some(duration least, duration most) {
    return least
           + duration{
               static_cast<int64_t>(dice_.below(static_cast<uint64_t>((most - least).count())))};
  }

  void trouble() {
    ++result_.troubles;
    result_.hits += std::any_of(clients_.begin(), clients_.end(),
                                [](const auto& x) { return x.exchange && !x.over(); });
    if (scales_ && dice_.below(2) == 0) return change_sizes();
    if (cluster_.own) return trouble_here(*cluster_.own);
    auto& who = anybody();
    if (gray_ && dice_.below(2) == 0) return gray_trouble(who);
    const auto kind = dice_.below(23);
    if (kind < 6)
      who.crash(some(1ms, 500ms));
    else if (kind < 9)
      who.stop(dice_.below(2) == 0 ? some(1ms, 900ms) : some(1s, 4s));
    else if (kind < 11)
      who.partition(dice_.below(2) == 0 ? some(1ms, 900ms) : some(1s, 3s));
    else if (kind < 13)
      who.cut_link();
    else if (kind < 14)
      who.slow_down(2 + static_cast<uint32_t>(dice_.below(100)), some(1ms, 500ms));
    else if (kind < 16)
      who.injure("drop");
    else if (kind < 17)
      who.injure("corrupt");
    else if (kind < 18)
      who.injure("partition");
    else if (kind < 19)
      who.fail(1 + static_cast<uint32_t>(dice_.below(2 * actors::attempts_max)));
    else if (kind < 20)
      who.hang(dice_.below(10) == 0 ? some(1s, 200s) : some(1ms, 3s));
    else if (kind < 21)
      cluster_.kill_part();
    else if (killed_ < kills_max && cluster_.kill_actor())
      ++killed_;
  }

  /// Nobody may notice, but for the time.
  void change_sizes() {
    if (comes_ && cluster_.cells() < 6 && dice_.below(4) == 0)
      return cluster_.add_cell(cuts_ && dice_.below(2) == 0);
    const auto kind = dice_.below(10);
    if (const auto cells = cluster_.cells(); kind < 5 && cells > 0)
      change_cell(static_cast<uint32_t>(dice_.below(cells)));
    else if (kind < 5)
      cluster_.scale("attention", 1 + static_cast<uint32_t>(dice_.below(3)), {}, other_slots());
    else if (kind < 7)
      cluster_.scale("model", 1 + static_cast<uint32_t>(dice_.below(3)));
    else if (kind < 8)
      cluster_.scale("prefill", 1 + static_cast<uint32_t>(dice_.below(2)));
    else if (!cluster_.workers.empty())
      cluster_.drain(anybody().name());
  }

  /// Another size; where cells are cut by heads and by requests, often another cut with it. A cell
  /// by requests has no parity.
  void change_cell(uint32_t cell) {
    const auto members = static_cast<uint32_t>(dice_.below(3));
    const auto cut = cuts_ ? dice_.below(4) : 0;
    cluster_.scale("attention/" + cluster_.cell_name(cell), members,
                   cut < 2    ? ""
                   : cut == 2 ? "heads"
                              : "requests",
                   other_slots());
  }

  /// Of each table of what changes: more than at the start, or as many.
  uint64_t other_slots() {
    const auto kind = dice_.below(4);
    if (kind < 2) return actors::kv_as_it_is;
    return cluster_.slots() + (kind == 2 ? 0 : dice_.below(cluster_.slots()));
  }

  /// What can happen where nothing is between the seats but one process.
  void trouble_here(own_process& process) {
    const auto kind = dice_.below(10);
    if (kind < 2)
      process.hang(some(1ms, 3s));
    else if (kind < 4)
      process.slow_down(2 + static_cast<uint32_t>(dice_.below(100)), some(1ms, 500ms));
    else if (kind < 5)
      process.fail(1); // a second one in a row would end a WORKER
    else if (killed_ == kills_max)
      return;
    else if (++killed_; kind < 6)
      process.fail(2);
    else if (kind < 8)
      cluster_.kill_part();
    else
      cluster_.kill_actor();
  }

  /// Control is healthy, the data plane is not.
  void gray_trouble(worker_box& who) {
    const auto how_long = [&] { return dice_.below(2) == 0 ? some(50ms, 2s) : some(2s, 90s); };
    const auto kind = dice_.below(7);
    if (kind < 2) {
      who.pull_data_cable(how_long());
    } else if (kind < 4) {
      who.pull_data_cable(how_long(), true);
    } else if (kind < 6) {
      who.part_from(anybody(), how_long());
    } else { // a plug that does not sit right
      const auto times = 2 + static_cast<uint32_t>(dice_.below(4));
      const bool one_way = dice_.below(2) == 0;
      auto when = duration{0};
      for (uint32_t i = 0; i < times; ++i) {
        cluster_.time.in(
            when, [&who, one_way, on = some(100ms, 2s)] { who.pull_data_cable(on, one_way); });
        when += some(500ms, 4s);
      }
      result_.troubles += times - 1;
    }
  }

  /// After the last answer everything comes back to rest (I5, I6), and the log is in order (I7, I8,
  /// I13).
  void check_rest() {
    auto& c = cluster_;
    if (const auto busy = comes_to_rest(c); !busy.empty()) wrong("no rest: " + busy);
    if (c.given_up) wrong("the pipeline was given up");
    if (c.divergences() > 0) wrong("a token that was computed again was another one");
    if (c.digests_lost() > 0) wrong("K and V came back as others");
    if (c.server->pauses->look(c.time.now()).recovering > 0) wrong("a request still recovers");
    for (const auto& x : c.seats.errors) wrong(x);
    for (size_t i = 1; i < c.epochs.size(); ++i)
      if (c.epochs[i] <= c.epochs[i - 1]) wrong("epochs do not grow");
    if (c.links.strangers() > 0) wrong("frames of another epoch");
    // Each trouble may cost an epoch, another one when who was lost is back, and some where links
    // have to be made anew: more is a loop. An odd turn may end a worker too.
    size_t lost = 0;
    for (const auto& w : c.workers) lost += w->incarnations() - 1;
    if (c.epochs.size() > 5 + 4 * result_.troubles + (odd_.wanted ? 2 * lost : 0))
      wrong(std::to_string(c.epochs.size()) + " epochs after " + std::to_string(result_.troubles)
            + " troubles");
    const auto drained = c.ask<bool>(c.front(), actors::drain_atom_v);
    if (!c.run_until([&] { return drained->came; }, 1s)) wrong("the gateway still has requests");
  }

  void wrong(std::string what) { result_.wrong.push_back(std::move(what)); }

  outcome result() {
    auto& c = cluster_;
    result_.log = c.time.log();
    result_.events = c.time.noted();
    result_.frames = c.links.frames();
    if (odd_.wanted) result_.odd = odd::fired();
    result_.epochs = static_cast<uint32_t>(c.epochs.size());
    result_.took = c.time.elapsed();
    return result_;
  }

  struct buggify_points {
    bool wanted;
    buggify_points(bool x, uint64_t seed) : wanted{x} {
      if (wanted) odd::arm(seed);
    }
    ~buggify_points() { odd::disarm(); }
  };

  buggify_points odd_;
  bool gray_, scales_, cuts_, comes_;
  tests::splitmix dice_;
  std::vector<client> clients_;
  outcome result_;
  uint32_t killed_ = 0;
  cluster cluster_; ///< the last: its actors use the others
};

} // namespace lamella::simulation

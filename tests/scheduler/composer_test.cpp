#include "scheduler/composer.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace lamella::scheduler;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

/// A machine on which a token iteration takes `tokens` and a unit of a prompt's work `unit`.
struct machine {
  nanoseconds tokens, unit;
  nanoseconds run(composer& x, bool decodes, uint64_t work) const {
    const auto took = (decodes ? tokens : nanoseconds{0}) + unit * static_cast<int64_t>(work);
    x.ran(decodes, work, took);
    return took;
  }
};

} // namespace

TEST_CASE("V-M16 prompts get the time that tokens leave of an iteration, and no more") {
  composer c{{milliseconds{60}, milliseconds{40}}};
  const machine m{milliseconds{10}, nanoseconds{100'000}};
  CHECK(c.work_most(true) == composer::work_first); // nothing is known yet
  CHECK(c.work_most(false) == std::numeric_limits<uint64_t>::max());
  for (int i = 0; i < 30; ++i) {
    CHECK(m.run(c, true, c.work_most(true)) <= milliseconds{50});
    m.run(c, true, 0);
    m.run(c, true, 7); // the end of a prompt changes nothing
  }
  CHECK(m.run(c, true, c.work_most(true)) <= milliseconds{41});
  CHECK(m.run(c, true, c.work_most(true)) >= milliseconds{39}); // the time is used
  m.run(c, false, 512);
  CHECK(m.run(c, false, c.work_most(false)) <= milliseconds{61});
}

TEST_CASE("V-M16 prompts get more when less decodes, and less when more does") {
  composer c{{milliseconds{60}, milliseconds{40}}};
  machine m{milliseconds{20}, nanoseconds{100'000}};
  for (int i = 0; i < 20; ++i) m.run(c, true, c.work_most(true));
  m.tokens = milliseconds{5}; // most sequences ended, and prompts come without a pause
  for (int i = 0; i < 50; ++i) m.run(c, true, c.work_most(true));
  const auto took = m.run(c, true, c.work_most(true));
  CHECK(took <= milliseconds{41});
  CHECK(took >= milliseconds{39});
  m.tokens = milliseconds{30};
  for (int i = 0; i < 15; ++i) m.run(c, true, c.work_most(true));
  CHECK(m.run(c, true, c.work_most(true)) <= milliseconds{41});
}

TEST_CASE("S-M12 prompts go on where tokens take all the time there is") {
  composer c{{milliseconds{60}, milliseconds{40}}};
  const machine m{milliseconds{80}, nanoseconds{100'000}};
  for (int i = 0; i < 10; ++i) m.run(c, true, c.work_most(true));
  CHECK(c.work_most(true) == composer::work_least);
}

TEST_CASE("V-M16 rows that cost nothing beside a decode that waits for memory are taken in") {
  composer c{{milliseconds{60}, milliseconds{40}}};
  const auto run = [&](uint64_t work) { // as long as weights are read; computing takes over later
    const auto took = std::max(milliseconds{30}, milliseconds{static_cast<int64_t>(work) / 50});
    c.ran(true, work, took);
    return took;
  };
  for (int i = 0; i < 30; ++i) run(c.work_most(true));
  CHECK(c.work_most(true) > 1800);
  CHECK(run(c.work_most(true)) <= milliseconds{41});
}

TEST_CASE("A composer without bounds leaves prompts to the size of a chunk") {
  composer c{{nanoseconds{0}, nanoseconds{0}}};
  c.ran(true, 0, milliseconds{10});
  c.ran(true, 100, milliseconds{20});
  CHECK(c.work_most(true) == std::numeric_limits<uint64_t>::max());
  CHECK(c.work_most(false) == std::numeric_limits<uint64_t>::max());
}

TEST_CASE("S-M12 prompts go first where more of them wait than a mixed launch takes") {
  composer c{{milliseconds{60}, milliseconds{40}}};
  CHECK_FALSE(c.prompts_first(0));
  CHECK_FALSE(c.prompts_first(composer::work_first));
  CHECK(c.prompts_first(composer::work_first + 1));
  CHECK_FALSE(composer{{nanoseconds{0}, nanoseconds{0}}}.prompts_first(1'000'000));
}

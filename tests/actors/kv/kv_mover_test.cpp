// MOVER beside an allocator that always has more to copy.
#include "actors/kv/kv_mover.hpp"
#include "tests/actors/stage.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

namespace {

struct mover_world : stage {
  std::shared_ptr<allocator_book> book = std::make_shared<allocator_book>();
  kv_allocator_actor allocator;
  caf::actor copier;
  std::vector<std::optional<std::string>> ends;

  mover_world() {
    allocator = spawn(stand_in_allocator(book));
    kv_mover_config c;
    c.shape.kv_heads = 1;
    c.shape.from.cells = c.shape.to.cells = {{1, 1000}};
    c.shape.kept = {0}; // its member has all: the slots change their places only
    c.allocator = allocator;
    copier = spawn([this, c](caf::event_based_actor* self) -> caf::behavior {
      return {[this, mover = std::make_shared<kv_mover>(self, c)](bool rest) {
        const auto end = [this](std::optional<std::string> failure) { ends.push_back(failure); };
        rest ? mover->copy_rest(end) : mover->copy(end);
      }};
    });
    settle();
  }
  ~mover_world() { end_all(); }

  void copy(bool rest) {
    caf::anon_send(copier, rest);
    settle();
  }

  /// Slots of each piece; `left`: further ones behind it.
  void has(uint32_t slots, uint32_t left = 0) {
    book->pieces.push_back({0, 0, {{0, slots}}, {{0, slots}}, left});
  }
};

} // namespace

TEST_CASE_FIXTURE(mover_world,
                  "L-M03 a copy ends when what is decoded meanwhile does not get less, "
                  "and the rest is copied to its end") {
  has(50, 100), has(100), has(90), has(4), has(4), has(4), has(4);
  copy(false);
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(ends[0]);
  CHECK(book->pieces.size() == 2);
  copy(true);
  REQUIRE(ends.size() == 2);
  CHECK_FALSE(ends[1]);
  CHECK(book->pieces.empty());
}

} // namespace lamella::actors::test

"""Schedules are what their seed says, hit only who is there, and can be written down and played again."""
import json
import unittest

import schedule
import workload
from cluster import LAYOUTS, THROUGH_PROXY, workers_of


class Schedule(unittest.TestCase):
    def test_the_same_seed_gives_the_same(self):
        for make in (lambda seed: schedule.targeted(seed, THROUGH_PROXY),
                     lambda seed: schedule.drawn(seed, 300, workers_of(), THROUGH_PROXY),
                     schedule.gray, schedule.scaling, schedule.cells_that_come_and_go,
                     lambda seed: workload.make(seed, 40, "tiny", "canary")):
            self.assertEqual(make(3), make(3))
            self.assertNotEqual(make(3), make(4))
            self.assertEqual(make(3), json.loads(json.dumps(make(3))))

    def test_each_kind_is_there_and_hits_who_is_there(self):
        workers = workers_of()
        drawn = schedule.drawn(1, 5000, workers, THROUGH_PROXY)
        kinds = {x["kind"] for x in drawn}
        self.assertLessEqual({"kill", "pause", "stop", "cut", "cut_control", "cut_data", "mute_control", "mute_data",
                              "http", "slow_join", "corrupt", "drop", "slow", "isolate", "scale", "drain",
                              *schedule.PROXY_KINDS}, kinds)
        self.assertTrue(any(len(x["targets"]) == 2 for x in drawn))
        for x in drawn + schedule.targeted(1, THROUGH_PROXY) + schedule.gray(1) + schedule.scaling(1):
            for name in x["targets"]:
                self.assertIn(name, {"http": ["http"], "scale": LAYOUTS["heads"].sizes}.get(x["kind"], workers))
            if x["kind"] in (*schedule.PROXY_KINDS, "slow_join"):
                self.assertLessEqual(set(x["targets"]), set(THROUGH_PROXY))
        self.assertLessEqual(set(schedule.PROXY_KINDS), {x["kind"] for x in schedule.targeted(1, THROUGH_PROXY)})

    def test_a_plan_that_scales_ends_with_the_sizes_of_the_start(self):
        for layout in [x for x in LAYOUTS.values() if not x.cells]:
            attention = (layout.smaller, layout.sizes["attention"])
            for plan in (schedule.scaling(1, attention), schedule.targeted(1, THROUGH_PROXY, attention)):
                sizes = dict(layout.sizes)
                for x in plan:
                    if x["kind"] == "scale":
                        self.assertNotEqual(sizes[x["targets"][0]], x["members"])
                        sizes[x["targets"][0]] = x["members"]
                self.assertEqual(layout.sizes, sizes)

    def test_workers_are_killed_while_pools_change(self):
        for plan in (schedule.scaling(1), schedule.drawn(1, 5000, workers_of(), THROUGH_PROXY)):
            self.assertTrue(any(a["kind"] == "scale" and 0 < a["gap"] <= 2 and b["kind"] == "kill"
                                for a, b in zip(plan, plan[1:])))

    def test_cells_come_and_go_while_workers_are_hit(self):
        layout = LAYOUTS["cells"]
        there = layout.workers() | layout.reserve()
        for seed in range(5):
            plan = schedule.cells_that_come_and_go(seed)
            steps = [x for x in plan if x["kind"] == "cells"]
            self.assertEqual(layout.cells, steps[-1]["cells"])
            for far in schedule.FAR:
                self.assertTrue(any(x["cells"].get("far") == far for x in steps))
            self.assertTrue(any("far" not in x["cells"] for x in steps))
            beside = {b["kind"] for a, b in zip(plan, plan[1:]) if a["kind"] == "cells" and 0 < a["gap"] <= 0.3}
            self.assertEqual({"kill", "flip_data", "mute_data", "cut_data"}, beside)
            self.assertLessEqual({y for x in plan for y in x["targets"] if x["kind"] != "cells"}, set(there))

    def test_frames_are_damaged_and_lost_while_pools_change(self):
        plan = schedule.scaling(1)
        beside = {b["kind"] for a, b in zip(plan, plan[1:]) if a["kind"] == "scale" and 0 < a["gap"] <= 2}
        self.assertLessEqual({"flip_data", "mute_data", "cut_data"}, beside)

    def test_gray_failures_have_bounds_and_hit_who_is_there(self):
        for layout, bound in (("heads", 2000), ("bare", 4000)):
            plan = schedule.gray(1, guarded=LAYOUTS[layout].parity)
            self.assertEqual({bound}, {x["pause_ms"] for x in plan})
            for x in plan:
                self.assertLessEqual(set(x["targets"]), set(LAYOUTS[layout].workers()))
                if x["kind"] in schedule.PROXY_KINDS:
                    self.assertLessEqual(set(x["targets"]), set(THROUGH_PROXY))


if __name__ == "__main__":
    unittest.main()

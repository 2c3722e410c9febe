"""The checker holds a good run for good, and calls each kind of broken run broken, by the invariant it breaks."""
import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import checker
import pauses
from evidence import Evidence
from good_run import DRAINED_PAGE, SECRET, SLOTS, good_run, log_line


def write(run, folder):
    for name, content in run.items():
        if name.endswith(".json"):
            text = json.dumps(content)
        else:
            text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in content)
        (pathlib.Path(folder) / name).write_text(text)


def broken_by(run):
    """The invariants that the checker calls broken."""
    with tempfile.TemporaryDirectory() as folder:
        write(run, folder)
        with contextlib.redirect_stdout(io.StringIO()) as page:
            passed = checker.report(Evidence(folder))
        last = json.loads(page.getvalue().splitlines()[-1])
        assert passed == last["passed"] == (not last["broken"])
        return set(last["broken"])


class Checker(unittest.TestCase):
    def setUp(self):
        self.run_files = good_run()

    def lines(self, identity, event):
        return [x for x in self.run_files["client.jsonl"] if x["id"] == identity and x["event"] == event]

    def change(self, identity, number, change):
        """Changes the object in the data or body event with that number."""
        line = (self.lines(identity, "data") + self.lines(identity, "body"))[number]
        key = line["event"]
        x = json.loads(line[key])
        change(x)
        line[key] = json.dumps(x)

    def expect(self, *names):
        self.assertEqual(set(names), broken_by(self.run_files))

    def sample(self, phase, key):
        return next(x for x in self.run_files["samples.jsonl"] if x.get("phase") == phase and key in x)

    def test_a_good_run(self):
        self.expect()

    def test_i1_a_lost_request(self):
        self.lines("r0.0", "end")[0].update(how="broken", detail="reset")
        self.expect("i1")

    def test_i1_a_request_without_an_end(self):
        self.run_files["client.jsonl"].remove(self.lines("r1.0", "end")[0])
        self.expect("i1")

    def test_i1_a_request_that_failed(self):
        self.lines("r0.0", "status")[0]["status"] = 500
        self.lines("r0.0", "body")[0]["body"] = '{"error": {"message": "lost"}}'
        self.expect("i1")

    def test_i1_a_stream_that_ends_with_an_error(self):
        self.lines("r1.0", "data")[-1]["data"] = '{"error": {"message": "lost"}}'
        self.expect("i1")

    def test_i1_an_end_told_twice(self):
        log = self.run_files["gateway.log"]
        log.insert(4, log[3])
        self.expect("i1")

    def test_i1_no_end_told(self):
        del self.run_files["gateway.log"][3]
        self.expect("i1")

    def test_i1_a_connection_that_the_proxy_broke_is_no_loss(self):
        self.lines("r0.0", "end")[0].update(how="broken")
        self.lines("r0.0", "send")[0].update(via="proxy")
        self.run_files["proxy.jsonl"] = [
            {"t": 1, "event": "open", "name": "http", "connection": 3, "port": 1004},
            {"t": 2, "event": "injured", "name": "http", "connection": 3, "kind": "reset", "way": "up"}]
        self.expect()
        self.run_files["proxy.jsonl"][1]["kind"] = "delay"
        self.expect("i1")

    def test_i1_a_direct_connection_that_is_refused(self):
        client = self.run_files["client.jsonl"]
        for event in ("connected", "status", "body"):
            client.remove(self.lines("r0.0", event)[0])
        self.lines("r0.0", "end")[0].update(how="broken", detail="ConnectionRefusedError")
        self.expect("i1")
        self.lines("r0.0", "send")[0].update(via="proxy")
        self.expect()

    def test_i2_a_position_said_twice(self):
        client = self.run_files["client.jsonl"]
        client.insert(client.index(self.lines("r1.0", "data")[2]), dict(self.lines("r1.0", "data")[1]))
        self.expect("i2", "i3")

    def test_i2_a_position_left_out(self):
        self.run_files["client.jsonl"].remove(self.lines("r1.0", "data")[1])
        self.expect("i2", "i3")

    def test_i2_more_after_the_end(self):
        client = self.run_files["client.jsonl"]
        client.insert(client.index(self.lines("r1.0", "end")[0]), dict(self.lines("r1.0", "data")[4]))
        self.expect("i2")

    def test_i2_done_without_an_end(self):
        self.run_files["client.jsonl"].remove(self.lines("r1.0", "data")[3])
        self.expect("i2", "i3")

    def test_i3_a_changed_token(self):
        def change(x):
            x["choices"][0]["logprobs"]["tokens"][1] = "X"
        self.change("r1.0", 1, change)
        self.expect("i3")

    def test_i3_a_changed_probability(self):
        def change(x):
            x["choices"][0]["logprobs"]["token_logprobs"][0] = -1.0000001
        self.change("r0.0", 0, change)
        self.expect("i3")

    def test_i3_a_changed_text(self):
        self.change("r0.0", 0, lambda x: x["choices"][0].update(text="abcX"))
        self.expect("i3")

    def test_i3_a_wrong_part_of_a_cancelled_answer(self):
        self.change("r1.0", 0, lambda x: x["choices"][0].update(text="X"))
        for line in self.lines("r1.0", "data")[1:]:
            self.run_files["client.jsonl"].remove(line)
        self.lines("r1.0", "end")[0].update(how="cancelled")
        self.expect("i3")

    def test_i5_slots_that_leak(self):
        for phase in ("drained",):
            self.sample(phase, "status")["status"] = json.loads(json.dumps(self.sample("load", "status")["status"]))
        self.expect("i5")

    def pool_under_load(self):
        return self.sample("load", "status")["status"]["pools"][0]

    def test_i5_slots_that_vanish(self):
        self.pool_under_load()["slots"]["free"] = 5
        self.expect("i5")

    def test_i5_slots_that_are_free_and_used(self):
        self.pool_under_load()["slots"]["used"] = 4
        self.expect("i5")

    def test_i5_a_pool_that_changes(self):
        self.pool_under_load()["slots"] |= {"free": 7, "total": 11}
        self.expect("i5")

    def test_i5_a_reference_that_nobody_holds(self):
        self.pool_under_load()["references"]["counted"] = 6
        self.expect("i5")

    def test_i5_references_that_leak(self):
        self.drained_status()["pools"][0]["references"] = {"counted": 2, "held": 2}
        self.expect("i5")

    def test_i5_what_only_the_cache_has_is_no_leak(self):
        self.drained_status()["pools"][0] |= {"slots": SLOTS | {"free": 8, "cached": 2},
                                              "references": {"counted": 2, "held": 2}}
        self.expect()

    def test_i5_a_reference_to_what_is_cached_that_stays(self):
        self.drained_status()["pools"][0] |= {"slots": SLOTS | {"free": 8, "cached": 2},
                                              "references": {"counted": 3, "held": 3}}
        self.expect("i5")

    def test_i5_orphans_that_stay(self):
        self.drained_status()["pools"][0]["slots"] = SLOTS | {"free": 9, "orphan": 1}
        self.expect("i5")

    def test_i5_a_worker_with_other_slots(self):
        page = self.sample("drained", "metrics")
        page["metrics"] = page["metrics"].replace('"free",worker="attention-1"} 10', '"free",worker="attention-1"} 8')
        self.expect("i5")

    def drained_status(self):
        x = self.sample("drained", "status")
        x["status"] = json.loads(json.dumps(x["status"]))
        return x["status"]

    def test_i6_a_request_left_over(self):
        self.drained_status()["gateway"]["requests"] = 1
        self.expect("i6")

    def test_i6_descriptors_left_over(self):
        self.sample("drained", "process")["descriptors"] = 60
        self.expect("i6")

    def test_i6_threads_left_over(self):
        self.sample("drained", "process")["threads"] = 25
        self.expect("i6")

    def test_i6_a_batch_left_over(self):
        self.sample("drained", "metrics")["metrics"] = DRAINED_PAGE.replace("in_flight 0", "in_flight 1")
        self.expect("i6")

    def test_i8_two_in_a_seat(self):
        del self.run_files["gateway.log"][4]  # the loss
        self.expect("i8", "injuries")

    def test_i8_a_worker_that_was_sent_away_and_comes_again(self):
        log = self.run_files["gateway.log"]
        log[4] = log_line(6, 'worker sent away seat=model/0 incarnation=1 worker=model-0 reason="it was drained"')
        for x in self.run_files["nemesis.jsonl"][:2]:
            x.update(kind="drain")
        self.expect()
        log[4] = log_line(6, "worker sent away seat=model/1 incarnation=1 worker=model-0")
        self.expect("i8")

    def test_i8_an_incarnation_twice(self):
        log = self.run_files["gateway.log"]
        log[5] = log[5].replace("incarnation=2", "incarnation=1")
        self.expect("i8")

    def test_i8_an_epoch_again(self):
        self.run_files["gateway.log"][6] = log_line(7.1, "epoch open epoch=1 replicas=1")
        self.expect("i8")

    def test_i8_a_seat_taken_twice_in_the_status(self):
        self.drained_status()["workers"] = [{"seat": "model/0"}, {"seat": "model/0"}]
        self.expect("i8")

    def test_i9_rows_that_differ(self):
        self.run_files["gateway.log"].append(log_line(8, "KV transfer digests differ pull=1", "warning"))
        self.expect("i9")

    def damage(self, series):
        page = self.sample("drained", "metrics")
        page["metrics"] = page["metrics"].replace(f"{series} 0", f"{series} 2")

    def test_i9_damage_after_a_rebuild(self):
        self.damage('lamella_kv_integrity_failures_total{where="rebuild"}')
        self.expect("i9")

    def test_i9_damage_after_a_transfer(self):
        self.damage('lamella_kv_integrity_failures_total{where="transfer"}')
        self.expect("i9")

    def test_i9_nobody_compares(self):
        page = self.sample("drained", "metrics")
        page["metrics"] = page["metrics"].replace("lamella_kv_digests_compared_total 12\n", "")
        self.expect("i9")

    def test_i10_a_parity_that_is_wrong(self):
        self.sample("drained", "metrics")["metrics"] += "lamella_parity_mismatches_total 2\n"
        self.expect("i10")

    def test_i11_memory_that_stays(self):
        self.sample("drained", "process")["rss_kib"] = 100000
        self.expect("i11")

    def test_i12_too_long_a_queue(self):
        self.sample("load", "status")["status"]["requests"]["waiting"] = 513
        self.expect("i12")

    def test_i12_beyond_the_deadline(self):
        log = self.run_files["gateway.log"]
        log[3] = log[3].replace("e2e_ms=10.0", "e2e_ms=700000.0")
        self.expect("i12")

    def test_i13_a_restart_of_the_supervisor(self):
        self.run_files["gateway.log"].append(log_line(8, "restarting after a fault subtree=pipeline", "error"))
        self.expect("i13")

    def test_i13_a_busy_loop(self):
        log = self.run_files["gateway.log"]
        for i in range(30):
            for what, incarnation in (("lost", 2 + i), ("joined", 3 + i)):
                log.append(log_line(8 + i * 0.1, f"worker {what} seat=model/0 incarnation={incarnation} worker=model-0"))
        self.expect("i13")

    def test_i14_ready_and_refuses(self):
        lie = {"t": 1e9, "probe": "asked", "ready": 200, "answer": 503, "ready_after": 200, "seconds": 1}
        self.run_files["samples.jsonl"] += [lie, lie]
        self.expect()
        self.run_files["samples.jsonl"] += [lie]
        self.expect("i14")

    def test_i15_a_crash(self):
        self.run_files["exits.jsonl"][0].update(cause=None, code=-11)
        self.expect("i15")

    def test_i15_words_of_a_crash(self):
        self.run_files["model-0.log"].append("terminate called after throwing an instance of 'std::bad_alloc'")
        self.expect("i15")

    def test_i15_a_gateway_that_ends_badly(self):
        self.run_files["exits.jsonl"][1].update(code=75)
        self.expect("i15")

    def test_i16_a_key_in_a_log(self):
        self.run_files["model-0.log"].append(log_line(8, f"key {SECRET} refused"))
        self.expect("i16")

    def test_i16_a_key_in_an_error(self):
        self.lines("r0.0", "status")[0].update(status=503, headers={"retry-after": "1", "x-key": SECRET})
        self.expect("i16")

    def test_an_injury_without_effect(self):
        log = self.run_files["gateway.log"]
        del log[4:6]  # neither lost nor joined again
        self.expect("injuries")

    def test_an_injury_that_is_not_counted(self):
        self.run_files["nemesis.jsonl"][1]["counted"] = 0
        self.expect("injuries")

    def test_a_link_that_stays_open(self):
        for x in self.run_files["nemesis.jsonl"][:2]:
            x.update(kind="flip")
        self.run_files["nemesis.jsonl"][1]["closed"] = False
        self.expect("injuries")

    def test_a_handshake_taken_for_silence(self):
        self.run_files["model-0.log"].append(log_line(8, "cannot join 10.77.0.2:7101: system_error(connection_timeout)"))
        self.expect("joins")

    def test_not_whole_at_the_end(self):
        self.run_files["nemesis.jsonl"][-1]["whole"] = False
        self.expect("injuries")

    def test_a_worker_that_ends_when_its_pool_gets_smaller(self):
        self.run_files["exits.jsonl"][0].update(cause="retire", code=69)
        self.expect()
        self.run_files["exits.jsonl"][0].update(code=70)
        self.expect("i15")

    def test_i5_as_many_numbers_of_slots_as_sizes(self):
        self.drained_status()["pools"][0]["slots"] = {x: 2 * n for x, n in SLOTS.items()}
        self.expect("i5")
        self.run_files["nemesis.jsonl"].append({"t": 1e9 + 8.5, "event": "begin", "number": 1, "kind": "scale",
                                                "targets": ["attention"], "members": 3})
        self.expect()

    def test_i5_as_many_numbers_of_slots_as_cells_make(self):
        self.drained_status()["pools"][0]["slots"] = {x: 2 * n for x, n in SLOTS.items()}
        page = next(x for x in self.run_files["samples.jsonl"] if "metrics" in x)
        page["metrics"] = page["metrics"].replace('state="free",worker="attention-1"} 10', 'state="free",worker="attention-1"} 7')
        self.expect("i5")
        one, two = {"members": 3}, {"members": 1}
        self.run_files["nemesis.jsonl"].append({"t": 1e9 + 8.5, "event": "begin", "number": 1, "kind": "cells",
                                                "targets": ["attention"], "cells": {"main": one, "far": two}})
        self.expect()

    def test_pauses_of_each_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_files["nemesis.jsonl"][0]["t"] = 1e9 + 5
            write(self.run_files, folder)
            found = pauses.pauses_by_kind(Evidence(folder))
        self.assertEqual({"kill": {"streams": 1, "p50": 10, "p99": 10, "max": 10}}, found)

    def test_streams_that_stood_still_for_too_long(self):
        self.run_files["nemesis.jsonl"][0] |= {"t": 1e9 + 5, "seconds": 10, "pause_ms": 50}
        self.expect()
        self.run_files["nemesis.jsonl"][0]["pause_ms"] = 5
        self.expect("pauses")

    def test_no_stream_went_on(self):
        self.run_files["nemesis.jsonl"].append({"t": 1e9 + 20, "event": "begin", "number": 1, "kind": "cut_data",
                                                "targets": ["model-0"], "seconds": 10, "pause_ms": 50})
        self.expect("pauses")

    def test_others_lost_as_well(self):
        log, nemesis = self.run_files["gateway.log"], self.run_files["nemesis.jsonl"]
        other = "worker {} seat=attention/{} incarnation={} worker=attention-{}"
        log[0:0] = [log_line(0.5, other.format("joined", i, 1, i)) for i in range(3)]
        sits = "worker {} seat=model/0 incarnation={} worker=model-0"
        for n in range(1, 4):
            at = 10.0 * n
            nemesis.append(nemesis[0] | {"t": 1e9 + at, "number": n})
            log.append(log_line(at + 0.01, sits.format("lost", n + 1)))
            log += [log_line(at + 0.02, other.format("lost", i, n, i)) for i in range(3)]
            log.append(log_line(at + 1, sits.format("joined", n + 2)))
            log += [log_line(at + 1.1, other.format("joined", i, n + 1, i)) for i in range(3)]
            if n == 2:
                self.expect()
        self.expect("others")


if __name__ == "__main__":
    unittest.main()

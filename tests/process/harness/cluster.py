"""A service on hosts of its own: a gateway, and workers that join it over the network."""
import json
import os
import secrets
import signal
import threading
import time

from service import Service

DEAD_SECONDS = 3.0
GATEWAY_PORTS = {"api": 8000, "admin": 8001, "control": 7000}
FIRST_PROXY_PORT = 7100
HTTP_PROXY_PORT = 8008
# Those whose control link goes through the chaos proxy; the others' go straight.
THROUGH_PROXY = ("model-1", "attention-2", "attention-4", "prefill-0")
BACK_OFF = (0.1, 2.0)  # seconds before a worker that ended is started again: first, longest
MODEL = "tiny"


SPARES = 1
RESERVE = {"model-2": ("model", 2), "prefill-1": ("prefill", 1)}  # hosts whose workers start when a pool grows
CHANGE_SECONDS = 100  # for a change of a pool's size
CELL_HOSTS = 2        # whose workers start when the cell that comes and goes has members
QUIET_SECONDS = 1.5   # without a change before those of a reload have ended: one may begin after another


def workers_of(replicas=2, members=3, beside=1 + SPARES, prefill=1):
    """Host name -> (role, seat); `beside`: of the attention pool, spares and the one with the parity."""
    made = {f"model-{i}": ("model", i) for i in range(replicas)}
    made |= {f"attention-{i}": ("attention", i) for i in range(members + beside)}
    return made | {f"prefill-{i}": ("prefill", i) for i in range(prefill)}


class Layout:
    """The attention pool, and what all pools have at the start. Of its workers some are spares, and where there is
    parity one has it. `cells`: those of the start, by which it is a pool of cells."""

    def __init__(self, partition, members, parity, spares, smaller, cells=None):
        self.partition, self.parity, self.spares, self.smaller = partition, parity, spares, smaller
        self.cells = cells
        self.attention = "attention/main" if cells else "attention"
        self.sizes = {"model": 2, self.attention: members, "prefill": 1}
        self.beside = {"model": 0, self.attention: parity + spares, "prefill": 0}  # seats beyond the size

    def workers(self):
        return workers_of(members=self.sizes[self.attention], beside=self.beside[self.attention])

    def reserve(self):
        cell = {f"far-{i}": ("attention", i) for i in range(CELL_HOSTS)} if self.cells else {}
        return RESERVE | cell


# bare: whoever loses a shard has nobody for its part. cells: another cell comes and goes beside one like that of heads.
LAYOUTS = {"heads": Layout("heads", 3, True, SPARES, 1), "requests": Layout("requests", 4, False, SPARES, 2),
           "bare": Layout("heads", 3, False, 0, 1),
           "cells": Layout("heads", 3, True, SPARES, 1, {"main": {"members": 3, "parity": True, "spares": SPARES}})}


class Worker:
    """A worker's host and whoever runs there. `cell`: the one it names when it joins."""

    def __init__(self, name, role, seat):
        self.name, self.role, self.seat = name, role, seat
        self.cell = "far" if name.startswith("far") else None
        self.process = None
        self.started = 0.0
        self.delay = BACK_OFF[0]
        self.due = None   # when it is started again
        self.wanted = True # else its pool is too small for it, and nobody starts it again
        self.cause = None # what the harness did to this process, if it ended it


class Cluster:
    """Call prepare() with the certificates made, then start(); keep() runs in a thread of its own."""

    def __init__(self, hosts, work, lamella, model, layout):
        self.hosts, self.work, self.lamella, self.model, self.layout = hosts, work, lamella, model, layout
        self.workers = {name: Worker(name, *what) for name, what in (layout.workers() | layout.reserve()).items()}
        for name in layout.reserve():
            self.workers[name].wanted = False
        self.sizes, self.beside = dict(layout.sizes), dict(layout.beside)
        self.changing = 0  # changes that somebody follows
        self.lock = threading.RLock()
        self.ending = False
        self.gateway = None
        self.exits = open(work / "exits.jsonl", "a", buffering=1)
        self.keys = {"key": "lam_" + secrets.token_hex(16), "admin_key": "lam_" + secrets.token_hex(16)}
        hosts.add("gateway")
        hosts.add("proxy")
        for name in self.workers:
            hosts.add(name)
        for name, key in self.keys.items():
            (work / name).write_text(key + "\n")
            os.chmod(work / name, 0o400)
        at = hosts.control("gateway")
        self.address = {what: f"{at}:{port}" for what, port in GATEWAY_PORTS.items()}
        self.http_proxy = f"{hosts.control('proxy')}:{HTTP_PROXY_PORT}"
        self.service = Service(self.address["api"], self.address["admin"], **self.keys)

    def joins(self, name):
        """Where that worker believes the service to be."""
        if name not in THROUGH_PROXY:
            return self.address["control"]
        return f"{self.hosts.control('proxy')}:{FIRST_PROXY_PORT + list(self.workers).index(name)}"

    def common_words(self):
        return ["serve", "--model", self.model, "--set", f"model.name={MODEL}",
                "--set", "kv.bytes=16777216", "--set", "model.context_tokens=2048",
                "--set", "shutdown.drain_seconds=60"]

    def start_single(self):
        """An undisturbed service in one process, for the golden run."""
        words = [self.lamella, *self.common_words(), "--set", f"http.listen={self.address['api']}",
                 "--set", "http.api_keys_file=key", "--set", f"admin.listen={self.address['admin']}",
                 "--set", "admin.api_keys_file=admin_key"]
        return self.hosts.start("gateway", words, self.work / "single.log")

    def start(self):
        words = [self.lamella, *self.common_words(), "--set", f"http.listen={self.address['api']}",
                 "--set", "http.api_keys_file=key", "--set", f"admin.listen={self.address['admin']}",
                 "--set", "admin.api_keys_file=admin_key", "--set", "chaos.enabled=true",
                 "--set", f"control.listen={self.address['control']}", "--set", "control.secret_file=secret",
                 "--set", f"control.dead_seconds={DEAD_SECONDS}",
                 "--set", "control.tls_certificate=gateway.pem", "--set", "control.tls_key=gateway.key",
                 "--set", "control.tls_ca=ca.pem", "--set", f"net.listen={self.hosts.data('gateway')}:0",
                 "--config", "pools.yaml"]
        self.write_pools(self.layout.cells)
        self.gateway = self.hosts.start("gateway", words, self.work / "gateway.log")
        for worker in self.workers.values():
            if worker.wanted:
                self.start_worker(worker)
        threading.Thread(target=self.keep, daemon=True).start()

    def write_pools(self, cells):
        """The configuration file of the service; JSON is YAML."""
        common = {"placement": "remote", "threads": 1}
        layout = self.layout
        pools = {"model": common | {"members": 2}, "prefill": common | {"members": 1}}
        if cells:
            pools["attention"] = common | {"cells": cells}
        else:
            pools["attention"] = common | {"members": layout.sizes["attention"], "partition": layout.partition,
                                           "parity": layout.parity, "spares": layout.spares}
        (self.work / "pools.yaml").write_text(json.dumps({"version": 1, "pools": pools}))

    def start_worker(self, worker):
        name = worker.name
        cell = ["--cell", worker.cell] if worker.cell else []
        words = [self.lamella, "worker", "--role", worker.role, *cell, "--seat", worker.seat, "--name", name,
                 "--join", self.joins(name), "--secret-file", "secret",
                 "--listen", f"{self.hosts.data(name)}:0", "--dead-seconds", DEAD_SECONDS, "--rejoin-seconds", "0",
                 "--tls-certificate", f"{name}.pem", "--tls-key", f"{name}.key", "--tls-ca", "ca.pem"]
        worker.process = self.hosts.start(name, words, self.work / f"{name}.log")
        worker.started, worker.due, worker.cause = time.monotonic(), None, None

    def keep(self):
        """Starts workers that end again, as a service manager would, and writes how they ended."""
        while not self.ending:
            with self.lock:
                for worker in self.workers.values():
                    self.look_after(worker, time.monotonic())
            time.sleep(0.03)

    def look_after(self, worker, now):
        if worker.process is not None:
            code = worker.process.poll()
            if code is None:
                return
            self.tell_exit(worker, code)
            worker.delay = BACK_OFF[0] if now - worker.started > 5 else min(2 * worker.delay, BACK_OFF[1])
            worker.process, worker.due = None, now + worker.delay
        elif worker.wanted and worker.due is not None and now >= worker.due:
            self.start_worker(worker)

    def tell_exit(self, worker, code):
        self.exits.write(json.dumps({"t": time.time(), "name": worker.name, "pid": worker.process.pid,
                                     "code": code, "cause": worker.cause}) + "\n")

    def signal(self, name, what, cause=None):
        """To that worker's process; `cause` tells that it is meant to end of it. Whether there is one."""
        with self.lock:
            worker = self.workers[name]
            if worker.process is None or worker.process.poll() is not None:
                return False
            if worker.cause != "retire":  # it is ending by itself, whatever hits it now
                worker.cause = cause or worker.cause
            worker.process.send_signal(what)
            return True

    def scale(self, pool, members):
        """Has the service change a pool's size, and starts or ends hosts' workers as whoever runs them would. Whether
        the service took it."""
        code, text = self.service.scale(pool, members)
        return self.follow(json.loads(text)) if code in (200, 202) else False

    def drain(self, name):
        """Has the service take a worker out; a pool that gets smaller for it is followed."""
        code, text = self.service.drain(name)
        if code not in (200, 202):
            return False
        change = json.loads(text)
        return True if change["from"] == change["members"] else self.follow(change)

    def reload_cells(self, cells):
        """Has the service read a file with these cells, and starts or ends hosts' workers. Whether the service took it:
        it does not while a pool changes."""
        self.write_pools(cells)
        code, text = self.service.reload()
        if code != 200 or json.loads(text)["needs_restart"]:
            return False
        with self.lock:
            self.changing += 1
        for name, x in cells.items():
            pool = f"attention/{name}"
            self.beside[pool] = x.get("parity", False) + x.get("spares", 0)
            self.want(pool, max(self.sizes.get(pool, 0), x["members"]))
        threading.Thread(target=self.see_cells_to_the_end, daemon=True).start()
        return True

    def follow(self, change):
        """Until the change has ended, in a thread of its own."""
        with self.lock:
            self.changing += 1
        self.want(change["pool"], max(change["from"], change["members"]))
        threading.Thread(target=self.see_to_the_end, args=(change["pool"],), daemon=True).start()
        return True

    def of_pool(self, pool):
        """Workers of a pool or of a cell."""
        cell = pool.split("/")[1] if "/" in pool else "main"
        return [x for x in self.workers.values() if x.role == pool.split("/")[0] and (x.cell or "main") == cell]

    def want(self, pool, members):
        """More of that pool's workers where it has too few for that size."""
        with self.lock:
            of_pool = self.of_pool(pool)
            short = self.seats(pool, members) - sum(x.wanted for x in of_pool)
            for worker in [x for x in of_pool if not x.wanted][:max(short, 0)]:
                worker.wanted, worker.due = True, time.monotonic()

    def see_to_the_end(self, pool):
        def has_ended():
            try:
                return self.service.pools()[pool]["state"] not in ("under way", "short")
            except (OSError, ValueError):
                return False
        try:
            if until(CHANGE_SECONDS, has_ended) and not self.ending:
                now = self.service.pools()[pool]
                self.sizes[pool] = now["from"] if now["state"] == "rolled back" else now["members"]
                self.retire(pool)
        finally:
            with self.lock:
                self.changing -= 1

    def see_cells_to_the_end(self):
        cells, changed = {}, time.monotonic()

        def have_ended():
            nonlocal cells, changed
            try:
                now = {name: x for name, x in self.service.pools().items() if name.startswith("attention/")}
            except (OSError, ValueError):
                return False
            if now != cells or any(x["state"] in ("under way", "short") for x in now.values()):
                cells, changed = now, time.monotonic()
            return time.monotonic() - changed > QUIET_SECONDS
        try:
            if until(CHANGE_SECONDS, have_ended) and not self.ending:
                for pool, x in cells.items():
                    self.sizes[pool] = x["from"] if x["state"] == "rolled back" else x["members"]
                    self.retire(pool)
        finally:
            with self.lock:
                self.changing -= 1

    def seats(self, pool, members):
        """Of a pool with that size; without members it has neither spares nor a parity."""
        return members + self.beside[pool] if members else 0

    def retire(self, pool):
        """Workers of a pool that are too many now, ended as an operator would: those that have no seat."""
        sit = {x["name"] for x in self.service.status()["workers"]}
        with self.lock:
            wanted = [x for x in self.of_pool(pool) if x.wanted]
            over = max(len(wanted) - self.seats(pool, self.sizes[pool]), 0)
            for worker in sorted(wanted, key=lambda x: x.name in sit)[:over]:
                worker.wanted = False
                self.signal(worker.name, signal.SIGTERM, "retire")

    def stop(self):
        """Ends everybody with SIGTERM, the gateway first, and writes how they ended."""
        with self.lock:
            self.ending = True
        self.gateway.send_signal(signal.SIGTERM)
        wait_or_kill(self.gateway, 180)
        self.exits.write(json.dumps({"t": time.time(), "name": "gateway", "pid": self.gateway.pid,
                                     "code": self.gateway.returncode, "cause": "end"}) + "\n")
        running = [x for x in self.workers.values() if x.process is not None]
        for worker in running:
            worker.cause = worker.cause or "end"
            worker.process.send_signal(signal.SIGTERM)
        for worker in running:
            wait_or_kill(worker.process, 90)
            self.tell_exit(worker, worker.process.returncode)

    def is_whole(self):
        """Every seat is taken by a live worker, all but the spare have a part, no pool changes its size, and the service
        says that all is well."""
        try:
            status = self.service.status()
            live = [x for x in status["workers"] if x["state"] == "live" and x["host"] != "gateway"]
            spares = [x for x in live if x["part"] == "spare"]
            wanted = sum(x.wanted for x in self.workers.values())
            return (not self.changing and len(live) >= wanted and len(spares) == self.layout.spares and all(x["part"] for x in live)
                    and not status.get("missing") and self.service.ready() == (200, "ok"))
        except (OSError, ValueError):
            return False


def wait_or_kill(process, seconds):
    try:
        process.wait(seconds)
    except Exception:  # whoever does not end is killed: its exit code tells
        process.kill()
        process.wait()


def until(seconds, condition, step=0.05):
    """Whether the condition becomes true within that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True

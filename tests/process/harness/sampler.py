"""Looks at a running service from outside, again and again, and writes what it sees as JSON lines."""
import http.client
import json
import pathlib
import threading
import time

FAILURES = (OSError, ValueError, http.client.HTTPException)


def process_facts(pid):
    """Memory, descriptors and threads of a process, from /proc; None when it is gone."""
    try:
        words = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return {"rss_kib": int(words["VmRSS"].split()[0]), "threads": int(words["Threads"]),
                "descriptors": len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))}
    except (OSError, KeyError):
        return None


class Sampler:
    """look() writes one sample; start() lets threads do it until stop()."""

    def __init__(self, cluster, model):
        self.cluster, self.model = cluster, model
        self.file = open(cluster.work / "samples.jsonl", "a", buffering=1)
        self.ended = threading.Event()
        self.threads = []

    def tell(self, **what):
        self.file.write(json.dumps({"t": time.time(), **what}) + "\n")

    def look(self, phase):
        """Status, metrics and processes, once. `phase` names when that was."""
        for what, ask in (("status", self.cluster.service.status), ("metrics", self.cluster.service.metrics)):
            try:
                self.tell(phase=phase, **{what: ask()})
            except FAILURES as e:
                self.tell(phase=phase, missed=what, why=repr(e))
        self.look_at_processes(phase)

    def look_at_processes(self, phase):
        with self.cluster.lock:
            pids = {x.name: x.process.pid for x in self.cluster.workers.values() if x.process is not None}
        pids["gateway"] = self.cluster.gateway.pid
        for name, pid in pids.items():
            if facts := process_facts(pid):
                self.tell(phase=phase, process=name, pid=pid, **facts)

    def probe(self):
        """Whether the service says it is ready, and whether it then takes a request."""
        before = answer = after = None
        begin = time.monotonic()
        try:
            before = self.cluster.service.ready()[0]
            answer = self.cluster.service.probe(self.model)
            after = self.cluster.service.ready()[0]
        except FAILURES as e:
            self.tell(probe="missed", why=repr(e))
            return
        self.tell(probe="asked", ready=before, answer=answer, ready_after=after,
                  seconds=round(time.monotonic() - begin, 3))

    def again(self, seconds, what, *words):
        while not self.ended.wait(seconds):
            what(*words)

    def start(self):
        for seconds, what, words in ((2.0, self.look, ("load",)), (0.5, self.probe, ())):
            self.threads.append(threading.Thread(target=self.again, args=(seconds, what, *words), daemon=True))
            self.threads[-1].start()

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()

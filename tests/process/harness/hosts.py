"""Hosts made of network namespaces, each with two cables: one to the control network, one to the data
network. Must run inside namespaces of its own (../namespaces.sh), where it owns /run."""
import os
import pathlib
import subprocess
import uuid

CONTROL, DATA = "10.77.0.", "10.78.0."
HERE = 254  # the number of this process's own addresses


def ip(*words):
    """Runs `ip`; its words say what went wrong if it does."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Hosts:
    """All hosts of a run. Host number i has the addresses 10.77.0.i and 10.78.0.i."""

    planes = ("control", "data")

    def __init__(self, work):
        self.work = pathlib.Path(work)
        self.number_of = {}
        ip("link", "set", "lo", "up")
        for plane, network in zip(self.planes, (CONTROL, DATA)):
            ip("link", "add", f"{plane}-net", "type", "bridge")
            ip("link", "set", f"{plane}-net", "up")
            ip("address", "add", f"{network}{HERE}/24", "dev", f"{plane}-net")

    def add(self, name):
        """A host with both cables in."""
        number = len(self.number_of) + 1
        self.number_of[name] = number
        ip("netns", "add", name)
        for plane, network in zip(self.planes, (CONTROL, DATA)):
            ip("link", "add", f"{plane[0]}-{number}", "type", "veth", "peer", "name", plane, "netns", name)
            ip("link", "set", f"{plane[0]}-{number}", "master", f"{plane}-net", "up")
            ip("-n", name, "address", "add", f"{network}{number}/24", "dev", plane)
            ip("-n", name, "link", "set", plane, "up")
        ip("-n", name, "link", "set", "lo", "up")
        # What tells hosts apart, for shared memory between processes, are names and boot ids.
        (self.work / f"boot-{name}").write_text(f"{uuid.uuid4()}\n")
        os.makedirs(f"/run/tmp-{name}", exist_ok=True)

    def control(self, name):
        return f"{CONTROL}{self.number_of[name]}"

    def data(self, name):
        return f"{DATA}{self.number_of[name]}"

    def cable(self, name, plane, is_in):
        """Pulls the cable of a host, or puts it in again."""
        ip("link", "set", f"{plane[0]}-{self.number_of[name]}", "up" if is_in else "down")

    def mute(self, name, plane, is_mute):
        """One way: what this host sends on a network goes nowhere, what comes in arrives."""
        network = CONTROL if plane == "control" else DATA
        for half in ("0/25", "128/25"):  # more specific than the cable's own route
            ip("-n", name, "route", "add" if is_mute else "del", "blackhole", network + half)

    def start(self, name, words, log):
        """A process of that host, its output appended to `log`."""
        as_host = ('hostname "$0" && mount --bind "$1" /proc/sys/kernel/random/boot_id && '
                   'TMPDIR=/run/tmp-$0 exec "${@:2}"')
        with open(log, "ab") as out:
            return subprocess.Popen(
                ["ip", "netns", "exec", name, "unshare", "--uts", "bash", "-c", as_host, name,
                 str(self.work / f"boot-{name}"), *map(str, words)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

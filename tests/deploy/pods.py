"""Containers made of namespaces: each has a root of its own that nobody may write, a network address, a process tree
whose first process is the program, and the user and rights that its manifest says. Linux alone, no engine.

Needs root, in mount, network and process namespaces of its own (tests/process/namespaces.sh), with a tmpfs at /run.
"""
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

HOME = Path("/run/pods")
DEVICES = ("null", "zero", "full", "random", "urandom")


def sh(*words):
    subprocess.run([str(x) for x in words], check=True)


def until(what, seconds, condition):
    """Waits until that is true, and gives it; `what` says more where it does not come."""
    end = time.monotonic() + seconds
    while True:
        got = condition()
        if got:
            return got
        assert time.monotonic() < end, f"not within {seconds} s: {what()}"
        time.sleep(0.05)


class Network:
    """A bridge, on which this process is the host 1."""

    def __init__(self, name, prefix):
        self.name, self.prefix, self.last, self.bridge = name, prefix, 1, f"to-{name}"
        sh("ip", "link", "add", self.bridge, "type", "bridge")
        sh("ip", "address", "add", f"{prefix}.1/24", "dev", self.bridge)
        sh("ip", "link", "set", self.bridge, "up")

    def next(self):
        self.last += 1
        return f"{self.prefix}.{self.last}"


class Container:
    """One of them. `mounts` are (path, source, options) in order: a file or folder, or a tmpfs where the source is
    None; `names` is what its /etc/hosts has."""

    def __init__(self, name, networks, image, words, environment, mounts, user=10001):
        self.name, self.image, self.words, self.environment = name, image, words, environment
        self.mounts, self.user = mounts, user
        self.log = HOME / f"{name}.log"
        self.folder, self.names, self.process = HOME / name, {}, None
        self.folder.mkdir(parents=True)
        for path, source, _ in mounts:  # runtimes make what a mount needs
            at = image / path[1:]
            at.parent.mkdir(parents=True, exist_ok=True)
            if source is None or source.is_dir():
                at.mkdir(exist_ok=True)
            else:
                at.touch()
        sh("ip", "netns", "add", name)
        sh("ip", "-n", name, "link", "set", "lo", "up")
        self.addresses = {}
        for i, network in enumerate(networks):
            outside = f"{network.bridge}-{network.last}"
            address = self.addresses[network.name] = network.next()
            sh("ip", "link", "add", outside, "type", "veth", "peer", "name", f"eth{i}", "netns", name)
            sh("ip", "link", "set", outside, "master", network.bridge, "up")
            sh("ip", "-n", name, "address", "add", f"{address}/24", "dev", f"eth{i}")
            sh("ip", "-n", name, "link", "set", f"eth{i}", "up")
        self.address = next(iter(self.addresses.values()))

    def start(self):
        """As a new container of the same pod: nothing that it wrote is there again."""
        root = self.folder / "root"
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in self.names.items()))
        binds = [f"mount --bind {self.image} {root}", f"mount -o remount,bind,ro {root}",
                 f"mount -t tmpfs -o mode=755 tmpfs {root}/dev"]
        for device in DEVICES:
            binds += [f"touch {root}/dev/{device}", f"mount --bind /dev/{device} {root}/dev/{device}"]
        binds.append(f"mount -t proc proc {root}/proc")
        for path, source, options in [("/etc/hosts", self.folder / "hosts", "ro"), *self.mounts]:
            if source is None:
                binds.append(f"mount -t tmpfs -o {options} tmpfs {root}{path}")
                continue
            binds.append(f"mount --bind {source} {root}{path}")
            if options == "ro":
                binds.append(f"mount -o remount,bind,ro {root}{path}")
        root.mkdir(exist_ok=True)
        script = "set -e; hostname $0; " + "; ".join(binds) + \
            f'; exec setpriv --no-new-privs unshare --root={root} --wd=/ -S {self.user} -G {self.user} -- "$@"'
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", **self.environment}
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.name, "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork",
             "--kill-child", "--propagation", "private", "bash", "-c", script, self.name, *self.words],
            env={**environment, "PATH": environment["PATH"] + ":/usr/sbin:/sbin"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=open(self.log, "a"))

    @property
    def pid(self):
        """Outside of its process 1, once that is the program."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        found = [x for x in children if Path(f"/proc/{x}/comm").read_text().strip() == "lamella"]
        assert found, f"{self.name} does not run"
        return int(found[0])

    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self, seconds=60):
        """SIGTERM, as a runtime sends it; the exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(60)

    def run(self, *words):
        """A further process in it, as a health check or `kubectl exec` is."""
        return subprocess.run(["nsenter", "-t", str(self.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--root",
                               "--wd=/", "-S", str(self.user), "-G", str(self.user), "--", *words],
                              capture_output=True, text=True, timeout=60,
                              env={"PATH": "/usr/local/bin:/usr/bin:/bin", **self.environment})

    def rights(self):
        """User, capabilities and more of the process, as the kernel sees them."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return dict(x.split(":\t", 1) for x in lines if ":\t" in x)

    def tail(self):
        return self.log.read_text()[-1500:] if self.log.exists() else ""

    def listens(self, port):
        """Whether a TCP connection to it is taken, as a probe asks."""
        try:
            socket.create_connection((self.address, port), 2).close()
            return True
        except OSError:
            return False

"""The chaos proxy does to bytes what it says, and nothing to those it is not told to injure."""
import json
import pathlib
import random
import socket
import socketserver
import subprocess
import sys
import threading
import unittest

PATIENCE = 240
TEXT = bytes(range(256)) * 20


class Echo(socketserver.BaseRequestHandler):
    """Sends back what comes, until its end."""

    def handle(self):
        try:
            while data := self.request.recv(65536):
                self.request.sendall(data)
        except OSError:
            pass


class Echoes(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def free_port():
    """One of those that the kernel gives to nobody who asks for any, so that none is taken meanwhile."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as x:
            try:
                x.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class ChaosProxy(unittest.TestCase):
    def setUp(self):
        self.server = Echoes(("127.0.0.1", 0), Echo)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        script = pathlib.Path(__file__).parent / "chaos_proxy.py"
        self.proxy = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = free_port()
        self.do("listen", name="x", listen=f"127.0.0.1:{self.port}", to="127.0.0.1:%d" % self.server.server_address[1])
        self.told("listening")

    def tearDown(self):
        self.proxy.terminate()
        self.proxy.wait()
        self.proxy.stdin.close()
        self.proxy.stdout.close()
        self.server.shutdown()
        self.server.server_close()

    def do(self, what, **words):
        self.proxy.stdin.write((json.dumps({"do": what, **words}) + "\n").encode())
        self.proxy.stdin.flush()

    def told(self, event):
        """The next line of that event; others are dropped."""
        while line := self.proxy.stdout.readline():
            x = json.loads(line)
            if x["event"] == event:
                return x
        self.fail(f"the proxy ended before it told {event}")

    def connect(self):
        x = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.addCleanup(x.close)
        self.told("open")
        self.assertEqual(b"hello", self.through(x, b"hello"))
        return x

    def through(self, x, data):
        """What comes back of the data: as many bytes, or fewer at the connection's end."""
        x.sendall(data)
        return self.all_of(x, len(data))

    def all_of(self, x, count):
        got = b""
        while len(got) < count and (more := x.recv(65536)):
            got += more
        return got

    def injure(self, kind, **words):
        self.do("injure", name="x", kind=kind, **words)
        if not words.get("next"):
            self.told("asked")

    def test_without_injuries(self):
        x = self.connect()
        self.assertEqual(TEXT, self.through(x, TEXT))
        x.shutdown(socket.SHUT_WR)
        self.assertEqual(b"", x.recv(1))
        self.assertFalse(self.told("closed")["touched"])

    def test_kinds_that_change_nothing(self):
        for way in ("up", "down"):
            for kind in ("delay", "dribble", "coalesce", "stall"):
                with self.subTest(kind=kind, way=way):
                    x = self.connect()
                    self.injure(kind, way=way, seconds=0.2, seed=1)
                    self.assertEqual(TEXT, self.through(x, TEXT))
                    injured = self.told("injured")
                    self.assertEqual((kind, way), (injured["kind"], injured["way"]))
                    self.assertEqual(TEXT, self.through(x, TEXT))
                    x.close()
                    self.assertTrue(self.told("closed")["touched"])

    def test_dribble_comes_in_single_bytes(self):
        x = self.connect()
        self.injure("dribble", way="down", seconds=PATIENCE)
        x.sendall(b"abc")
        pieces = []
        while sum(map(len, pieces)) < 3:
            pieces.append(x.recv(100))
        self.assertEqual(b"abc", b"".join(pieces))

    def test_flip_changes_one_bit(self):
        for way in ("up", "down"):
            x = self.connect()
            self.injure("flip", way=way, seed=5)
            got = self.through(x, TEXT)
            self.assertEqual(len(TEXT), len(got))
            self.assertEqual(1, sum(bin(a ^ b).count("1") for a, b in zip(TEXT, got)))
            self.assertEqual(TEXT, self.through(x, TEXT))

    def test_truncate_ends_in_the_middle(self):
        x = self.connect()
        self.injure("truncate", way="down")
        x.sendall(b"0123456789")
        try:
            got = self.all_of(x, 10)
        except ConnectionResetError:
            got = b""
        self.assertLess(len(got), 10)
        self.assertTrue(self.told("closed")["touched"])

    def test_reset(self):
        x = self.connect()
        self.injure("reset")
        with self.assertRaises(OSError):
            while x.recv(1):
                pass
            raise AssertionError("an end, and no reset")
        self.assertTrue(self.told("closed")["touched"])

    def test_half_close_ends_one_way(self):
        x = self.connect()
        self.injure("half_close", way="down")
        x.sendall(b"0123456789")
        self.assertEqual(b"0123456789", self.all_of(x, 10))
        self.assertEqual(b"", x.recv(1))  # the end of that way
        x.sendall(b"more")                # the other one is open
        x.shutdown(socket.SHUT_WR)
        self.assertTrue(self.told("closed")["touched"])

    def test_what_stays_is_for_connections_to_come_too(self):
        first = self.connect()
        self.injure("dribble", way="down", seconds=PATIENCE, stays=True)
        second = self.connect()
        for x in (first, second):
            x.sendall(b"abc")
            self.assertEqual(b"abc", self.all_of(x, 3))
            self.told("injured")
        self.injure("dribble", way="down", seconds=0, stays=True)
        third = self.connect()
        self.assertEqual(TEXT, self.through(third, TEXT))
        third.close()
        self.assertFalse(self.told("closed")["touched"])

    def test_next_is_for_one_connection_alone(self):
        first = self.connect()
        self.injure("flip", way="up", seed=1, next=True)
        self.injure("reset", way="up", next=True)
        second = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.told("open")
        self.assertNotEqual(b"hello", self.through(second, b"hello"))
        self.assertEqual(TEXT, self.through(first, TEXT))
        with self.assertRaises(OSError):  # it may come before connecting has ended
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as third:
                while third.recv(1):
                    pass
            raise AssertionError("an end, and no reset")
        second.close()
        fourth = self.connect()
        self.assertEqual(TEXT, self.through(fourth, TEXT))


if __name__ == "__main__":
    unittest.main()

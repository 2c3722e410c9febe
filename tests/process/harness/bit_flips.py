"""Flips bits of packets on a cable, in the kernel: a small eBPF program looks at each packet of a host's data cable, and
flips one bit of the next large enough one whenever it is asked to. Between hosts made of network namespaces no TCP
checksum is compared, so that such a bit reaches the program that reads, as one does that is flipped in a switch."""
import ctypes
import os
import platform
import struct
import subprocess

SYS_BPF = {"x86_64": 321, "aarch64": 280}
MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, PROG_LOAD, OBJ_PIN = 0, 1, 2, 5, 6
SCHED_CLS, ARRAY = 3, 2
HEADERS = 14 + 20 + 32  # Ethernet, IPv4, TCP with time stamps
LEAST = HEADERS + 64    # with a frame's header behind them; shorter ones are not touched
FOLDER = "/run/bpf"


class Failed(RuntimeError):
    pass


def bpf(command, attributes):
    """The system call; a descriptor, or 0."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    got = libc.syscall(SYS_BPF[platform.machine()], command, buffer, 128)
    if got < 0:
        raise Failed(f"bpf command {command}: {os.strerror(ctypes.get_errno())}")
    return got


def address(buffer):
    return ctypes.addressof(buffer)


def instruction(op, to=0, by=0, offset=0, value=0):
    return struct.pack("<BBhi", op, to | by << 4, offset, value)


MOVE, MOVE_REGISTER, ADD, ADD_REGISTER, MOD_REGISTER, AND = 0xb7, 0xbf, 0x07, 0x0f, 0x9f, 0x57
SHIFT_RIGHT, SHIFT_REGISTER, XOR_REGISTER = 0x77, 0x6f, 0xaf
LOAD, LOAD_BYTE, STORE, STORE_REGISTER, STORE_BYTE, ATOMIC = 0x61, 0x71, 0x62, 0x63, 0x73, 0xc3
CALL, EXIT, LOAD_ADDRESS, JUMP_EQUAL, JUMP_UNEQUAL, JUMP_LESS = 0x85, 0x95, 0x18, 0x15, 0x55, 0xa5


def program(map_of):
    """The map has {wanted: a random number and not 0, or 0; done}. Jumps count the instructions that they skip."""
    ask = [
        instruction(MOVE_REGISTER, 6, 1),              # r6: the packet
        instruction(LOAD, 7, 6, 0),                    # r7: its length
        (JUMP_LESS, 7, LEAST),
        instruction(STORE, 10, 0, -4, 0),
        instruction(LOAD_ADDRESS, 1, 1, 0, map_of), instruction(0),
        instruction(MOVE_REGISTER, 2, 10), instruction(ADD, 2, 0, 0, -4),
        instruction(CALL, value=1),                    # map_lookup_elem
        (JUMP_EQUAL, 0, 0),
        instruction(MOVE_REGISTER, 8, 0),              # r8: the map's value
        instruction(LOAD, 9, 8, 0),                    # r9: wanted
        (JUMP_EQUAL, 9, 0),
        instruction(STORE, 8, 0, 0, 0),
    ]
    flip = [
        instruction(ADD, 7, 0, 0, -HEADERS),
        instruction(MOVE_REGISTER, 2, 9), instruction(SHIFT_RIGHT, 2, 0, 0, 3),
        instruction(MOD_REGISTER, 2, 7), instruction(ADD, 2, 0, 0, HEADERS),
        instruction(MOVE_REGISTER, 7, 2),              # r7: which byte
        instruction(MOVE_REGISTER, 1, 6), instruction(MOVE_REGISTER, 3, 10), instruction(ADD, 3, 0, 0, -8),
        instruction(MOVE, 4, 0, 0, 1),
        instruction(CALL, value=26),                   # skb_load_bytes
        (JUMP_UNEQUAL, 0, 0),
        instruction(LOAD_BYTE, 1, 10, -8),
        instruction(MOVE_REGISTER, 3, 9), instruction(AND, 3, 0, 0, 7),
        instruction(MOVE, 2, 0, 0, 1), instruction(SHIFT_REGISTER, 2, 3), instruction(XOR_REGISTER, 1, 2),
        instruction(STORE_BYTE, 10, 1, -8),
        instruction(MOVE_REGISTER, 1, 6), instruction(MOVE_REGISTER, 2, 7),
        instruction(MOVE_REGISTER, 3, 10), instruction(ADD, 3, 0, 0, -8), instruction(MOVE, 4, 0, 0, 1),
        instruction(MOVE, 5, 0, 0, 1),                 # BPF_F_RECOMPUTE_CSUM
        instruction(CALL, value=9),                    # skb_store_bytes
        (JUMP_UNEQUAL, 0, 0),
        instruction(MOVE, 1, 0, 0, 1), instruction(ATOMIC, 8, 1, 4, 0),  # one more is done
    ]
    made = ask + flip
    code = [x if isinstance(x, bytes) else instruction(x[0], x[1], 0, len(made) - i - 1, x[2])
            for i, x in enumerate(made)]
    return b"".join(code) + instruction(MOVE, 0, 0, 0, 0) + instruction(EXIT)  # the packet goes on


class BitFlips:
    """On one cable, given by the name of its end at the bridge."""

    def __init__(self, device):
        self.device = device
        if not os.path.isdir(FOLDER):
            os.mkdir(FOLDER)
            run("mount", "-t", "bpf", "bpf", FOLDER)
        self.map = bpf(MAP_CREATE, struct.pack("<IIIII", ARRAY, 4, 8, 1, 0))
        code = ctypes.create_string_buffer(program(self.map))
        license = ctypes.create_string_buffer(b"GPL")
        loaded = bpf(PROG_LOAD, struct.pack("<IIQQ", SCHED_CLS, (len(code) - 1) // 8, address(code), address(license)))
        pin = f"{FOLDER}/{device}"
        path = ctypes.create_string_buffer(pin.encode())
        bpf(OBJ_PIN, struct.pack("<QI", address(path), loaded))
        os.close(loaded)
        run("tc", "qdisc", "add", "dev", device, "clsact")
        for way in ("ingress", "egress"):  # from the host, and to it
            run("tc", "filter", "add", "dev", device, way, "bpf", "direct-action", "object-pinned", pin)
        os.unlink(pin)

    def value(self, command, content=(0, 0)):
        key, value = ctypes.create_string_buffer(4), ctypes.create_string_buffer(struct.pack("<II", *content), 8)
        bpf(command, struct.pack("<IIQQQ", self.map, 0, address(key), address(value), 0))
        return struct.unpack("<II", value.raw)

    def flip(self, chance):
        """One bit of the next packet, in either direction."""
        self.value(MAP_UPDATE, (chance.randrange(1, 1 << 32), self.done()))

    def done(self):
        """Bits flipped so far."""
        return self.value(MAP_LOOKUP)[1]

    def stop(self):
        run("tc", "qdisc", "del", "dev", self.device, "clsact")
        os.close(self.map)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")

"""A TCP proxy that injures what passes through it.

Takes commands as JSON lines on standard input, writes what happened as JSON lines to standard output:

    {"do": "listen", "name": "model/1", "listen": "10.77.0.9:7001", "to": "10.77.0.1:7000"}
    {"do": "injure", "name": "model/1", "kind": "flip", "way": "up", "seconds": 1, "seed": 7}

`up` is from whoever connected to where the proxy leads. An injury hits all open connections of its
name, and lasts `seconds` where its kind lasts. New connections are whole unless "next" or "stays" is given. "next":
it waits for the next connection and is for that one alone, and a second one waits for the one after that. "stays":
it also hits every connection that begins while it lasts.
"""
import asyncio
import json
import random
import socket
import sys
import time

PIECE = 65536
# Kinds that last, and those that happen once to the next bytes that come.
LASTING = ("delay", "dribble", "coalesce", "stall")
ONCE = ("truncate", "flip", "reset", "half_close")
KINDS = LASTING + ONCE


def tell(**what):
    print(json.dumps({"t": time.time(), **what}), flush=True)


class Connection:
    """Both directions between a client and where the proxy leads."""

    def __init__(self, name, number, client, server):
        self.name, self.number = name, number
        self.ends = {"up": (client[0], server[1]), "down": (server[0], client[1])}
        self.writers = (client[1], server[1])
        self.injuries = {"up": None, "down": None}
        self.touched = False  # ever
        self.told = False     # of the injury under way

    def injure(self, kind, way, seconds, seed):
        self.injuries[way] = (kind, time.monotonic() + seconds, random.Random(seed))
        self.told = False
        if kind == "reset":  # needs no bytes to happen to
            self.used(kind, way)
            self.reset()

    def used(self, kind, way):
        self.touched = self.told = True
        tell(event="injured", name=self.name, connection=self.number, kind=kind, way=way)

    def reset(self):
        for writer in self.writers:
            raw = writer.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            writer.transport.abort()

    async def carry(self, way):
        """Moves bytes of one direction until its end. Returns who ended it."""
        reader, writer = self.ends[way]
        while data := await reader.read(PIECE):
            injury = self.injuries[way]
            if injury and time.monotonic() > injury[1] and injury[0] in LASTING:
                injury = self.injuries[way] = None
            if injury is None:
                writer.write(data)
                await writer.drain()
            elif not await self.carry_injured(way, injury, reader, writer, data):
                return
        if writer.can_write_eof():
            writer.write_eof()

    async def carry_injured(self, way, injury, reader, writer, data):
        """False: this direction is over."""
        kind, until, chance = injury
        if not self.told or kind in ONCE:
            self.used(kind, way)
        if kind == "delay":
            await asyncio.sleep(chance.uniform(0.01, 0.15))
        elif kind == "dribble":
            for i in range(len(data)):
                writer.write(data[i:i + 1])
                await writer.drain()
                await asyncio.sleep(0.0002)
                if time.monotonic() > until:
                    writer.write(data[i + 1:])
                    break
            await writer.drain()
            return True
        elif kind == "coalesce":
            end = min(until, time.monotonic() + 0.1)
            while (left := end - time.monotonic()) > 0 and len(data) < 1 << 20:
                try:
                    more = await asyncio.wait_for(reader.read(PIECE), left)
                except asyncio.TimeoutError:
                    break
                if not more:
                    break
                data += more
        elif kind == "stall":
            await asyncio.sleep(max(0.0, until - time.monotonic()))
        elif kind == "flip":
            bit = chance.randrange(len(data) * 8)
            data = bytearray(data)
            data[bit // 8] ^= 1 << bit % 8
            self.injuries[way] = None
        elif kind == "truncate":
            writer.write(data[:len(data) // 2])
            await writer.drain()
            for each in self.writers:
                each.close()
            return False
        elif kind == "half_close":
            writer.write(data)
            await writer.drain()
            writer.write_eof()
            self.injuries[way] = None
            while await reader.read(PIECE):  # nothing more passes
                pass
            return False
        writer.write(data)
        await writer.drain()
        return True


class Proxy:
    def __init__(self):
        self.open = {}
        self.next = {}
        self.staying = {}
        self.count = 0

    async def listen(self, name, listen, to):
        host, port = listen.rsplit(":", 1)
        await asyncio.start_server(lambda r, w: self.accept(name, to, r, w), host, int(port))
        tell(event="listening", name=name, listen=listen)

    async def accept(self, name, to, reader, writer):
        self.count += 1
        number = self.count
        host, port = to.rsplit(":", 1)
        try:
            server = await asyncio.open_connection(host, int(port))
        except OSError as e:
            tell(event="unreachable", name=name, connection=number, error=str(e))
            writer.transport.abort()
            return
        for end in (writer, server[1]):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Connection(name, number, (reader, writer), server)
        self.open.setdefault(name, set()).add(link)
        tell(event="open", name=name, connection=number, port=writer.get_extra_info("peername")[1])
        if waiting := self.next.get(name):
            link.injure(*waiting.pop(0))
        elif staying := self.staying.get(name):
            kind, way, end, seed = staying
            if (left := end - time.monotonic()) > 0:
                link.injure(kind, way, left, seed)
        carriers = [asyncio.create_task(link.carry(way)) for way in ("up", "down")]
        # A direction that ends with an end of file lets the other go on; an error ends both.
        await asyncio.wait(carriers, return_when=asyncio.FIRST_EXCEPTION)
        for each in link.writers:
            each.transport.abort()
        for carrier in carriers:
            carrier.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)
        self.open[name].discard(link)
        tell(event="closed", name=name, connection=number, touched=link.touched)

    def injure(self, name, kind, way="up", seconds=1.0, seed=0, next=False, stays=False):
        if kind not in KINDS:
            raise ValueError(f"no kind of injury is named {kind}")
        if next:
            self.next.setdefault(name, []).append((kind, way, seconds, seed))
            return
        if stays:
            self.staying[name] = (kind, way, time.monotonic() + seconds, seed)
        links = list(self.open.get(name, ()))
        tell(event="asked", name=name, kind=kind, way=way, connections=[x.number for x in links])
        for link in links:
            link.injure(kind, way, seconds, seed)

    async def serve(self):
        commands = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            command = json.loads(line)
            what = command.pop("do")
            if what == "listen":
                await self.listen(**command)
            elif what == "injure":
                self.injure(**command)
            else:
                raise ValueError(f"unknown command {what}")


if __name__ == "__main__":
    asyncio.run(Proxy().serve())

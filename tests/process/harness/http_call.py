"""One HTTP/1.1 request over a connection of its own, with the answer's body piece by piece."""
import asyncio
import json

LINE_MAX = 1 << 20


class Broken(Exception):
    """The connection ended, or spoke no HTTP, before the answer did."""


class Call:
    """Call(address, key): then connect(), head(), pieces(), and close() at any time."""

    def __init__(self, address, key):
        self.address, self.key = address, key
        self.writer = None

    async def connect(self):
        host, port = self.address.rsplit(":", 1)
        self.reader, self.writer = await asyncio.open_connection(host, int(port), limit=LINE_MAX)

    async def head(self, path, body=None, identity=None):
        """Sends it. Returns status and headers (names in small letters)."""
        payload = b"" if body is None else json.dumps(body).encode()
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"Host: {self.address}",
                 "Connection: close", f"Authorization: Bearer {self.key}"]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
        if identity:
            lines.append(f"X-Request-Id: {identity}")
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
        await self.writer.drain()
        words = (await self._line()).split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise Broken("no status line")
        headers = {}
        while line := await self._line():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        self.headers = headers
        return int(words[1]), headers

    def port(self):
        """The local one."""
        return self.writer.get_extra_info("sockname")[1]

    async def pieces(self):
        """The bytes of the body as they come; raises Broken where it ends too early."""
        if self.headers.get("transfer-encoding") == "chunked":
            while True:
                size = await self._line()
                try:
                    size = int(size.split(";")[0], 16)
                except ValueError:
                    raise Broken("no chunk size") from None
                data = await self._exactly(size + 2)
                if size == 0:
                    return
                yield data[:-2]
        elif "content-length" in self.headers:
            yield await self._exactly(int(self.headers["content-length"]))
        else:
            raise Broken("neither a length nor chunks")

    async def whole(self):
        return b"".join([x async for x in self.pieces()])

    def close(self):
        if self.writer:
            self.writer.transport.abort()

    async def _line(self):
        try:
            line = await self.reader.readuntil(b"\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as e:
            raise Broken(type(e).__name__) from None
        return line.decode("latin-1").rstrip("\r\n")

    async def _exactly(self, size):
        try:
            return await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError) as e:
            raise Broken(type(e).__name__) from None

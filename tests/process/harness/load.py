#!/usr/bin/env python3
"""Open-loop load: requests arrive by a seeded clock whatever becomes of those before. Writes what it
saw, raw, to a log of JSON lines; what that means is the checker's business.

    {"t", "event": "send", "id", "request", "via", "stream", "cancel"}    cancel: after so many pieces, or null
    {"t", "event": "connected", "id", "port"}
    {"t", "event": "status", "id", "status", "headers"}
    {"t", "event": "data", "id", "data"}        of a stream, one event's payload
    {"t", "event": "body", "id", "body"}        of another answer, the whole
    {"t", "event": "end", "id", "how", "detail"}    finished, cancelled, broken, silent
"""
import argparse
import asyncio
import json
import random
import signal
import time

from http_call import Broken, Call

PATIENCE = 200   # seconds for one answer: far beyond every pause that an injury may cost
AGAIN_MAX = 40  # times that a refused request is asked again


class Load:
    def __init__(self, options, log):
        self.options, self.log = options, log
        with open(options.requests) as f:
            self.requests = json.load(f)
        with open(options.key) as f:
            self.key = f.read().strip()
        self.chance = random.Random(options.seed)
        self.stopping = asyncio.Event()
        self.running = set()

    def tell(self, event, identity, **what):
        self.log.write(json.dumps({"t": time.time(), "event": event, "id": identity, **what}) + "\n")

    async def arrive(self):
        """Until told to stop; then waits for those under way."""
        number = 0
        limit = self.options.count
        while not self.stopping.is_set() and (limit == 0 or number < limit):
            request = self.requests[number % len(self.requests)] if self.options.once else \
                self.chance.choice(self.requests)
            stream = not self.options.once and self.chance.random() < 0.3
            cancel = self.chance.randrange(1, 12) if not self.options.once and self.chance.random() < 0.1 else None
            via = "proxy" if self.options.proxy and self.chance.random() < 0.4 else "direct"
            task = asyncio.create_task(self.ask(f"{self.options.prefix}{number}", request, stream, cancel, via))
            self.running.add(task)
            task.add_done_callback(self.running.discard)
            number += 1
            if self.options.rate > 0:
                try:
                    await asyncio.wait_for(self.stopping.wait(), self.chance.expovariate(self.options.rate))
                except asyncio.TimeoutError:
                    pass
        while self.running:
            await asyncio.wait(set(self.running))

    async def ask(self, name, request, stream, cancel, via):
        """One request, again while it is refused."""
        for attempt in range(AGAIN_MAX):
            identity = f"{name}.{attempt}"
            self.tell("send", identity, request=request["index"], via=via, stream=stream, cancel=cancel)
            call = Call(self.options.proxy if via == "proxy" else self.options.address, self.key)
            status = None
            try:
                status = await asyncio.wait_for(self.once(call, identity, request, stream, cancel), PATIENCE)
                self.tell("end", identity, how="cancelled" if status == "cancelled" else "finished", detail="")
            except asyncio.TimeoutError:
                self.tell("end", identity, how="silent", detail=f"no end within {PATIENCE} s")
            except (Broken, OSError) as e:
                self.tell("end", identity, how="broken", detail=repr(e))
            finally:
                call.close()
            if status not in (429, 503):
                return
            await asyncio.sleep(0.25)

    async def once(self, call, identity, request, stream, cancel):
        """Returns the status, or "cancelled"."""
        body = dict(request["body"])
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        await call.connect()
        self.tell("connected", identity, port=call.port())
        asking = asyncio.create_task(call.head(request["path"], body, identity))
        if cancel is not None and not stream:
            done, _ = await asyncio.wait({asking}, timeout=cancel * 0.02)
            if not done:
                asking.cancel()
                await asyncio.wait({asking})
                return "cancelled"
        status, headers = await asking
        self.tell("status", identity, status=status, headers=headers)
        if not headers.get("content-type", "").startswith("text/event-stream"):
            self.tell("body", identity, body=(await call.whole()).decode("utf-8", "replace"))
            return status
        rest, seen = b"", 0
        async for piece in call.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: "):
                    self.tell("data", identity, data=line[6:].decode("utf-8", "replace").rstrip("\r"))
                    seen += 1
                    if cancel is not None and seen >= cancel:
                        return "cancelled"
        return status


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", required=True, help="JSON file of workload.make()")
    parser.add_argument("--log", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--proxy", help="where two of five requests go")
    parser.add_argument("--key", required=True, help="file with the API key")
    parser.add_argument("--rate", type=float, default=0, help="arrivals a second; 0: all at once")
    parser.add_argument("--count", type=int, default=0, help="arrivals; 0: until SIGTERM")
    parser.add_argument("--once", action="store_true", help="each in its order, whole: the golden run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prefix", default="r")
    options = parser.parse_args()
    with open(options.log, "a", buffering=1) as log:
        load = Load(options, log)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, load.stopping.set)
        await load.arrive()


if __name__ == "__main__":
    asyncio.run(main())

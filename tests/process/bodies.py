"""Clients with large bodies and with short ones, at the same time, of the service on the port given. Prints what they
saw as JSON. usage: bodies.py PORT ADMIN"""
import concurrent.futures, http.client, json, socket, sys, threading, time

port, admin = map(int, sys.argv[1:3])
MIB = 1 << 20


def post(path, body):
    """Status, retry-after and seconds. A server that refuses early may close before it has read all of the body."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        try:
            connection.request("POST", path, body, {"content-type": "application/json"})
        except (BrokenPipeError, ConnectionResetError):
            pass
        reply = connection.getresponse()
        reply.read()
        return reply.status, reply.getheader("retry-after"), time.monotonic() - began
    finally:
        connection.close()


def post_until_served(path, body):
    """The replies, the last of them another one than 503."""
    replies = [post(path, body)]
    while replies[-1][0] == 503 and len(replies) < 1000:
        time.sleep(0.05)
        replies.append(post(path, body))
    return replies


def metric(name):
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=600)
    connection.request("GET", "/metrics")
    page = connection.getresponse().read().decode()
    return next(int(float(x.split()[-1])) for x in page.splitlines() if x.startswith(name))


listing = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
listing.request("GET", "/v1/models")
model = json.loads(listing.getresponse().read())["data"][0]["id"]
short = json.dumps({"model": model, "prompt": "a short one", "max_tokens": 2}).encode()
spaces = json.dumps({"model": model, "prompt": " " * (15 * MIB), "max_tokens": 2}).encode()
to_cut = json.dumps({"prompt": "".join(f"word{i} and so on; " for i in range(4 * MIB // 18))}).encode()

said = {}
said["cut_s"] = post("/tokenize", to_cut)[2]  # one large text with nothing beside it
for _ in range(3):
    post("/v1/completions", short)

# Bodies that are announced and never end.
unfinished = []
for _ in range(60):
    s = socket.create_connection(("127.0.0.1", port))
    s.setblocking(False)
    s.send(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
           % (15 * MIB))
    unfinished.append([s, 14 * MIB])
piece = b" " * 65536
until = time.monotonic() + 5
while any(left for _, left in unfinished) and time.monotonic() < until:
    moved = 0
    for x in unfinished:
        if not x[1]:
            continue
        try:
            count = x[0].send(piece[: min(len(piece), x[1])])
            x[1] -= count
            moved += count
        except BlockingIOError:
            pass
        except OSError:  # refused and closed
            x[1] = 0
    if not moved:
        time.sleep(0.01)
held = metric("lamella_body_bytes")
small_beside = post("/v1/completions", short)
for s, _ in unfinished:
    s.close()
while metric("lamella_body_bytes") > 0 and time.monotonic() < until + 60:
    time.sleep(0.01)

shorts = []
over = threading.Event()


def ask_short():
    while not over.is_set():
        shorts.append(post("/v1/completions", short))


asking = threading.Thread(target=ask_short)
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    asking.start()
    large = [pool.submit(post_until_served, "/v1/completions", spaces) for _ in range(18)]
    cut = [pool.submit(post_until_served, "/tokenize", to_cut) for _ in range(8)]
    for x in large + cut:
        held = max(held, metric("lamella_body_bytes"))
        x.result()
    over.set()
    asking.join()

# A client that leaves while its body is read.
s = socket.create_connection(("127.0.0.1", port))
s.sendall(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(to_cut))
s.sendall(to_cut)
s.close()
said["left"] = post("/v1/completions", short)[0] == 200
until = time.monotonic() + 120
while metric("lamella_body_bytes") > 0 and time.monotonic() < until:
    time.sleep(0.01)

waited = sorted(x[2] for x in shorts)
large, cut = ([x.result() for x in y] for y in (large, cut))
said["large"] = sorted({x[-1][0] for x in large})
said["cut"] = sorted({x[-1][0] for x in cut})
said["silent"] = sum(x[0] == 503 and not x[1] for x in sum(cut, sum(large, [])))
said["short"] = sorted({x[0] for x in shorts + [small_beside]})
said["shorts"] = len(waited)
said["short_s"], said["short_p99_s"], said["short_max_s"] = (waited[int(len(waited) * x)] for x in (0.5, 0.99, 0.9999))
said["held"] = held
said["held_after"] = metric("lamella_body_bytes")
said["refused"] = metric("lamella_bodies_refused_total")
print(json.dumps(said))

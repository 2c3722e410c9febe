"""Runs a service whose standard error nobody reads, or a full disk, asks it for as long as it takes to drop lines of
its log, and ends it. Prints what was seen as JSON. usage: unread.py pipe|full PORT ADMIN PROGRAM WORDS..."""
import http.client, json, os, signal, subprocess, sys, time

sink, port, admin = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
PATIENCE = 240  # seconds; only a broken program takes so long


def ask(to, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", to, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"content-type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def wait_ready():
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            if ask(port, "GET", "/ready")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit("never ready")


reads, writes = os.pipe()
if sink == "full":
    writes = os.open("/dev/full", os.O_WRONLY)
service = subprocess.Popen(sys.argv[4:], stderr=writes, stdout=subprocess.DEVNULL)
try:
    wait_ready()
    model = json.loads(ask(port, "GET", "/v1/models")[1])["data"][0]["id"]
    body = json.dumps({"model": model, "prompt": "once", "max_tokens": 32, "ignore_eos": True})
    answers, probes, dropped = [], [], 0
    until = time.monotonic() + PATIENCE
    while (dropped == 0 or len(answers) < 20) and time.monotonic() < until:
        answers.append(ask(port, "POST", "/v1/completions", body)[0])
        for _ in range(20):  # each of them is a line of the log
            ask(port, "POST", "/v1/completions", json.dumps({"model": "x" * 200}))
        probes += [ask(port, "GET", path)[0] for path in ("/live", "/ready", "/health")]
        page = ask(admin, "GET", "/metrics")[1]
        dropped = sum(float(x.split()[-1]) for x in page.splitlines()
                      if x.startswith("lamella_log_lines_dropped_total"))
    service.send_signal(signal.SIGTERM)
    ended = service.wait(PATIENCE)
finally:
    service.kill()
print(json.dumps({"answers": sorted(set(answers)), "probes": sorted(set(probes)), "dropped": dropped, "ended": ended}))

"""What a run has written, read back. Shares nothing with the product or with those who wrote it but the form
of the files: see load.py, sampler.py, nemesis.py, chaos_proxy.py for their lines."""
import collections
import json
import pathlib
import re
from datetime import datetime


class Choice:
    """One choice of an answer as far as it came."""

    def __init__(self):
        self.tokens = []    # (bytes or text, logprob) of each position, where logprobs were asked for
        self.offsets = []   # text_offset of each, where told
        self.text = ""
        self.finishes = []  # finish reasons
        self.after_finish = 0

    def take(self, x):
        """A choice object of a body or of an event."""
        text = x.get("text")
        if text is None:
            text = (x.get("delta") or x.get("message") or {}).get("content") or ""
        logprobs = x.get("logprobs") or {}
        found = [(bytes(t["bytes"]), t["logprob"]) for t in logprobs.get("content") or []]
        found += list(zip(logprobs.get("tokens") or [], logprobs.get("token_logprobs") or []))
        if self.finishes and (text or found):
            self.after_finish += 1
        self.text += text
        self.tokens += found
        self.offsets += logprobs.get("text_offset") or []
        if x.get("finish_reason"):
            self.finishes.append(x["finish_reason"])


class Attempt:
    """One request as a client lived it."""

    def __init__(self, identity, sent):
        self.identity, self.request, self.via = identity, sent["request"], sent["via"]
        self.stream, self.sent = sent["stream"], sent["t"]
        self.port = self.status = self.how = None
        self.headers, self.detail = {}, ""
        self.choices = collections.defaultdict(Choice)
        self.usage = None
        self.dones = self.after_done = 0
        self.errors = []   # bodies and events that tell of one
        self.garbled = []  # pieces that are no JSON
        self.times = []    # of the events of a stream

    def take(self, text):
        if text == "[DONE]":
            self.dones += 1
            return
        self.after_done += self.dones > 0
        try:
            x = json.loads(text)
        except ValueError:
            self.garbled.append(text)
            return
        if not isinstance(x, dict) or "error" in x:
            self.errors.append(text)
            return
        for choice in x.get("choices") or []:
            self.choices[choice.get("index")].take(choice)
        self.usage = x.get("usage") or self.usage

    @property
    def is_refused(self):
        return self.how == "finished" and self.status in (429, 503)

    @property
    def is_complete(self):
        return (self.how == "finished" and self.status == 200 and not self.errors and not self.garbled
                and (self.dones == 1 or not self.stream))


def json_lines(file):
    """The objects of a file; a last line that was cut off is left out."""
    if not file.exists():
        return []
    return [json.loads(x) for x in file.read_text(errors="replace").split("\n")[:-1] if x]


def attempts_of(file):
    """Identity -> Attempt, in the order sent."""
    made = {}
    for x in json_lines(file):
        identity, event = x["id"], x["event"]
        if event == "send":
            made[identity] = Attempt(identity, x)
            continue
        attempt = made[identity]
        if event == "connected":
            attempt.port = x["port"]
        elif event == "status":
            attempt.status, attempt.headers = x["status"], x["headers"]
        elif event in ("data", "body"):
            attempt.times.append(x["t"])
            attempt.take(x[event])
        elif event == "end":
            attempt.how, attempt.detail = x["how"], x["detail"]
    return made


def words_of(message):
    """name=value and name="value" of a log line."""
    return {k: v.strip('"') for k, v in re.findall(r'(\w+)=("[^"]*"|\S+)', message)}


class Line:
    """One line of a process's log; `at` in seconds since 1970, None where it is not of its logger."""

    def __init__(self, text):
        self.text, self.at, self.level, self.message = text, None, "", text
        if text.startswith('{"ts":"'):
            try:
                x = json.loads(text)
            except ValueError:
                return
            self.at = datetime.fromisoformat(x["ts"].replace("Z", "+00:00")).timestamp()
            self.level, self.message = x["level"], x["msg"]

    def words(self):
        return words_of(self.message)


class Evidence:
    """All files of a run's folder."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.folder = folder
        self.requests = json.loads((folder / "requests.json").read_text())
        self.golden = {x.request: x for x in attempts_of(folder / "golden.jsonl").values()}
        self.attempts = attempts_of(folder / "client.jsonl")
        self.logs = {x.stem: [Line(t) for t in x.read_text(errors="replace").splitlines()]
                     for x in sorted(folder.glob("*.log")) if x.stem != "single"}
        self.gateway = self.logs.get("gateway", [])
        self.samples = json_lines(folder / "samples.jsonl")
        self.exits = json_lines(folder / "exits.jsonl")
        self.nemesis = json_lines(folder / "nemesis.jsonl")
        self.proxy = json_lines(folder / "proxy.jsonl")
        self.secrets = json.loads((folder / "secrets.json").read_text())

    def statuses(self, phase=None):
        return [x["status"] for x in self.samples if "status" in x and phase in (None, x["phase"])]

    def metrics(self, phase=None):
        return [x["metrics"] for x in self.samples if "metrics" in x and phase in (None, x["phase"])]

    def processes(self, phase):
        """Samples of processes in that phase, as they were written."""
        return [x for x in self.samples if "process" in x and x["phase"] == phase]

    def gateway_lines(self, begin):
        return [x for x in self.gateway if x.at is not None and x.message.startswith(begin)]

    def injured_ports(self):
        """Clients' port -> kinds of what happened to that connection to the HTTP port."""
        port_of = {x["connection"]: x["port"] for x in self.proxy if x["event"] == "open" and x["name"] == "http"}
        kinds = collections.defaultdict(set)
        for x in self.proxy:
            if x["event"] == "injured" and x["name"] == "http":
                kinds[port_of.get(x["connection"])].add(x["kind"])
        return kinds


def series_of(page, name):
    """(labels text, value) of each series of a metric on a page."""
    found = []
    for line in page.splitlines():
        match = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)(?: \d+)?", line)
        if match:
            found.append((match[1] or "", float(match[2])))
    return found

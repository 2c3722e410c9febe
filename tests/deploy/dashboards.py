#!/usr/bin/env python3
"""The dashboards of deploy/grafana against what the program publishes.

usage: dashboards.py SOURCE PAGE [PROMETHEUS]

PAGE is the /metrics of a service that has answered requests; PROMETHEUS the URL of one that has scraped it, which is
asked every question then.
"""
import json
import re
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from checks import Checks

DATA_SOURCE = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
FUNCTIONS = {"sum", "min", "max", "avg", "by", "rate", "increase", "histogram_quantile"}
OF_SCRAPES = {"instance", "job"}  # what Prometheus adds
METRIC = re.compile(r"[a-zA-Z_][a-zA-Z0-9_:]*")


def series_of(page):
    """Labels and their values by the name of the series."""
    found = {}
    for line in page.splitlines():
        if line and line[0] != "#":
            name, labels = re.match(r"([^ {]+)(?:\{(.*)\})? ", line).groups()
            of = found.setdefault(name, {})
            for label, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""):
                of.setdefault(label, set()).add(value)
    return found


class Expression:
    """The series, matchers and groups of a PromQL expression: as much of the language as the dashboards use."""

    def __init__(self, text):
        self.series, self.groups = [], set()
        for names in re.findall(r"\bby \(([^)]*)\)", text):
            self.groups |= {x.strip() for x in names.split(",")}
        plain = re.sub(r"\bby \([^)]*\)", "", text)
        for name, matchers in re.findall(r"([a-zA-Z_][\w:]*)\s*(?:\{([^}]*)\})?", re.sub(r"\[[^\]]*\]", "", plain)):
            if name not in FUNCTIONS:
                self.series.append((name, re.findall(r'(\w+)(=~|=|!=)"([^"]*)"', matchers)))


class Suite:
    def __init__(self, source, page, prometheus):
        self.check, self.prometheus = Checks(), prometheus
        self.series = series_of(page)
        self.files = sorted((source / "deploy/grafana").glob("*.json"))
        self.boards = {x.stem: json.loads(x.read_text()) for x in self.files}

    @staticmethod
    def panels(board):
        return [x for x in board["panels"] if x["type"] != "row"]

    @staticmethod
    def choices(board):
        """The values of variables that are lists."""
        return {x["name"]: x["query"].split(",") for x in board["templating"]["list"] if x["type"] == "custom"}

    def form(self, board):
        assert board["schemaVersion"] == 39 and board["title"].startswith("Lamella / ") and "uid" not in board
        ids = [x["id"] for x in board["panels"]]
        assert len(ids) == len(set(ids)), "two panels have one id"
        text = json.dumps(board)
        assert not re.search(r"https?://|localhost|\d+\.\d+\.\d+\.\d+", text), "it names a host"
        assert set(re.findall(r'"uid": "([^"]*)"', text)) == {DATA_SOURCE["uid"]}, "another data source"
        variables = [x["name"] for x in board["templating"]["list"]]
        assert variables[0] == "DS_PROMETHEUS" and "instance" in variables
        known = set(variables) | {"__rate_interval", "__range", "__all"}
        assert set(re.findall(r"\$\{?(\w+)", text)) <= known, "a variable that is not there"
        taken = set()
        for x in board["panels"]:
            at = x["gridPos"]
            cells = {(i, j) for i in range(at["x"], at["x"] + at["w"]) for j in range(at["y"], at["y"] + at["h"])}
            assert at["x"] + at["w"] <= 24 and not cells & taken, f"{x['title']} lies on another panel"
            taken |= cells
        for x in self.panels(board):
            assert x["datasource"] == DATA_SOURCE, x["title"]
            assert "?" in x["description"], f"{x['title']}: which question does it answer?"
            assert x["targets"] and x["fieldConfig"]["defaults"]["unit"], x["title"]
            assert len({y["refId"] for y in x["targets"]}) == len(x["targets"]), x["title"]

    def known(self, text, labels_shown, board):
        """Whether everything that an expression names is published."""
        expression = Expression(text)
        assert expression.series, f"no series in {text}"
        of_all = set(OF_SCRAPES)
        for name, matchers in expression.series:
            assert name in self.series, f"nothing publishes {name}: {text}"
            labels = self.series[name]
            of_all |= set(labels)
            for label, _, value in matchers:
                assert label in labels or label in OF_SCRAPES, f"{name} has no label {label}: {text}"
                if label in OF_SCRAPES:
                    continue
                # Prometheus 3 shows bounds that are whole numbers as 1.0.
                chosen = re.fullmatch(r"\$(\w+)(?:\(\\\\\.0\)\?)?", value)
                lists = self.choices(board)
                values = lists.get(chosen[1], []) if chosen else value.split("|")
                for each in values:
                    known = labels[label]
                    assert each in known, f"{name}: {label} is never {each}, but {known}"
        assert expression.groups <= of_all, f"groups by what is not there: {text}"
        shown = expression.groups or of_all
        assert labels_shown <= shown, f"shows {labels_shown}, and has {shown}: {text}"

    def queries(self, board):
        for x in self.panels(board):
            for target in x["targets"]:
                shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                self.known(target["expr"], shown, board)
        for x in board["templating"]["list"]:
            if x["type"] == "query":
                text, label = re.fullmatch(r"label_values\((.*), (\w+)\)", x["query"]["query"]).groups()
                self.known(text, {label}, board)
                assert x["definition"] == x["query"]["query"] and x["datasource"] == DATA_SOURCE

    def answers(self, board):
        """Every question of every panel, asked."""
        silent = []
        for x in self.panels(board):
            for target in x["targets"]:
                text = target["expr"].replace("$__rate_interval", "10s").replace("$__range", "1m")
                for name, values in self.choices(board).items():
                    text = text.replace(f"${name}", values[-1])
                text = re.sub(r"\$(instance|model_name|role)\b", ".*", text)
                url = f"{self.prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": text})
                with urllib.request.urlopen(url, timeout=60) as reply:
                    if not json.load(reply)["data"]["result"]:
                        silent.append(f"{x['title']}: {text}")
        assert not silent, "no series: " + "; ".join(silent)

    def run(self):
        self.check("there are three dashboards", lambda: self.boards.keys() == {"serving", "pools", "resilience"} or 1 / 0)
        for name, board in self.boards.items():
            self.check(f"{name}: panels have ids, places and a question", self.form, board)
            self.check(f"{name}: what queries name is published", self.queries, board)
            if self.prometheus:
                self.check(f"{name}: every query gets series", self.answers, board)
        self.check.finish()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    Suite(Path(sys.argv[1]), Path(sys.argv[2]).read_text(), sys.argv[3] if len(sys.argv) == 4 else None).run()

#!/usr/bin/env python3
"""Draws what an autoscaled service did under a load that rises and falls, from its `autoscale.trace_file`.

usage: autoscale_graph.py TRACE SVG [--load FILE] [--skip LINES]

One row each: streams that the client had open (FILE: lines of seconds and streams), the KV slots in use and wanted of
those there are, prompts that waited, and the members of the attention pool. LINES: of the trace, before the load.
"""
import argparse
import json

LEFT, WIDTH, HEIGHT, GAP, TOP = 150, 820, 90, 26, 46
INK, PALE, LINE, FILL = "#1c2733", "#5a6470", "#2563a8", "#2563a822"


def points(trace, value):
    return [(x["at_seconds"], value(x)) for x in trace]


class Page:
    def __init__(self, first, last, rows):
        self.first, self.last = first, max(last, first + 1)
        self.height = TOP + rows * (HEIGHT + GAP) + 24
        self.parts, self.row = [], 0

    def x(self, seconds):
        return LEFT + (seconds - self.first) / (self.last - self.first) * WIDTH

    def text(self, x, y, words, anchor="start", fill=PALE, size=12, weight=400):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" '
                          f'font-weight="{weight}">{words}</text>')

    def draw(self, title, series, unit, most=None):
        """Steps of each series over one axis."""
        y0 = TOP + self.row * (HEIGHT + GAP) + HEIGHT
        most = most or max([v for s in series for _, v in s[1]] + [1e-9])
        self.row += 1
        self.text(LEFT - 12, y0 - HEIGHT + 12, title, "end", INK, weight=600)
        self.text(LEFT - 12, y0 - HEIGHT + 28, f"0 to {most:g} {unit}", "end")
        self.parts.append(f'<path d="M{LEFT} {y0}H{LEFT + WIDTH}" stroke="#c9d0d8"/>')
        for name, values, colour in series:
            path, before = "", None
            for at, value in values:
                y = y0 - min(value / most, 1) * HEIGHT
                path += f"M{self.x(at):.1f} {y:.1f}" if before is None else f"H{self.x(at):.1f}V{y:.1f}"
                before = y
            self.parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
            if name:
                self.text(LEFT + WIDTH + 6, before + 4, name, fill=colour)

    def svg(self, title):
        y = TOP + self.row * (HEIGHT + GAP)
        step = 10 if self.last - self.first < 200 else 30
        at = int(self.first / step + 1) * step
        while at < self.last:
            self.text(self.x(at), y, f"{at - self.first:.0f} s", "middle")
            at += step
        width = LEFT + WIDTH + 90
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {self.height}" width="{width}" '
                f'height="{self.height}" font-family="system-ui,sans-serif">\n<rect width="100%" height="100%" '
                f'fill="#fff"/>\n<text x="8" y="22" font-size="15" font-weight="600" fill="{INK}">{title}</text>\n'
                + "\n".join(self.parts) + "\n</svg>\n")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("trace")
    words.add_argument("svg")
    words.add_argument("--load")
    words.add_argument("--skip", type=int, default=0)
    options = words.parse_args()
    lines = [json.loads(x) for x in open(options.trace)]
    trace = [x for x in lines if "at_seconds" in x][options.skip:]
    load = [tuple(float(v) for v in x.split()) for x in open(options.load)] if options.load else []
    page = Page(trace[0]["at_seconds"], trace[-1]["at_seconds"], 4 if load else 3)
    if load:
        page.draw("streams", [("", [(trace[0]["at_seconds"] + at, n) for at, n in load], LINE)], "")
    slots = max(x["kv_slots"] for x in trace)
    page.draw("KV slots", [("there", points(trace, lambda x: x["kv_slots"]), PALE),
                           ("in use", points(trace, lambda x: x["kv_used_slots"]), LINE)], "", slots)
    page.draw("waiting", [("", points(trace, lambda x: x["queue_prompts"]), LINE)], "prompts")
    members = max(x["attention"]["most"] for x in trace)
    page.draw("members", [("", points(trace, lambda x: x["attention"]["members"]), LINE)], "", members)
    open(options.svg, "w").write(page.svg("Autoscaling of an attention pool under a load that rises and falls"))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Figures of papers worked out again: a specification of four axes whose values are known by hand, in every kind of drawing. Text,
JSON and all that gnuplot gets come from a second computation; a program called gnuplot keeps what it is given."""
import collections
import copy
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD, CHECKED = [], collections.Counter()
AXES = ("rows", "columns", "series", "x")
WORD = {"rows": "row", "columns": "column", "series": "series", "x": "x"}


def verification(n):
    """Time per drafted token: the straight line through 51.1 ms at 1 and 32 times 5.7 ms at 32."""
    return (51.1 + (n - 1) * (32 * 5.7 - 51.1) / 31) / n


GRID = {
    "paper": "p", "number": "7", "title": "t", "says": "It says.", "setup": "As set up.", "claims": ["K"], "put": {"scale": 2, "unused": 1}, "draw": "lines",
    "value": "{r} * {c} * {f} * {scale} * v", "y": {"title": "time (ms)", "log": True},
    "rows": {"title": "rr", "values": [{"title": "R1", "put": {"r": "1"}}, {"title": "R2", "put": {"r": "3"}}]},
    "columns": {"title": "cc", "values": [{"title": "C1", "put": {"c": "1"}}, {"title": "C2", "put": {"c": "10"}}]},
    "series": {"values": [{"title": "one", "put": {"f": "1"}}, {"title": "two", "put": {"f": "0.5"}}, {"title": "three", "put": {"f": "2"}}]},
    "x": {"title": "tokens", "key": "n", "values": [1, 8, 32]},
    "lines": [{"at": 50, "title": "limit"}, {"at": 0.5, "title": "floor"}],
    "quantities": {"v": {"verification": {"drafted_tokens": "{n}"}}},
    "published": [
        {"series": "one", "x": 32, "value": 9, "from": "text", "where": "W1"},
        {"series": "two", "column": "C1", "x": 8, "low": 50, "high": 75, "of": "one", "as": "of * (1 - value / 100)", "from": "drawing", "where": "W2", "claim": "K"},
        {"series": "two", "row": "R2", "low": 2, "high": 4, "of": "three", "of_x": 1, "as": "of / value", "from": "text", "where": "W3"},
        {"row": "R1", "series": "two", "value": 7.3, "of": "one", "ours": "100 * (value / of - 1)", "as": "of + value", "from": "text", "where": "W8"},
        {"series": "three", "x": 8, "low": 7, "high": 8, "of": "one", "as": "of + value", "from": "drawing", "where": "W9"},
        {"row": "R2", "column": "C2", "series": "two", "x": 1, "value": 400, "from": "text", "where": "W4"}]}
# A curve that rises along x, which is not the number that is put: 33 - n is 1, 25, 32.
RISING = dict(copy.deepcopy(GRID), value="{f} * v", x={"title": "left", "key": "n", "values": [32, 8, 1], "value": "33 - {n}", "log": True}, y={"title": "ms"},
              published=[{"series": "one", "value": 20, "as": "1 + value / 100", "of": "three", "crossing": 30, "from": "text", "where": "W5"},
                         {"series": "two", "low": 2, "high": 3, "of": "one", "crossing": 20, "from": "drawing", "where": "W6", "claim": "K"},
                         {"x": 1, "low": 20, "high": 60, "from": "text", "where": "W7"}])
for key in ("rows", "columns", "lines"):
    del RISING[key]


def places(spec, axis):
    """(title, number or None, what it puts) of every place."""
    found = []
    for v in spec.get(axis, {}).get("values", [{"title": "", "put": {}}]):
        if isinstance(v, dict):
            found.append((v["title"], None, v.get("put", {})))
        else:
            found.append((f"{v:.10g}", float(v), {spec[axis]["key"]: v}))
    return found


class Point:
    def __init__(self, spec, at):
        self.at = at  # axis -> index
        self.title = {a: places(spec, a)[at[a]][0] for a in AXES}
        put = dict(spec["put"])
        for a in ("rows", "columns", "x", "series"):
            put.update(places(spec, a)[at[a]][2])
        names = {"v": verification(float(put["n"]))}
        fill = lambda text: eval(re.sub(r"\{(\w+)\}", lambda m: str(put[m.group(1)]), text), dict(names))
        self.value = fill(spec["value"])
        number = places(spec, "x")[at["x"]][1]
        self.x = fill(spec["x"]["value"]) if "value" in spec["x"] else number


class Grid:
    def __init__(self, spec):
        self.spec = spec
        self.n = {a: len(places(spec, a)) for a in AXES}
        self.points = [Point(spec, {"rows": r, "columns": c, "series": s, "x": x}) for r in range(self.n["rows"]) for c in range(self.n["columns"])
                       for s in range(self.n["series"]) for x in range(self.n["x"])]
        self.marks = spec["published"]

    def at(self, point, **other):
        want = dict(point.at, **other)
        return next(p for p in self.points if p.at == want)

    def index(self, axis, title):
        return [t for t, _, _ in places(self.spec, axis)].index(f"{title:.10g}" if not isinstance(title, str) else title)

    def is_of(self, m, p):
        return all(WORD[a] not in m or self.index(a, m[WORD[a]]) == p.at[a] for a in AXES)

    def crossing(self, p, series, height):
        curve = [self.at(p, series=series, x=i) for i in range(self.n["x"])]
        for a, b in zip(curve, curve[1:]):
            if a.value < height <= b.value:
                return a.x + (height - a.value) / (b.value - a.value) * (b.x - a.x)
        return math.nan

    def published(self, m, p):
        """low, high, x from, x to as drawn; None where nothing is."""
        low, high = m.get("value", m.get("low")), m.get("value", m.get("high"))
        if "crossing" in m:
            x = self.crossing(p, self.index("series", m["of"]), m["crossing"])
            ends = [eval(m["as"], {"value": v}) if "as" in m else v for v in (low, high)]
            return (m["crossing"], m["crossing"], ends[0] * x, ends[1] * x) if not math.isnan(x) else None
        if "as" in m:
            of = self.at(p, series=self.index("series", m["of"]), **({"x": self.index("x", m["of_x"])} if "of_x" in m else {})).value
            low, high = sorted(eval(m["as"], {"value": v, "of": of}) for v in (low, high))
        return low, high, p.x, p.x

    def mark_rows(self):
        for m in self.marks:
            for p in self.points:
                if self.is_of(m, p) and ("crossing" not in m or p.at["x"] == 0):
                    yield m, p

    def panel(self, p):
        return ", ".join(t for t in (p.title["rows"], p.title["columns"]) if t)


def g(x, digits=4):
    return f"{x:.{digits}g}"


def said_published(grid, m, p):
    low, high = m.get("value", m.get("low")), m.get("value", m.get("high"))
    text = f"{g(low)} to {g(high)}" if low < high else g(low)
    drawn = grid.published(m, p) if "as" in m else None
    if drawn:
        text += f" (drawn at {g(drawn[0], 3)} to {g(drawn[1], 3)})" if drawn[0] < drawn[1] else f" (drawn at {g(drawn[0], 3)})"
    return text


def text_of(grid):
    """The lines, each as its cells."""
    spec, lines = grid.spec, [["p, figure 7: t"], ["It says. As set up."]]
    for r in range(grid.n["rows"]):
        for c in range(grid.n["columns"]):
            first = next(p for p in grid.points if p.at["rows"] == r and p.at["columns"] == c)
            name = grid.panel(first)
            lines.append([f"{name}: {spec['y']['title']}" if name else spec["y"]["title"]])
            lines.append([spec["x"]["title"]] + [t for t, _, _ in places(spec, "series")])
            for x in range(grid.n["x"]):
                cells = [places(spec, "x")[x][0]]
                for s in range(grid.n["series"]):
                    p = grid.at(first, series=s, x=x)
                    cell = g(p.value) + (f" at {g(p.x, 3)}" if "value" in spec["x"] else "")
                    cells.append(cell + "".join(f" ({said_published(grid, m, p)})" for m in grid.marks if "x" in m and "as" not in m and grid.is_of(m, p)))
                lines.append(cells)
    if spec["draw"] == "table":
        return lines  # it has all published values in parentheses
    lines.append(["panel", "series", "x", "published", "simulated", "where", "claim"])
    for m, p in grid.mark_rows():
        ours = g(p.value)
        if "crossing" in m:
            own, other = grid.crossing(p, p.at["series"], m["crossing"]), grid.crossing(p, grid.index("series", m["of"]), m["crossing"])
            ours = g(own / other, 3) if not math.isnan(own / other) else "not within the axis"
        lines.append([grid.panel(p), p.title["series"], f"x of {m['crossing']:g}" if "crossing" in m else p.title["x"], said_published(grid, m, p), ours,
                      m["where"] + (" (read off the drawing)" if m["from"] == "drawing" else ""), m.get("claim", "")])
    return [[c for c in l if c] for l in lines]


def markdown_of(grid):
    """Rows of published values: one for all points of a mark that has many."""
    rows = []
    for m in grid.marks:
        own = [p for p in grid.points if grid.is_of(m, p)]
        if "crossing" in m or ("x" in m and not ("of" in m and len(own) > 1)):
            continue
        name = {a: m[WORD[a]] if WORD[a] in m else "all" if grid.n[a] > 1 else "" for a in AXES}
        ours = []
        for p in own:
            of = grid.at(p, series=grid.index("series", m["of"]), **({"x": grid.index("x", m["of_x"])} if "of_x" in m else {})).value if "of" in m else 1.0
            ours.append(eval(m["ours"], {"value": p.value, "of": of}) if "ours" in m else p.value / of)
        low, high = m.get("value", m.get("low")), m.get("value", m.get("high"))
        rows.append([", ".join(t for t in (name["rows"], name["columns"]) if t),
                     f"{name['series']} {'against' if 'ours' in m else 'over'} {m['of']}" if "of" in m else name["series"], str(name["x"]),
                     f"{g(low)} to {g(high)}" if low < high else g(low), f"{g(min(ours), 3)} to {g(max(ours), 3)}",
                     m["where"] + (" (read off the drawing)" if m["from"] == "drawing" else ""), m.get("claim", "")])
    return rows


def json_of(grid):
    points = [{"row": p.title["rows"], "column": p.title["columns"], "series": p.title["series"], "at": p.title["x"], "x": p.x, "value": p.value, "low": p.value,
               "high": p.value, "n": 2} for p in grid.points]
    rows = []
    for m, p in grid.mark_rows():
        drawn = grid.published(m, p) or (None,) * 4
        rows.append({"panel": grid.panel(p), "series": p.title["series"], "x": f"x of {m['crossing']:g}" if "crossing" in m else p.title["x"],
                     "where": m["where"] + (" (read off the drawing)" if m["from"] == "drawing" else ""), "claim": m.get("claim", ""),
                     "published_low": m.get("value", m.get("low")), "published_high": m.get("value", m.get("high")), "drawn_low": drawn[0], "drawn_high": drawn[1],
                     "drawn_x_low": drawn[2], "drawn_x_high": drawn[3], "read_off": m["from"] == "drawing"})
    return {"paper": "p", "number": "7", "title": "t", "points": points, "published": rows}


def drawn_of(grid):
    """Blocks of the data and the variables."""
    spec, draw = grid.spec, grid.spec["draw"]
    along = lambda p: p.at["x"] + 0.8 * ((p.at["series"] + 0.5) / grid.n["series"] - 0.5) if draw == "bars" else p.at["x"] if draw == "stacked" else p.x
    base = lambda p: sum(grid.at(p, series=s).value for s in range(p.at["series"])) if draw == "stacked" else 0.0
    blocks, marks, ends = [], [], []
    kinds = collections.Counter()
    named = lambda m: sum(WORD[a] in m for a in AXES)
    for r in range(grid.n["rows"]):
        for c in range(grid.n["columns"]):
            here = [p for p in grid.points if p.at["rows"] == r and p.at["columns"] == c]
            ys, xs, of_marks = [], [], [[math.nan] * 6 + [0.0, 0.0]]
            for s in range(grid.n["series"]):
                own = [p for p in here if p.at["series"] == s]
                blocks.append((own[0].title["series"], [[along(p)] + [base(p) + p.value] * 3 for p in own]))
                ys += [base(p) + p.value for p in own]
                xs += [along(p) for p in own]
            for p in here:
                for m in grid.marks:
                    hidden = "crossing" not in m and any("crossing" not in o and grid.is_of(o, p) and named(o) > named(m) for o in grid.marks)
                    drawn = grid.published(m, p)
                    if not grid.is_of(m, p) or ("crossing" in m and p.at["x"] != 0) or hidden or drawn is None:
                        continue
                    low, high, x_low, x_high = drawn
                    if "crossing" not in m:
                        x_low = x_high = along(p)
                    low, high = low + base(p), high + base(p)
                    of_marks.append([(x_low + x_high) / 2, (low + high) / 2, x_low, x_high, low, high, float(p.at["series"]), float(m["from"] == "drawing")])
                    ys += [low, high]
                    xs += [x_low, x_high]
                    kinds["read_off" if m["from"] == "drawing" else "stated_ranges" if low < high or x_low < x_high else "stated"] = 1
            marks.append(("published", of_marks))
            ends.append((min(ys), max(ys), min(xs), max(xs), len(of_marks) - 1.0))
    numbers = "value" not in spec["x"]
    lines = spec.get("lines", [])
    series = [t for t, _, _ in places(spec, "series")]
    panels = [grid.panel(p) for p in grid.points if p.at["series"] == 0 and p.at["x"] == 0]
    want = {"blocks": len(blocks) + len(marks), "subject": "p, figure 7  ·  t", "kind": draw, "grid_rows": grid.n["rows"], "grid_cols": grid.n["columns"],
            "series": grid.n["series"], "xlabel_text": spec["x"]["title"], "ylabel_text": spec["y"]["title"], "named": draw in ("bars", "stacked"),
            "ylog": spec["y"].get("log", False), "xlog": spec["x"].get("log", False), "xvalues": "1 8 32" if numbers else "", "n_series_name": len(series),
            "longest": max(map(len, series)), "n_place": 3, "n_line_name": len(lines), "n_panel": len(panels), "read_off": kinds["read_off"],
            "stated": kinds["stated"], "stated_ranges": kinds["stated_ranges"], "format": "svg"}
    for i, l in enumerate(lines):
        want[f"line_name[{i + 1}]"], want[f"line_at[{i + 1}]"] = l["title"], l["at"]
    for i, s in enumerate(series):
        want[f"series_name[{i + 1}]"], want[f"slot[{i + 1}]"] = s, i
    for i, (t, _, _) in enumerate(places(spec, "x")):
        want[f"place[{i + 1}]"] = t
    for i, (panel, e) in enumerate(zip(panels, ends)):
        want[f"panel[{i + 1}]"] = panel
        for name, v in zip(("y_lo", "y_hi", "x_lo", "x_hi", "marks"), e):
            want[f"{name}[{i + 1}]"] = v
    return blocks + marks, want


def same(what, got, want):
    CHECKED[what.split(":")[0]] += 1
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)) and len(got) == len(want):
        for i, (a, b) in enumerate(zip(got, want)):
            same(f"{what}[{i}]", a, b)
    elif isinstance(want, dict) and isinstance(got, dict) and list(got) == list(want):
        for k in want:
            same(f"{what}.{k}", got[k], want[k])
    elif isinstance(want, (int, float)) and isinstance(got, (int, float)):
        if not (abs(got - want) <= 1e-9 * max(abs(want), 1e-9) or (math.isnan(got) and math.isnan(want))):
            BAD.append(f"{what}: {got}, worked out {want}")
    elif got != want:
        BAD.append(f"{what}: {got!r}, worked out {want!r}")


def run(name, *more):
    env = dict(os.environ, PATH=f"{FOLDER}/fake:{os.environ['PATH']}", KEEP=str(FOLDER))
    r = subprocess.run([XPUSIM, "figure", str(FOLDER / f"{name}.json"), "-q", "--replications", "2", "-o", str(FOLDER / "out"), *more], capture_output=True, text=True, env=env)
    if r.returncode != 0:
        BAD.append(f"{name}: exit {r.returncode}: {r.stderr[:200]}")
    return r.stdout


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def check(name, spec, *puts):
    grid = Grid(dict(spec, put=dict(spec["put"], **dict(p.split("=") for p in puts))))
    (FOLDER / f"{name}.json").write_text(json.dumps(spec))
    more = [w for p in puts for w in ("--put", p)]
    text = run(name, "--no-picture", *more)
    same(f"text: {name}", [[c for c in re.split(r"  +", l.strip()) if c] for l in text.split("\n") if l.strip()], text_of(grid))
    brief = [[c.strip() for c in l.strip("|").split("|")] for l in run(name, "--markdown", "--no-picture", *more).split("\n") if l.startswith("|")]
    for row in markdown_of(grid):
        CHECKED["Markdown"] += 1
        if row not in brief:
            BAD.append(f"Markdown {name}: no row {row} in {brief}")
    for kept in FOLDER.glob("kept.*"):
        kept.unlink()
    same(f"JSON: {name}", json.loads(run(name, "--json", *more) or "{}"), json_of(grid))
    if spec["draw"] == "table":
        same(f"picture: {name}", sorted(FOLDER.glob("kept.*")), [])
        return
    blocks, want = drawn_of(grid)
    got = []
    for block in re.split(r"\n\n+", (FOLDER / "kept.tsv").read_text().strip("\n")):
        title, *rows = block.split("\n")
        got.append((title, [[number(c) for c in r.split("\t")] for r in rows]))
    same(f"blocks: {name}", got, blocks)
    variables = {}
    for m in re.finditer(r"^([\w\[\]]+) = (?:'(.*)'|(\S+))$", (FOLDER / "kept.gp").read_text(), re.M):
        variables[m.group(1)] = m.group(2) if m.group(2) is not None else float(m.group(3))
    for k, v in want.items():
        v = float(v) if isinstance(v, bool) else v
        if k not in variables:
            BAD.append(f"variable {name}: no {k}")
        elif isinstance(v, (int, float)):
            same(f"variable: {name}.{k}", round(variables[k], 9), round(float(f"{v:.12g}"), 9))
        else:
            same(f"variable: {name}.{k}", variables[k], v)


def main():
    (FOLDER / "fake").mkdir()
    fake = FOLDER / "fake" / "gnuplot"
    fake.write_text('#!/bin/sh\ncp "$2" "$KEEP/kept.gp"\ncp "${2%.gp}.tsv" "$KEEP/kept.tsv"\necho "<svg/>" >"$(sed -n "s/^out = \'\\(.*\\)\'$/\\1/p" "$2")"\n')
    fake.chmod(0o755)
    for draw in ("lines", "points", "bars", "stacked", "table"):
        check(draw, dict(GRID, draw=draw))
    check("put", GRID, "scale=0.25")
    for draw in ("lines", "points"):
        check(f"rising-{draw}", dict(RISING, draw=draw))
    # A logarithmic axis whose panels have no positive value is drawn: of nothing at all, and of 0 next to numbers.
    if shutil.which("gnuplot"):
        for name, f in (("none", ("0", "0", "0")), ("some", ("0", "0.5", "0")), ("below", ("-1", "-2", "0"))):
            series = {"values": [dict(v, put={"f": x}) for v, x in zip(GRID["series"]["values"], f)]}
            spec = dict(GRID, series=series, published=[], lines=[{"at": 50, "title": "limit"}] if name == "some" else [])
            if name != "some":
                del spec["lines"]
            (FOLDER / f"log-{name}.json").write_text(json.dumps(dict(spec, number=name)))
            r = subprocess.run([XPUSIM, "figure", str(FOLDER / f"log-{name}.json"), "-q", "--replications", "1", "-o", str(FOLDER / "out")], capture_output=True, text=True)
            svg = FOLDER / "out" / f"p-{name}.svg"
            CHECKED["log"] += 1
            if r.returncode != 0 or r.stderr or not svg.exists() or "R2, C2" not in svg.read_text():
                BAD.append(f"log {name}: exit {r.returncode}: {r.stderr[:300]}")
    print("\n".join(f"FAILED: {b}" for b in BAD[:40]))
    print("worked out again: " + ", ".join(f"{n} of {k}" for k, n in CHECKED.items()))
    return 1 if BAD or sum(CHECKED.values()) < 3000 else 0


sys.exit(main())

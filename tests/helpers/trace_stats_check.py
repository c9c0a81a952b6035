"""Counts in trace files what `trace stats --json` and its text say of them."""
import csv
import json
import math
import re
import statistics
import subprocess
import sys


def rank(values, p):
    """Nearest rank."""
    return sorted(values)[math.ceil(p * len(values)) - 1] if values else None


def computed(rows):
    """Those that compute a group's text: of each the one with most of it, of equals the lowest number."""
    groups = {}
    for r in rows:
        if int(r.get("prefix_group") or 0) > 0:
            groups.setdefault(r["prefix_group"], []).append(r)
    return {min(g, key=lambda r: (-int(r["prefix_tokens"]), int(r["request_id"])))["request_id"] for g in groups.values()}


def of_class(rows, first, own):
    """The figures of one class, by their names in JSON."""
    want = {"requests": len(rows)}
    for what in ("input_tokens", "output_tokens"):
        v = [int(r[what]) for r in rows]
        want[what + "_mean"] = sum(v) / len(v) if v else None
        for name, p in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
            want["%s_%s" % (what, name)] = rank(v, p)
    tokens = sum(int(r["input_tokens"]) for r in rows)
    want["prefix_frac"] = sum(int(r["prefix_tokens"]) for r in rows if r["request_id"] not in own) / tokens if tokens else None
    at = [float(r["arrival_s"]) for r in first]
    gaps = [b - a for a, b in zip(at, at[1:])]
    want["rate_per_min"] = 60 * len(gaps) / (at[-1] - at[0]) if gaps and at[-1] > at[0] else None
    want["gap_cv"] = statistics.stdev(gaps) / statistics.mean(gaps) if len(gaps) > 1 else None
    return want


def parents_of(rows):
    """Request -> those that it waits for: the turn before, and who is named."""
    turn = {(r["session_id"], int(r["turn"])): r["request_id"] for r in rows}
    parents = {}
    for r in rows:
        before = turn.get((r["session_id"], int(r["turn"]) - 1))
        named = [p for p in r.get("parent_ids", "").split(";") if p]
        parents[r["request_id"]] = set(named) | ({before} if before is not None else set())
    return parents


def of_graph(rows):
    parents = parents_of(rows)
    children = {}
    for r, named in parents.items():
        for p in named:
            children.setdefault(p, set()).add(r)
    joins = sum(len(p) > 1 for p in parents.values())
    for r in rows:  # a task of the same user that comes later
        if r.get("starts_job") == "1":
            parents[r["request_id"]] = set()
    group = {r: r for r in parents}

    def job(r):
        while group[r] != r:
            r = group[r]
        return r
    for r, named in parents.items():
        for p in named:
            group[job(r)] = job(p)
    depth = {}

    def depth_of(r):
        if r not in depth:
            depth[r] = 1 + max([depth_of(p) for p in parents[r]], default=0)
        return depth[r]
    sys.setrecursionlimit(100000)
    longest, level = {}, {}
    for r in parents:
        longest[job(r)] = max(longest.get(job(r), 0), depth_of(r))
        level.setdefault(job(r), []).append(depth_of(r))
    widths = [max(v.count(d) for d in set(v)) for v in level.values()]
    return {"jobs": len(longest), "joins": joins,
            "forks": sum(len(c) > 1 for c in children.values()),
            "background": sum(r.get("background") == "1" for r in rows),
            "depth_mean": sum(longest.values()) / len(longest), "depth_max": max(longest.values()),
            "width_mean": sum(widths) / len(widths), "width_max": max(widths)}


def wanted(rows):
    parents = parents_of(rows)
    first = sorted((r for r in rows if not parents[r["request_id"]]), key=lambda r: float(r["arrival_s"]))
    at = [float(r["arrival_s"]) for r in first]
    want = {"requests": len(rows), "sessions": sum(r["turn"] == "0" for r in rows), "span_s": at[-1] - at[0]}
    own = computed(rows)
    for cls in ("reactive", "proactive"):
        want[cls] = of_class([r for r in rows if r["class"] == cls], [r for r in first if r["class"] == cls], own)
    if own:  # what the classes could reuse is what a shared cache could serve
        want["shareable_tokens"] = sum(int(r["prefix_tokens"]) for r in rows if r["request_id"] not in own)
    if any(r.get("parent_ids") for r in rows):
        want["graph"] = of_graph(rows)
    return want


def differ(name, got, want, bad):
    for key, value in want.items():
        if isinstance(value, dict):
            differ("%s %s" % (name, key), got.get(key, {}), value, bad)
        elif key not in got:
            bad.append("%s: %s is missing" % (name, key))
        elif (got[key] is None) != (value is None) or value is not None and abs(got[key] - value) > 1e-9 * max(1, abs(value)):
            bad.append("%s: %s is %s, not %s" % (name, key, got[key], value))


def printed(d):
    """The text of a document, each line as its cells."""
    five = lambda c, k: "/".join("%.0f" % c["%s_tokens_%s" % (k, q)] for q in ("mean", "p50", "p90", "p99", "max"))
    lines = [["%d requests in %d sessions, first turns over %.1f s" % (d["requests"], d["sessions"], d["span_s"])],
             ["class", "requests", "first turns/min", "gap CV", "input mean/p50/p90/p99/max", "output mean/p50/p90/p99/max", "reuse"]]
    for k in ("reactive", "proactive"):
        c = d[k]
        if c["requests"]:
            number = lambda x, form: "-" if x is None else form % x
            lines.append([k, str(c["requests"]), number(c["rate_per_min"], "%.3f"), number(c["gap_cv"], "%.2f"), five(c, "input"), five(c, "output"), "%.1f%%" % (100 * c["prefix_frac"])])
    if "graph" in d:
        g = d["graph"]
        lines += [["%d jobs: %d forks, %d joins, %d background requests" % (g["jobs"], g["forks"], g["joins"], g["background"])],
                  ["longest path %.1f requests in the mean, %d at most; width %.1f in the mean, %d at most" % (g["depth_mean"], g["depth_max"], g["width_mean"], g["width_max"])],
                  ["critical path without service %.1f s in the mean, %.1f s at most" % (g["critical_gaps_s_mean"], g["critical_gaps_s_max"])]]
    if "shareable_tokens" in d:
        lines.append(["a shared cache could serve %d of %.0f prompt tokens (%.1f%%)" % (d["shareable_tokens"], d["shareable_tokens"] / d["shareable_frac"] if d["shareable_frac"] else
                      sum(d[k]["requests"] * d[k]["input_tokens_mean"] for k in ("reactive", "proactive") if d[k]["requests"]), 100 * d["shareable_frac"])])
    return lines


def said(program, path, *form):
    return subprocess.run([program, "trace", "stats", path, "-q", *form], capture_output=True, text=True, check=True).stdout


def main():
    bad = []
    for path in sys.argv[2:]:
        with open(path) as f:
            rows = list(csv.DictReader(l for l in f if not l.startswith("#")))
        got, want = json.loads(said(sys.argv[1], path, "--json")), wanted(rows)
        differ(path[-5:], got, want, bad)
        sections = {k for k in got if isinstance(got[k], dict)}
        if sections != {k for k in want if isinstance(want[k], dict)}:
            bad.append("%s has %s" % (path[-5:], sorted(sections)))
        names = any(int(r.get("prefix_group") or 0) > 0 or r.get("prefix_of") for r in rows)
        if ("shareable_tokens" in got) != (names and "graph" in want):
            bad.append("%s: shareable tokens" % path[-5:])
        text = said(sys.argv[1], path)
        lines = [re.split(r"  +", l.strip()) for l in text.split("\n") if l.strip()]
        if lines != printed(got):
            bad.append("%s prints %s, not %s" % (path[-5:], [l for l in lines if l not in printed(got)], [l for l in printed(got) if l not in lines]))
    print("\n".join(["FAILED: " + b for b in bad]), end="\n" if bad else "")
    return bool(bad)


sys.exit(main())

#!/usr/bin/env python3
"""The recorded results of a gate over commits, as one HTML page without scripts.

    python3 experiments/gate/history.py BASELINE.json -o history.html [--last 50] [--all]

Every commit that changed the file is a point. A row is a metric of a policy in a group: a line of its means, the last one, and
the change since the first. Rows that never changed are left out unless --all is given. Nothing is simulated.
"""
import argparse
import html
import json
import math
import subprocess
import sys
from pathlib import Path

STYLE = """
:root { color-scheme: light dark } body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 75rem; padding: 1rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .85rem } th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid #8886 }
td { max-width: 16rem; overflow-wrap: anywhere } td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } svg { display: block } polyline { fill: none; stroke: #0072b2; stroke-width: 1.5 } circle { fill: #d55e00 }
"""


def git(folder, *words):
    run = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"history: git {words[0]}: {run.stderr.strip()}")
    return run.stdout


def means(text):
    """{(group, policy, metric): mean}; empty of a file without results."""
    out = {}
    for cell in json.loads(text).get("results", []):
        for metric, values in cell.get("metrics", {}).items():
            known = [v for v in values if isinstance(v, (int, float))]
            if known:
                out[cell["group"], cell["policy"], metric] = math.fsum(known) / len(known)
    return out


def read(path, last):
    """Commits, the oldest first: (short hash, date, subject, means)."""
    folder = str(path.resolve().parent)
    name = git(folder, "ls-files", "--full-name", path.name).strip()
    if not name:
        sys.exit(f"history: {path}: not a file of a git repository")
    log = git(folder, "log", f"--max-count={last}", "--format=%h%x09%cs%x09%s", "--", path.name).splitlines()
    points = []
    for line in reversed(log):
        commit, date, subject = line.split("\t", 2)
        try:
            points.append((commit, date, subject, means(git(folder, "show", f"{commit}:{name}"))))
        except json.JSONDecodeError:
            print(f"history: {commit}: not JSON, left out", file=sys.stderr)
    return points


def line(values, text):
    """A line over commits; a gap where a commit has no value; a dot at the last one."""
    known = [v for v in values if v is not None]
    low, high, wide = min(known), max(known), max(1, len(values) - 1)
    place = [(2 + 156 * i / wide, 22 - 20 * ((v - low) / (high - low) if high > low else 0.5)) if v is not None else None for i, v in enumerate(values)]
    runs, now = [], []
    for p in [*place, None]:
        if p is None:
            runs, now = runs + ([now] if now else []), []
        else:
            now.append(f"{p[0]:.1f},{p[1]:.1f}")
    end = [p for p in place if p][-1]
    return (f'<svg width=160 height=24 role=img aria-label="{html.escape(text)}">' + "".join(f'<polyline points="{" ".join(r)}"/>' for r in runs) +
            f'<circle cx={end[0]:.1f} cy={end[1]:.1f} r=2.5 /></svg>')


def page(path, points, every):
    keys = sorted({k for p in points for k in p[3]})
    rows = []
    for key in keys:
        values = [p[3].get(key) for p in points]
        known = [v for v in values if v is not None]
        changed = len(set(known)) > 1
        if changed or every:
            share = (known[-1] - known[0]) / abs(known[0]) if known[0] else math.nan
            rows.append((-abs(share) if share == share else 0, key, values, known, share))
    rows.sort(key=lambda r: (r[0], r[1]))
    out = [f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'><meta http-equiv=Content-Security-Policy "
           f"content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>History of {html.escape(path.name)}</title><style>{STYLE}</style><h1>History of {html.escape(path.name)}</h1>",
           f"<p>{len(points)} commits recorded results, from {points[0][1]} to {points[-1][1]}. Of {len(keys)} values {len(rows)} are shown, "
           f"{'all of them' if every else 'those that ever changed'}, the largest change first. A line goes over commits; its height is the value between its own least and most.</p>",
           "<div class=wide><table><thead><tr><th>group<th>policy<th>metric<th>over commits<th>first<th>last<th>change</thead><tbody>"]
    for _, (group, policy, metric), values, known, share in rows:
        told = f"from {known[0]:.6g} to {known[-1]:.6g}"
        change = f"{100 * share:+.2f} %" if share == share else "-"
        out.append(f"<tr><td>{html.escape(group)}<td>{html.escape(policy)}<td>{html.escape(metric)}<td>{line(values, told)}<td class=n>{known[0]:.6g}<td class=n>{known[-1]:.6g}<td class=n>{change}")
    out.append("</tbody></table></div><h2>Commits</h2><div class=wide><table><thead><tr><th>commit<th>date<th>subject<th>values that changed</thead><tbody>")
    for i, (commit, date, subject, now) in reversed(list(enumerate(points))):
        before = points[i - 1][3] if i > 0 else {}
        changed = sum(1 for k, v in now.items() if k in before and before[k] != v)
        out.append(f"<tr><td><code>{commit}</code><td>{date}<td>{html.escape(subject)}<td class=n>{changed if i > 0 else 'first'}")
    return "\n".join([*out, "</tbody></table></div></html>", ""])


def main():
    parser = argparse.ArgumentParser(description="The recorded results of a gate over commits, as a page.")
    parser.add_argument("baseline", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--last", type=int, default=50, help="commits, the newest (default: 50)")
    parser.add_argument("--all", action="store_true", help="also values that never changed")
    o = parser.parse_args()
    points = read(o.baseline, o.last)
    if not any(p[3] for p in points):
        sys.exit(f"history: {o.baseline}: no commit has results")
    o.output.write_text(page(o.baseline, points, o.all), encoding="utf-8")


main()

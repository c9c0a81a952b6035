#!/usr/bin/env python3
"""Every number of a report's tables is worked out again from the comparison that it is made of: means with their intervals, all
metrics with their half-widths, and each number of the machine and the model with its range, kind and source."""
import html
import json
import pathlib
import re
import subprocess
import sys

from printed import interval_text

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD = []
CHECKED = 0


def said(*words):
    r = subprocess.run([XPUSIM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode != 0:
        sys.exit(f"FAILED: exit {r.returncode}: {' '.join(words)}\n{r.stderr[:300]}")
    return r.stdout


def text_of(cell):
    """A cell's text, and what is small below it."""
    small = " ".join(re.findall(r"<small>(.*?)</small>", cell))
    rest = re.sub(r"<br>|<small>.*?</small>", " ", cell)
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", "", t)).split()) for t in (rest, small)]


def tables(page):
    for t in re.findall(r"<table.*?</table>", page, re.S):
        head, _, body = t.partition("</thead>")
        yield [text_of(c)[0] for c in re.split(r"<th(?: [^>]*)?>", head)[1:]], [[text_of(re.sub(r"</t.*", "", c, flags=re.S)) for c in re.split(r"<td(?: [^>]*)?>", row)[1:]]
                                                                         for row in re.split(r"<tr(?: [^>]*)?>", body)[1:]]


def equal(what, got, want):
    global CHECKED
    CHECKED += 1
    if got != want:
        BAD.append(f"{what}: {got!r}, worked out {want!r}")


def with_interval(m):
    return "–" if m["mean"] is None else interval_text(m["mean"], m["low"], m["high"])


def below(m, base):
    """What is said below a mean: how much it differs from the baseline's, where that is shown; else the verdict."""
    verdict = m.get("verdict", "")
    if not verdict.startswith(("lower", "higher")) or "not significant" in verdict:
        return verdict
    sign = "+" if m["diff"] > 0 else ""
    percent = 100 * m["diff"] / abs(base["mean"])
    digits = 0 if abs(percent) >= 9.95 else 1 if abs(percent) >= 0.995 else 2
    return (f"{sign}{interval_text(m['diff'], m['diff_low'], m['diff_high'])} ({sign}{percent:.{digits}f} %)"
            + (" (not corrected)" if m["p_holm"] is None else ""))


def quantities(x, path=""):
    if isinstance(x, dict) and "value" in x and "unit" in x:
        yield path, x
    elif isinstance(x, dict):
        for k, v in x.items():
            yield from quantities(v, f"{path}.{k}" if path else k)
    elif isinstance(x, list):
        for i, v in enumerate(x):
            yield from quantities(v, f"{path}.{i}")


def main():
    load = ["--workload", "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=40,output_scale=0.3"]
    path, page = FOLDER / "compared.json", FOLDER / "page.html"
    path.write_text(said("compare", "--policy", "fcfs", "--policy", "edf", "--policy", "agent-xpu-v2", *load, "--replications", "5", "--json", "-q"))
    said("report", str(path), "--no-figures", "-o", str(page))
    d = json.loads(path.read_text())
    policies, seen = d["policies"], {"means": 0, "all": 0, "numbers": 0}
    for head, rows in tables(page.read_text()):
        if head[0] == "policy" and len(head) > 5:
            equal("policies of the page", [r[0][0].split()[0] for r in rows], list(policies))
            for k in range(1, len(head)):  # one metric has all the numbers of a column
                seen["means"] += 1
                fits = [m for m in next(iter(policies.values())) if all(interval_text(*(policies[r[0][0].split()[0]][m][e] for e in ("mean", "low", "high"))) == r[k][0] for r in rows)]
                if not fits:
                    BAD.append(f"page, {head[k]}: {[r[k][0] for r in rows]} are of no metric")
                elif not any(all(r[k][1] == below(policies[r[0][0].split()[0]][m], policies[d["baseline"]][m]) for r in rows if r[0][0].split()[0] != d["baseline"]) for m in fits):
                    BAD.append(f"page, {head[k]}: {[r[k][1] for r in rows]} are other verdicts than those of {fits}")
        elif head[0] == "metric":
            equal("policies of all metrics", head[1:], list(policies))
            for r in rows:
                seen["all"] += 1
                for policy, cell in zip(head[1:], r[1:]):
                    equal(f"page, {r[0][0]} of {policy}", cell[0], with_interval(policies[policy][r[0][0]]))
        elif head[:3] == ["number", "value", "range"]:
            want = dict(quantities(d["config"]["soc" if rows[0][0][0].startswith("ddr") else "llm"]))
            for r in rows:
                name, value, span, kind, source = (c[0] for c in r)
                q = want.get(name) or next((v for k, v in want.items() if k.endswith("." + name.split(".")[-1]) and f"{v['value']:g} {v['unit']}" == value and v["source"] == source), None)
                seen["numbers"] += 1
                if q is None:
                    BAD.append(f"page: {name} {value} is no number of a file")
                    continue
                equal(f"page, {name}", (value, kind, source), (f"{q['value']:.6g} {q['unit']}", q["kind"], " ".join(q["source"].split())))
                if "low" in q:
                    equal(f"page, {name}: range", span, f"{q['low']:.6g} to {q['high']:.6g}")
    seeds = re.search(r"<summary>Seeds and configuration</summary><pre>\[([0-9,]*)\]", page.read_text())
    equal("seeds of the page", seeds and seeds.group(1), ",".join(map(str, d["seeds"])))  # digits alone, as --seed takes them
    print("\n".join(f"FAILED: {b}" for b in BAD[:30]))
    print(f"{CHECKED} cells of a page worked out again: {seen}")
    return 1 if BAD or min(seen.values()) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes hwmodels/CHANGED.md to stdout: every number of the SoC files that differs from a commit's.

usage: python3 hwmodels/changed.py [COMMIT] >hwmodels/CHANGED.md   (default: the first version)
"""
import glob
import json
import os
import subprocess
import sys

FIRST = "a042aec"
HEAD = """# Numbers of the SoC files that changed, and why

`python3 hwmodels/changed.py` makes this page. It has every value, range and kind in `hwmodels/soc`
that differs from the first version (`git diff {commit} -- hwmodels/soc`), as value [low, high] kind.

* The reason is the source that the file states now. An empty first column is a number that the first
  version did not have. The word "gone" marks one that only the first version had.
* Rows of "fit to ..." are new because the fit is new. It holds what points do not determine, and fits
  the rest again. Versions of a toolchain keep a pace of their own. Ranges are two standard errors in
  the logarithm, or a profile.
* Matrix engines multiply INT8 at twice the FP16 rate, and OpenVINO quantises activations there. So the
  rate of quantised weights may reach twice the FP16 peak.
* The 4-bit files of OpenVINO's tables weigh what their recipes say (points/int4-recipes.csv). OpenVINO
  2024.5 (288V) and 2024.6 (258V) are versions of one pool now, and their own entries are gone.
* Models left out chose between all of these (VALIDATION.md).
"""


def numbers(node, path=""):
    """{path: quantity} of a SoC file, what a calibration says of itself left out."""
    if isinstance(node, dict) and "value" in node and "unit" in node:
        return {path: node}
    if isinstance(node, dict):
        items = [(k, v) for k, v in node.items() if k != "fit"]
    elif isinstance(node, list):
        items = [(label(v, i), v) for i, v in enumerate(node)]
    else:
        items = []
    found = {}
    for key, value in items:
        found.update(numbers(value, f"{path}.{key}" if path else key))
    return found


def label(node, index):
    if isinstance(node, dict) and "runtime" in node:
        return f"{node['runtime']}/{node['weight_bits']}"
    return node["name"] if isinstance(node, dict) and "name" in node else str(index)


def cell(q):
    return f"{q['value']:g} [{q['low']:g}, {q['high']:g}] {q['kind']}" if q else ""


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else FIRST
    print(HEAD.format(commit=commit))
    for name in sorted(glob.glob("hwmodels/soc/*.json")):
        shown = subprocess.run(["git", "show", f"{commit}:{name}"], capture_output=True, text=True)
        if shown.returncode != 0:
            continue  # a machine that is new altogether
        before = numbers(json.loads(shown.stdout))
        with open(name, encoding="utf-8") as f:
            now = numbers(json.load(f))
        rows = [(p, before.get(p), now.get(p)) for p in list(now) + [p for p in before if p not in now]]
        rows = [r for r in rows if cell(r[1]) != cell(r[2])]
        if not rows:
            continue
        print(f"## {os.path.basename(name)[:-5]}\n\n| number | before | now | reason |\n|---|---|---|---|")
        for path, old, new in rows:
            q = new or old
            why = new["source"] if new else "the entry is gone"
            short = path.removeprefix("devices.")
            print(f"| {short} ({q['unit']}) | {cell(old)} | {cell(new) or 'gone'} | {why} |")
        print()


main()

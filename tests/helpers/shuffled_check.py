#!/usr/bin/env python3
"""The order of rows in a file means nothing: what is printed, written or drawn has the same lines in another order. A row
that is left out, counted twice, or taken for its neighbour is seen so. Sums end otherwise in another order, and fits end
where their steps lead: each table says within which share its numbers must agree."""
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
WHOLE = bool(os.environ.get("WHOLE"))  # their own order, mixed and, whole, from the last to the first
RATES = ("policy,load,reactive.e2e_s.mean,reactive.e2e_s.p90,proactive.e2e_s.mean,proactive.e2e_s.p90\n" +
         "".join(f"{p},{load},{k + load},{2 * k + load * 3},{k + load * 5},{k + 7 * load}\n"
                 for k, p in enumerate(("fcfs", "edf", "llf")) for load in (0.3, 0.6, 0.9, 1.2)))


def table(path, wanted=lambda row: True, rows=10 ** 6):
    """Remarks and first line, and the rows that are wanted, up to so many."""
    lines = [l for l in pathlib.Path(path).read_text().splitlines(keepends=True) if l.strip()]
    n = next(k for k, l in enumerate(lines) if not l.startswith("#")) + 1
    return "".join(lines[:n]), [l for l in lines[n:] if wanted(l)][:rows]


def text(whole):
    lines = whole.splitlines(keepends=True)
    return lines[0], lines[1:]


def said(command):
    out = FOLDER / "made"
    subprocess.run([XPUSIM, *command.replace("{}", str(out)).split()], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return table(out)


def some(*machines):
    return lambda row: row.split(",")[0] in machines


POINTS = "hwmodels/points/reference.csv"
# What is read, by which command ({} is the file, {OUT} what it writes, to be compared too), within which share, and what
# depends on the order: a row's number, a session's, digits of what is not determined, the number of a search's steps.
TABLES = {
    "points": (table(POINTS), "validate --points {} --rows", 1e-6, r"^\d+ "),
    "points, a fit": (table(POINTS, some("core-ultra-7-255h", "core-ultra-7-165h")),
                      "calibrate --points {} --soc core-ultra-7-255h -o {OUT}", 0.0, None),
    "points, memory": (table(POINTS), "calibrate --points {} --memory", 1e-3, None),
    "powers": (table("hwmodels/points/energy.csv"), "validate --energy {}", 1e-3, r"^\d+ |.* x \d.*"),
    "co-runs, fits": (table("hwmodels/points/corun.csv"), "validate --corun {}", 1e-9, None),
    "kernels, a fit": (table("hwmodels/measured/two-core-xeon-vm.csv"), "measure --fit {}", 0.05, r".* no$|.*sharpness.*"),
    "rates, drawn": (text(RATES), "plot latency-rate {} -o {OUT} --format svg", 1e-9, None),
    "requests, drawn": (said("run --policy edf --workload w1:n=12 --requests {}"), "plot cdf {} -o {OUT} --format svg", 1e-9, None),
    "turns of sessions": (said("trace gen --workload mixed:sessions=1,duration_s=200 --seed 2 -o {}"), "run --policy edf --trace {} --requests {OUT}", 1e-12, None),
    "turns, counted": (said("trace gen --workload mixed:sessions=1,duration_s=200 --seed 2 -o {}"), "trace stats {}", 1e-9, None),
    "jobs of a graph": (said("trace gen --workload coding-agent --seed 2 -o {}"), "run --policy critical-path --trace {} --requests {OUT}", 1e-12, None),
    "jobs, counted": (said("trace gen --workload coding-agent --seed 2 -o {}"), "trace stats {}", 1e-9, None),
    "a served run": (table("hwmodels/runs/vllm-rtx-4090-llama-3.1-8b.csv", rows=12), "validate --run {} --soc rtx-4090 --llm llama-3.1-8b-bf16 --policy vllm-v1", 1e-6, None),
    "requests of a log": (table("tests/fuzz/corpus/azure/three"), "trace import {} --format azure", 1e-9, r"(?<=^\d,)\d,"),
}


NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


def taken_apart(text, ignored):
    """Each line without its numbers -> the numbers of every such line."""
    found = collections.defaultdict(list)
    for line in text.split("\n"):
        line = " ".join(line.split())
        line = re.sub(ignored, "", line) if ignored else line
        if line.strip():
            found[NUMBER.sub("#", line)].append([float(n) for n in NUMBER.findall(line)])
    return found


def differences(a, b, within):
    """Lines of one without one of the other that has the same numbers, but for a share."""
    found = []
    for words in {*a, *b}:
        rest = list(b.get(words, []))
        for v in a.get(words, []):
            match = next((w for w in rest if all(x == y or abs(x - y) <= within * max(abs(x), abs(y)) + 1e-9 for x, y in zip(v, w))), None)
            if match is None:
                found.append(f"- {words} {v}")
            else:
                rest.remove(match)
        found += [f"+ {words} {w}" for w in rest]
    return found


def answer(command, path, tag):
    """Every line that a command prints or writes, and how often."""
    out = FOLDER / f"out-{tag}"
    words = [w.replace("{}", str(path)).replace("{OUT}", str(out)) for w in command.split()]
    r = subprocess.run([XPUSIM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode not in (0, 1):
        return None, r.stderr[:300]
    whole = r.stdout
    for f in sorted(out.glob("*.tsv")) if out.is_dir() else [out] if out.exists() else []:
        whole += f.read_text()
    return whole.replace(path.name, "FILE").replace(out.name, "OUT"), r.stderr


def try_table(number, name):
    (head, rows), command, within, ignored = TABLES[name]
    path, bad = FOLDER / f"table-{number}.csv", []
    random.Random(name).shuffle(mixed := list(rows))
    whole = None
    for k, order in enumerate([rows, mixed] + [rows[::-1]] * WHOLE):
        path.write_text(head + "".join(order))
        got, err = answer(command, path, f"{number}-{k}")
        if not got:
            return [f"{name}: not read: {err}"]
        got = taken_apart(got, ignored)
        other = differences(whole, got, within) if whole is not None else []
        if other:
            bad.append(f"{name}, order {k}: other lines\n  " + "\n  ".join(sorted(other)[:8]))
        whole = whole or got
    return bad


def main():
    only = sys.argv[3:]
    chosen = [(k, n) for k, n in enumerate(TABLES) if not only or n in only]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [b for r in pool.map(lambda c: try_table(*c), chosen) for b in r]
    print("\n".join(f"FAILED: {b}" for b in bad))
    print(f"{len(chosen)} tables in {2 + WHOLE} orders")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

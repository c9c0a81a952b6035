#!/usr/bin/env python3
"""Prints what a further sequence of a decode batch costs (points/batched-decode.csv), and how well the others' cost
predicts it. A share b makes a step of n sequences 1 + b (n - 1) times as long as that of one."""
import csv
import statistics
import sys


def lines(path):
    return csv.DictReader(line for line in open(path, encoding="utf-8") if not line.startswith("#"))


def tool(runtime):
    return runtime.split("-")[0]


cases = {}
for row in lines(sys.argv[1] if len(sys.argv) > 1 else "hwmodels/points/batched-decode.csv"):
    key = tuple(row[k] for k in ("machine", "engine", "runtime", "model", "weight_bits", "prompt_tokens"))
    cases.setdefault(key, {})[int(row["batch"])] = float(row["seconds"])
share = {}  # of a case, over its batches
print("machine          engine  runtime              model         bits  context  batch: a further sequence over the first")
for key, seconds in cases.items():
    of = {n: (s / seconds[1] - 1) / (n - 1) for n, s in seconds.items() if n > 1}
    share[key] = statistics.mean(of.values())
    print("%-16s %-7s %-20s %-13s %4s %8s  %s" % (*key, ", ".join("%d: %.2f" % b for b in of.items())))


def predicted(key, like):
    """The mean over other machines, each of them the mean of its cases."""
    of = {}
    for other, b in share.items():
        if (other[0], other[1]) != (key[0], key[1]) and like(other, key):
            of.setdefault(other[:2], []).append(b)
    return (len(of), statistics.mean(statistics.mean(b) for b in of.values())) if of else (0, None)


print("\nstep time, |error| in %, each case by the mean share of other machines and engines")
rules = {
    "same runtime": lambda a, b: a[2] == b[2],
    "same toolchain": lambda a, b: tool(a[2]) == tool(b[2]),
    "any": lambda a, b: True,
    "free (b 0)": None,
}
for name, like in rules.items():
    errors = []
    for key, seconds in cases.items():
        n_others, b = (0, 0.0) if like is None else predicted(key, like)
        for n, s in seconds.items():
            if n > 1 and b is not None:
                errors.append(abs((1 + b * (n - 1)) / (s / seconds[1]) - 1))
    if errors:
        errors.sort()
        print("  %-16s %2d rows  median %3.0f  most %4.0f" %
              (name, len(errors), 100 * statistics.median(errors), 100 * errors[-1]))
    else:
        print("  %-16s  no other machine has one" % name)

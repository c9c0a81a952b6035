"""Runs random workloads through an original scheduler and through our policy, and compares each step.

usage: compare.py JUDGE N [--seed S] [--xpusim FILE] [--shrink] [--stop] [--folder DIR]

It prints how many workloads and steps are equal, by kind, and the first that differ. With --shrink it prints the
smallest that still differ. A difference counts as documented when the judge has shown its cause. Then the workload
must be equal with the cause removed on one side or both. Exit status 1 says that one differs for no documented
reason."""

import argparse
import collections
import importlib
import itertools
import random
import sys
from pathlib import Path

import ours
from workload import shrink


def differs(judge, w, binary, folder):
    """Returns None when every step is equal, else (step, theirs, ours, our requests' records). The number of
    compared steps and whether the original gave up on the way follow."""
    theirs, gave_up = judge.steps(w, folder / "model")
    if theirs is None:
        return None, 0, gave_up
    try:
        formed, records = ours.run(binary, judge.policy(w), w, judge.BLOCK, folder)
    except ours.Refused as e:
        return (0, theirs[:1], str(e), {}), 0, gave_up
    mine = judge.observe(w, formed, records) if hasattr(judge, "observe") else ours.observe(
        w, formed, records, judge.BLOCK)
    for k, (a, b) in enumerate(zip(theirs, mine)):
        if a != b:
            return (k, theirs[max(0, k - 2):k + 3], mine[max(0, k - 2):k + 3], records), k, gave_up
    if len(theirs) != len(mine) and not gave_up:
        n = min(len(theirs), len(mine))
        return (n, theirs[n:n + 3], mine[n:n + 3], records), n, gave_up
    return None, len(theirs), gave_up


def reason(judge, w, found, binary, folder):
    """Returns why that difference is to be expected, or None."""
    return judge.documented(w, found[3], lambda s: differs(judge, s, binary, folder)[0] is None)


def unexpected(judge, w, binary, folder):
    found = differs(judge, w, binary, folder)[0]
    return found is not None and reason(judge, w, found, binary, folder) is None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("judge")
    a.add_argument("n", type=int)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--xpusim", default=str(ours.ROOT / "build/xpusim"))
    a.add_argument("--folder", default=str(ours.ROOT / "build/originals"))
    a.add_argument("--shrink", action="store_true")
    a.add_argument("--show", type=int, default=3, help="differing workloads to print")
    a.add_argument("--stop", action="store_true", help="at the first that differs")
    a = a.parse_args()
    judge = importlib.import_module("judge_" + a.judge)
    folder = Path(a.folder) / a.judge
    rng = random.Random(a.seed)
    table = collections.defaultdict(lambda: [0] * 5)
    reasons = collections.Counter()
    first = None
    for k, w in enumerate(itertools.islice(judge.draws(rng), a.n)):
        found, equal, gave_up = differs(judge, w, a.xpusim, folder)
        row = table[judge.kind(w)]
        why = reason(judge, w, found, a.xpusim, folder) if found else None
        row[0] += 1
        row[1] += found is None
        row[2] += why is not None
        row[3] += equal
        row[4] += gave_up is not None
        if why:
            reasons[why] += 1
        if found is None or why:
            continue
        first = first or k + 1
        if a.show > 0:
            a.show -= 1
            if a.shrink:
                w = shrink(w, lambda s: unexpected(judge, s, a.xpusim, folder))
                found = differs(judge, w, a.xpusim, folder)[0]
            print("workload %d differs from step %d on: %s" % (k + 1, found[0] + 1, w))
            print("  the original: %s\n  xpusim:       %s" % found[1:3])
        if a.stop:
            break
    print("%s, %s" % (judge.NAME, judge.VERSION))
    columns = ("workloads", "equal", "documented", "equal steps", "cut short")
    print(("%-45s" + " %11s" * 5) % ("", *columns))
    for name in sorted(table):
        print(("%-45s" + " %11d" * 5) % (name, *table[name]))
    total = [sum(row[i] for row in table.values()) for i in range(5)]
    print(("%-45s" + " %11d" * 5) % ("all", *total))
    for why, n in reasons.items():
        print("documented, %d: %s" % (n, why))
    if first is not None:
        print("the first that differs: number %d" % first)
    return 0 if total[0] == total[1] + total[2] else 1


if __name__ == "__main__":
    sys.exit(main())

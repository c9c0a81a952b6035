#!/usr/bin/env python3
"""How many faults that nobody thought of does a test see? Draws them by operators (draw.py), puts each in.

    blind.py --blind N [--seed S]   N lines at random over the tree's C sources
    blind.py --diff REV [--seed S]  at most 40 of the lines that `git diff REV` touched

A fault that does not compile with -Werror, or to the same object, is drawn again. Tests are those that run
the line where mutants.py --coverage has measured its file; otherwise those that are near the file, by name or
by the headers that they include, nearest first, until --budget processor seconds are spent. A script has four
times as long, longer on a busy machine, and says nothing after that. A test kills only if it passes without
the fault. Tests that compare with recorded outputs are not tried. A round goes on where it was cut off, while
sources and tests are as they were (build/mutants/drawn-*.json).
"""
import argparse
import collections
import concurrent.futures
import hashlib
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import draw
import mutants
from mutants import PLACE, TOP

FOLDERS = ["sim", "policies", "hwmodels", "traces", "experiments", "plots"]
MOST = 40  # faults of --diff


def git(*words):
    p = subprocess.run(["git"] + list(words), cwd=TOP, capture_output=True, text=True)
    if p.returncode != 0:
        print("blind.py: git %s: %s" % (" ".join(words), p.stderr.strip().split("\n")[0]), file=sys.stderr)
        sys.exit(2)
    return p.stdout


def text_of(path):
    with open(os.path.join(TOP, path)) as f:
        return f.read()


def wilson(killed, n, z=1.959964):
    """The Wilson interval at 95 % of a share."""
    if n == 0:
        return 0.0, 1.0
    p, q = killed / n, z * z / n
    middle, half = (p + q / 2) / (1 + q), z * math.sqrt(p * (1 - p) / n + q / (4 * n)) / (1 + q)
    return max(0.0, middle - half), min(1.0, middle + half)


def near(test, text, path):
    """How near a test is to a source: 0 by its name, then by what it includes or runs; None: not at all."""
    folder, stem = os.path.dirname(path), re.sub(r"^cmd_", "", os.path.basename(path)[:-2]).replace("-", "_")
    name = os.path.basename(test).replace("-", "_")
    if stem in name:
        return 0
    if test.endswith(".sh"):
        words = {stem.split("_")[0], os.path.basename(folder)}
        return 1 if words & set(name[:-3].split("_")) else 2 if re.search(r"\b%s\b" % stem, text) else None
    if '#include "%s.h"' % path[:-2] in text or stem.split("_")[0] in name.split("_"):
        return 1
    if '#include "%s/' % folder in text or (path.startswith("policies/") and "/conformance/" in test):
        return 2
    return 3 if '#include "%s/' % path.split("/")[0] in text else 4


class Round:
    """The faults of one draw, their results, and the file that keeps both."""

    def __init__(self, name, options, places):
        self.path = os.path.join(TOP, PLACE, "drawn-%s.json" % name)
        self.options = options
        self.end = time.time() + (options.seconds or math.inf)
        self.lock = threading.Lock()
        self.sound = {}  # (test, case) -> passes without a fault
        self.covered = json.load(open(mutants.MAP)) if os.path.exists(mutants.MAP) else {}
        self.tests = {t: text_of(t if t.endswith(".sh") else t + ".c")
                      for t in mutants.tests() if not mutants.is_golden(t)}
        self.workshop = mutants.Workshop(mutants.compile_commands())
        texts = {p: text_of(p) for p in sorted({p for p, _ in places})}
        key = hashlib.sha256(repr((sorted(places), texts, self.tests, options.budget)).encode()).hexdigest()
        kept = json.load(open(self.path)) if os.path.exists(self.path) else {}
        if kept.get("key") == key:
            self.faults = kept["faults"]
        else:
            self.faults = self.compiled(draw.draw(texts, places, options.seed), options.count)
            for i, r in enumerate(self.faults):
                r["name"] = "%s:%d" % (name, i + 1)
        self.key = key
        self.keep()

    def keep(self):
        with open(self.path + ".tmp", "w") as f:
            json.dump({"key": self.key, "faults": self.faults}, f, indent=1)
        os.rename(self.path + ".tmp", self.path)

    def compiled(self, records, count):
        """The first so many that compile to something else."""
        found = []
        places = ["%s/draw-%d-%d" % (PLACE, os.getpid(), i) for i in range(self.options.jobs)]
        records = (r for r in records if r["file"] in self.workshop.commands)
        with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
            while len(found) < count:
                batch = list(itertools.islice(records, len(places)))
                if not batch:
                    break
                whole = pool.map(lambda r, p: self.workshop.differs(r, mutants.changed(r)[0], p), batch, places)
                found += [r for r, w in zip(batch, whole) if w]
        for place in places:
            shutil.rmtree(os.path.join(TOP, place), ignore_errors=True)
        return found[:count]

    def order(self, r, lines):
        """Tests for a fault, the likeliest first."""
        if r["file"] in self.covered.get("files", {}):
            return [t for t in mutants.order(self.covered, r, lines) if t in self.tests]
        ranked = [(near(t, text, r["file"]), t) for t, text in self.tests.items()]
        # Scripts take longer: they come after the programs that are near.
        return [t for _, _, _, t in sorted((rank > 2, t.endswith(".sh"), rank, t)
                                           for rank, t in ranked if rank is not None)]

    def passes(self, test, case):
        if (test, case) not in self.sound:
            status, out, _ = mutants.run_test(test, PLACE, case, cpu_s=600)
            self.sound[test, case] = not mutants.failed(test, status, out)
        return self.sound[test, case]

    def attempt(self, r, place):
        """The verdict on one fault: killed (by whom) or survived."""
        text, lines = mutants.changed(r)
        refused = self.workshop.library(r, text, place)
        if refused is not None:
            return {"verdict": "stale", "by": "does not link"}
        spent, tried = 0.0, 0
        for test in self.order(r, lines):
            if spent >= self.options.budget:
                break
            busy = max(1.0, os.getloadavg()[0] / os.cpu_count())
            limit = max(10, 4 * self.options.budget * busy) if test.endswith(".sh") else 300
            status, out, cpu = mutants.run_test(test, place, timeout=limit)
            spent += cpu
            if status is None:  # it took too long to say anything
                continue
            tried += 1
            case = mutants.failing_case(test, out)
            if mutants.failed(test, status, out) and self.passes(test, case):
                return {"verdict": "killed", "by": os.path.basename(test) + (": " + case if case else ""),
                        "tests": tried, "s": round(spent, 1)}
        return {"verdict": "survived", "by": "", "tests": tried, "s": round(spent, 1)}

    def run(self):
        places = ["%s/worker-%d-%d" % (PLACE, os.getpid(), i) for i in range(self.options.jobs)]
        free = list(places)

        def one(r):
            if time.time() > self.end:
                return
            with self.lock:
                place = free.pop()
            os.makedirs(os.path.join(TOP, place), exist_ok=True)
            result = self.attempt(r, place)
            with self.lock:
                free.append(place)
                r.update(result)
                print("%-16s %-9s %-52s %3d tests %6.1f s" % (r["name"], r["verdict"], r["by"][:52],
                                                              r.get("tests", 0), r.get("s", 0.0)), flush=True)
                self.keep()
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(one, [r for r in self.faults if "verdict" not in r]))
        for place in places:
            shutil.rmtree(os.path.join(TOP, place), ignore_errors=True)


def report(faults):
    """Prints the table by folder and the survivors; returns how many survived."""
    rows = collections.OrderedDict((f, collections.Counter()) for f in FOLDERS)
    for r in faults:
        if "verdict" not in r:
            continue
        rows[r["file"].split("/")[0]][r["verdict"]] += 1
    rows["all"] = sum(rows.values(), collections.Counter())
    print("\n| faults in | drawn | killed | survived | killed, 95 % interval |\n|---|---:|---:|---:|---:|")
    for name, c in rows.items():
        n = c["killed"] + c["survived"]
        if n:
            low, high = wilson(c["killed"], n)
            print("| %s | %d | %d | %d | %.0f %% (%.0f to %.0f) |" % (name, n, c["killed"], c["survived"],
                                                                   100.0 * c["killed"] / n, 100 * low, 100 * high))
    left = [r for r in faults if r.get("verdict") == "survived"]
    late = sum("verdict" not in r for r in faults)
    if late:
        print("\n%d of %d faults were not tried in the time" % (late, len(faults)))
    for r in left:
        print("\n%s: %s:%d: %s" % (r["name"], r["file"], r["at"], r["why"]))
        print("\n".join(["-" + l for l in r["before"]] + ["+" + l for l in r["after"] if l or len(r["after"]) == 1]))
    return len(left)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--blind", type=int, help="number of faults over the tree")
    p.add_argument("--diff", help="revision: faults in the lines that changed since")
    p.add_argument("--seed", default="1")
    p.add_argument("--budget", type=float, help="processor seconds of tests on a fault; 20, with --diff 4")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--seconds", type=float, help="no fault is begun after so long (default: all are tried)")
    p.add_argument("--fail", action="store_true", help="exit status 1 if a fault survives")
    options = p.parse_args()
    if (options.blind is None) == (options.diff is None):
        p.error("give --blind N or --diff REV")
    if options.blind is not None and options.blind < 1 or options.jobs < 1:
        p.error("--blind and --jobs are 1 or more")
    os.chdir(TOP)
    patterns = [f + "/*.c" for f in FOLDERS]
    if options.diff:
        places = draw.changed_lines(git("diff", "-U0", options.diff, "--", *patterns))
        name, options.count = "diff-" + options.seed, MOST
    else:
        files = [f for f in git("ls-files", *patterns).split()]
        places = [(f, n) for f in files for n in range(1, text_of(f).count("\n") + 1)]
        name, options.count = "blind-%d-%s" % (options.blind, options.seed), options.blind
    if options.budget is None:
        options.budget = 4.0 if options.diff else 20.0
    if not places:
        print("no line of a C source was touched since %s" % options.diff)
        return 0
    mutants.build()
    drawn = Round(name, options, places)
    drawn.run()
    return 1 if report(drawn.faults) and options.fail else 0


if __name__ == "__main__":
    sys.exit(main())

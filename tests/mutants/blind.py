#!/usr/bin/env python3
"""How many faults that nobody thought of does a test see? Draws them by operators (draw.py), puts each in.

    blind.py --blind N [--seed S]   N lines at random over the tree's C sources
    blind.py --diff REV [--seed S]  at most 40 of the lines that `git diff REV` touched

A fault that does not compile with -Werror, or to the same object, is drawn again. Its tests are those that run
its line, as mutants.py --coverage has measured, quickest first. Each fault is tried alone until --budget processor
seconds are spent. Then all that are left are put in at once (not with --diff): a test that passes sees none
of them, and one that fails is run again with halves of them. So each meets every test that runs its line,
recorded outputs last. What survives meets its programs and quick scripts again under both sanitizers and with assertions,
as `make sanitize` has them (--no-sanitize leaves that out). With --slow the survivors then meet all tests that could not
be measured, or that need a tree of their own (mutants.NOT_HERE). A test kills only if it passes without the fault. Without measurements (with --diff)
tests are those near the file, by name or by what they include, without recorded outputs. A round goes
on where it was cut off, while sources and tests are as they were (build/mutants/drawn-*.json).
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
UNKNOWN_S = 60.0  # of a program that was not measured
SLOW_S = 3600.0  # of a test that --slow tries, to wait for
QUICK_S = 1.0    # of a script that is tried under the sanitizers
SANITIZED_S = 20.0  # of the tests of one survivor there, as they take without them
SLOWER = 6       # times: what the sanitizers cost at most


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
        self.failing = []  # tests of --slow that fail without a fault
        self.untried = []  # those that --slow came to too late
        self.covered = mutants.coverage()
        self.tests = {t: text_of(t if t.endswith(".sh") else t + ".c") for t in mutants.tests()}
        self.workshop, self.home, self.slower = mutants.Workshop(mutants.compile_commands()), PLACE, 1
        self.places = ["%s/worker-%d-%d" % (PLACE, os.getpid(), i) for i in range(options.jobs)]
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
        text = json.dumps({"key": self.key, "faults": self.faults})
        with open(self.path + ".tmp", "w") as f:
            f.write(text)
        os.rename(self.path + ".tmp", self.path)

    def compiled(self, records, count):
        """The first so many that compile to something else."""
        found = []
        records = (r for r in records if r["file"] in self.workshop.commands)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            while len(found) < count:
                batch = list(itertools.islice(records, self.options.jobs))
                if not batch:
                    break
                whole = pool.map(lambda r: self.workshop.differs(r, mutants.changed(r)[0]), batch)
                found += [r for r, w in zip(batch, whole) if w]
        return found[:count]

    def order(self, r):
        """Tests for a fault, the likeliest first."""
        if self.covered:
            return mutants.order(self.covered, r, mutants.changed(r)[1])
        ranked = [(near(t, text, r["file"]), t) for t, text in self.tests.items() if not mutants.is_golden(t)]
        # Scripts take longer: they come after the programs that are near.
        return [t for _, _, _, t in sorted((rank > 2, t.endswith(".sh"), rank, t)
                                           for rank, t in ranked if rank is not None)]

    def seconds(self, test):
        """One that was not measured meets all that are left, at once."""
        return mutants.seconds_of(self.covered, test) if test in self.covered or not self.covered else UNKNOWN_S

    def passes(self, test, case):
        if (test, case) not in self.sound:
            late_s = 300 + 10 * self.slower * self.covered.get(test, {}).get("wall", 0.0)
            status, out, _ = mutants.run_test(test, self.home, case, timeout=late_s, cpu_s=600, home=self.home)
            self.sound[test, case] = not mutants.failed(test, status, out)
        return self.sound[test, case]

    def sees(self, test, place):
        """Whether a test sees the faults of the library at a place: by which case (its name, or ""), or None; and the
        processor seconds. It has ten times its own (a long one less), so that one that computes for ever sees the fault. So
        does one that waits for ever, if it ends by half that time without the fault."""
        usual, wall = self.slower * self.seconds(test), self.slower * self.covered.get(test, {}).get("wall", 5.0)
        late_s = min(30 + 8 * wall, 180 + 3 * wall)
        cpu_s = max(20, min(10 * usual, 60 + 3 * usual))
        status, out, cpu = mutants.run_test(test, place, timeout=late_s, cpu_s=cpu_s, home=self.home)
        if status is None:
            status, out, _ = mutants.run_test(test, self.home, timeout=late_s / 2, home=self.home)
            return "waits" if status is not None and not mutants.failed(test, status, out) else None, cpu
        if not mutants.failed(test, status, out):
            return None, cpu
        case = mutants.failing_case(test, out)
        return (case or "") if self.passes(test, case) else None, cpu

    def verdict(self, r, test, case):
        r["verdict"] = "recorded" if mutants.is_golden(test) else "killed"
        r["by"] = os.path.basename(test) + (": " + case if case else "")
        r["rest"] = []
        if self.home != PLACE:
            r["by"] += " (sanitized)"
            r["sanitized"] = True

    def alone(self, r, place):
        """Tries a fault by itself: killed by a test, or a list of those that are left."""
        refused = self.workshop.together(joined([r]), place)
        if refused is not None:
            r.update(verdict="stale", by=refused, rest=[])
            return
        spent, tried, rest = 0.0, 0, []
        for test in self.order(r):
            if mutants.is_golden(test) or spent + self.seconds(test) > self.options.budget:
                rest.append(test)
                continue
            case, cpu = self.sees(test, place)
            spent += cpu
            tried += 1
            if case is not None:
                self.verdict(r, test, case)
                break
        r.update(tests=tried, s=round(spent, 1))
        if "verdict" not in r:
            r["rest"] = rest

    def group(self, faults, test, place):
        """Tries a test on several faults at once, and on halves of them where it fails."""
        texts = joined(faults)
        case, cpu = (0, 0.0) if texts is None else (None, 0.0)
        if texts is not None and self.workshop.together(texts, place) is None:
            case, cpu = self.sees(test, place)
        for r in faults:
            r["s"] = round(r["s"] + cpu / len(faults), 1)
            r["tests"] += len(faults) == 1 or case is None
        if case is None:
            return
        if len(faults) == 1:
            self.verdict(faults[0], test, case)
            return
        for half in (faults[::2], faults[1::2]):
            self.group(half, test, place)

    def each(self, work, items):
        """Does work(item, place) on all items, as many at once as there are places; none begins after the end."""
        free = list(self.places)

        def one(item):
            if time.time() > self.end:
                return
            with self.lock:
                place = free.pop()
            os.makedirs(os.path.join(TOP, place), exist_ok=True)
            work(item, place)
            with self.lock:
                free.append(place)
                self.keep()
        with concurrent.futures.ThreadPoolExecutor(len(self.places)) as pool:
            list(pool.map(one, items))

    def run(self):
        def alone(r, place):
            self.alone(r, place)
            print("%-16s %-9s %-52s %3d tests %6.1f s" % (r["name"], r.get("verdict", "left"), r.get("by", "")[:52],
                                                          r.get("tests", 0), r.get("s", 0.0)), flush=True)

        def together(test, place):
            faults = [r for r in self.faults if test in r.get("rest", [])]
            if faults:
                self.group(faults, test, place)
                for r in faults:
                    if test in r["rest"]:
                        r["rest"].remove(test)
                    elif "verdict" in r:
                        print("%-16s %-9s %s" % (r["name"], r["verdict"], r["by"]), flush=True)
        self.each(alone, [r for r in self.faults if "rest" not in r])
        left = [r for r in self.faults if r.get("rest")]
        print("%d are left, which are put in at once" % len(left), flush=True)
        if not self.options.diff:
            rest = sorted({t for r in left for t in r["rest"]}, key=lambda t: (mutants.is_golden(t), self.seconds(t)))
            for recorded in (False, True):
                self.each(together, [t for t in rest if mutants.is_golden(t) == recorded])
        for r in self.faults:
            if "rest" in r and "verdict" not in r and (self.options.diff or not r["rest"]):
                r["verdict"] = "survived"
        self.keep()
        if self.options.sanitize:
            self.sanitize()
        if self.options.slow:
            self.slow()
        self.keep()
        for place in self.places + [PLACE + "/objects", PLACE + "/tree", mutants.SANITIZED + "/objects"]:
            shutil.rmtree(os.path.join(TOP, place), ignore_errors=True)

    def sanitize(self):
        """Tries on what survives, put in at once, the programs and quick scripts that run its line under the sanitizers: there
        an access behind an array and a broken assertion end the program."""
        faults = [r for r in self.faults if r.get("verdict") in ("survived", "recorded") and "looked" not in r]
        if not faults:
            return
        print("%d are tried under the sanitizers" % len(faults), flush=True)
        mutants.build_sanitized()
        plain = self.workshop, self.sound
        self.workshop = mutants.Workshop(mutants.compile_commands(mutants.SANITIZED), mutants.SANITIZED)
        self.home, self.slower, self.sound = mutants.SANITIZED, SLOWER, {}
        meets = {}
        for r in faults:
            spent = itertools.accumulate(self.seconds(t) for t in self.sanitized_order(r))
            meets[r["name"]] = {t for t, s in zip(self.sanitized_order(r), spent) if s <= SANITIZED_S}

        def one(test, place):
            left = [r for r in faults if not r.get("sanitized") and test in meets[r["name"]]]
            if left:
                self.group(left, test, place)
                for r in left:
                    if r.get("sanitized") and r.setdefault("told", test) == test:
                        print("%-16s %-9s %s" % (r["name"], r["verdict"], r["by"]), flush=True)
        self.each(one, sorted(set().union(*meets.values()), key=self.seconds))
        if time.time() <= self.end:
            for r in faults:
                r["looked"] = True
        (self.workshop, self.sound), self.home, self.slower = plain, PLACE, 1

    def sanitized_order(self, r):
        return [t for t in self.order(r) if not mutants.is_golden(t) and
                (not t.endswith(".sh") or (self.covered and self.seconds(t) <= QUICK_S))]

    def slow(self):
        """Tries what was left out on all that survive: tests that took too long to be measured, and those that need a tree
        of their own. One that passes with all faults at once sees none; one that fails without a fault says nothing."""
        def one(test, place):
            faults = [r for r in self.faults if r.get("verdict") == "survived" and test not in r.setdefault("slow", [])]
            if not faults:
                return
            self.covered[test] = {"s": UNKNOWN_S, "wall": 2 * UNKNOWN_S, "lines": {}, "digests": {}, "ok": True}
            self.group(faults, test, place)
            if not self.sound.get((test, None), True):
                print("%s fails without a fault" % test, flush=True)
                self.failing.append(test)
            self.told(faults, test)
        left_out = [t for t in mutants.tests() if not self.covered.get(t, {}).get("ok") and (t in self.covered or t.endswith(".sh"))]
        left_out.sort(key=lambda t: (mutants.is_golden(t), mutants.seconds_of(self.covered, t)))
        self.each(one, left_out)
        self.untried = [t for t in left_out if any(r.get("verdict") == "survived" and t not in r.get("slow", []) for r in self.faults)]
        if time.time() > self.end or not self.options.trees:
            self.untried += ["tests/golden/" + name for name in sorted(mutants.NOT_HERE)]
            return
        tree = Tree(self.options.jobs)
        for name in sorted(mutants.NOT_HERE):
            test = "tests/golden/" + name
            faults = [r for r in self.faults if r.get("verdict") == "survived" and test not in r.setdefault("slow", [])]
            if faults and tree.build([]):
                status, out, cpu = tree.run(test, SLOW_S)
                if status != 0:
                    print("%s fails without a fault" % test, flush=True)
                    self.failing.append(test)
                    continue
                self.in_tree(tree, faults, test, max(20, 10 * cpu))
                self.told(faults, test)

    def in_tree(self, tree, faults, test, cpu_s):
        seen = True
        if tree.build(faults):
            status, _, _ = tree.run(test, cpu_s)
            seen = status != 0
        if seen and len(faults) == 1:
            self.verdict(faults[0], test, None)
        elif seen:
            for half in (faults[::2], faults[1::2]):
                self.in_tree(tree, half, test, cpu_s)

    def told(self, faults, test):
        for r in faults:
            r["slow"].append(test)
            if r["verdict"] != "survived":
                print("%-16s %-9s %s" % (r["name"], r["verdict"], r["by"]), flush=True)
        self.keep()


def joined(faults):
    """The changed texts, by path, of files with all these faults; None where two change the same line."""
    texts = {}
    for r in faults:
        lines = texts.setdefault(r["file"], text_of(r["file"]).split("\n"))
        at = r["at"] - 1
        if lines[at:at + len(r["before"])] != r["before"]:
            return None
        lines[at:at + len(r["before"])] = r["after"]
    return {path: "\n".join(lines) for path, lines in texts.items()}


class Tree:
    """A copy of the tree with faults put in, and the program built there: for tests that build, install or load."""

    def __init__(self, jobs):
        self.place, self.jobs, self.have = os.path.join(TOP, PLACE, "tree"), jobs, {}

    def build(self, faults):
        """Whether it builds with these faults."""
        texts = joined(faults)
        if texts is None:
            return False
        if not self.have:
            names = git("ls-files").split("\n")[:-1]
            shutil.rmtree(self.place, ignore_errors=True)
            for name in names:
                os.makedirs(os.path.dirname(os.path.join(self.place, name)), exist_ok=True)
                shutil.copy2(os.path.join(TOP, name), os.path.join(self.place, name), follow_symlinks=False)
            self.have = {}
        for path in set(self.have) | set(texts):
            text = texts.get(path, text_of(path))
            if self.have.get(path, text_of(path)) != text:
                with open(os.path.join(self.place, path), "w") as f:
                    f.write(text)
            self.have[path] = text
        return mutants.run(["make", "-s", "-j%d" % self.jobs, "REVISION=mutants", "all"], cwd=self.place)[0] == 0

    def run(self, test, cpu_s):
        return mutants.run_measured(["sh", test], env=dict(os.environ, BUILD="build", ANY_BUILD="yes"), timeout=SLOW_S,
                                    cpu_s=cpu_s, cwd=self.place)


def lines_changed(r):
    """The file of a fault, and its lines before and after without those that stay."""
    before, after = list(r["before"]), list(r["after"])
    for at in (0, -1):
        while before and after and before[at] == after[at]:
            before.pop(at)
            after.pop(at)
    return r["file"], "\n".join(before), "\n".join(after)


def reasons():
    """Why nothing can see a fault, for those of the records (equivalent:) that a draw has made."""
    return {lines_changed(r): r["equivalent"] for r in mutants.records().values() if "equivalent" in r}


def report(faults):
    """Prints the table by folder and the survivors; returns how many survived."""
    rows = collections.OrderedDict((f, collections.Counter()) for f in FOLDERS)
    known = reasons()
    for r in faults:
        if r.get("verdict") == "survived":
            name = mutants.only_asserted(r["file"], r["at"])
            reason = mutants.HERE % name if name else known.get(lines_changed(r))
            r.update({"verdict": "equivalent", "why": reason} if reason else {})
        if "verdict" in r:
            rows[r["file"].split("/")[0]][r["verdict"]] += 1
            rows[r["file"].split("/")[0]]["sanitized"] += bool(r.get("sanitized"))
    rows["all"] = sum(rows.values(), collections.Counter())
    print("\n| faults in | drawn | killed | of these sanitized | recordings only | survived | equivalent | killed of those "
          "that can be, 95 % interval |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, c in rows.items():
        n = c["killed"] + c["recorded"] + c["survived"]
        if n + c["equivalent"]:
            low, high = wilson(c["killed"], n)
            print("| %s | %d | %d | %d | %d | %d | %d | %.0f %% (%.0f to %.0f) |" % (
                name, n + c["equivalent"], c["killed"], c["sanitized"], c["recorded"], c["survived"], c["equivalent"],
                100.0 * c["killed"] / max(n, 1), 100 * low, 100 * high))
    spent = [r["s"] for r in faults if "s" in r]
    print("\n%.1f s of tests a fault in the mean" % (sum(spent) / max(len(spent), 1)))
    late = sum("verdict" not in r for r in faults)
    if late:
        print("\n%d of %d faults were not tried in the time" % (late, len(faults)))
    for r in faults:
        if r.get("verdict") in ("survived", "recorded", "equivalent"):
            print("\n%s %s: %s:%d: %s" % (r["name"], r["verdict"], r["file"], r["at"], r["why"]))
            print("\n".join(["-" + l for l in r["before"]] +
                            ["+" + l for l in r["after"] if l or len(r["after"]) == 1]))
    return rows["all"]["survived"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--blind", type=int, help="number of faults over the tree")
    p.add_argument("--diff", help="revision: faults in the lines that changed since")
    p.add_argument("--seed", default="1")
    p.add_argument("--under", help="folders and files, with commas between them: faults of these alone")
    p.add_argument("--budget", type=float, default=5.0, help="processor seconds of tests on a fault alone (5)")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--seconds", type=float, help="no fault is begun after so long (default: all are tried)")
    p.add_argument("--as-measured", action="store_true", help="measure no test: those that are not measured come last")
    p.add_argument("--sanitize", action=argparse.BooleanOptionalAction, help="try what survives under the sanitizers too (with --blind it is)")
    p.add_argument("--slow", action="store_true", help="try on the survivors, at the end, the tests that are left out otherwise")
    p.add_argument("--trees", action="store_true", help="with --slow: also those that need a tree of their own, which is built")
    p.add_argument("--fail", action="store_true", help="exit status 1 if a fault survives")
    options = p.parse_args()
    if (options.blind is None) == (options.diff is None):
        p.error("give --blind N or --diff REV")
    if options.blind is not None and options.blind < 1 or options.jobs < 1:
        p.error("--blind and --jobs are 1 or more")
    if options.sanitize is None:
        options.sanitize = options.blind is not None
    os.chdir(TOP)
    patterns = [f + "/*.c" if os.path.isdir(f) else f for f in (options.under.split(",") if options.under else FOLDERS)]
    for f in patterns:
        if not git("ls-files", f):
            p.error("--under %s: no such folder or file" % f)
    if options.diff:
        places = draw.changed_lines(git("diff", "-U0", options.diff, "--", *patterns))
        name, options.count = "diff-" + options.seed, MOST
    else:
        files = [f for f in git("ls-files", *patterns).split()]
        places = [(f, n) for f in files for n in range(1, text_of(f).count("\n") + 1)]
        name = "blind-%d-%s" % (options.blind, options.seed) + ("-" + options.under.replace("/", "-")[:80] if options.under else "")
        options.count = options.blind
    if not places:
        print("no line of a C source was touched since %s" % options.diff)
        return 0
    if options.diff or options.as_measured:
        mutants.build()
    else:
        mutants.measure_coverage(None, options.jobs)
    drawn = Round(name, options, places)
    drawn.run()
    if options.slow:
        print("\nfailing without a fault, so not tried: %s\nnot tried on what survived: %s" % (
            ", ".join(sorted(drawn.failing)) or "none", ", ".join(sorted(drawn.untried)) or "none"))
    return 1 if report(drawn.faults) and options.fail else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Which test sees a fault? Puts the faults of tests/mutants/*.txt into the program, one at a time.

    mutants.py [--budget S] [--no-golden] [--jobs N] [NAME ...]   tries those whose name begins so
    mutants.py --round R    all, but for those that were tried under this name already
    mutants.py --table      the table of tests/mutants/README.md from the results so far
    mutants.py --coverage   measures anew which test runs which line

A fault is a record: `file:`, `why:`, lines `- ` (found exactly once in the file) and `+ ` (what
stands there instead), and perhaps `rule:` (the rule that it takes out), `equivalent:` (why nothing
can see it) or `open:` (why no test does). Its name is FILE:NUMBER. Nothing is written into the tree:
a changed copy is compiled and linked into a shared library of its own, which the programs load.

The test that killed it last time (killers.list) is tried first; then those that run a changed line (a build that
notes its blocks says which), quick ones first, until one fails. Tests that compare with recorded outputs come last and
count as `golden only`. A test that takes ten times its processor time has seen the fault. With --budget
no more than so many seconds of tests are tried on a fault. A fault that changes nothing in this build, in what only
assertions (SIM_ASSERT) ask or call, is `no change` and no part of a rate.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import fcntl
import functools
import glob
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import threading
import time

import draw

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACE = "build/mutants"        # the program as it is, as a shared library
COVER = "build/mutants-cover"  # its library again, noting which blocks run
SANITIZED = "build/mutants-sanitize"  # the same under both sanitizers and with assertions, as `make sanitize` has it
SANITIZERS = "-fsanitize=address,undefined"
RESULTS = PLACE + "/results.json"
MAP = PLACE + "/map"           # what tests run which lines, a file for each test
MADE = "Made by `make mutants MUTANTS=--table`"  # what precedes this line of the README stays
KILLERS = "tests/mutants/killers.list"  # which test killed which fault: NAME PROGRAM TEST, or NAME SCRIPT
# Recorded outputs: `make golden-update` would make them agree with the fault.
GOLDEN = ["golden.sh", "diff.sh", "gate.sh"]
# Build, install or count allocations of another tree than the changed library.
NOT_HERE = ["determinism.sh", "install.sh", "memory.sh", "python_package.sh"]


LEFT_OUT = []  # --without

# Files of processes in a jail, which cannot note what they run: who starts such a process runs them.
CONFINED = {"policies/external/hosted_child.c": "policies/external/hosted.c",
            "policies/external/hosted_calls.c": "policies/external/hosted.c",
            "policies/external/zygote_child.c": "policies/external/zygote.c"}


def run(command, env=None, timeout=None, cpu_s=None, cwd=TOP):
    """Exit status (None: out of time) and output of a command that leads its own process group."""
    return run_measured(command, env, timeout, cpu_s, cwd)[:2]


def run_measured(command, env=None, timeout=None, cpu_s=None, cwd=TOP):
    """As run(), and the processor seconds that the command took."""
    def limits():
        os.setsid()
        if cpu_s:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    p = subprocess.Popen(command, cwd=cwd, env=env, preexec_fn=limits, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    late = threading.Event()

    def end():
        late.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, 9)
    timer = threading.Timer(timeout, end) if timeout else None
    if timer:
        timer.start()
    with p.stdout:
        out = p.stdout.read()
    _, status, used = os.wait4(p.pid, 0)
    if timer:
        timer.cancel()
    p.returncode = os.waitstatus_to_exitcode(status)
    cpu = used.ru_utime + used.ru_stime
    return (None, "", cpu) if late.is_set() else (p.returncode, out.decode(errors="replace"), cpu)


# --- records

def records():
    """Every fault, by name, in the order of the files."""
    found = collections.OrderedDict()
    for path in sorted(glob.glob(TOP + "/tests/mutants/*.txt")):
        with open(path) as f:
            text = f.read()
        number = 0
        for block in re.split(r"\n\s*\n", text):
            lines = [l for l in block.split("\n") if l and not l.startswith("#")]
            if not lines:
                continue
            number += 1
            r = {"name": "%s:%d" % (os.path.basename(path)[:-4], number), "before": [], "after": []}
            for l in lines:
                if l[:2] in ("- ", "+ ") or l in ("-", "+"):
                    r["before" if l[0] == "-" else "after"].append(l[2:])
                else:
                    key, _, value = l.partition(":")
                    if key not in ("file", "why", "rule", "equivalent", "open"):
                        sys.exit("%s: %s: what is '%s'?" % (path, r["name"], l))
                    r[key] = value.strip()
            r["key"] = "%s\n%s\n%s" % (r["file"], "\n".join(r["before"]), "\n".join(r["after"]))
            found[r["name"]] = r
    return found


def stale():
    """Records whose lines are not found exactly once: they would test nothing."""
    return ["%s: %s: %s" % (n, r["file"], changed(r)[1]) for n, r in records().items() if changed(r)[0] is None]


def changed(r):
    """The changed text of a record's file, and the lines that it changes."""
    if not os.path.exists(os.path.join(TOP, r["file"])):
        return None, "no such file"
    with open(os.path.join(TOP, r["file"])) as f:
        text = f.read()
    before = "\n".join(r["before"])
    if "at" in r:  # drawn: the line is known
        at = sum(len(l) + 1 for l in text.split("\n")[:r["at"] - 1])
        if text[at:at + len(before)] != before:
            return None, "not at line %d" % r["at"]
    elif text.count(before) != 1:
        return None, "found %d times" % text.count(before)
    else:
        at = text.index(before)
    first = text.count("\n", 0, at) + 1
    return (text[:at] + "\n".join(r["after"]) + text[at + len(before):],
            range(first, first + before.count("\n") + 1))


# --- what only assertions run

CODE = ["sim/", "policies/", "hwmodels/", "traces/", "plots/", "experiments/"]
HERE = "%s: only assertions call it (SIM_ASSERT), which are in the test builds (make asan ubsan sanitize) and not in this one"


@functools.lru_cache(None)
def functions():
    """(path, line from 1) -> the function around it; and, of each function, who calls it: (caller, whether in a SIM_ASSERT).
    What is named without a call, as in a table, counts as called from anywhere (None)."""
    around, called = {}, collections.defaultdict(set)
    texts = {p: draw.Source(text) for p in sources() if p.endswith((".c", ".h")) and p.startswith(tuple(CODE))
             for text in [open(os.path.join(TOP, p)).read()]}
    for path, s in texts.items():
        for start in sorted({region[0] for region in s.region.values() if region[2] == "code"}):
            head = start - 1
            while head > 0 and s.code[head - 1].strip() and s.code[head - 1].rstrip()[-1:] not in ";}":
                head -= 1
            m = re.search(r"\b([A-Za-z_]\w*)\(", " ".join(s.code[head:start]).replace("__attribute__", ""))
            if m and not m.group(1).isupper():
                around.update(((path, i + 1), m.group(1)) for i in range(head, s.region[start + 1][1] + 1))
    names = set(around.values())
    for path, s in texts.items():
        text = "\n".join(s.code)
        asserted = [(m.end() - 1, draw.closing(text, m.end() - 1)[0] or m.end()) for m in re.finditer(r"\bSIM_ASSERT\(", text)]
        for m in re.finditer(r"\b[A-Za-z_]\w*\b", text):
            if m.group() not in names:
                continue
            line = text.count("\n", 0, m.start()) + 1
            inside = s.is_code(line - 1)
            if not inside and text[m.end():m.end() + 1] == "(":
                continue  # its declaration, or its head
            caller = around.get((path, line)) if inside and text[m.end():m.end() + 1] == "(" else None
            called[m.group()].add((caller, any(a < m.start() < b for a, b in asserted)))
    return around, called


def only_asserted(path, line):
    """The function around a line if all its callers are assertions, or functions of which that holds; or None."""
    around, called = functions()

    def holds(name, seen):
        callers = called.get(name, set())
        return bool(callers) and all(asserted or (caller is not None and (caller in seen or holds(caller, seen | {caller})))
                                     for caller, asserted in callers)
    name = around.get((path, line))
    return name if name is not None and holds(name, {name}) else None


# --- the program and its tests

def words_of(place):
    """What make is told of a place."""
    more = " -DSIM_DEBUG %s -fno-sanitize-recover=all" % SANITIZERS if place == SANITIZED else ""
    return ["BUILD=" + place, "SHARED=1", "OPT=-O1", "REVISION=mutants", "XCFLAGS=-fPIC -g0" + more]


def make(place, goal):
    subprocess.run(["make", "-s", "-j2", goal] + words_of(place), cwd=TOP, check=True)


def build():
    make(PLACE, "all")  # engines too, for drive.sh
    make(PLACE, "tests")


def build_sanitized():
    """The program and its library under the sanitizers. The tests are the objects that there are: what they call is
    sanitized, and so is the memory that they ask for."""
    build()
    make(SANITIZED, SANITIZED + "/xpusim")
    os.makedirs(os.path.join(TOP, SANITIZED, "tests"), exist_ok=True)
    objects = [t[:-2] for t in sorted(glob.glob(TOP + "/tests/*/check_*.c") + glob.glob(TOP + "/tests/helpers/*.c"))]
    objects = ["%s/%s.o" % (PLACE, os.path.relpath(o, TOP)) for o in [TOP + "/tests/check"] + objects]
    libs = subprocess.run("pkg-config --libs check gsl libcjson sqlite3 zlib", shell=True, capture_output=True, text=True).stdout.split()
    subprocess.run(["gcc", SANITIZERS, "-Wl,--wrap=_mark_point", "-o", SANITIZED + "/tests/check"] + objects +
                   [SANITIZED + "/libxpusim.so"] + libs + ["-lcsv", "-lpthread", "-ldl", "-lm"], cwd=TOP, check=True)


def compile_commands(place=PLACE):
    """Source -> the words of the command that compiles it."""
    out = subprocess.run(["make", "-nB", place + "/libxpusim.so"] + words_of(place), cwd=TOP, check=True,
                         capture_output=True, text=True).stdout
    commands = {}
    for line in out.split("\n"):
        if " -c -o " in line:
            words = shlex.split(line)
            commands[words[-1]] = words
    return commands


def tests():
    programs = sorted(glob.glob(TOP + "/tests/unit/check_*.c") + glob.glob(TOP + "/tests/oracle/check_*.c") +
                      glob.glob(TOP + "/tests/conformance/check_*.c"))
    scripts = [s for s in sorted(glob.glob(TOP + "/tests/golden/*.sh")) if os.path.basename(s) not in NOT_HERE]
    found = [os.path.relpath(p, TOP)[:-2] for p in programs] + [os.path.relpath(s, TOP) for s in scripts]
    return [t for t in found if os.path.basename(t) not in LEFT_OUT]


def sources():
    return subprocess.run(["git", "ls-files", "*.c", "*.h", "*.def"], cwd=TOP, check=True, capture_output=True,
                          text=True).stdout.split()


def is_golden(test):
    return os.path.basename(test) in GOLDEN


def command_of(test, place):
    """run.sh's: a script, or a file of the program of all."""
    return ["sh", test] if test.endswith(".sh") else [place + "/tests/check", test + ".c"]


def failed(test, status, out):
    """A Check program that says nothing has failed, as tests/run.sh has it."""
    return status != 0 or (not test.endswith(".sh") and not re.search(r"^100%: Checks: [1-9]", out, re.M))


# --- which test runs which line

def coverage():
    """What is known of tests: name -> seconds, whether it passes, and the lines that it runs."""
    known = {}
    for path in glob.glob(TOP + "/" + MAP + "/*.json"):
        with open(path) as f:
            entry = json.load(f)
        known[entry["test"]] = entry
    return known


def measure_coverage(only, jobs=2):
    """Measures the lines that each test runs, and its processor seconds. `only`: tests with such names; None: those
    that are new, or changed since. The results are kept in a folder, a file for each test."""
    build()
    known = coverage()
    chosen = [t for t in tests() if (known.get(t, {}).get("source") != source_of(t) if only is None else
                                     not only or any(o in t for o in only))]
    if not chosen:
        return
    library = Workshop(compile_commands()).noting(COVER, jobs)
    blocks = blocks_of(library)
    os.makedirs(os.path.join(TOP, MAP), exist_ok=True)

    def one(test):
        noted = os.path.join(TOP, COVER, test.replace("/", "_"))
        with open(noted, "wb") as f:
            f.truncate(os.path.getsize(library))
        env = dict(os.environ, BUILD=PLACE, LD_LIBRARY_PATH=os.path.join(TOP, COVER), CK_DEFAULT_TIMEOUT="300",
                   XPUSIM_COVER=noted)
        began = time.time()
        status, out, seconds = run_measured(command_of(test, PLACE), env=env, timeout=1500)
        wall = time.time() - began
        lines = collections.defaultdict(set)
        with open(noted, "rb") as f:
            for m in re.finditer(b"\1", f.read()):
                for path, line in blocks.get(m.start(), ()):
                    lines[path].add(line)
        os.unlink(noted)
        entry = {"test": test, "s": round(seconds, 2), "wall": round(wall, 2), "ok": not failed(test, status, out), "source": source_of(test),
                 "lines": {p: spans(l) for p, l in lines.items()}, "digests": {p: digest(p) for p in lines}}
        print("%-48s %7.1f s %s" % (test, seconds, "" if entry["ok"] else "FAILS, is left out"), flush=True)
        with open(os.path.join(TOP, MAP, os.path.basename(test) + ".json"), "w") as f:
            json.dump(entry, f)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, sorted(chosen, key=lambda t: -known.get(t, {}).get("s", 0.0))))


def place_here(path):
    """The source of this tree that a compiler's path means. A cache may give an object of another tree, made of equal text: the end
    of its path is what counts then."""
    parts = os.path.normpath(path).split("/")
    for i in range(1, len(parts)):
        if os.path.isfile(os.path.join(TOP, *parts[i:])):
            return "/".join(parts[i:])
    return ".." + path


def blocks_of(library):
    """Address behind a call that notes a block (cover.c) -> the lines of the block, as (file, line)."""
    found = collections.defaultdict(set)
    block, ahead, where, called = None, set(), None, False
    path_of = functools.lru_cache(None)(place_here)
    p = subprocess.Popen(["objdump", "-dl", "--no-show-raw-insn", library], stdout=subprocess.PIPE, text=True)
    for text in p.stdout:
        if text[0] == " ":
            address, _, what = text.partition(":")
            if called:
                block, called = int(address, 16), False
                found[block] |= ahead | {where}
                ahead = set()
            called = "call" in what and "<__sanitizer_cov_trace_pc" in what
        elif re.match(r"/\S+:\d+\b", text):
            path, _, line = text.split()[0].rpartition(":")
            where = (path_of(path), int(line))
            (ahead if block is None else found[block]).add(where)
        elif text.endswith(">:\n"):  # a function begins
            block, ahead = None, set()
    p.wait()
    return {b: {w for w in lines if w and not w[0].startswith("..")} for b, lines in found.items()}


@functools.lru_cache(None)
def digest(path):
    if not os.path.exists(os.path.join(TOP, path)):  # a test that was measured, and is gone
        return None
    with open(os.path.join(TOP, path), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def source_of(test):
    """Tells a test that changed since it was measured."""
    return digest(test if test.endswith(".sh") else test + ".c")


def spans(numbers):
    """Numbers as a flat list of first, last, first, last."""
    out = []
    for n in sorted(numbers):
        if out and n == out[-1] + 1:
            out[-1] = n
        else:
            out += [n, n]
    return out


def runs(entry, path, lines):
    """Whether a test runs one of the lines, or one within three of them (a line without code)."""
    s = entry["lines"].get(path, [])
    return any(s[i] <= lines[-1] + 3 and s[i + 1] >= lines[0] - 3 for i in range(0, len(s), 2))


def may_run(covered, test, path, lines):
    """Whether a test may run the lines: as it was measured; by the file alone where test or file has
    changed since; a program that was never measured may run anything."""
    if test not in covered:
        return not test.endswith(".sh")
    entry = covered[test]
    if not entry["ok"]:
        return False
    return runs(entry, path, lines) if is_same(entry, test, path) else path in entry["lines"]


def is_same(entry, test, path):
    """Whether test and file are as they were when it was measured."""
    return entry.get("source") == source_of(test) and entry["digests"].get(path) == digest(path)


def widened(covered, path, lines):
    """The lines; where no test was seen within three of them, from the last seen before to the first seen behind: what
    is noted is where branches begin."""
    seen = [e["lines"][path] for t, e in covered.items() if e["ok"] and path in e["lines"] and is_same(e, t, path)]
    begins, ends = [b for s in seen for b in s[::2]], [x for s in seen for x in s[1::2]]
    if any(b <= lines[-1] + 3 and x >= lines[0] - 3 for b, x in zip(begins, ends)):
        return lines
    first = max((x for x in ends if x < lines[0]), default=lines[0])
    return range(first, min((b for b in begins if b > lines[-1]), default=lines[-1]) + 1)


def running(covered, of, share):
    """Tests that run files; of those only that run a share of what any of them does."""
    ran = {}
    for t in tests():
        if covered.get(t, {}).get("ok"):
            known = [s for f, s in covered[t]["lines"].items() if of(f)]
            ran[t] = sum(s[i + 1] - s[i] + 1 for s in known for i in range(0, len(s), 2))
    return [t for t, n in ran.items() if n > 0 and n >= share * max(ran.values())]


def order(covered, r, lines):
    """Tests for a fault: quick ones first, as if those of its file's name took a fifth; recorded outputs last."""
    stem = os.path.basename(r["file"]).split(".")[0].replace("-", "_")
    around = widened(covered, r["file"], lines)
    chosen = [t for t in tests() if may_run(covered, t, r["file"], around)]
    # A row of a table has no lines that run: who runs its file. What no test was seen to run, as a process in a jail
    # shows nothing: who runs most of the files whose names begin equally, or of the folder.
    if r.get("operator") == "row" or not any(t in covered for t in chosen):
        path = CONFINED.get(r["file"], r["file"])
        folder, name = os.path.split(path)
        start = re.escape(os.path.join(folder, re.split("[._]", name)[0])) + "[._]"
        chosen = running(covered, lambda f: f == path, 0) or \
            running(covered, lambda f: re.match(start, f), 0.25) or running(covered, lambda f: os.path.dirname(f) == folder, 0)
    return sorted(chosen, key=lambda t: (is_golden(t), seconds_of(covered, t) * (0.2 if stem in t else 1.0)))


def killers():
    """Fault -> (program or script, one of the program's tests or None); only those that are there."""
    there = set(tests())
    with open(os.path.join(TOP, KILLERS)) as f:
        lines = [line.split() + [None] for line in f if line.strip()]
    return {line[0]: (line[1], line[2]) for line in lines if line[1] in there}


def write_killers(results):
    """Killers of this checkout's faults: those of earlier runs, and what the results say."""
    known = killers()
    for name, r in results.items():
        if r["verdict"] == "killed" and r.get("test"):
            known[name] = (r["test"], r.get("case"))
    with open(KILLERS, "w") as f:
        f.writelines(" ".join([name] + [w for w in known[name] if w]) + "\n" for name in records() if name in known)


def seconds_of(covered, test):
    return covered[test]["s"] if test in covered else 0.1


# --- one fault

class Workshop:
    """A place of its own for each worker: a changed source, its object, the library linked with it."""

    def __init__(self, commands, home=PLACE):
        self.commands, self.home = commands, home
        self.objects = {s: w[w.index("-o") + 1] for s, w in commands.items()}

    def noting(self, place, jobs):
        """Links a library that notes which of its blocks run (cover.c); returns its path."""
        def one(source):
            obj = os.path.join(place, source[:-2] + ".o")
            os.makedirs(os.path.join(TOP, os.path.dirname(obj)), exist_ok=True)
            words = [w for w in self.commands[source] if w not in ("-MMD", "-MP")]
            words[words.index("-o") + 1] = obj
            status, out = run(words[:-1] + ["-g1", "-fsanitize-coverage=trace-pc", "-ffile-prefix-map=%s=/tree%s" % (TOP, TOP)] +
                              words[-1:])
            return obj if status == 0 else sys.exit(out)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            objects = dict(zip(self.objects, pool.map(one, self.objects)))
        objects["cover"] = os.path.join(place, "cover.o")
        status, out = run(["gcc", "-O2", "-fPIC", "-c", "-o", objects["cover"], "tests/mutants/cover.c"])
        refused = out if status != 0 else self.link(objects, place)
        if refused is not None:
            sys.exit(refused)
        return os.path.join(TOP, place, "libxpusim.so")

    def link(self, objects, place, *flags):
        libs = subprocess.run("pkg-config --libs gsl libcjson sqlite3 libcurl zlib", shell=True,
                              capture_output=True, text=True).stdout.split()
        sanitizers = [SANITIZERS] if self.home == SANITIZED else []
        status, out = run(["gcc", "-shared", "-o", os.path.join(place, "libxpusim.so")] + sanitizers + list(flags) +
                          sorted(objects.values()) + libs + ["-lcsv", "-lpthread", "-ldl", "-lm"])
        return None if status == 0 else out

    def library(self, r, text, place):
        """Compiles and links; returns None or what the compiler says."""
        overlay = os.path.join(place, "overlay")
        subprocess.run(["rm", "-rf", overlay], check=True)
        path = os.path.join(TOP, overlay, r["file"])
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as f:
            f.write(text)
        affected = [r["file"]] if r["file"].endswith(".c") else self.users_of(r["file"])
        objects = dict(self.objects)
        for source in affected:
            words = list(self.commands[source])
            objects[source] = os.path.join(overlay, source[:-2] + ".o")
            os.makedirs(os.path.join(TOP, os.path.dirname(objects[source])), exist_ok=True)
            words[words.index("-o") + 1] = objects[source]
            words = [w for w in words if w not in ("-MMD", "-MP")]
            if source == r["file"]:
                words[-1] = os.path.join(overlay, source)
            # The changed header, or the changed source's neighbours, are found in that order.
            words[1:1] = ["-I" + overlay]
            words.insert(-1, "-w")
            status, out = run(words)
            if status != 0:
                return out
        return self.link(objects, place)

    def compiled(self, path, text):
        """The object of a changed source, compiled once; None: it does not compile without a warning."""
        place = os.path.join(self.home, "objects", hashlib.sha256((path + text).encode()).hexdigest()[:16])
        changed_path, obj = os.path.join(TOP, place, path), os.path.join(place, path[:-2] + ".o")
        if os.path.exists(os.path.join(TOP, obj)):
            return obj
        os.makedirs(os.path.dirname(changed_path), exist_ok=True)
        with open(changed_path, "w") as f:
            f.write(text)
        words = [w for w in self.commands[path] if w not in ("-MMD", "-MP")]
        words[words.index("-o") + 1] = obj
        words[-1] = os.path.join(place, path)
        # The compiler's path in assertions is that of the tree.
        status, _ = run(words[:1] + ["-I" + place, "-ffile-prefix-map=%s/=" % place] + words[1:])
        return obj if status == 0 else None

    def differs(self, r, text):
        """Whether a changed source compiles without a warning, and to another object than the tree's."""
        return self.compiled(r["file"], text) is not None and not self.same(r, text)

    def same(self, r, text):
        """Whether it compiles to the tree's object: what changes is in no code of this build, as what SIM_ASSERT asks."""
        obj = self.compiled(r["file"], text)
        if obj is None:
            return False
        with open(os.path.join(TOP, obj), "rb") as a, open(os.path.join(TOP, self.objects[r["file"]]), "rb") as b:
            return a.read() == b.read()

    def together(self, texts, place):
        """Links the library with changed sources, path -> text; returns None or what is wrong."""
        objects = {path: self.compiled(path, text) for path, text in texts.items()}
        if None in objects.values():
            return "does not compile"
        return self.link(dict(self.objects, **objects), place)

    def users_of(self, header):
        users = []
        for source, obj in self.objects.items():
            with open(os.path.join(TOP, obj[:-2] + ".d")) as f:
                if re.search(r"(^|\s)%s(\s|$)" % re.escape(header), f.read()):
                    users.append(source)
        return users


def run_test(test, place, only=None, timeout=300, cpu_s=60, home=PLACE):
    """run_measured() of a test, or of one of its cases, on the library at a place, by the program of a home."""
    env = dict(os.environ, BUILD=home, LD_LIBRARY_PATH=os.path.join(TOP, place), CK_DEFAULT_TIMEOUT="300",
               CK_TIMEOUT_MULTIPLIER="20")
    if home == SANITIZED:
        env.update(SANITIZED="yes", ASAN_OPTIONS="abort_on_error=0:detect_leaks=1")
    if only is not None:
        env["SUITE_ONLY"] = only
    return run_measured(command_of(test, home), env=env, timeout=timeout, cpu_s=cpu_s)


def failing_case(test, out):
    """The name of the case of a program that failed, where it says one."""
    case = re.search(r":[EF]:[^:]*:([a-z_A-Z0-9]+):", out)
    return case.group(1) if case and not test.endswith(".sh") else None


def attempt(r, workshop, covered, place, options):
    """The verdict on one fault."""
    began = time.time()
    result = {"key": r["key"], "verdict": "survived", "by": "", "tests": 0, "round": options.round}
    text, lines = changed(r)
    if text is None:
        result.update(verdict="stale", by=lines)
        return result
    asserted = only_asserted(r["file"], lines[0])
    if asserted or (r["file"].endswith(".c") and workshop.same(r, text)):
        result.update(verdict="no change", by=HERE % asserted if asserted else "the same object in this build")
        return result
    refused = workshop.library(r, text, place)
    if refused is not None:
        result.update(verdict="stale", by="does not compile")
        return result
    spent = 0.0
    chosen = [(t, None) for t in options.tests or order(covered, r, lines)]
    killer = killers().get(r["name"]) if not options.tests else None
    for test, only in [killer] * (killer is not None) + chosen:
        if not os.path.exists(os.path.join(TOP, command_of(test, PLACE)[-1 if test.endswith(".sh") else 0])):
            continue  # it came while this ran
        usual = seconds_of(covered, test)
        if is_golden(test) and options.no_golden:
            break
        if not is_golden(test) and (test, only) != killer and spent + usual > options.budget:
            continue
        # A slow machine kills nothing: what counts is processor time.
        status, out, _ = run_test(test, place, only, timeout=300 + 100 * usual,
                                  cpu_s=max(60, 10 * usual if test in covered else 600))
        if only is not None and re.search(r"Checks: 0,", out): # it has another name now
            continue
        spent += usual
        result["tests"] += 1
        if failed(test, status, out):
            case = failing_case(test, out)
            result.update(verdict="golden only" if is_golden(test) else "killed",
                          by=os.path.basename(test) + (": " + case if case else ""), test=test, case=case)
            break
    result["s"] = round(time.time() - began, 1)
    return result


def try_faults(names, options):
    if stale():
        sys.exit("write these again for the present sources:\n" + "\n".join(stale()))
    build()
    if not options.tests:
        measure_coverage(None, options.jobs)
    covered = coverage()
    workshop = Workshop(compile_commands())
    results = json.load(open(RESULTS)) if os.path.exists(RESULTS) else {}
    lock = threading.Lock()
    places = ["%s/worker-%d-%d" % (PLACE, os.getpid(), i) for i in range(options.jobs)]
    made = list(places)

    def one(r):
        with lock:
            place = places.pop()
        os.makedirs(os.path.join(TOP, place), exist_ok=True)
        result = attempt(r, workshop, covered, place, options)
        with lock:
            places.append(place)
            print("%-24s %-12s %-52s %3d tests %6.1f s" % (r["name"], result["verdict"], result["by"][:52],
                                                           result["tests"], result.get("s", 0)), flush=True)
            remember(r["name"], result)

    todo = [r for n, r in records().items()
            if "equivalent" not in r and (not names or any(n == w or n.startswith(w + ":") or r["file"].startswith(w) for w in names))]
    if options.not_killed:
        todo = [r for r in todo if results.get(r["name"], {}).get("verdict") != "killed"]
    if options.round:
        todo = [r for r in todo if results.get(r["name"], {}).get("round") != options.round or
                results[r["name"]]["key"] != r["key"]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, todo))
    for place in made:
        shutil.rmtree(os.path.join(TOP, place), ignore_errors=True)
    write_killers(json.load(open(RESULTS)) if os.path.exists(RESULTS) else {})


def remember(name, result):
    """Adds one result to the file, which other runs may write too."""
    with open(RESULTS + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = json.load(open(RESULTS)) if os.path.exists(RESULTS) else {}
        results[name] = result
        with open(RESULTS + ".tmp", "w") as f:
            json.dump(results, f, indent=0)
        os.rename(RESULTS + ".tmp", RESULTS)


# --- the table

def table():
    results = json.load(open(RESULTS)) if os.path.exists(RESULTS) else {}
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=TOP, capture_output=True,
                              text=True).stdout.strip()
    with open(TOP + "/tests/mutants/README.md") as f:
        print(f.read().split(MADE)[0], end="")
    print(MADE + " on %s at %s.\n" % (time.strftime("%Y-%m-%d"), revision))
    rows = collections.OrderedDict()
    left = []
    for name, r in records().items():
        group = rows.setdefault(name.split(":")[0], collections.Counter())
        group["faults"] += 1
        got = results.get(name, {})
        verdict = got.get("verdict", "not tried") if got.get("key") == r["key"] else "not tried"
        if "equivalent" in r:
            verdict = "equivalent"
        group[verdict] += 1
        if verdict != "killed":
            left.append((name, r, verdict))
    columns = ["faults", "killed", "golden only", "survived", "equivalent", "no change", "not tried", "stale"]
    total = collections.Counter()
    for c in rows.values():
        total.update(c)
    columns = [c for c in columns if c not in ("no change", "not tried", "stale") or total[c]]
    print("| faults in | " + " | ".join(columns).replace("faults |", "put in |", 1) + " | killed of those that can be |")
    print("|---|" + "---:|" * (len(columns) + 1))
    for name, c in list(rows.items()) + [("all", total)]:
        can = c["faults"] - c["equivalent"] - c["no change"]
        print("| %s | %s | %.0f %% |" % (name, " | ".join(str(c[k]) for k in columns), 100.0 * c["killed"] / max(can, 1)))
    print("\nNot killed:\n\n| fault | file | what is wrong | verdict | reason |\n|---|---|---|---|---|")
    for name, r, verdict in left:
        print("| %s | `%s` | %s | %s | %s |" % (name, r["file"], r.get("why", ""), verdict,
                                               r.get("equivalent") or r.get("open", "")))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*")
    p.add_argument("--no-golden", action="store_true")
    p.add_argument("--not-killed", action="store_true", help="only those that no test killed yet")
    p.add_argument("--table", action="store_true")
    p.add_argument("--coverage", action="store_true")
    p.add_argument("--tests", type=lambda t: t.split(","), help="these tests only, by path, without a map")
    p.add_argument("--without", type=lambda t: t.split(","), default=[], help="all tests but these, by name")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--budget", type=float, default=float("inf"), help="seconds of tests on a fault; all")
    p.add_argument("--round", default="", help="what was tried under this name is not tried again")
    options = p.parse_args()
    LEFT_OUT.extend(options.without)
    os.makedirs(os.path.join(TOP, PLACE), exist_ok=True)
    os.chdir(TOP)
    if options.table:
        table()
    elif options.coverage:
        measure_coverage(options.names, options.jobs)
    else:
        try_faults(options.names, options)


if __name__ == "__main__":
    main()

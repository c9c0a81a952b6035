#!/usr/bin/env python3
"""The same random runs by two builds: every byte of results must be equal.

    tests/campaign/against.py OLD NEW N [FIRST]

OLD and NEW are programs (build/xpusim), N the number of runs. The runs are those of `make campaign`, from number FIRST
on: machine, model, policy, parameters, memory, contention, noise and trace are random. Compared are the exit status, the
JSON, the messages, the requests and the decisions. A run has 10 s of a processor; of one that is too long only that is
compared. Text that is known to differ is taken out of both: --ignore REGEX, repeatable. Exit 1 where two runs differ, of
which the trace and both outputs are kept, and where no run succeeded.
"""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAMPAIGN = os.environ.get("BUILD", "build") + "/tests/campaign/campaign"
BLOCK = 200
CPU_S = 10
VERSION = re.compile(r"xpusim \d+\.\d+\.\d+ \S+")


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))


def outcome(program, words, folder, ignored):
    """What one build says: the exit status, and all of its text without the version and what is ignored."""
    files = [folder / "requests.csv", folder / "decisions.csv"]
    for f in files:
        f.write_text("")
    command = [program, *words, "--json", "-q", "--requests", str(files[0]), "--decisions", str(files[1])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, preexec_fn=limited, errors="replace")
    if done.returncode < 0:
        return "too long" if done.returncode in (-24, -9) else f"signal {-done.returncode}"
    text = "\n".join([done.stdout, done.stderr, *(f.read_text(errors="replace") for f in files)])
    for pattern in (VERSION, *ignored):
        text = re.sub(pattern, "", text)
    return f"{done.returncode}\n{text}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("n", type=int)
    p.add_argument("first", type=int, nargs="?", default=1)
    p.add_argument("--ignore", action="append", default=[])
    o = p.parse_args()
    programs = [os.path.abspath(o.old), os.path.abspath(o.new)]
    count = {"equal": 0, "equal, and failed": 0, "too long": 0, "different": 0}
    drawn = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        while drawn < o.n:
            block = min(BLOCK, o.n - drawn)
            said = subprocess.run([ROOT / CAMPAIGN, "write", str(block), name, str(o.first + drawn)], check=True,
                                  capture_output=True, text=True, cwd=ROOT)
            for line in said.stdout.splitlines():
                words = line.split()[1:]
                a, b = (outcome(x, words, folder, o.ignore) for x in programs)
                if "too long" in (a, b):
                    count["too long"] += 1
                elif a == b:
                    count["equal" if a.startswith("0\n") else "equal, and failed"] += 1
                else:
                    count["different"] += 1
                    kept = pathlib.Path(tempfile.mkdtemp(prefix="against-"))
                    (kept / "old").write_text(a)
                    (kept / "new").write_text(b)
                    trace = words[words.index("--trace") + 1]
                    (kept / "trace.csv").write_bytes(pathlib.Path(trace).read_bytes())
                    print(f"DIFFERENT ({kept}): {line}", flush=True)
            for f in folder.glob("*.csv"):
                f.unlink()
            drawn += block
    print(f"{o.n} random runs from {o.first} on: " + ", ".join(f"{v} {k}" for k, v in count.items()) +
          f", {o.n - sum(count.values())} do not go together")
    return 1 if count["different"] or count["equal"] == 0 else 0


raise SystemExit(main())

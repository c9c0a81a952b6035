"""Runs commands twice, with what they name in two orders, and compares what they print without regard to order."""
import collections
import json
import os
import re
import subprocess
import sys

# Order is lost with any request, so half a minute of them does; WHOLE=yes has a minute.
WORK = f"--workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s={60 if os.environ.get('WHOLE') else 30} --jobs 1 -q "
POLICIES = ["edf", "llf", "hpf", "sjf-input"]
METRICS = ["all.e2e_s.mean", "energy_j", "reactive.ttft_s.p90"]
LIMITS = ["all.e2e_s.mean<=30", "reactive.ttft_s.p90<=20", "energy_j<=4000"]
COMMANDS = {  # and the option that is given several times
    "compare": ("compare --replications 3 ", "--metric"),
    "compare --regret": ("compare --replications 2 --regret ", "--metric"),
    "compare --uncertainty": ("compare --replications 2 --uncertainty 16 ", "--metric"),
    "compare --tune": ("compare --replications 2 --tune 3 --tune-replications 2 ", "--metric"),
    "search": ("search --replications 2 --precision 3 ", "--slo"),
}


def said(program, command, first, policies, option, values, form):
    words = command.split() + WORK.split() + form
    words += [w for p in [first] + policies for w in ("--policy", p)] + [w for v in values for w in (option, v)]
    p = subprocess.run([program] + words, capture_output=True, text=True)
    if p.returncode not in (0, 1) or p.stderr:
        sys.exit("FAILED: %s: exit %d: %s" % (" ".join(words), p.returncode, p.stderr[:300]))
    return p.stdout


def lines(text):
    return collections.Counter(" ".join(l.split()) for l in text.split("\n") if l.strip())


def unordered(x):
    """A JSON value in which lists of objects have no order."""
    if isinstance(x, dict):
        return {k: unordered(v) for k, v in sorted(x.items())}
    if isinstance(x, list):
        items = [unordered(v) for v in x]
        return sorted(items, key=json.dumps) if any(isinstance(v, (dict, str)) for v in items) else items
    return x


def main():
    bad = 0
    for name, (command, option) in COMMANDS.items():
        values = METRICS if option == "--metric" else LIMITS
        orders = [(POLICIES, values), (POLICIES[::-1], values[:1] + values[:0:-1])]
        a, b = (lines(said(sys.argv[1], command, "fcfs", p, option, v, [])) for p, v in orders)
        if a != b:
            bad = 1
            print("FAILED: %s in another order:" % name)
            print("\n".join(["- " + l for l in (a - b)] + ["+ " + l for l in (b - a)]))
        named = METRICS if values is METRICS else []  # a search prints only the limit that decides
        missing = [w for w in ["fcfs"] + POLICIES + named if not any(w in l for l in a)]
        if missing:
            bad = 1
            print("FAILED: %s does not print %s" % (name, missing))
        if " --" in name and not os.environ.get("WHOLE"):  # forms of one command: its document and its text are of the same numbers
            continue
        a, b = (unordered(json.loads(said(sys.argv[1], command, "fcfs", p, option, v, ["--json"]))) for p, v in orders)
        keys = [k for k in sorted({*a, *b} - {"about"}) if json.dumps(a.get(k)) != json.dumps(b.get(k))]
        if keys:
            bad = 1
            print("FAILED: %s --json in another order: %s" % (name, keys))
    return bad


sys.exit(main())

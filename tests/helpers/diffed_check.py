"""`diff` of two policies: the requests of the state in which they part are those that had arrived and were not done, by the requests of a
run of each by itself.

    diffed_check.py XPUSIM FOLDER
"""
import csv
import os
import re
import subprocess
import sys

X, DIR = sys.argv[1:]
bad = checked = gone = 0


def fail(what):
    global bad
    bad += 1
    if bad < 20:
        print("FAILED: " + what)


def ns(text):
    whole, _, part = text.partition(".")
    return int(whole) * 10**9 + int((part + "0" * 9)[:9])


def requests(policy, workload, seed):
    path = os.path.join(DIR, "requests.csv")
    subprocess.run([X, "run", "--policy", policy, "--workload", workload, "--seed", seed, "--requests", path, "-q"], stdout=subprocess.DEVNULL,
                   check=True)
    with open(path, encoding="utf-8") as f:
        return list(csv.DictReader(line for line in f if line[0] != "#"))


def check(a, b, workload, seed):
    global checked, gone
    p = subprocess.run([X, "diff", "--policy", a, "--b-policy", b, "--workload", workload, "--seed", seed], capture_output=True, text=True)
    parting = re.search(r"^  [AB] \d+ (\d+) ", p.stdout, re.M)
    if p.returncode != 1 or not parting:
        return
    at, state = int(parting.group(1)), p.stdout[p.stdout.index("state just before"):]
    for side, policy in (("A", a), ("B", b)):
        other = "B" if side == "A" else "A"
        pairs = [(int(m.group(2)), m.group(3)) for m in re.finditer(r"^(.{4})request (\d+) .*prompt (\d+),", state, re.M) if other not in m.group(1)]
        listed = dict(pairs)
        if len(pairs) != len(listed):
            fail("%s and %s, seed %s: a request is twice in the state of %s" % (a, b, seed, side))
        for r in requests(policy, workload, seed):
            if not r["arrival_s"]:
                continue
            arrived, done = ns(r["arrival_s"]), ns(r["finish_s"]) if r["finish_s"] else 10**18
            there, i = arrived < at < done, int(r["request_id"])
            gone += done < at
            checked += 1
            if at not in (arrived, done) and (i in listed) != there:
                fail("%s and %s, seed %s: request %d is %s in the state of %s" % (a, b, seed, i, "not" if there else "still", side))
            elif i in listed and listed[i] != r["input_tokens"]:
                fail("%s and %s, seed %s: request %d has a prompt of %s" % (a, b, seed, i, listed[i]))


QUIET = "mixed:reactive_per_min=1,proactive_per_min=1,duration_s=1800"
for seed in ("1", "2", "3", "4"):
    for a, b in (("edf", "srpt"), ("fcfs", "edf"), ("vllm-v1", "sarathi"), ("openvino-cb", "vllm-v1"), ("agent-xpu-v2", "agent-xpu-v1")):
        check(a, b, QUIET, seed)
if checked < 400 or gone < 20:
    fail("only %d requests, of which %d were done" % (checked, gone))
print("%d requests of states, %d of them done before, %d wrong" % (checked, gone, bad))
sys.exit(bad > 0)

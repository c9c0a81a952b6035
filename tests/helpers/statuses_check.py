#!/usr/bin/env python3
"""What every command exits with: 0 when all went well, 1 when a run or a check failed, 2 for bad input, also where a result
cannot be written. A command that `xpusim help` lists has a row of each, or a reason why not (WITHOUT). A new command without
rows fails. Of each row it holds: an error has a text and no half a document, success has none; a document is whole, and a full
device is said. The rows are command lines; `{...}` are files made here."""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
WORK = "--workload w1:n=2"
FAILS = f"{WORK} --set sim.kv_capacity_tokens=16"  # a prompt of 512 tokens that the machine cannot hold
HEAD = "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n"

# Command -> rows by exit status. What fails does so by memory that its runs lack, but where a check is what fails.
ROWS = {
    "run": {0: [f"--policy fcfs {WORK} --json", f"--policy fcfs {WORK} --requests {{NEW}}.csv --json"], 1: [f"--policy fcfs {FAILS} --json", "--replay {other.log} --workload w1:n=3"],
            2: ["--policy nonesuch", f"--policy fcfs {WORK} --requests {{NONE}}/x.csv", f"--policy fcfs {WORK} --timeline {{NONE}}/x.json", f"--policy fcfs {WORK} --decisions {{NONE}}/x.log"]},
    "compare": {0: [f"--policy fcfs --policy edf --replications 2 {WORK} --json", "--store {some.db} --json"],
                1: [f"--policy fcfs --policy edf --replications 2 {FAILS} --json", f"--policy fcfs --policy edf --replications 2 {FAILS} --load 0.5 --json",
                    f"--policy fcfs --policy mlfq --replications 2 {FAILS} --tune 2", f"--policy fcfs --policy python:{{fails.py}}:Fcfs --replications 2 {WORK} --tune 4",
                    f"--policy fcfs --policy edf --replications 3 {FAILS} --select 0.9 --indifference 1%"],
                2: ["--policy fcfs --policy nonesuch", "--store {NONE}/x.db"]},
    "ablate": {0: [f"agent-xpu-v2 --replications 2 {WORK} --json"], 1: [f"agent-xpu-v2 --replications 2 {FAILS} --json"], 2: ["nonesuch"]},
    "sweep": {0: ["{good.json} -o {NEW}.db", "{mixed.json} -o {NEW}.db --dry-run", "{good.json} -o {some.db}"],
              1: ["{mixed.json} -o {NEW}.db", "{mixed.json} -o {NEW}.db --export csv", "{mixed.json} -o {failed.db}", "{mixed.json} -o {NEW}.db --fail-fast",
                  "{mixed.json} -o {NEW}.db --shard 0/2"],
              2: ["{good.json} -o {NONE}/x.db", "{good.json}", "{bad.json} -o {NEW}.db"]},
    "merge": {0: ["-o {NEW}.db {some.db}"], 1: ["-o {NEW}.db {part.db} --complete"], 2: ["-o {NEW}.db {NONE}/x.db", "-o {NEW}.db"]},
    "list": {0: ["policy --json", "metric --csv", "soc", "llm llama-3.2-3b"], 2: ["nonesuch", "soc nonesuch"]},
    "trace gen": {0: [f"{WORK}", f"{WORK} -o {{NEW}}.csv"], 2: ["--workload nonesuch", f"{WORK} -o {{NONE}}/x.csv"]},
    "trace import": {0: ["{azure.csv} --format azure"], 2: ["{azure.csv} --format vllm", "{azure.csv} --format azure -o {NONE}/x.csv"]},
    "trace mix": {0: ["{a.csv} {a.csv} -o {NEW}.csv"], 2: ["{a.csv} {NONE}/a.csv", "{a.csv} {a.csv} -o {NONE}/x.csv"]},
    "trace stats": {0: ["{a.csv} --json"], 2: ["{NONE}/a.csv", "{azure.csv}"]},
    "validate": {0: ["--corun {corun.csv} --json", "--energy {powers.csv} --json", "--points {points.csv} --json", "--points {points.csv} --max-median 1000",
                     "--run {run.csv} --soc rtx-4090 --llm llama-3.1-8b-bf16 --policy vllm-v1 --json"],
                 1: ["--points {points.csv} --max-median 0.0001", "--run {run.csv} --soc rtx-4090 --llm llama-3.1-8b-bf16 --policy vllm-v1 --max-e2e-mape 0.0001"],
                 2: ["--points {NONE}/x.csv", "--corun {points.csv}"]},
    "search": {0: ["--policy fcfs --slo all.e2e_s.mean<=1000 --replications 2 --precision 1 --confidence 0.5 --workload mixed:duration_s=300 --json"],
               1: [f"--policy fcfs --slo all.e2e_s.mean<=1000 --replications 2 --precision 1 --confidence 0.5 {FAILS} --json"], 2: ["--policy fcfs --slo nonesuch<=1"]},
    "falsify": {0: [f"--policy edf --baseline fcfs --budget 8 --replications 1 --confirm 4 --workload mixed:duration_s=60 --over machine --json"],
                1: [f"--policy edf --baseline fcfs --budget 8 --replications 1 --confirm 4 --workload mixed:duration_s=60 --over machine --set sim.kv_capacity_tokens=16 --json"],
                2: ["--policy edf"]},
    "explain": {0: [f"--policy fcfs --request 0 {WORK} --json", f"--policy fcfs --interference {WORK} --json"],
                1: [f"--policy fcfs --request 0 {FAILS} --json", f"--policy fcfs --interference {FAILS} --json", f"--policy fcfs --job 0 {FAILS} --json"],
                2: [f"--policy fcfs {WORK}"]},
    "view": {0: [f"--policy fcfs {WORK} -o {{NEW}}.html", f"--policy fcfs {WORK} --json"], 1: [f"--policy fcfs {FAILS} -o {{NEW}}.html"],
             2: [f"--policy fcfs {WORK} -o {{NONE}}/x.html", f"--policy nonesuch -o {{NEW}}.html"]},
    "report": {0: ["{compared.json} --no-figures -o {NEW}.html", "--store {some.db} --no-figures -o {NEW}.html"],
               2: ["{a.csv} -o {NONE}/x.html", "{compared.json} --no-figures -o {NONE}/x.html", "--store {NONE}/x.db -o {NEW}.html"]},
    "measure": {0: ["--list", "--backend sim --alone --devices cpu -o {NEW}.csv -q"], 2: ["--backend nonesuch -o {NEW}.csv", "--backend sim --alone --devices cpu -o {NONE}/x.csv"]},
    "calibrate": {2: ["--points {NONE}/x.csv --soc core-ultra-7-155h", "--soc nonesuch --points reference -o {NEW}.json"]},
    "characterize": {0: ["affinity --csv"], 2: ["nonesuch"]},
    "claims": {0: ["--list", "A10 --replications 1 --json"], 1: ["--replications 1 --file {failing.json}"], 2: ["Z9", "--file {NONE}/x.json"]},
    "figure": {0: ["", "agent-xpu-v1 2 --no-picture"], 1: ["{figure.json} --no-picture"], 2: ["agent-xpu-v1 999", "agent-xpu-v1 2 --format svg -o {NONE}/x/y"]},
    "gate": {0: ["--baseline {gate.json} --json"], 1: ["--baseline {worse.json} --json", "--baseline {stalled.json} --json", "--baseline {stalls.json} --update"],
             2: ["--baseline {NONE}/x.json", "--baseline {gate.json} --junit {NONE}/x.xml"]},
    "diff": {0: [f"--policy fcfs --b-policy fcfs {WORK} --json", "{fcfs.log} {fcfs.log}"], 1: [f"--policy fcfs --b-policy hpf {FAILS} --json", f"--policy fcfs --b-policy agent-xpu-v2 {WORK} --json", "{fcfs.log} {other.log}"],
             2: ["{fcfs.log}", "{fcfs.log} {NONE}/x.log"]},
    "bisect": {0: [f"--policy fcfs --b-policy agent-xpu-v2 {WORK} -o {{NEW}}.csv"], 1: [f"--policy fcfs --b-policy fcfs {WORK} -o {{NEW}}.csv"],
               2: [f"--policy fcfs --b-policy agent-xpu-v2 {WORK} -o {{NONE}}/x.csv"]},
    "plot": {0: ["list"], 2: ["nonesuch", "cdf {NONE}/x.csv"]},
    "graphs": {0: ["--p 3,4 --d 4,6 --s 9,8 --chunks 2 --json"], 1: ["--p 10,10,10,10 --d 11,11,11,11 --s 20,20,20,20 --chunks 3 --strategy exact --nodes 1 --json"], 2: ["--p 3"]},
    "new-policy": {0: ["mine -o {NEW}"], 2: ["9mine -o {NEW}", "mine -o {NONE}/x/y"]},
    "check-policy": {0: ["fcfs --loads 1"], 1: [], 2: ["nonesuch"]},
    "new-soc": {0: ["x --like core-ultra-7-155h -o {NEW}.json"], 2: ["x --like nonesuch -o {NEW}.json", "x --like core-ultra-7-155h -o {NONE}/x.json"]},
    "new-llm": {0: ["x --hf {hf.json} -o {NEW}.json"], 2: ["x --hf {NONE}/x.json -o {NEW}.json", "x --hf {hf.json} -o {NONE}/x.json"]},
    "arena judge": {2: ["nonesuch", "edf --suite nonesuch"]},
    "arena archive": {2: ["--suite nonesuch"]},
    "arena new": {0: ["{NEW}"], 2: ["{NONE}/x/y"]},
    "selftest": {0: [""], 2: ["it"]},
    "mcp": {0: [""], 2: ["it"]},
    "send-in": {0: ["-o {NEW}.tar.gz --dry"], 2: ["-o x.zip"]},
    "drive": {2: ["--policy fcfs --engine nonesuch", "--compare --policy fcfs"]},
    "observe": {2: ["--trace {a.csv}", "--url http://127.0.0.1:9/v1 --model m --trace {a.csv} -o {NEW}.csv"]},
    "help": {0: ["", "run", "--man", "run --completion bash"], 2: ["nonesuch"]},
}
# Where a status has no row: it cannot be, or takes longer than a second here, and then the test that has it.
WITHOUT = {
    ("list", 1): "nothing runs", ("trace gen", 1): "nothing runs", ("trace import", 1): "nothing runs", ("trace mix", 1): "nothing runs", ("trace stats", 1): "nothing runs",
    ("report", 1): "nothing runs", ("plot", 1): "nothing runs", ("new-policy", 1): "nothing runs", ("new-llm", 1): "nothing runs", ("arena new", 1): "nothing runs",
    ("help", 1): "nothing runs", ("mcp", 1): "a failed tool is an answer: tests/golden/mcp.sh", ("characterize", 1): "a machine that lacks a device is bad input",
    ("new-soc", 1): "tests/golden/models.sh", ("selftest", 1): "tests/golden/selftest.sh", ("send-in", 1): "tests/golden/send_in.sh",
    ("measure", 1): "tests/golden/measure.sh", ("calibrate", 0): "tests/golden/models.sh", ("calibrate", 1): "tests/golden/models.sh",
    ("arena judge", 0): "tests/golden/arena.sh", ("arena judge", 1): "tests/golden/arena.sh", ("arena archive", 0): "tests/golden/arena.sh",
    ("arena archive", 1): "tests/golden/arena.sh", ("drive", 0): "tests/golden/drive.sh", ("drive", 1): "tests/golden/drive.sh", ("observe", 0): "tests/golden/observe.sh", ("observe", 1): "tests/golden/observe.sh",
    ("check-policy", 1): "tests/conformance/check_bad_policy.c",
}


def commands():
    """Every command that help lists, with subcommands in the place of their commands."""
    found = []
    for name in re.findall(r"^  ([a-z-]+) ", start(["help"])[1], re.M):
        parts = re.findall(rf"^  ({name} [a-z]+) ", start([name, "--help"])[1], re.M)
        found += parts or [name]
    return found


def start(words, stdout=subprocess.PIPE):
    r = subprocess.run([XPUSIM, *words], stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=600)
    return r.returncode, r.stdout, r.stderr


def words_of(command, row, tag):
    words = (command + " " + row).replace("{NEW}", str(FOLDER / f"new-{tag}")).replace("{NONE}", str(FOLDER / "none"))
    return re.sub(r"\{([\w.-]+)\}", lambda m: str(FOLDER / m.group(1)), words).split()


def make():
    """The files in braces."""
    def lines(path, wanted, most):
        all_lines = pathlib.Path(path).read_text().splitlines(keepends=True)
        head = next(k for k, l in enumerate(all_lines) if not l.startswith("#")) + 1
        return "".join(all_lines[:head] + [l for l in all_lines[head:] if wanted(l)][:most])
    sweep = {"name": "t", "base": {"workload": "w1:n=2"}, "axes": {"policy": ["fcfs", "edf"]}, "metrics": ["reactive.e2e_s.mean", "energy_j"]}
    mixed = {**sweep, "axes": {"policy": ["fcfs"], "sim.kv_capacity_tokens": [16, 4000]}}
    gate = {"format": 1, "groups": [{"name": "g", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "workload": "w1:n=2", "test": "exact", "seed": 1, "policies": ["fcfs"]}]}
    stalls = json.loads(json.dumps(gate))
    stalls["groups"][0]["set"] = ["sim.kv_capacity_tokens=16"]
    figure = json.loads(pathlib.Path("experiments/figures/agent-xpu-v1-2.json").read_text())
    run = {"r": {"run": {"policy": "fcfs", "workload": "w1:n=2", "set": ["sim.kv_capacity_tokens=16"]}}}
    claim = {"paper": "p", "source": "s", "quantities": run,
             "claims": [{"id": "X", "where": "1", "statement": "t", "checks": [{"name": "a", "value": "r:all.e2e_s.mean", "published": 1}]}]}
    fcfs = pathlib.Path("policies/python/examples/fcfs.py").read_text()  # it fails as given, and not as it is tuned
    fails = fcfs.replace("import Policy", "import Param, Policy").replace("params = (", 'params = (Param("fails", True, "whether it raises"), ')
    fails = fails.replace("def init(self):", 'def init(self):\n        if self.param["fails"]:\n            raise ValueError("as it was told")')
    texts = {"fails.py": fails, "good.json": json.dumps(sweep), "mixed.json": json.dumps(mixed), "bad.json": "{", "gate.json": json.dumps(gate), "stalls.json": json.dumps(stalls),
             "a.csv": HEAD + "0,0,0,reactive,0,,20,20,0\n", "azure.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,9,3\n",
             "failing.json": json.dumps(claim), "figure.json": json.dumps({**figure, "value": "r:all.e2e_s.mean", "x": {**figure["x"], "value": "r:all.e2e_s.mean"}, "quantities": run}),
             "hf.json": pathlib.Path("tests/fuzz/corpus/hugging-face/sample").read_text(),
             "run.csv": lines("hwmodels/runs/vllm-rtx-4090-llama-3.1-8b.csv", lambda l: True, 3),
             "corun.csv": lines("hwmodels/points/corun.csv", lambda l: not l.startswith("snapdragon-8-elite"), 9),
             "powers.csv": lines("hwmodels/points/energy.csv", lambda l: True, 9), "points.csv": lines("hwmodels/points/reference.csv", lambda l: l.startswith("core-ultra-7-155h,igpu"), 9)}
    for name, text in texts.items():
        (FOLDER / name).write_text(text)
    for row, status in (("sweep {good.json} -o {some.db} -q", 0), ("sweep {mixed.json} -o {failed.db} -q", 1), ("sweep {good.json} -o {part.db} --shard 0/2 -q", 0),
                        (f"run --policy fcfs {WORK} --decisions {{fcfs.log}} -q", 0), (f"run --policy agent-xpu-v2 {WORK} --decisions {{other.log}} -q", 0),
                        ("gate --baseline {gate.json} --update -q", 0)):
        got = start(words_of("", row, ""))
        if got[0] != status:
            sys.exit(f"FAILED: exit {got[0]}, wanted {status}: {row}\n{got[2]}")
    (FOLDER / "compared.json").write_text(start(words_of("compare", f"--policy fcfs --policy edf --replications 2 {WORK} --json", ""))[1])
    record = json.loads((FOLDER / "gate.json").read_text())
    (FOLDER / "stalled.json").write_text(json.dumps({**record, "groups": stalls["groups"]}))
    for r in record["results"]:
        r["metrics"] = {m: [x and x / 2 for x in v] for m, v in r["metrics"].items()}
    (FOLDER / "worse.json").write_text(json.dumps(record))


def try_row(number, command, status, row):
    words = words_of(command, row, number)
    name = " ".join(words)
    got, out, err = start(words)
    bad = []
    if got != status:
        return [f"exit {got}, wanted {status}: {name}\n  {err.strip()[:300]}"]
    if status != 0 and "xpusim:" not in err and command not in ("diff", "graphs", "gate", "validate", "search", "bisect", "observe") and "--select" not in row:
        bad.append(f"exit {status} without a word: {name}: {err[:200]}")
    if status == 0 and "error" in err:
        bad.append(f"an error, and exit 0: {name}: {err[:200]}")
    if status == 2 and out and "{NONE}" not in row:
        bad.append(f"bad input, and output: {name}: {out[:200]}")
    if out and "--json" in words:
        try:
            json.loads(out)
        except ValueError as e:
            bad.append(f"no whole document ({e}): {name}")
    if status == 2 and (list(FOLDER.glob(f"new-{number}*")) or (FOLDER / "none").exists()):
        bad.append(f"bad input left a file: {name}: {list(FOLDER.glob(f'new-{number}*'))}")
    return bad


def always(command):
    """What holds of every command: help goes to stdout, an option that is none is refused, and a full device is said."""
    bad, words = [], command.split()
    got, out, err = start([*words, "--help"])
    if got != 0 or not out.startswith("usage: xpusim " + words[0]) or err:
        bad.append(f"{command} --help: exit {got}: {out[:60]!r} {err[:60]!r}")
    got, out, err = start([*words, "--nonesuch"])
    if got != 2 or out or "no such option" not in err:
        bad.append(f"{command} --nonesuch: exit {got}: {out[:60]!r} {err[:200]!r}")
    row = next((r for r in ROWS.get(command, {}).get(0, []) if start_prints(command, r)), None)
    if row is not None:
        with open("/dev/full", "w") as full:
            got, _, err = start(words_of(command, row, "full-" + command.replace(" ", "-")), full)
        if got != 1 or "cannot write results" not in err:
            bad.append(f"{command} {row} >/dev/full: exit {got}: {err[:200]!r}")
    return bad


def start_prints(command, row):
    """Whether it prints a result, rather than writing a file."""
    return "{NEW}" not in row and command not in ("sweep", "mcp")


def interrupted():
    """A sweep that a signal ends says so, keeps what it has, exports nothing, and the next one goes on from there."""
    spec, store, bad = FOLDER / "long.json", FOLDER / "long.db", []
    spec.write_text(json.dumps({"name": "t", "base": {"policy": "fcfs", "workload": "w1:n=20"}, "replications": 20000, "metrics": ["energy_j"]}))
    words = ["sweep", str(spec), "-o", str(store)]
    for number in (signal.SIGINT, signal.SIGTERM):
        p = subprocess.Popen([XPUSIM, *words, "--jobs", "1", "--export", "csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before, there = there_is(words), 0
        while p.poll() is None and there <= before:
            time.sleep(0.05)
            there = there_is(words)
        p.send_signal(number)
        out, err = p.communicate(timeout=300)
        if p.returncode != 1 or out or "stopped early: the same command continues" not in err:
            bad.append(f"sweep, signal {number}: exit {p.returncode}: {out[:60]!r} {err[-200:]!r}")
        if not before < there_is(words) < 20000:
            bad.append(f"sweep, signal {number}: {there_is(words)} runs are in the store, {before} were before")
    return bad


def there_is(words):
    """How many of a sweep's runs its store has."""
    found = re.search(r"(\d+) of them in the store", start([*words, "--dry-run"])[1])
    return int(found.group(1)) if found else 0


def main():
    make()
    known = commands()
    bad = [f"{c}: in no row" for c in known if c not in ROWS] + [f"{c}: a row, but no such command" for c in ROWS if c not in known]
    for command, by in ROWS.items():
        bad += [f"{command}: no row of exit {s}" for s in (0, 1, 2) if not by.get(s) and (command, s) not in WITHOUT]
        bad += [f"{command}: rows of exit {s}, and a reason for none" for s in (0, 1, 2) if by.get(s) and (command, s) in WITHOUT]
    tasks = [(command, status, row) for command, by in ROWS.items() for status, rows in by.items() for row in rows]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad += [b for r in pool.map(lambda t: try_row(t[0], *t[1]), enumerate(tasks)) for b in r]
        bad += [b for r in pool.map(always, known) for b in r]
    bad += interrupted()
    print("\n".join(f"FAILED: {b}" for b in bad))
    print(f"{len(tasks)} command lines of {len(known)} commands")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

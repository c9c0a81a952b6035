#!/usr/bin/env python3
"""Every option of every command that computes in a second: given with two values, it must change what is printed (DIFFERS), or
must not (SAME), and what the JSON says alike; TEXT, DATA and FILE look at one of them. A command's help lists its options: each one is in a row here, or in ELSEWHERE
with the test that has both its values. The command lines are the rows; `{...}` are files made here."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
WORK = "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=12,output_scale=0.3"
DIFFERS, SAME, TEXT, DATA, FILE = "differs", "same", "differs in its text", "differs in its JSON", "writes a file"

# The machine, the workload and what is measured: options that many commands share. Of each, two ways to give it.
SHARED = {
    "soc": (DIFFERS, "--soc core-ultra-7-258v", "--soc core-ultra-5-125h"),
    "llm": (DIFFERS, "--llm llama-3.2-1b:bits=4", "--llm llama-3.2-1b"),
    "trace": (DIFFERS, "--trace {a.csv}", "--trace {b.csv}"),
    "workload": (DIFFERS, f"--workload {WORK}", f"--workload {WORK},cv=1,arrival=gamma"),
    "machine": (DIFFERS, "--machine {less.json}", "--machine {frames.json}"),
    "seed": (DIFFERS, "--seed 5", "--seed 6"),
    "ttft-slo": (DATA, "--ttft-slo 0.1", "--ttft-slo 5"),
    "tpot-slo": (DATA, "--tpot-slo 0.01", "--tpot-slo 0.09"),
    "quantile": (DATA, "--quantile 40", "--quantile 80"),
    "below": (DATA, "--below 0.5", "--below 5"),
    "qoe": (DATA, "--qoe 0.1,1", "--qoe 1,9"),
    "set": (DIFFERS, "--set soc.host.sync=100", "--set soc.host.sync=30000"),
    "sketch": (DIFFERS, "", "--sketch"),
    "exact": (SAME, "", "--exact"),
    "time-limit": (SAME, "", "--time-limit 77"),
    "jobs": (SAME, "--jobs 1", "--jobs 3"),
    "store": (SAME, "", "--store {NEW}.db"),
    "quiet": (SAME, "", "--quiet"),
    "json": (TEXT, "", "--json"),
    "csv": (TEXT, "", "--csv"),
    "markdown": (TEXT, "", "--markdown"),
    "latex": (TEXT, "", "--latex"),
}
SHARING = ("run", "compare")
LOAD = ("--seed 3", f"--workload {WORK}")

# A command with what it cannot do without, and its own options. `{...}` of the base that an option gives itself is left out.
COMMANDS = {
    "run": ("--policy agent-xpu-v2", {
        "policy": (DIFFERS, "--policy edf", "--policy agent-xpu-v2:max_batch=2"),
        "requests": (FILE, "--requests {NEW}.csv"),
        "decisions": (FILE, "--decisions {NEW}.log"),
        "timeline": (FILE, "--timeline {NEW}.json"),
        "from": (FILE, "--timeline {NEW}.json --from 1", "--timeline {NEW}.json --from 20"),
        "to": (FILE, "--timeline {NEW}.json --to 10 --timeline-detail launches",
               "--timeline {NEW}.json --to 30 --timeline-detail launches"),
        "timeline-detail": (FILE, "--timeline {NEW}.json --timeline-detail launches",
                            "--timeline {NEW}.json --timeline-detail kernels"),
        "replay": (DIFFERS, "--replay {decisions.log}", "--replay {fcfs.log}"),
        "trouble": (SAME, "--trouble ''", "--trouble {NEW}"),
    }),
    "compare": ("--policy openvino-cb --policy agent-xpu-v2 --replications 2", {
        "policy": (DIFFERS, "--policy edf --policy fcfs", "--policy edf --policy hpf"),
        "baseline": (DIFFERS, "--baseline openvino-cb", "--baseline agent-xpu-v2"),
        "replications": (DIFFERS, "--replications 2", "--replications 3"),
        "resample": (DIFFERS, "--trace {a.csv} --resample sessions --replications 3",
                     "--trace {b.csv} --resample sessions --replications 3"),
        "metric": (TEXT, "--metric all.e2e_s.mean", "--metric all.e2e_s.p90"),
        "relevance": (DIFFERS, "--relevance 0", "--relevance 100"),
        "load": (DIFFERS, "--load 0.5", "--load 0.9"),
        "regret": (DIFFERS, "", "--regret"),
        "tune": (DIFFERS, "--policy mlfq --policy edf --tune 2", "--policy mlfq --policy edf --tune 4"),
        "tune-metric": (DIFFERS, "--policy mlfq --policy edf --tune 4 --tune-metric reactive.e2e_s.mean",
                        "--policy mlfq --policy edf --tune 4 --tune-metric proactive.e2e_s.mean"),
        "tune-replications": (DIFFERS, "--policy mlfq --policy edf --tune 3 --tune-replications 2",
                              "--policy mlfq --policy edf --tune 3 --tune-replications 4"),
        "uncertainty": (DIFFERS, "--uncertainty 16", "--uncertainty 17"),
    }),
    "ablate": ("agent-xpu-v2 --replications 2", {"replications": (DIFFERS, "--replications 2", "--replications 3")}),
    "search": ("--policy edf --slo all.e2e_s.mean<=6 --replications 2 --precision 0.3 --confidence 0.6", {
        "policy": (DIFFERS, "--policy edf", "--policy fcfs"),
        "slo": (DIFFERS, "--slo all.e2e_s.mean<=6", "--slo all.e2e_s.mean<=9"),
        "confidence": (DIFFERS, "--confidence 0.6", "--confidence 0.9"),
        "replications": (DIFFERS, "--replications 2", "--replications 9"),
    }),
    "falsify": ("--policy edf --baseline fcfs --budget 8 --replications 1 --confirm 3", {
        "policy": (DIFFERS, "--policy edf", "--policy hpf"),
        "baseline": (DIFFERS, "--baseline fcfs", "--baseline openvino-cb"),
        "metric": (DIFFERS, "--metric all.e2e_s.mean", "--metric proactive.e2e_s.mean"),
        "over": (DIFFERS, "--over workload", "--over machine"),
        "budget": (DIFFERS, "--budget 8", "--budget 12"),
        "replications": (DIFFERS, "--replications 1", "--replications 2"),
        "confirm": (DIFFERS, "--confirm 3", "--confirm 4"),
        "both-ways": (DIFFERS, "", "--both-ways"),
    }),
    "explain": ("--request 3 --policy agent-xpu-v2", {
        "request": (DIFFERS, "--request 3", "--request 4"),
        "job": (DIFFERS, "--job 3", "--job 4"),
        "interference": (DIFFERS, "--request 3", "--interference"),
        "until": (DIFFERS, "--until first-token", "--until last-token"),
        "policy": (DIFFERS, "--policy agent-xpu-v2", "--policy fcfs"),
    }),
    "view": ("--policy edf -o {NEW}.html", {
        "policy": (FILE, "--policy edf", "--policy fcfs"),
        "output": (FILE, "-o {NEW}.html"),
        "from": (FILE, "--from 1 --to 9", "--from 5 --to 9"),
        "to": (FILE, "--from 1 --to 5", "--from 1 --to 9"),
    }),
    "diff": ("--policy edf --b-policy fcfs", {
        "policy": (DIFFERS, "--policy edf", "--policy hpf"),
        "against": (SAME, "--policy edf --b-policy edf", f"--policy edf --b-policy edf --against {XPUSIM}"),
    }),
    # The second finds the runs of the first in the store: they are two seconds, so there is no JSON either.
    "characterize": ("schemes --store {schemes.db}", {"replications": (TEXT, "--replications 2", "--replications 3")}),
    "graphs": ("--p 3,4,5 --d 4,6,7 --s 9,8,7 --chunks 5", {
        "p": (DIFFERS, "--p 3,4,5", "--p 1,4,5"),
        "d": (DIFFERS, "--d 4,6,7", "--d 4,6,9"),
        "s": (DIFFERS, "--s 9,8,7", "--s 9,9,9"),
        "chunks": (DIFFERS, "--chunks 5", "--chunks 6"),
        "strategy": (DIFFERS, "--strategy exact", "--strategy sync"),
        "keep-old": (DIFFERS, "", "--keep-old"),
        "nodes": (DIFFERS, "--nodes 10", "--nodes 100000"),
        "gantt": (DIFFERS, "", "--gantt"),
        "random": (DIFFERS, "--random 3", "--random 4"),
        "seed": (DIFFERS, "--random 3 --seed 1", "--random 3 --seed 2"),
    }),
    "check-policy": ("recompute-preempt --loads 2", {
        "loads": (SAME, "--loads 2", "--loads 3"),
        "load": (TEXT, "--load 2", "--load 5"),
        "params": (FILE, "--load 3 --params kill=never --decisions {NEW}.log", "--load 3 --params kill=kernel --decisions {NEW}.log"),
        "pair": (SAME, "--load 3 --pair collapsed", "--load 3 --pair repeated"),
        "trace": (TEXT, "--load 3", "--load 3 --trace {tiny.csv}"),
        "decisions": (FILE, "--load 3 --decisions {NEW}.log"),
    }),
    "new-soc": ("x --like core-ultra-7-155h -o {NEW}.json", {
        "like": (FILE, "--like core-ultra-7-155h", "--like core-ultra-7-258v"),
        "family": (FILE, "--family lunar-lake", "--family panther-lake"),
        "ddr-peak": (FILE, "--ddr-peak 100", "--ddr-peak 120"),
        "memory": (FILE, "--memory 16", "--memory 64"),
        "peak": (FILE, "--peak npu=10", "--peak npu=20"),
        "measured": (FILE, "--measured model=llama-3.2-3b,bits=4,runtime=openvino-2025,ttft_ms@1024=900,tpot_ms@1024=60",
                     "--measured model=llama-3.2-3b,bits=4,runtime=openvino-2025,ttft_ms@1024=950,tpot_ms@1024=60"),
        "output": (FILE, "-o {NEW}.json"),
    }),
    "trace gen": ("", {
        "machine": (DIFFERS, "--machine {less.json}", "--machine {frames.json}"),
        "output": (FILE, "-o {NEW}.csv"),
    }),
    "trace import": ("{vllm.json} --format vllm", {
        "format": (TEXT, "{vllm.json} --format vllm", "{sharegpt.json} --format sharegpt --rate-per-min 3"),
        "class": (TEXT, "--class reactive", "--class proactive"),
        "from": (TEXT, "--from 0", "--from 0.001"),
        "to": (TEXT, "--to 0.0001", "--to 9"),
        "rate-scale": (TEXT, "--rate-scale 1", "--rate-scale 2"),
        "seed": (TEXT, "{sharegpt.json} --format sharegpt --rate-per-min 3 --seed 1", "{sharegpt.json} --format sharegpt --rate-per-min 3 --seed 2"),
        "share": (TEXT, "{bailian.jsonl} --format bailian", "{bailian.jsonl} --format bailian --share"),
        "block-tokens": (TEXT, "{bailian.jsonl} --format bailian --share", "{bailian.jsonl} --format bailian --share --block-tokens 8"),
        "chars-per-token": (TEXT, "{sharegpt.json} --format sharegpt --rate-per-min 3 --chars-per-token 2", "{sharegpt.json} --format sharegpt --rate-per-min 3 --chars-per-token 4"),
        "rate-per-min": (TEXT, "{sharegpt.json} --format sharegpt --rate-per-min 3", "{sharegpt.json} --format sharegpt --rate-per-min 6"),
        "think-s": (TEXT, "{sharegpt.json} --format sharegpt --rate-per-min 3 --think-s 1", "{sharegpt.json} --format sharegpt --rate-per-min 3 --think-s 9"),
        "output": (FILE, "-o {NEW}.csv"),
    }),
    "trace stats": ("{a.csv}", {}),
    "list": ("policy", {}),
    "selftest": ("", {}),
    "help": ("run", {"man": (TEXT, "", "--man"), "completion": (TEXT, "--completion bash", "--completion fish")}),
}
# Commands whose options need an engine, a server, a store or minutes: a test of theirs has each of them.
ELSEWHERE = ("drive", "observe", "sweep", "merge", "validate", "report", "measure", "calibrate", "claims", "figure", "gate", "bisect", "plot",
             "new-policy", "new-llm", "arena judge", "arena archive")


SAID, MADE, LOCK = {}, {}, threading.Lock()


def start(args):
    r = subprocess.run([XPUSIM, *args], capture_output=True, text=True, timeout=900, cwd=FOLDER)
    return r.returncode, r.stdout, r.stderr


def run(args):
    """Most options have the command line without them in common: it runs once."""
    with LOCK:
        mine = MADE.setdefault(tuple(args), threading.Lock())
    with mine:
        if tuple(args) not in SAID:
            SAID[tuple(args)] = start(args)
        return SAID[tuple(args)]


def listed(command):
    """The options that a command's help shows."""
    text = run([*command.split(), "--help"])[1]
    names = re.findall(r"^  +(?:-\w, )?--([a-z0-9-]+)", text, re.M)
    return list(dict.fromkeys(names)), "--json" in text


def split(text):
    return [w.strip("'") for w in text.split()]


def files(words, tag):
    """{NAME} are files of the folder, {NEW} a name of its own."""
    out = []
    for w in words:
        w = w.replace("{NEW}", str(FOLDER / f"new-{tag}"))
        out.append(re.sub(r"\{([^}]+)\}", lambda m: str(FOLDER / m.group(1)), w))
    return out


def without(base, given):
    """The base's options but those that `given` has itself. Repeated options go together."""
    words, keep, i = split(base), [], 0
    names = {w for w in split(given) if w.startswith("-")}
    names |= {"--workload"} if names & {"--trace"} else set()
    names |= {"--policy"} if "--replay" in names else set()
    names |= {"--request"} if names & {"--job", "--interference"} else set()
    names |= {"--p", "--d", "--s", "--chunks"} if "--random" in names else set()
    if given.startswith("{"):
        return []
    names |= {"--loads"} if "--load" in names and "--loads" in base else set()
    while i < len(words):
        two = words[i].startswith("-") and i + 1 < len(words) and not words[i + 1].startswith("-")
        if words[i] not in names:
            keep += words[i:i + 1 + two]
        i += 1 + two
    return keep


def line(command, base, given, has, tag):
    words = without(base, given)
    for option in LOAD if "workload" in has and command != "characterize" else (): # its schemes have loads of their own
        name = option.split()[0]
        if name[2:] in has and name not in split(given) and not (name == "--workload" and "--trace" in split(given)):
            words += split(option)
    return files(command.split() + words + split(given), tag)


# What differs between any two command lines without meaning anything: the hash of a configuration.
def plain(text):
    return re.sub(r"[0-9a-f]{16}", "HASH", re.sub(r"new-[\w-]+", "NEW", text))


def written(tag):
    return {p.name.replace(tag, ""): p.read_bytes() for p in sorted(FOLDER.glob(f"new-{tag}*")) if p.is_file()}


def numbers(text):
    """A result without what repeats the command line."""
    def rest(v):
        if isinstance(v, dict):
            return {k: rest(x) for k, x in v.items() if k not in ("command", "config", "fingerprint", "configuration")}
        return [rest(x) for x in v] if isinstance(v, list) else v
    return plain(json.dumps(rest(json.loads(text)) if text.strip() else None))


def try_option(command, option, row, base, has, has_json):
    kind, *ways = row
    tags = [f"{command.replace(' ', '-')}-{option}-{k}" for k in range(len(ways))]
    results = [run(line(command, base, w, has, t)) for w, t in zip(ways, tags)]
    for w, r in zip(ways, results):
        if r[0] not in (0, 1):
            return f"{w or 'without'}: exit {r[0]}: {r[2].strip()[:300]}"
    if kind == FILE:
        made = [written(t) for t in tags]
        if not all(m and all(len(v) > 0 for v in m.values()) for m in made):
            return "writes no file"
        return "its two values write the same file" if len(made) == 2 and made[0] == made[1] else None
    texts = [plain(r[1]) for r in results]
    if kind == SAME and texts[0] != texts[1]:
        return "changes the text: " + next((f"{a!r} / {b!r}" for a, b in zip(texts[0].split("\n"), texts[1].split("\n")) if a != b), "length")
    if kind in (DIFFERS, TEXT) and texts[0] == texts[1]:
        return "its two values print the same"
    if has_json and kind in (DIFFERS, SAME, DATA) and option not in ("json", "csv", "markdown", "latex"):
        data = [run(line(command, base, w + " --json", has, t + "j")) for w, t in zip(ways, tags)]
        same = plain(data[0][1]) == plain(data[1][1]) if kind != DATA else numbers(data[0][1]) == numbers(data[1][1])
        if kind in (DIFFERS, DATA) and same:
            return "its two values have the same JSON"
        if kind == SAME and numbers(data[0][1]) != numbers(data[1][1]):
            return "changes the JSON"
    return None


def main():
    tasks, missing, seen = [], [], 0
    for command, (base, own) in COMMANDS.items():
        has, has_json = listed(command)
        has = [o for o in has if not o.startswith("b-")] # of `diff`: the same table again
        rows = {o: own.get(o) or SHARED.get(o) or (COMMANDS["compare"][1].get(o) if command == "ablate" else None) for o in has}
        missing += [f"{command} --{o}: in no row" for o, r in rows.items() if r is None and (command, o) not in LATER]
        missing += [f"{command} --{o}: a row, but no such option" for o in own if o not in has]
        for option, row in rows.items():
            shared = option not in own and command not in SHARING and (row is not None or command == "ablate")
            long = (command, option) in LONG and not os.environ.get("WHOLE")
            if row is not None and (command, option) not in LATER and not shared and not long:
                tasks.append((command, option, row, base, has, has_json))
    tests = "".join(p.read_text() for kind in ("sh", "c", "py") for p in pathlib.Path("tests").glob(f"*/*.{kind}") if p.name not in ("options_twice.sh", "options_check.py"))
    named = set(re.findall(r"--([a-z0-9-]+)", tests)) | ({"output"} if re.search(r"\s-o\s", tests) else set())
    for command in ELSEWHERE:
        for option in listed(command)[0]:
            seen += 1
            prefix = option.endswith("-")  # of all options of a second policy
            if option not in SHARED and option not in named and not (prefix and any(n.startswith(option) for n in named)):
                missing.append(f"{command} --{option}: in no row, and no test has it")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda t: try_option(*t), tasks))
    bad = missing + [f"{t[0]} --{t[1]}: {s}" for t, s in zip(tasks, said) if s is not None]
    print("\n".join(f"FAILED: {b}" for b in bad))
    print(f"{len(tasks)} options of {len(COMMANDS)} commands, {seen} of {len(ELSEWHERE)} elsewhere; {len(SAID)} command lines")
    return 1 if bad else 0


# Tried with WHOLE=yes alone: two and a half seconds.
LONG = (("characterize", "replications"),)
# Options whose values need more than a second here, with the test that has both.
LATER = {("compare", "suite"): "tests/golden/arena.sh", ("ablate", "suite"): "tests/golden/arena.sh", ("search", "suite"): "tests/golden/arena.sh",
         ("compare", "by"): "tests/golden/store.sh", ("ablate", "by"): "tests/golden/store.sh", ("view", "recompute"): "tests/golden/wasm.sh",
         ("compare", "select"): "tests/unit/check_select.c", ("compare", "indifference"): "tests/unit/check_select.c",
         ("compare", "at-most"): "tests/unit/check_select.c", ("search", "precision"): "tests/unit/check_search.c",
         ("ablate", "select"): "as compare", ("ablate", "indifference"): "as compare", ("ablate", "at-most"): "as compare",
         ("new-soc", "from"): "tests/golden/send_in.sh", ("new-soc", "pairs"): "tests/unit/check_pairs_soc.c", ("trace import", "history"): "tests/golden/import.sh",
         ("selftest", "controls"): "tests/golden/selftest.sh", ("run", "steady"): "tests/golden/steady.sh", ("trace import", "sample"): "tests/golden/options.sh",
         ("trace import", "link"): "tests/golden/options.sh", ("check-policy", "capable"): "tests/golden/options.sh", ("falsify", "relevance"): "tests/unit/check_falsify.c"}
if __name__ == "__main__":
    sys.exit(main())

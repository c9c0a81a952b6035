#!/usr/bin/env python3
"""The numbers of a machine's and a model's file have an effect: a third more or less of one changes what some run measures, or
what kernels cost. A number that nobody reads, or that is read in another's place, changes nothing."""
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
LOAD = "--workload mixed:reactive_per_min=20,proactive_per_min=40,duration_s=20,output_scale=0.2"
FILES = {
    "soc": ("core-ultra-5-125h", "snapdragon-8gen3"),
    "llm": ("llama-3.2-3b", "qwen3-30b-a3b"),
}
# Each of these for every number, until one answers otherwise, the fast ones first; {} is its file as an option.
RUNS = [
    f"run --policy agent-xpu-v2 {LOAD} {{}} --json --set sim.horizon_s=60",
    f"run --policy edf:preempt=reset,gap_kv=swap {LOAD} {{}} --json --set sim.power.limit=package --set sim.horizon_s=60 --set sim.kv_capacity_tokens=9000",
    f"run --policy fcfs:device=cpu {LOAD} {{}} --json --set sim.horizon_s=60",
    f"run --policy sd-npu {LOAD} {{}} --json --set sim.horizon_s=60",
    f"run --policy hpf:preempt=reset {LOAD} {{}} --json --llm llama-3.1-8b:bits=16 --set sim.horizon_s=60",
    f"run --policy agent-xpu-v2 {LOAD} {{}} --json --set soc.devices.1.sharing=time_shared --set sim.horizon_s=60",
    "list kernels {} --json",
    "list kernels {} --llm llama-3.2-3b:bits=4 --json",
    "list kernels {} --llm llama-3.2-3b:bits=8 --json",
    "list kernels {} --llm llama-3.2-3b:bits=16 --json",
]
FACTORS = (1.37, 0.73, 2)
# What these loads do not reach: memory that runs short, loads of graphs and models, limits of a package, queues of several
# launches, cores of machines that are made from this one, devices that are shared or reset, runtimes for other weights, and requests longer
# than a model was made for. Where one number follows from another: the model's.
WITHOUT = re.compile(r"memory\..*|loader\..*|package\..*|.*\.(inflight_depth|max_shared|shared_efficiency\.value|reset\.value|peak\.value|cores|.*likely|weight_bits|"
                     r"min_rows|rows_max|context_max)|devices\.0\.runtimes\.2\..*|heads|kv_heads|weight_bits|act_bits|max_context")


def leaves(x, path=()):
    """Paths of numbers: what a file says of a value, not how sure it is."""
    if isinstance(x, dict):
        for k, v in x.items():
            if k not in ("low", "high", "format", "fit", "start"):
                yield from leaves(v, path + (k,))
    elif isinstance(x, list):
        for i, v in enumerate(x):
            yield from leaves(v, path + (i,))
    elif isinstance(x, (int, float)) and not isinstance(x, bool):
        yield path


def changed(tree, path, factor):
    """A copy with more or less at that place, its range with it."""
    t = copy.deepcopy(tree)
    at = t
    for k in path[:-1]:
        at = at[k]
    for key in (path[-1], "low", "high") if path[-1] == "value" else (path[-1],):
        if isinstance(at, dict) and key not in at:
            continue
        v = at[key]
        at[key] = max(1, round(v * factor + (factor - 1))) if isinstance(v, int) and path[-1] != "value" else v * factor + (0.1 if v == 0 else 0)
    return t


def answer(command, option):
    r = subprocess.run([XPUSIM, *command.replace("{}", option).split()], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if r.returncode not in (0, 1):
        return None, r.stderr.strip()[:200]
    d = json.loads(r.stdout)
    return json.dumps({k: v for k, v in d.items() if k not in ("config", "about", "fingerprint", "version", "warnings", "soc", "llm")}, sort_keys=True), ""


def try_number(kind, name, tree, path, whole):
    file = FOLDER / f"{name}-{'.'.join(map(str, path))}.json"
    refused = ""
    for factor in FACTORS:
        file.write_text(json.dumps(changed(tree, path, factor)))
        for command, before in zip(RUNS, whole):
            got, why = answer(command, f"--{kind} {file}") if before is not None else (None, "")
            if got is None and "json:" in why:
                refused = why
                break
            if got is not None and got != before:
                return None
    return f"{kind} {name}: {'.'.join(map(str, path))} changes nothing {refused}"


def main():
    bad, n = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for kind, names in FILES.items():
            for name in names:
                source = pathlib.Path(f"hwmodels/{kind}/{name}.json")
                tree = json.loads(source.read_text())
                copied = FOLDER / f"{name}.json"
                copied.write_text(json.dumps(tree))
                whole = [answer(c, f"--{kind} {copied}")[0] for c in RUNS]
                paths = [p for p in leaves(tree) if not WITHOUT.fullmatch(".".join(map(str, p)))]
                n += len(paths)
                bad += [b for b in pool.map(lambda p: try_number(kind, name, tree, p, whole), paths) if b]
    print("\n".join(f"FAILED: {b}" for b in bad))
    print(f"{n} numbers")
    return 1 if bad or n < 120 else 0


if __name__ == "__main__":
    sys.exit(main())

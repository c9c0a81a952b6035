"""Takes every key of a machine, a model and an experiment away, and puts an unknown one in everywhere: the program must
refuse exactly what the schema forbids. schema_readers.py XPUSIM; exit 1 with what they differ in."""
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from schema import Schema

RUN = ["run", "--policy", "fcfs", "--workload", "mixed:duration_s=30", "--quiet"]


def places(node, path=()):
    """Paths of all objects."""
    if isinstance(node, dict):
        yield path
        for key, value in node.items():
            yield from places(value, (*path, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from places(value, (*path, i))


def at(node, path):
    for step in path:
        node = node[step]
    return node


def variants(tree):
    """Of numbers with a range only the first is taken apart: one reader reads them all."""
    quantity = None
    for path in places(tree):
        if "unit" in at(tree, path) and "value" in at(tree, path):
            quantity = quantity or path
            if path != quantity:
                continue
        for key in at(tree, path):
            changed = copy.deepcopy(tree)
            del at(changed, path)[key]
            yield f"without {'.'.join(map(str, (*path, key)))}", changed
        changed = copy.deepcopy(tree)
        at(changed, path)["unheard_of"] = 1
        yield f"with {'.'.join(map(str, (*path, 'unheard_of')))}", changed


def compare(xpusim, schema, tree, command, file, but):
    checker, bad, n = Schema(f"docs/schemas/{schema}.json"), 0, 0
    for what, changed in variants(tree):
        if any(part in what for part in but):
            continue
        file.write_text(json.dumps(changed), encoding="utf-8")
        run = subprocess.run([xpusim, *command], capture_output=True, text=True, check=False)
        forbidden, n = checker.breach(changed), n + 1
        if (run.returncode == 2) != (forbidden is not None):
            print(f"{schema} {what}: the schema says {forbidden or 'fine'}, xpusim {run.returncode} {run.stderr[:200].strip()}")
            bad = 1
    print(f"note: {schema}: {n} changed files judged alike" if not bad else f"{schema}: differ")
    return bad


def main(xpusim):
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "changed.json"
        soc = json.loads(Path("hwmodels/soc/core-ultra-5-125h.json").read_text(encoding="utf-8"))
        for device in soc["devices"]:
            device["runtimes"] = device["runtimes"][:1]
            device["runtimes"][0]["default"] = True
        llm = json.loads(Path("hwmodels/llm/llama-3.2-3b.json").read_text(encoding="utf-8"))
        # what was fitted may say anything that the program that fits wrote
        bad |= compare(xpusim, "soc", soc, [*RUN, "--soc", str(file)], file, [".fit"])
        bad |= compare(xpusim, "llm", llm, [*RUN, "--llm", str(file)], file, [])
        spec = {"name": "n", "base": {"policy": "fcfs", "rate": 1}, "replications": 2, "max_replications": 4, "metrics": ["energy_j"],
                "until": {"energy_j": {"half_width": 1}}, "horizon_s": 9, "warmup_s": 1, "axes": {"seed": {"from": 1, "to": 3, "step": 1}}}
        # a policy must be said somewhere, and numbers of replications hang together
        bad |= compare(xpusim, "experiment", spec, ["sweep", str(file), "--dry-run"], file,
                       ["base.policy", "without base", "replications", "until", "base.unheard_of", "axes.unheard_of"])
        # growth_tokens and new_tokens exclude each other, one is needed with turns; think_s and every_s likewise with jobs
        uniform, job = {"distribution": "uniform", "min": 1, "max": 2}, {"name": "j", "prompt_tokens": 5, "answer_tokens": 5}
        common = {"description": "d", "class": "proactive", "shared_prompt": "p", "turns": 2, "growth_tokens": uniform,
                  "gap_s": {"distribution": "gamma", "mean": 1, "cv": 1, "min": 0, "max": 9}, "gap_kind": "think",
                  "start_s": {"distribution": "exponential", "mean": 1}, "priority": 3, "ttft_slo_s": 1, "deadline_s": 9, "cancel_s": 9}
        subagent = {**job, **common, "count": {"dataset": "samsum", "column": "output_tokens", "max": 3}, "background": True,
                    "before": False, "with_context": False, "ends_with_job": True, "probability": 0.5, "on_turns": [1, 2]}
        client = {**job, **common, "count": 2, "think_s": 4, "jobs": 2, "same_session": True, "subagents": [subagent]}
        event = {"at_s": 1, "every_s": 20, "memory_mib": 100, "power_w": 20, "frames_per_s": 60, "source": "mains", "battery_j": 9, "window": "open"}
        workload = {"description": "d", "duration_s": 30, "machine": [event], "shared_prompts": {"p": 9}, "clients": [client]}
        bad |= compare(xpusim, "workload", workload, ["trace", "gen", "--workload", str(file), "-o", folder + "/t.csv"], file,
                       ["growth_tokens", "think_s", "without shared_prompts", "shared_prompts.unheard_of", "background"])
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

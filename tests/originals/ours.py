"""Runs xpusim on a machine whose every iteration takes one second (and some microseconds)."""

import csv
import json
import subprocess
from pathlib import Path

from workload import turns

ROOT = Path(__file__).resolve().parents[2]


def _machine(folder):
    """Writes the W1 reference with a scheduling cost of one second, and a model that weighs nothing."""
    soc, llm = folder / "one-second.json", folder / "tiny.json"
    if not soc.exists():
        s = json.loads((ROOT / "hwmodels/soc/w1-reference.json").read_text())
        s["host"]["schedule"] |= {"value": 1e6, "high": 1e6}
        s["devices"][0]["kind"] = "cpu"
        m = json.loads((ROOT / "hwmodels/llm/smollm2-135m.json").read_text())
        m |= {"layers": 1, "hidden": 64, "heads": 1, "kv_heads": 1, "head_dim": 64, "ffn_hidden": 64, "vocab": 300}
        soc.write_text(json.dumps(s))
        llm.write_text(json.dumps(m))
    return soc, llm


def _finds(w, shared, before):
    """Returns how many tokens of the turn before a turn shares. These are all of them by default. To show that a
    difference has its cause there, they are only the tokens that the original finds. By the rule `whole` (tokens of a
    block) these are whole blocks. By the rule `named` they reach only as far as the turn before found (`before`), if
    that continued and ended in a partly filled block."""
    if w.rule("whole"):
        return max(0, shared - 1) // w.rule("whole") * w.rule("whole")
    if w.rule("named") and before % w.rule("named") and before // w.rule("named") == (shared - 1) // w.rule("named"):
        return before
    return shared


def _write_trace(path, w):
    with open(path, "w", newline="") as f:
        f.write("# xpusim-trace v1\n")
        out = csv.writer(f)
        out.writerow("request_id session_id turn class arrival_s gap_s input_tokens output_tokens prefix_tokens priority "
                     "max_output_tokens".split())
        turn, found = {}, {None: 0}
        for i, before, prompt, shared in turns(w):
            r = w.requests[i]
            finds = _finds(w, shared, found[before])
            found[i] = min(finds, max(0, shared - 1))  # of the last token nobody computed KV
            turn[i] = 0 if before is None else turn[before] + 1
            session = r.session if r.session >= 0 else 1000 + i
            at = (r.step, "") if before is None else ("", r.step)
            out.writerow([i, session, turn[i], "reactive", *at, prompt, r.output, finds, r.priority,
                          r.output + w.rule("spare", 0)])


class Refused(Exception):
    """xpusim refused, with these words."""


def run(binary, policy, w, block, folder):
    """Decisions of a policy: a list of (forms, evictions) in order. A form is a dict of request ->
    (role, tokens); evictions are (request, kept tokens) since the form before. And each request's
    record."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    soc, llm = _machine(folder)
    _write_trace(folder / "trace.csv", w)
    settings = []
    for key, value in {"annotation.sigma_prefill": 0, "annotation.sigma_decode": 0, "kv_capacity_tokens": w.blocks * block,
                       "kv_block_tokens": block, "prefix_reuse": str(bool(w.rule("caching"))).lower()}.items():
        settings += ["--set", f"sim.{key}={value}"]
    said = subprocess.run(
        [binary, "run", "--policy", policy, "--soc", soc, "--llm", llm, "--trace", folder / "trace.csv",
         *settings,
         "--decisions", folder / "decisions", "--requests", folder / "requests.csv", "--quiet"],
        capture_output=True, text=True, timeout=120)
    if said.returncode != 0:
        raise Refused(said.stderr.strip())
    steps, lost = [], []
    for line in open(folder / "decisions"):
        words = line.split()
        if len(words) < 3 or words[-1] != "0":
            continue
        if words[2] == "kv" and words[3].startswith("request="):
            lost.append((int(words[3].split("=")[1]), int(words[4].split("=")[1])))
        elif words[2] == "form":
            parts = [tuple(map(int, s.split(":"))) for s in words[4:-2]]
            steps.append(({i: (role, n) for i, role, n in parts}, lost, int(words[1]) * 1e-9))
            lost = []
    with open(folder / "requests.csv") as f:
        records = {int(r["request_id"]): r for r in csv.DictReader(line for line in f if not line.startswith("#"))}
    return steps, records


def observe(w, steps, records, block):
    """Returns a judge's view of each step: the requests that got a token, how many were in it, KV blocks in use."""
    prompts = {i: prompt for i, _, prompt, _ in turns(w)}
    kv, given = {}, {i: 0 for i in prompts}
    arrived = sorted((float(r["arrival_s"]), i) for i, r in records.items())
    out = []
    for formed, lost, now in steps:
        while arrived and arrived[0][0] <= now + 1e-9:
            i = arrived.pop(0)[1]
            kv[i] = int(records[i]["reused_tokens"])
        for i, kept in lost:
            kv[i] = kept
        got = []
        for i, (role, n) in formed.items():
            target = prompts[i] + given[i]
            kv[i] = kv.get(i, 0) + n
            if role == 1 or kv[i] == target:
                got.append(i)
                given[i] += 1
        used = sum(-(-tokens // block) for tokens in kv.values())
        out.append((tuple(sorted(got)), len(formed), used))
        for i in got:
            if given[i] == w.requests[i].output:
                del kv[i]
    return out


def computed(w, steps, records, block):
    """Returns for each step the tokens of each request and the KV blocks in use (0 where block is 0)."""
    output, prompts = {}, {i: prompt for i, _, prompt, _ in turns(w)}
    kv, out = {}, []
    for formed, lost, _ in steps:
        for i, kept in lost:
            kv[i] = kept
        ended = []
        for i, (role, n) in formed.items():
            if i not in kv and i not in output:
                kv[i] = int(records[i]["reused_tokens"])
            kv[i] = kv.get(i, 0) + n
            if kv[i] == prompts[i] + output.get(i, 0):
                output[i] = output.get(i, 0) + 1
                if output[i] == w.requests[i].output:
                    ended.append(i)
        used = sum(-(-tokens // block) for tokens in kv.values()) if block else 0
        out.append((tuple(sorted((i, n) for i, (_, n) in formed.items())), used))
        for i in ended:
            del kv[i]
    return out

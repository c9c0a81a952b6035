"""This judge is llama.cpp's server: its own loop, queue and slots over a tiny model, one update_slots() a step
(llama_steps.cpp)."""

import dataclasses
import os
import subprocess

import tiny_gguf
from workload import Workload, draw_requests, longest, turns, with_turns

NAME = "llama-cpp"
BLOCK = 1  # the server counts KV in cells of a token
VERSION = "server of llama-cpp-python 0.3.36"
CELLS = 256  # it rounds its context up to whole multiples of this
_totals = []  # tokens of the last workload's steps


def draws(rng):
    """Yields workloads without end. There are few slots or many, small steps or large, micro-batches as large as the
    step or smaller, continuous batching or not, the prompt cache on or off, little memory or much."""
    while True:
        requests = draw_requests(rng, most=rng.choice([4, 8, 20]))
        caching = rng.random() < 0.4
        if rng.random() < 0.3:
            requests = with_turns(rng, requests)
        n_batch = rng.choice([8, 32, 64, 256, 2048])
        n_ubatch = n_batch
        if rng.random() < 0.25:  # our micro-batches take a second each: only bursts can be compared
            n_ubatch = rng.choice([8, 16, 48, 100])
            requests = [r.__class__(0, r.prompt, r.output) for r in requests]
        w = Workload(tuple(requests), 0, n_batch, min(n_batch, rng.choice([1, 2, 3, 4, 4, 8, 16])),
                     (("n_ubatch", min(n_ubatch, n_batch)), ("cont_batching", rng.random() < 0.85),
                      ("caching", caching)))
        least = -(-(longest(w) + 2) // CELLS) * CELLS
        yield Workload(w.requests, least if rng.random() < 0.5 else 8192, n_batch, w.seqs, w.rules)


def _little(w):
    return sum(p + w.requests[i].output for i, _, p, _ in turns(w)) > w.blocks


def kind(w):
    return ("little memory" if _little(w) else "enough memory") + (
        ", prompt cache" if w.rule("caching") else "") + (
        "" if w.rule("cont_batching") else ", no continuous batching") + (
        ", micro-batches" if w.rule("n_ubatch") < w.budget else "")


def documented(w, records, equal):
    """Returns why it differs, or None. The reasons are in policies/README.md. equal(workload) tries another."""
    later = {i: shared for i, before, _, shared in turns(w) if before is not None}
    if not w.rule("caching"):
        if later and equal(w.with_rules(similarity=0)):
            return "prompt cache off: the server still looks for the slot with the turn before"
        return None
    prompts = {i: prompt for i, _, prompt, _ in turns(w)}
    if any(shared - 1 <= 0.1 * prompts[i] for i, shared in later.items()) and equal(w.with_rules(similarity=1e-6)):
        return "a turn that shares a tenth of its prompt or less does not find it in another slot"
    if any(int(records[i]["reused_tokens"]) < shared - 1 for i, shared in later.items() if i in records) and equal(
            dataclasses.replace(w, blocks=8192)):
        return "little memory: the server keeps idle sessions in main memory beside the KV, xpusim in the KV"
    return None


def policy(w):
    return "llama-cpp:device=cpu,slots=%d,n_batch=%d,n_ubatch=%d,cont_batching=%d,similarity=%g" % (
        w.seqs, w.budget, w.rule("n_ubatch"), w.rule("cont_batching"), w.rule("similarity", 0.1))


def steps(w, folder):
    """Returns for each step the tokens of each request, whether it got one, and the KV cells of those in it."""
    model = folder.parent / "tiny.gguf"
    tiny_gguf.write(model)
    lines = []
    for i, before, prompt, shared in turns(w):
        lines.append("%d %d %d %d\n" % (-1 if before is None else before, w.requests[i].step, prompt - shared
                                        if before is not None else prompt, w.requests[i].output))
    said = subprocess.run(
        [os.environ["LLAMA_STEPS"], model, *map(str, (w.seqs, w.blocks, w.budget, w.rule("n_ubatch"),
                                                      int(w.rule("cont_batching")), int(w.rule("caching")),
                                                      w.rule("similarity", 0.1)))],
        input="".join(lines), capture_output=True, text=True, timeout=120)
    if said.returncode != 0:
        raise RuntimeError("llama_steps: %s\n%s" % (w, said.stderr[:3000]))
    out, gave_up = [], None
    for line in said.stdout.splitlines():
        if line.startswith("gave up "):
            gave_up = line[8:]
            break
        cells, *did = line.split()
        out.append((tuple(tuple(map(int, d.split(":"))) for d in did), int(cells)))
    _totals[:] = [sum(n for _, n, _ in did) for did, _ in out]
    return out, gave_up


def observe(w, formed, records):
    """Returns this for xpusim's decisions, with micro-batches put together to steps."""
    output, prompts = {}, {i: prompt for i, _, prompt, _ in turns(w)}
    kv, out, step = {}, [], {}
    for segments, lost, _ in formed:
        for i, kept in lost:
            kv[i] = kept
        for i, (role, n) in segments.items():
            if i not in kv and i not in output:
                kv[i] = int(records[i]["reused_tokens"])
            kv[i] = kv.get(i, 0) + n
            answers = kv[i] == prompts[i] + output.get(i, 0)
            output[i] = output.get(i, 0) + answers
            before, got = step.get(i, (0, 0))
            step[i] = before + n, got + answers
        total = sum(n for n, _ in step.values())
        if w.rule("n_ubatch") < w.budget and len(out) < len(_totals) and total < _totals[len(out)]:
            continue
        out.append((tuple((i, *step[i]) for i in sorted(step)), sum(kv.values())))
        for i in step:
            if output[i] == w.requests[i].output:
                del kv[i]
        step = {}
    return out

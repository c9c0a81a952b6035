"""This judge is openvino-genai's ContinuousBatchingPipeline, one step() at a time, on the CPU plug-in."""

import dataclasses

import numpy as np
import openvino as ov
import openvino_genai as genai

import tiny_openvino
from workload import Request, Workload, draw_requests, first_turns_first, longest, turns, with_turns

NAME = "openvino-cb"
BLOCK = 32  # tokens; what the CPU plug-in has
VERSION = genai.get_version()


SAME = 6  # workloads in a row with the same settings, which can share a pipeline


def draws(rng):
    """Yields workloads without end, with split fuse or not, little memory or much, prefix caching or not."""
    while True:
        fuse, caching = rng.random() < 0.6, rng.random() < 0.25
        little = rng.random() < 0.6
        drawn = []
        for _ in range(SAME):
            requests = draw_requests(rng)
            drawn.append(with_turns(rng, requests) if caching and rng.random() < 0.7 else requests)
        most = max(longest(Workload(tuple(requests), 0, 0, 0)) for requests in drawn)
        budget = rng.choice([32, 48, 64, 256]) if fuse else max(most + 1, rng.choice([64, 300]))
        blocks = -(-most // BLOCK) + rng.randint(0, 4) if little else 400
        seqs = min(rng.choice([1, 2, 3, 256]), budget)
        for requests in drawn:
            yield Workload(tuple(requests), blocks, budget, seqs, (("fuse", fuse), ("caching", caching)))


def kind(w):
    need = sum(-(-(p + w.requests[i].output) // BLOCK) for i, _, p, _ in turns(w))
    return ("split fuse" if w.rule("fuse") else "vllm") + (
        ", little memory" if need > w.blocks else ", enough memory") + (
        ", prefix caching" if w.rule("caching") else "")


def documented(w, records, equal):
    """Returns why a difference is to be expected, or None. The reasons are in policies/README.md."""
    if not w.rule("caching"):
        return None
    before = {i: b for i, b, _, _ in turns(w)}
    third = any(b is not None and before[b] is not None for b in before.values())
    if third and equal(w.with_rules(named=BLOCK)):
        return "a third turn finds less: blocks that a second turn filled up keep their old name"
    enough = dataclasses.replace(w, blocks=400)
    if "little" in kind(w) and any(b is not None for b in before.values()) and (
            equal(enough) or third and equal(enough.with_rules(named=BLOCK))):
        return "little memory: a waiting turn holds its prefix, and caches give way block by block"
    return None


def policy(w):
    return "openvino-cb:device=cpu,variant=%s,max_num_batched_tokens=%d,max_num_seqs=%d" % (
        "sf256" if w.rule("fuse") else "vllm", w.budget, w.seqs)


_last = (None, None)


def _pipeline(w, folder):
    """Returns a new pipeline, or the last if it has the same settings, is empty, and remembers nothing."""
    global _last
    key = (w.blocks, w.budget, w.seqs, w.rules)
    if key != _last[0] or w.rule("caching") or _last[1].has_non_finished_requests():
        tiny_openvino.write(folder)
        c = genai.SchedulerConfig()
        c.num_kv_blocks, c.max_num_batched_tokens, c.max_num_seqs = w.blocks, w.budget, w.seqs
        c.dynamic_split_fuse, c.enable_prefix_caching = w.rule("fuse"), w.rule("caching")
        few = {"INFERENCE_NUM_THREADS": 1, "sampler_num_threads": 1}
        _last = (key, genai.ContinuousBatchingPipeline(str(folder), c, "CPU", few))
    return _last[1]


def steps(w, folder):
    """Returns for each step that computes something the requests that got a token, the number of requests in it, and
    KV blocks in use. Then it returns why the run ended early, or None."""
    pipe = _pipeline(w, folder)
    draw_tokens = np.random.default_rng(0)
    todo = {i: (before, prompt) for i, before, prompt, _ in turns(w)}
    text, handles, ended, out = {}, {}, {}, []
    now = 0
    while todo or pipe.has_non_finished_requests():
        idle, came = not pipe.has_non_finished_requests(), set()
        for i, (before, prompt) in first_turns_first(todo):
            start = w.requests[i].step if before is None else ended.get(before, 10**9) + w.requests[i].step
            if start > now:
                continue
            old = [] if before is None else text[before]
            new = draw_tokens.integers(5, tiny_openvino.VOCABULARY, prompt - len(old))
            if not old:
                new[0] = 5 + i  # no two sessions begin alike
            text[i] = old + [int(t) for t in new]
            g = genai.GenerationConfig()
            g.max_new_tokens = g.min_new_tokens = w.requests[i].output
            g.ignore_eos = True
            handles[i] = pipe.add_request(i, ov.Tensor(np.array([text[i]], dtype=np.int64)), g)
            del todo[i]
            came.add(before is None)
        if idle and len(came) > 1:
            return None, "a turn and another request wake the machine: which is first, steps do not say"
        now += 1
        if not pipe.has_non_finished_requests():
            continue
        pipe.step()
        m = pipe.get_metrics()
        got = []
        for i, h in handles.items():
            while h.can_read():
                for o in h.read().values():
                    got += [i] * len(o.generated_ids)
                    text[i] += o.generated_ids
            if i not in ended and h.get_status() != genai.GenerationStatus.RUNNING:
                if h.get_status() != genai.GenerationStatus.FINISHED:
                    while pipe.has_non_finished_requests():
                        pipe.step()
                    return out, "the library gave up request %d: %s" % (i, h.get_status())
                ended[i] = now
        out.append((tuple(sorted(got)), m.scheduled_requests, round(m.cache_usage * w.blocks / 100)))
    return out, None

"""This judge is vLLM's V1 scheduler alone, without GPU and model. A request that completes a prompt or decodes in a
step gets one token. It runs with vllm 0.11.0 and with the newest that installs."""

import dataclasses
import inspect
import json
import os
import random

os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import vllm
from vllm import SamplingParams
from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.v1.core import kv_cache_utils
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request as VllmRequest
from vllm.v1.structured_output import StructuredOutputManager

import ours
from workload import Workload, draw_requests, first_turns_first, longest, turns, with_turns

NAME = "vllm-v1, vllm-priority"
BLOCK = 16
VERSION = vllm.__version__
LONGEST = 8192
FULL_PROMPT = "scheduler_reserve_full_isl" in inspect.signature(SchedulerConfig).parameters  # from 0.19 on


def _known(f, **wanted):
    """Returns those of the arguments that this version's function takes."""
    return {k: v for k, v in wanted.items() if k in inspect.signature(f).parameters}


def draws(rng):
    """Yields workloads without end: first come or by priority, prefix caching or not, asynchronous or not, long prompts
    held back or not, little memory or much."""
    while True:
        requests = draw_requests(rng, block=BLOCK)
        caching, priority = rng.random() < 0.25, rng.random() < 0.4
        asynchronous = not priority and rng.random() < 0.3
        if caching and rng.random() < 0.7:
            requests = with_turns(rng, requests)
        if priority:
            requests = [r.__class__(**{**r.__dict__, "priority": rng.randint(0, 2)}) for r in requests]
        budget = rng.choice([16, 64, 256, 2048])
        w = Workload(tuple(requests), 0, budget, min(budget, rng.choice([1, 2, 4, 256])),
                     (("priority", priority), ("caching", caching), ("async", asynchronous),
                      ("threshold", 0 if priority else rng.choice([0, 0, 0, 8, 100]))))
        need = -(-(longest(w) + 1) // BLOCK)
        blocks = need + rng.randint(0, 12) if rng.random() < 0.6 else 1000
        yield Workload(w.requests, blocks, w.budget, w.seqs, w.rules)


def _little(w):
    return sum(-(-(p + w.requests[i].output) // BLOCK) for i, _, p, _ in turns(w)) > w.blocks


def kind(w):
    return ("priority" if w.rule("priority") else "fcfs") + (
        ", little memory" if _little(w) else ", enough memory") + (
        ", prefix caching" if w.rule("caching") else "") + (", asynchronous" if w.rule("async") else "")


def documented(w, records, equal):
    """Returns why a difference is to be expected, or None. The reasons are in policies/README.md."""
    causes = []  # a difference, and what takes its cause away
    if w.rule("caching") and any(b is not None for _, b, _, _ in turns(w)):
        causes.append(("prefix caching: vLLM finds whole blocks of a prefix, xpusim all of its tokens", _whole))
    if w.rule("caching") and _little(w):
        causes.append(("prefix caching in little memory: caches give way block by block, and a victim finds its own",
                       lambda w: _enough(_whole(w))))
    if w.rule("async") and _little(w):
        causes.append(("asynchronous: vLLM decides before it knows who ends, and so with their KV still taken", _synchronous))
    if w.rule("async") and not FULL_PROMPT:
        causes.append(("0.11.0, asynchronous: everybody computes one token too many", _synchronous))
    if w.rule("threshold") and not FULL_PROMPT:
        causes.append(("0.11.0: the threshold also holds back a prompt that is alone", lambda w: w.with_rules(threshold=0)))
    if w.rule("priority") and _little(w) and not FULL_PROMPT:
        causes.append(("0.11.0: a victim that is in the step already computes its token all the same", _enough))
    for why, without in causes:
        if equal(without(w)):
            return why
    for _, without in causes:
        w = without(w)
    return "more than one of these" if len(causes) > 1 and equal(w) else None


def _whole(w):
    return w.with_rules(whole=BLOCK)


def _enough(w):
    return dataclasses.replace(w, blocks=1000)


def _synchronous(w):
    return w.with_rules(**{"async": False})


def policy(w):
    name = "vllm-priority" if w.rule("priority") else "vllm-v1"
    known = {"max_num_batched_tokens": w.budget, "max_num_seqs": w.seqs, "reserve_full_isl": int(FULL_PROMPT)}
    if not w.rule("priority"):
        known |= {"long_prefill_token_threshold": w.rule("threshold"), "async_scheduling": int(w.rule("async"))}
    return name + ":" + ",".join("%s=%d" % k for k in known.items())


def _scheduler(w, folder):
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
              "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2,
              "num_hidden_layers": 2, "vocab_size": 300, "max_position_embeddings": LONGEST,
              "rms_norm_eps": 1e-5, "dtype": "float16", "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config))
    model = ModelConfig(**_known(ModelConfig, model=str(folder), skip_tokenizer_init=True, dtype="float16",
                                 seed=0, max_model_len=LONGEST))
    sched = SchedulerConfig(**_known(
        SchedulerConfig, max_num_seqs=w.seqs, max_num_batched_tokens=w.budget, max_model_len=LONGEST,
        policy="priority" if w.rule("priority") else "fcfs", is_encoder_decoder=False,
        long_prefill_token_threshold=w.rule("threshold"), enable_chunked_prefill=True,
        async_scheduling=w.rule("async")))
    cache = CacheConfig(**_known(CacheConfig, block_size=BLOCK, gpu_memory_utilization=0.9, swap_space=0,
                                 cache_dtype="auto", enable_prefix_caching=w.rule("caching")))
    whole = VllmConfig(scheduler_config=sched, model_config=model, cache_config=cache,
                       device_config=DeviceConfig("cpu"))
    spec = FullAttentionSpec(**_known(FullAttentionSpec, block_size=BLOCK, num_kv_heads=1, head_size=1,
                                      dtype=torch.float32, use_mla=False))
    cache.num_gpu_blocks = w.blocks + 1  # block 0 is never given out
    kv = KVCacheConfig(num_blocks=w.blocks + 1, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["l"], spec)])
    make = AsyncScheduler if w.rule("async") else Scheduler
    return make(**_known(Scheduler.__init__, vllm_config=whole, kv_cache_config=kv, block_size=BLOCK,
                         structured_output_manager=StructuredOutputManager(whole)))


def _hasher():
    try:
        from vllm.utils.hashing import sha256
    except ImportError:
        from vllm.utils import sha256
    kv_cache_utils.init_none_hash(sha256)
    return kv_cache_utils.get_request_block_hasher(BLOCK, sha256)


def _request(i, tokens, r, at, hasher):
    sampling = SamplingParams(ignore_eos=True, max_tokens=r.output)
    return VllmRequest(**_known(
        VllmRequest.__init__, request_id=str(i), prompt_token_ids=tokens, sampling_params=sampling,
        pooling_params=None, eos_token_id=2, arrival_time=at, priority=r.priority, block_hasher=hasher))


def _output(ids, tokens):
    return ModelRunnerOutput(**_known(
        ModelRunnerOutput, req_ids=ids, req_id_to_index={q: j for j, q in enumerate(ids)},
        sampled_token_ids=tokens, logprobs=None, prompt_logprobs_dict={}, pooler_output=[]))


def steps(w, folder):
    """Returns for each step the tokens of each request and the KV blocks in use. With asynchronous scheduling a step is
    decided when the one before it starts. Blocks are not compared then, since a request that ends there holds its own
    for a step more."""
    s = _scheduler(w, folder)
    hasher = _hasher() if w.rule("caching") else None
    draw_tokens = random.Random(0)
    todo = {i: (before, prompt) for i, before, prompt, _ in turns(w)}
    text, requests, ended, out = {}, {}, {}, []
    decided = []  # steps that have not ended, oldest first
    now = 0

    def arrive():
        for i, (before, prompt) in first_turns_first(todo):
            start = w.requests[i].step if before is None else ended.get(before, 10**9) + w.requests[i].step
            if start <= now:
                old = [] if before is None else text[before]
                text[i] = old + [5 + i if not old else 50] * bool(prompt - len(old)) + [
                    draw_tokens.randint(50, 290) for _ in range(prompt - len(old) - 1)]
                requests[i] = _request(i, list(text[i]), w.requests[i], float(len(requests)), hasher)
                s.add_request(requests[i])
                del todo[i]

    def decide():
        expected = {i: r.num_tokens + r.num_output_placeholders for i, r in requests.items()}
        for _ in range(len(requests)):  # one that only preempts takes no time
            o = s.schedule()
            n = {int(q): v for q, v in o.num_scheduled_tokens.items()}
            if n:
                break
        if requests and n:
            used = 0 if w.rule("async") else w.blocks - s.kv_cache_manager.block_pool.get_num_free_blocks()
            yields = {i for i in n if requests[i].num_computed_tokens >= expected[i]}
            decided.append((o, n, used, yields))

    def end():
        o, n, used, yields = decided.pop(0)
        ids, tokens, real = list(map(str, n)), [], {}
        for i, v in n.items():
            tokens.append([draw_tokens.randint(50, 290)] if i in yields else [])
            if i not in ended:
                real[i] = v
                text[i] += tokens[-1]
        s.update_from_output(o, _output(ids, tokens))
        for i in n:
            if i not in ended and requests[i].is_finished():
                ended[i] = now + 1
        if real:
            out.append((tuple(sorted(real.items())), used))

    while todo or decided or s.has_unfinished_requests():
        arrive()
        if not decided:
            decide()
        if w.rule("async") and decided:
            decide()
        if decided:
            end()
        now += 1
        if now > 20000:
            return out, "endless"
    return out, None


def observe(w, formed, records):
    """Returns this for xpusim's decisions."""
    return ours.computed(w, formed, records, 0 if w.rule("async") else BLOCK)

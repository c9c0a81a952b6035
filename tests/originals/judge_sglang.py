"""This judge is SGLang's own scheduler alone, without GPU and model. It runs its order of the queue, its admissions
(PrefillAdder), its radix tree and its retraction, in its own loop. Memory is counted, and tensors are lengths."""

import dataclasses
import importlib.metadata
import random
from types import SimpleNamespace

import ours
import stubs
from workload import Workload, draw_requests, first_turns_first, longest, turns, with_turns

PACKAGE = importlib.metadata.distribution("sglang")
REAL = {"sglang.srt." + m for m in (
    "environ", "managers.schedule_policy", "managers.schedule_batch", "managers.scheduler", "mem_cache.radix_cache",
    "mem_cache.base_prefix_cache", "mem_cache.chunk_cache", "mem_cache.evict_policy", "mem_cache.cache_init_params",
    "mem_cache.common", "mem_cache.utils")}
with stubs.invented(PACKAGE.locate_file(""), "sglang", REAL):
    import torch  # invented
    import sglang.srt.managers.schedule_batch as schedule_batch
    import sglang.srt.managers.scheduler as scheduler
    import sglang.srt.mem_cache.common as common
    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.chunk_cache import ChunkCache
    from sglang.srt.mem_cache.radix_cache import RadixCache

NAME = "sglang-lpm"
BLOCK = 1  # tokens of a page, by default
VERSION = PACKAGE.version
common.get_global_server_args = lambda: SimpleNamespace(page_size=1, speculative_algorithm=None)


class Tokens:
    """This is a tensor of so many indices."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, s):
        return Tokens(len(range(*s.indices(self.n))))

    def to(self, **_):
        return self

    clone = to


torch.cat = lambda parts: Tokens(sum(map(len, parts)))
torch.empty = lambda n, **_: Tokens(n[0] if isinstance(n, tuple) else n)


def draws(rng):
    """Yields workloads without end. They run by longest prefix or first come, with mixed steps or not. Outputs end long
    before their limit or at it, and memory is little or much."""
    while True:
        requests = draw_requests(rng, most=rng.choice([4, 8, 20]))
        if rng.random() < 0.3:  # long answers, so that memory runs out while they are produced
            requests = [dataclasses.replace(r, output=10 * r.output) for r in requests]
        caching = rng.random() < 0.3
        if caching:
            requests = with_turns(rng, requests)
        w = Workload(tuple(requests), 0, rng.choice([16, 64, 256, 2048]), rng.choice([1, 2, 4, 256]),
                     (("caching", caching), ("mixed", rng.random() < 0.3), ("spare", rng.choice([0, 0, 10, 100, 1000])),
                      ("conservative", rng.choice([1, 1, 0.5, 0.1, 0]))))
        yield dataclasses.replace(w, blocks=longest(w) + rng.choice([3, 20, 100, 300, 100000]))


def _little(w):
    return sum(p + w.requests[i].output + w.rule("spare") for i, _, p, _ in turns(w)) >= w.blocks


def kind(w):
    return ("mixed steps" if w.rule("mixed") else "prompts first") + (
        ", little memory" if _little(w) else ", enough memory") + (", prefix caching" if w.rule("caching") else "")


def documented(w, records, equal):
    """Returns why a difference is to be expected, or None. The reasons are in policies/README.md."""
    if w.rule("caching") and _little(w) and equal(dataclasses.replace(w, blocks=10**6)):
        return "prefix caching in little memory: caches give way in part, and who is retracted finds its prompt"
    return None


def policy(w):
    ratio = 0.7 * w.rule("conservative")
    return ("sglang-lpm:device=cpu,max_num_batched_tokens=%d,max_num_seqs=%d,mixed_chunk=%d,new_token_ratio=%r,"
            "min_new_token_ratio=%r" % (w.budget, w.seqs, w.rule("mixed"), ratio, 0.14 * ratio))


class Pool:
    """This is all memory: the allocator of KV, and the table of each request's KV."""
    device, page_size = "cpu", 1
    req_to_token = property(lambda self: self)

    def __init__(self, size):
        self.size = self.left = size

    def __getitem__(self, where):
        return Tokens(where[1].stop)

    def available_size(self):
        return self.left

    def take(self, tree, n):
        common.evict_from_tree_cache(tree, n)
        self.left -= n
        if self.left < 0:
            raise MemoryError("no KV")

    def free(self, what):
        self.left += len(what) if isinstance(what, Tokens) else 0

    def write(self, *_):
        pass


class Req:
    extra_key = last_node = priority = multimodal_inputs = None
    is_chunked = host_hit_length = retraction_count = kv_committed_len = 0
    return_logprob = is_retracted = False
    init_next_round_input = schedule_batch.Req.init_next_round_input
    reset_for_retract = schedule_batch.Req.reset_for_retract

    def __init__(self, i, tokens, limit, output):
        self.rid, self.req_pool_idx, self.output = i, i, output
        self.origin_input_ids, self.output_ids, self.prefix_indices = tokens, [], Tokens(0)
        self.sampling_params = SimpleNamespace(max_new_tokens=limit, ignore_eos=False)
        self.time_stats = SimpleNamespace(forward_entry_time=0, wait_queue_entry_time=0)

    def is_dllm(self):
        return False

    def set_extend_input_len(self, n):
        self.extend_input_len = n

    def finished(self):
        return len(self.output_ids) >= self.output

    def pop_committed_kv_cache(self):
        return self.kv_committed_len

    def pop_overallocated_kv_cache(self):
        return 0, 0


class Batch:
    """Takes the decisions of ScheduleBatch, without its tensors."""
    batch_is_full = return_logprob = is_prefill_only = False
    decoding_reqs = None
    spec_algorithm = SimpleNamespace(is_none=lambda: True)
    new_tokens_required_next_decode = schedule_batch.ScheduleBatch.new_tokens_required_next_decode
    check_decode_mem = schedule_batch.ScheduleBatch.check_decode_mem
    retract_decode = schedule_batch.ScheduleBatch.retract_decode
    release_req = schedule_batch.ScheduleBatch.release_req

    def __init__(self, reqs, pool=None, allocator=None, tree=None, batch_is_full=False, chunked_req=None):
        self.reqs, self.tree_cache, self.token_to_kv_pool_allocator = list(reqs), tree, allocator
        self.batch_is_full, self.chunked_req, self.extends = batch_is_full, chunked_req, False
        self.forward_mode = SimpleNamespace(is_extend=lambda: self.extends)

    @classmethod
    def init_new(cls, reqs, pool, allocator, tree, *_, chunked_req):
        return cls(reqs, pool, allocator, tree, chunked_req=chunked_req)

    def is_empty(self):
        return not self.reqs

    def batch_size(self):
        return len(self.reqs)

    def filter_batch(self, chunked_req_to_exclude=(), keep_indices=None, **_):
        if keep_indices is None:
            self.reqs = [r for r in self.reqs if not r.finished() and r not in chunked_req_to_exclude]
        else:
            self.reqs = [self.reqs[i] for i in keep_indices]

    def merge_batch(self, other):
        self.reqs = self.reqs + other.reqs

    def prepare_for_extend(self):
        self.extends, self.n = True, {r.rid: r.extend_input_len for r in self.reqs}
        self.token_to_kv_pool_allocator.take(self.tree_cache, sum(self.n.values()))
        for r in self.reqs:
            r.kv_committed_len, r.is_retracted = len(r.fill_ids), False

    def prepare_for_decode(self):
        self.extends, self.n, self.decoding_reqs = False, {r.rid: 1 for r in self.reqs}, None
        self.token_to_kv_pool_allocator.take(self.tree_cache, len(self.reqs))
        for r in self.reqs:
            r.kv_committed_len += 1

    def mix_with_running(self, running):
        self.reqs, self.n = self.reqs + running.reqs, self.n | running.n


scheduler.ScheduleBatch = Batch


class Sched(stubs.Stub):
    """Runs the scheduler's loop without overlap."""
    dllm_config = chunked_req = last_batch = prefill_delayer = truncation_align_size = None
    require_mlp_sync = try_preemption = enable_hierarchical_cache = enable_dynamic_chunking = enable_lora = False
    enable_hicache_storage = enable_metrics = enable_priority_scheduling = False
    page_size, pp_size, max_prefill_tokens, num_retracted_reqs, forward_ct = 1, 1, 16384, 0, 0
    spec_algorithm = Batch.spec_algorithm
    for name in ("get_next_batch_to_run", "get_new_batch_prefill", "_get_new_batch_prefill_raw", "update_running_batch",
                 "get_num_allocatable_reqs", "stash_chunked_request", "init_schedule_policy"):
        locals()[name] = getattr(scheduler.Scheduler, name)

    def __init__(self, w):
        pool = self.req_to_token_pool = self.token_to_kv_pool_allocator = Pool(w.blocks)
        make = RadixCache if w.rule("caching") else ChunkCache
        self.tree_cache = make(CacheInitParams(not w.rule("caching"), pool, pool, 1))
        self.running_batch, self.waiting_queue, self.is_mixed_chunk = Batch([], pool, pool, self.tree_cache), [], w.rule("mixed")
        self.chunked_prefill_size = w.budget
        self.server_args = SimpleNamespace(
            enable_prefill_delayer=False, schedule_conservativeness=w.rule("conservative"), speculative_algorithm=None,
            disaggregation_mode="null", prefill_max_requests=None)
        self.schedule_policy, self.schedule_low_priority_values_first = "lpm", False
        scheduler.get_global_server_args = lambda: SimpleNamespace(pp_max_micro_batch_size=w.seqs)
        self.init_schedule_policy()

    def maybe_prepare_mlp_sync_batch(self, batch, **_):
        return batch

    def _add_request_to_queue(self, req, **_):
        self.waiting_queue.append(req)

    def ends(self, batch, draw):
        """Gives a token to each request, as process_batch_result does."""
        for r in batch.reqs:
            if r.is_chunked > 0:
                r.is_chunked -= 1
                continue
            r.output_ids.append(draw())
            if r.finished():
                common.release_kv_cache(r, self.tree_cache)
            elif batch.extends and r not in (batch.decoding_reqs or []):
                self.tree_cache.cache_unfinished_req(r)


def steps(w, folder):
    """Returns for each step the tokens of each request and the KV in use."""
    s, draw = Sched(w), random.Random(0)
    todo = {i: (before, prompt) for i, before, prompt, _ in turns(w)}
    text, requests, ended, out = {}, {}, {}, []
    now = 0
    while todo or s.waiting_queue or s.chunked_req or s.last_batch:
        idle, came = not requests.keys() - ended.keys(), set()
        for i, (before, prompt) in sorted(first_turns_first(todo), key=lambda t: ended.get(t[1][0], -1)):
            start = w.requests[i].step if before is None else ended.get(before, 10**9) + w.requests[i].step
            if start > now:
                continue
            old = [] if before is None else text[before] + requests[before].output_ids
            text[i] = old + [5 + i if not old else 50] * bool(prompt - len(old)) + [
                draw.randint(50, 290) for _ in range(prompt - len(old) - 1)]
            limit = min(w.requests[i].output + w.rule("spare"), w.blocks - prompt - 2)
            requests[i] = Req(i, list(text[i]), limit, w.requests[i].output)
            s.waiting_queue.append(requests[i])
            del todo[i]
            came.add(before is None)
        if idle and len(came) > 1:
            return out, "a turn and another request wake the machine: which is first, steps do not say"
        try:
            batch = s.last_batch = s.get_next_batch_to_run()
        except (MemoryError, ValueError) as e:
            return out, "SGLang would crash: %s" % e
        if batch is None:  # idle, or the last has left: that takes no time
            s.new_token_ratio = s.init_new_token_ratio
            now += not s.waiting_queue
            continue
        now += 1
        pool = s.token_to_kv_pool_allocator
        used = 0 if w.rule("caching") else pool.size - pool.available_size()
        out.append((tuple(sorted(batch.n.items())), used))
        s.ends(batch, lambda: draw.randint(50, 290))
        for r in batch.reqs:
            if r.finished():
                ended.setdefault(r.rid, now)
    return out, None


def observe(w, formed, records):
    """Returns this for xpusim's decisions."""
    return ours.computed(w, formed, records, 0 if w.rule("caching") else BLOCK)

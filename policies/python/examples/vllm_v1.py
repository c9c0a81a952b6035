"""vLLM's own V1 scheduler as a policy: its Scheduler class, without GPU and model, decides who computes how many tokens in
every iteration of the simulated machine. Tried with vllm 0.32.0 and 0.11.0:

    XPUSIM_PYTHON=VENV/bin/python xpusim run --policy python:vllm_v1.py:VllmV1

`XPUSIM_PYTHON` names the interpreter that has the package vllm. Prefixes of earlier turns are dropped: what vLLM would
find of them depends on the tokens themselves, which xpusim does not have. policies/vllm-v1.c is the same in C."""

import inspect
import json
import os
import tempfile

from xpusim import Param, Policy, Segment
from xpusim.helpers import device_param, place

os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
os.environ["VLLM_CONFIGURE_LOGGING"] = "0"  # its handler would write to standard output
os.environ["HF_HUB_OFFLINE"] = "1"

TOKEN = 7  # any: nobody reads what is said


def known(f, **wanted):
    """Those of the arguments that this version's function takes."""
    return {k: v for k, v in wanted.items() if k in inspect.signature(f).parameters}


class VllmV1(Policy):
    """vLLM's V1 scheduler itself, iteration by iteration on one device."""

    name = "vllm-original"
    needs = ("spans", "kv_move")
    once = sleeps = True
    limit_s = 300  # the package takes its time to load
    params = (device_param(),
              Param("max_num_batched_tokens", 512, "tokens per iteration", 1, 1000000),
              Param("max_num_seqs", 16, "sequences per iteration", 1, 100000),
              Param("long_prefill_token_threshold", 0, "longer prompts are held back to this; 0: none", 0, 1000000),
              Param("policy", "fcfs", "order of admission", choices=("fcfs", "priority")))

    def init(self):
        if any(m.kv_state_bytes > 0 for m in self.models):
            raise ValueError("the cache that is made here for vLLM's scheduler has no room for states of layers")
        self.device = place(self.machine, self.param["device"])
        self.running = None
        self.prefixes = []
        self.theirs = {}
        self.scheduler = self._scheduler()

    def _scheduler(self):
        import torch
        from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
        from vllm.v1.structured_output import StructuredOutputManager

        longest = 131072
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "vocab_size": 300,
                  "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2,
                  "max_position_embeddings": longest, "rms_norm_eps": 1e-5, "dtype": "float16", "bos_token_id": 1,
                  "eos_token_id": 2}
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            model = ModelConfig(**known(ModelConfig, model=folder, skip_tokenizer_init=True, dtype="float16", seed=0,
                                        max_model_len=longest))
            p, block = self.param, self.kv_block_tokens
            sched = SchedulerConfig(**known(
                SchedulerConfig, max_num_seqs=p["max_num_seqs"], max_num_batched_tokens=p["max_num_batched_tokens"],
                max_model_len=longest, policy=p["policy"], is_encoder_decoder=False, enable_chunked_prefill=True,
                long_prefill_token_threshold=p["long_prefill_token_threshold"], async_scheduling=False))
            cache = CacheConfig(**known(CacheConfig, block_size=block, gpu_memory_utilization=0.9, swap_space=0,
                                        cache_dtype="auto", enable_prefix_caching=False))
            whole = VllmConfig(scheduler_config=sched, model_config=model, cache_config=cache,
                               device_config=DeviceConfig("cpu"))
        spec = FullAttentionSpec(**known(FullAttentionSpec, block_size=block, num_kv_heads=1, head_size=1,
                                         dtype=torch.float32, use_mla=False))
        n = self.kv_capacity_tokens // block + 1  # block 0 is never given out
        cache.num_gpu_blocks = n
        kv = KVCacheConfig(num_blocks=n, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["l"], spec)])
        return Scheduler(**known(Scheduler.__init__, vllm_config=whole, kv_cache_config=kv, block_size=block,
                                 structured_output_manager=StructuredOutputManager(whole)))

    def request_arrived(self, r):
        from vllm import SamplingParams
        from vllm.v1.request import Request
        sampling = SamplingParams(ignore_eos=True, max_tokens=r.max_output_tokens)
        theirs = Request(**known(
            Request.__init__, request_id=str(r.id), prompt_token_ids=[TOKEN] * r.input_tokens, sampling_params=sampling,
            pooling_params=None, eos_token_id=2, arrival_time=float(r.arrival_ns), priority=r.priority,
            block_hasher=None))
        self.theirs[r.id] = theirs
        self.scheduler.add_request(theirs)
        if r.kv_tokens > 0:
            self.prefixes.append(r)

    def _leaves(self, r):
        from vllm.v1.request import RequestStatus
        theirs = self.theirs.pop(r.id)
        if not theirs.is_finished():  # it said less than it might have
            self.scheduler.finish_requests(theirs.request_id, RequestStatus.FINISHED_STOPPED)

    def request_cancelled(self, r):
        self._leaves(r)

    def pass_done(self, p):
        from vllm.v1.outputs import ModelRunnerOutput
        ids = [str(s.request.id) for s in p.segments]
        said = [[TOKEN] if emitted else [] for emitted in p.emitted]
        self.scheduler.update_from_output(self.decided, ModelRunnerOutput(**known(
            ModelRunnerOutput, req_ids=ids, req_id_to_index={q: i for i, q in enumerate(ids)}, sampled_token_ids=said,
            logprobs=None, prompt_logprobs_dict={}, pooler_output=[])))
        for s in p.segments:
            if s.request.left:
                self._leaves(s.request)
        self.running = None

    def schedule(self):
        for r in self.prefixes:
            self.kv(r, "nowhere")
        if self.prefixes and not self.sync():
            raise RuntimeError("a prefix could not be dropped")
        self.prefixes = []
        if self.running is not None or not self.theirs:
            return
        for _ in range(len(self.theirs)):  # an iteration that only takes KV away has no work
            self.decided = self.scheduler.schedule()
            for i, theirs in reversed(self.theirs.items()):  # it takes from the last first
                r = self.requests[i]
                if theirs.num_computed_tokens < r.kv_tokens:  # it was preempted: computed anew from the start
                    self.kv(r, "nowhere")
                    r.kv_tokens, r.state = 0, "queued"
            tokens = {int(q): n for q, n in self.decided.num_scheduled_tokens.items()}
            if tokens:
                break
        else:
            return
        segments = [Segment(self.requests[i], self.requests[i].state.replace("queued", "prefill"), n)
                    for i, n in tokens.items()]
        self.running = self.form(segments, len(segments) == 1 and segments[0].role == "decode")
        self.launch(self.running, self.device)

    def refused(self, what):
        raise RuntimeError("vLLM decides what xpusim refuses: %s is %s" % (what.action[0], what.error))

"""Members of the structs of sim/api. Written by `make generate`; do not edit."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Tuple


class Device(NamedTuple):
    name: str  # unique; that of its kind where it has one of it
    kind: str  # "npu", "igpu", "cpu", "gpu"
    sharing: str  # "serial", "time_shared"
    inflight_depth: int  # serial: launches it takes at once, running one included; >= 1
    max_shared: int  # time-shared: launches at once
    shared_efficiency_frac: float  # time-shared with n > 1: total rate, (0,1]
    chunk_rows: int  # static kernel rows of token-level ops; 0 = dynamic shapes
    static_attention: bool  # MHA needs a compiled kernel of the prompt length
    can_withdraw: bool  # queued launches can be taken back (XSched level 2)
    can_reset: bool  # running kernels can be killed (REEF)
    can_suspend: bool  # running kernels can be stopped and continued (XSched level 3)
    idle_watts: float
    decode_watts: float
    prefill_watts: float
    submit_ns: int  # host cost of one launch
    completion_ns: int  # host cost of noticing its end
    reset_ns: int  # of a kill or a suspension: until the device is free
    ddr_weight: float  # > 0: of its traffic where the DDR is shared by weight (`weighted`)
    index: int


class MachineFields(NamedTuple):
    name: str
    ddr_peak_bytes_per_s: float
    ddr_cap_frac: float  # the cap: share of the peak that several devices reach together
    sync_ns: int  # barrier when an op follows one that ran on another device
    schedule_ns: int  # the decision behind one launch; every launch pays it
    sample_ns_per_token: int
    compile_fixed_ns: int
    compile_ns_per_token: float
    compile_watts: float
    loader_bytes_per_s: float
    loader_fixed_ns: int
    swap_bytes_per_s: float
    memory_bytes: float
    memory_usable_frac: float
    idle_watts: float  # platform, always drawn
    poll_watts: float  # a busy-polling coordinator, while work is on a device
    swap_fixed_ns: int  # of one move of KV of any size
    loader_evict_ns: int  # of a graph block, on the loader
    compile_evict_ns: int  # of compiled attention, on the compiler's thread
    devices: Tuple[Device, ...]


class Llm(NamedTuple):
    name: str
    n_layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden: int
    vocab: int
    gated_ffn: bool
    tied_head: bool
    weight_bits: int
    act_bits: int
    body_weights: float  # weights in the layers that one token crosses
    head_weights: float  # LM head (also the embedding when tied)
    body_bytes_per_weight: float  # quantisation scales included
    head_bytes_per_weight: float
    kv_bytes_per_element: float  # a property of the runtime
    weight_bytes: float  # resident bytes of one copy, embedding included
    kv_bytes_per_token: float  # all layers, K and V
    n_experts: int  # 0, 0: dense
    experts_per_token: int  # 0, 0: dense
    sliding_window: int  # tokens that a row sees in a layer with a window; 0: none has one
    sliding_layers: int  # how many have it; a runtime may not use it (SoC file)
    max_context: int  # prompt and answer that it was made for, tokens; 0: not stated
    shared_ffn: int  # inner width of experts that every token uses; 0: none
    dense_layers: int  # layers with an FFN of dense_ffn instead of experts, or another
    dense_ffn: int
    kv_state_bytes: float  # states of recurrent layers, for each sequence
    layer: Tuple[str, ...]  # qkv, mha, ffn, head, layer


class Shape(NamedTuple):
    rows: int  # token rows in all segments
    logit_rows: int  # rows that need the LM head
    sequences: int  # segments
    prefill_rows: int  # rows of prefill segments; 0 in a pure decode pass
    attn_pairs: int  # (query, key) pairs, causal: sum over rows of position + 1
    kv_read_tokens: int  # keys read: sum over segments of last position + 1
    max_context_tokens: int  # longest last position + 1
    model: int  # that all its requests ask for
    far_pairs: int = 0  # of attn_pairs: farther apart than the model's sliding window
    far_keys: int = 0  # of kv_read_tokens: behind the window of every row of a segment


class Estimate(NamedTuple):
    t_ns: int  # isolated duration
    bytes_per_s: float  # DDR demand
    flop_per_byte: float  # arithmetic intensity
    watts: float
    memory_bound: bool  # intensity below the device's ridge I* (clauses.md B.9)


class MachineState(NamedTuple):
    memory_taken_bytes: float  # by other programs, of what would be usable; begins at 0
    memory_free_bytes: float  # usable, and held by nobody
    power_limit_watts: float  # of the package; 0: none
    battery_frac: float  # state of charge; 1 where no battery is known
    on_battery: bool  # else on mains; begins so
    background_window: bool  # background work is welcome; begins true


class RequestFields:
    __slots__ = ("id", "session_id", "turn", "client_id", "cls", "priority", "arrival_ns", "input_tokens",
                 "max_output_tokens", "ttft_slo_ns", "tbt_slo_ns", "deadline_ns", "reused_tokens", "kv_tokens",
                 "kv_swapped", "job_id", "depth", "waiters", "background", "model", "kv_state_tokens", "state",
                 "generated_tokens", "pass_", "first_service_ns", "first_token_ns", "last_token_ns",
                 "preemptions", "calls_tool")

    id: int  # unique, dense, in trace order
    session_id: int  # turns of one agent flow share it
    turn: int  # from 0
    client_id: int
    cls: str  # "reactive", "proactive"
    priority: int  # from the trace; lower is more urgent; 0 where the trace has none
    arrival_ns: int
    input_tokens: int
    max_output_tokens: int  # the user's limit, known; at least the hidden length
    ttft_slo_ns: Optional[int]  # None: none
    tbt_slo_ns: Optional[int]  # None: none
    deadline_ns: Optional[int]  # instant, None: none
    # prompt tokens found in the KV cache before its first service; until then what a look-up finds now (prompts
    # may share prefixes)
    reused_tokens: int
    kv_tokens: int  # tokens whose KV is resident (reserved ones of a pass excluded)
    kv_swapped: bool  # KV is on flash: resume before forming a pass
    job_id: int  # requests of one graph share it; without a graph those of a session
    depth: int  # requests before it on the longest path of its job; without a graph: turn
    # agents that have stopped until its session answers: 0 none; 1 the agent that sent a subagent out; 2 also
    # the one that waits for that agent
    waiters: int
    background: bool  # no part of its job's completion: nobody waits for it
    model: int  # that it asks for, of sched.models; a pass has requests of one model
    # KV that its states will take with its next rows: so many tokens, in whole blocks. 0: they have it, or its
    # model has none
    kv_state_tokens: int
    state: str  # "queued", "decode", "finished", "shed"
    generated_tokens: int  # output tokens produced
    pass_: Any  # the live pass it is in, of several (SEGMENT_AHEAD) that of its first tokens, or None
    first_service_ns: Optional[int]  # its first kernel starts, or None
    first_token_ns: Optional[int]  # or None
    last_token_ns: Optional[int]  # or None
    preemptions: int  # times it was stopped or evicted against its will
    calls_tool: bool  # once FINISHED: its output ends in a tool call, whose result the session's next turn will bring

    def _arrived(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.id, self.session_id, self.turn, self.client_id, self.cls, self.priority, self.arrival_ns,
         self.input_tokens, self.max_output_tokens, self.ttft_slo_ns, self.tbt_slo_ns, self.deadline_ns,
         self.reused_tokens, self.kv_tokens, self.kv_swapped, self.job_id, self.depth, self.waiters,
         self.background, self.model, self.kv_state_tokens, *rest) = row
        self.state = "queued"
        self.generated_tokens = 0
        self.pass_ = None
        self.first_service_ns = None
        self.first_token_ns = None
        self.last_token_ns = None
        self.preemptions = 0
        self.calls_tool = False
        return rest

    def _changed(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.state, self.kv_tokens, self.generated_tokens, self.pass_, self.first_service_ns,
         self.first_token_ns, self.last_token_ns, self.preemptions, self.kv_swapped, self.calls_tool,
         self.kv_state_tokens, *rest) = row
        return rest


class PassFields:
    __slots__ = ("state", "op", "rows_todo", "rows_active", "last_op_devices", "n_launches", "n_ops")

    state: str  # "ready", "running", "done", "cancelled"
    op: int  # cursor: ops before it are complete; n_ops when all are
    rows_todo: int  # rows of op `op` that no launch holds and that are not done
    rows_active: int  # rows of op `op` held by launches
    last_op_devices: int  # bit set of the devices that ran the previous op
    n_launches: int  # live launches
    n_ops: int  # ops in all, HEAD included where logit_rows > 0

    def _changed(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.state, self.op, self.rows_todo, self.rows_active, self.last_op_devices, self.n_launches,
         *rest) = row
        return rest

    def _formed(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.n_ops, *rest) = row
        return rest


class LaunchFields:
    __slots__ = ("state", "stop_requested", "start_ns", "op_begin", "op_end", "rows")

    state: str  # "queued", "running", "ended"
    stop_requested: bool
    start_ns: Optional[int]  # when the device began it
    op_begin: int  # first op
    op_end: int  # one past the last op
    rows: int  # rows of the first op it holds; later ops always run whole

    def _changed(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.state, self.stop_requested, self.start_ns, *rest) = row
        return rest

    def _made(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.op_begin, self.op_end, self.rows, *rest) = row
        return rest


LAUNCH_OPTIONS = ("n_ops", "rows", "yield", "chunk_rows", "graph", "graph_block", "inflight", "columns")
PREEMPT_OPTIONS = ("now", "discard", "drain")

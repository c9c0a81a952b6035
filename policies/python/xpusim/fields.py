"""Members of the structs of sim/api. Written by `make generate`; do not edit."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Tuple


class Device(NamedTuple):
    name: str  # unique; the kind's name if it is the only one of its kind
    kind: str  # "npu", "igpu", "cpu", "gpu"
    sharing: str  # "serial", "time_shared"
    inflight_depth: int  # serial: queue depth, the running launch included; >= 1
    max_shared: int  # time-shared: launches that run at once
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
    completion_ns: int  # host cost of noticing the end of a launch
    reset_ns: int  # from a kill or a suspension until the device is free
    ddr_weight: float  # > 0; share of its traffic in the `weighted` contention model
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
    swap_fixed_ns: int  # fixed cost of one move of KV
    loader_evict_ns: int  # a graph block, on the loader
    compile_evict_ns: int  # compiled attention, on the compiler's thread
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
    sliding_layers: int  # layers with a window; a runtime may ignore it (SoC file)
    max_context: int  # tokens of prompt and answer that it was trained for; 0: not stated
    shared_ffn: int  # inner width of experts that every token uses; 0: none
    dense_layers: int  # layers whose FFN is dense, with inner width dense_ffn
    dense_ffn: int
    kv_state_bytes: float  # recurrent states of one sequence
    layer: Tuple[str, ...]  # qkv, mha, ffn, head, layer


class Shape(NamedTuple):
    rows: int  # token rows in all segments
    logit_rows: int  # rows that need the LM head
    sequences: int  # segments
    prefill_rows: int  # rows of prefill segments; 0 in a pure decode pass
    attn_pairs: int  # (query, key) pairs, causal: sum over rows of position + 1
    kv_read_tokens: int  # keys read: sum over segments of last position + 1
    max_context_tokens: int  # longest last position + 1
    model: int  # index of the model that its requests use
    far_pairs: int = 0  # attn_pairs that are farther apart than the model's sliding window
    far_keys: int = 0  # kv_read_tokens outside the window of every row of their segment


class Estimate(NamedTuple):
    t_ns: int  # isolated duration
    bytes_per_s: float  # DDR demand
    flop_per_byte: float  # arithmetic intensity
    watts: float
    memory_bound: bool  # intensity below the device's ridge I* (clauses.md B.9)


class MachineState(NamedTuple):
    memory_taken_bytes: float  # usable memory that other programs hold; 0 at first
    memory_free_bytes: float  # usable and free
    power_limit_watts: float  # of the package; 0: none
    battery_frac: float  # state of charge; 1 where no battery is known
    on_battery: bool  # false: on mains, as at first
    background_window: bool  # background work is welcome; true at first


class RequestFields:
    __slots__ = ("id", "session_id", "turn", "client_id", "cls", "priority", "arrival_ns", "input_tokens",
                 "max_output_tokens", "ttft_slo_ns", "tbt_slo_ns", "deadline_ns", "reused_tokens", "kv_tokens",
                 "kv_swapped", "job_id", "depth", "waiters", "background", "model", "kv_state_tokens", "state",
                 "generated_tokens", "pass_", "first_service_ns", "first_token_ns", "last_token_ns",
                 "preemptions", "calls_tool")

    id: int  # unique, dense, in trace order
    session_id: int  # shared by all turns of one conversation
    turn: int  # from 0
    client_id: int
    cls: str  # "reactive", "proactive"
    priority: int  # from the trace; lower is more urgent; 0 where the trace has none
    arrival_ns: int
    input_tokens: int
    max_output_tokens: int  # the user's limit; >= the hidden output length
    ttft_slo_ns: Optional[int]  # None: none
    tbt_slo_ns: Optional[int]  # None: none
    deadline_ns: Optional[int]  # instant, None: none
    # prompt tokens found in the KV cache at first service; until then what a lookup would find now (prompts may
    # share prefixes)
    reused_tokens: int
    kv_tokens: int  # tokens whose KV is resident (reserved ones of a pass excluded)
    kv_swapped: bool  # KV is on flash: move it back before forming a pass
    job_id: int  # requests of one graph share it; without a graph those of a session
    depth: int  # requests before it on the longest path of its job; without a graph: turn
    # agents that wait for its session's answer: 0 none; 1 the agent that started this subagent; 2 also the
    # agent that waits for that one
    waiters: int
    background: bool  # its job may complete without it: nobody waits for it
    model: int  # index in sched.models; a pass has requests of one model
    # KV space that its recurrent states will take with its next rows, in tokens of whole blocks. 0: allocated,
    # or the model has none
    kv_state_tokens: int
    state: str  # "queued", "decode", "finished", "shed"
    generated_tokens: int  # output tokens produced
    pass_: Any  # its live pass, or None; with SEGMENT_AHEAD the first of them
    first_service_ns: Optional[int]  # start of its first kernel, or None
    first_token_ns: Optional[int]  # or None
    last_token_ns: Optional[int]  # or None
    preemptions: int  # times it was stopped or evicted
    calls_tool: bool  # once FINISHED: its output ends in a tool call, whose result is in the session's next turn

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
    op: int  # cursor: all ops before it are complete; n_ops at the end
    rows_todo: int  # rows of op `op` that are neither done nor in a launch
    rows_active: int  # rows of op `op` in launches
    last_op_devices: int  # bit set of the devices that ran the previous op
    n_launches: int  # live launches
    n_ops: int  # number of ops, including HEAD if logit_rows > 0

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
    rows: int  # rows of the first op; later ops always run whole

    def _changed(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.state, self.stop_requested, self.start_ns, *rest) = row
        return rest

    def _made(self, row: Sequence[Any]) -> Sequence[Any]:
        (self.op_begin, self.op_end, self.rows, *rest) = row
        return rest


LAUNCH_OPTIONS = ("n_ops", "rows", "yield", "chunk_rows", "graph", "graph_block", "inflight", "columns")
PREEMPT_OPTIONS = ("now", "discard", "drain")

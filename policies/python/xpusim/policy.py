"""The policy contract (sim/api/policy.h) in Python.

A policy derives from `Policy`. Notifications (`request_arrived`, `launch_done`, `pass_done`, ...)
only record; all actions (`form`, `launch`, `preempt`, ...) happen in `schedule`. What a policy is
given - requests, passes, launches, machine - is read-only.

Actions are gathered and sent when `schedule` returns, so they return at once. Until xpusim has
spoken, objects show what holds if the action is accepted. One that is refused is told to `refused`
before the next hook, by the names of the protocol ("no_memory", "busy", ...), and its effect on the
objects is taken back. A policy that must know before it goes on calls `sync`: only xpusim says
how much KV is free then, and a question is answered as of before the actions that wait."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from .fields import (PREEMPT_OPTIONS, Device, Estimate, LaunchFields, Llm, MachineFields, MachineState, PassFields,
                     RequestFields, Shape)

NEVER_NS = None  # what an instant is that does not come


class Param(NamedTuple):
    """One documented parameter; its value is `Policy.param[name]`. The type is that of the default:
    bool, int, float, or, with choices, str."""

    name: str
    default: Union[bool, int, float, str]
    help: str = ""
    min: float = 0
    max: float = 1e9
    choices: Sequence[str] = ()


class Machine(MachineFields):
    __slots__ = ()

    def find(self, kind: str) -> Optional[Device]:
        """The first device of a kind, or None."""
        return next((d for d in self.devices if d.kind == kind), None)


class Request(RequestFields):
    """sim/api/request.h; times in ns, None where there is none (yet)."""

    __slots__ = ("data",)

    pass_: Optional["Pass"]  # the live pass it is in
    data: Any  # the policy's own

    @property
    def length(self) -> int:
        """Prompt plus generated tokens."""
        return self.input_tokens + self.generated_tokens

    @property
    def prefill_left(self) -> int:
        """0 once it decodes; while queued, at least 1."""
        return self.length - self.kv_tokens if self.state == "queued" else 0

    @property
    def left(self) -> bool:
        """Finished or shed: it must leave every queue."""
        return self.state == "finished" or self.state == "shed"


class Segment(NamedTuple):
    request: Request
    role: str  # "prefill", "decode", "verify", "draft", "ahead"
    n_tokens: int


class Pass(PassFields):
    """sim/api/pass.h. A refused one is in the state "refused"."""

    __slots__ = ("id", "segments", "fused_layers", "shape", "layer", "emitted", "data")

    id: int
    segments: Sequence[Segment]
    fused_layers: bool
    shape: Shape
    layer: Tuple[str, ...]
    emitted: Sequence[int]  # tokens of each segment once it is done
    data: Any

    def op_kind(self, op: Optional[int] = None) -> str:
        """Kind of an op; of the one at the cursor where none is named."""
        op = self.op if op is None else op
        if op + 1 == self.n_ops and self.shape.logit_rows > 0:
            return "head"
        return self.layer[op % len(self.layer)]


class Launch(LaunchFields):
    """sim/api/pass.h. A refused one is in the state "refused"."""

    __slots__ = ("id", "pass_", "device", "outcome", "data")

    id: int
    pass_: Pass
    device: int
    outcome: Optional[str]  # "done", "yielded", "withdrawn", "reset"
    data: Any


class Refused(NamedTuple):
    """An action that was refused: as it was sent, and why."""

    action: Sequence[Any]
    error: str  # "busy", "invalid", "no_memory", "missing", "already", "not_permitted", "gone"


def shape_of(segments: Iterable[Segment], before: int = 0, window: int = 0) -> Shape:
    """The shape of a pass of these segments; before: tokens that others compute before one ahead; window: the model's
    sliding_window."""
    rows = logits = n = prefill = pairs = read = longest = model = far_pairs = far_keys = 0
    for r, role, tokens in segments:
        model = r.model
        first = r.kv_tokens + before
        end = first + tokens
        rows += tokens
        n += 1
        pairs += tokens * first + tokens * (tokens + 1) // 2
        read += end
        longest = max(longest, end)
        if 0 < window < end:
            far = min(tokens, end - window)  # rows that do not see all before them
            far_pairs += far * (end - window) - far * (far - 1) // 2
            far_keys += max(first + 1 - window, 0)
        if role == "prefill" or role == "ahead":
            prefill += tokens
            logits += end == r.length
        else:
            logits += tokens
    # a fifth of the time of Shape(...)
    return tuple.__new__(Shape, (rows, logits, n, prefill, pairs, read, longest, model, far_pairs, far_keys))


class Policy:
    """Derive from this; write at least `request_arrived` and `schedule`."""

    #: [a-z0-9-]+, unlike any built-in policy; empty: made of the class's name
    name: str = ""
    #: one line; empty: the first of the class's docstring
    summary: str = ""
    #: "oracle" (may ask for hidden output lengths), "busy_poll"
    flags: Sequence[str] = ()
    #: what it needs of machine and executor: "spans", "row_split", "kernel_yields", "compile",
    #: "load", "kv_move", "reset", "verify", "npu", "igpu", "cpu", "gpu"
    needs: Sequence[str] = ()
    params: Sequence[Param] = ()
    #: for each mechanism the "key=value,..." that takes it away: `xpusim ablate`
    ablations: Sequence[str] = ()
    #: wall-clock seconds for one answer
    limit_s: float = 30
    #: True: one call of `schedule` at an instant does all there is to do. Else it is called again
    #: while it acts, as the contract says; that costs another message.
    once: bool = False
    #: True: `schedule` need not be called where launches ended and nothing else happened, because
    #: it would do nothing before the pass is done
    sleeps: bool = False
    #: True: while all live requests decode in one pass, `schedule` would form and launch the same
    #: pass again, and need not be called (`sched_steady`)
    steady: bool = False

    # Facts of the run, there when `init` is called.
    machine: Machine
    llm: Llm  # the default model
    models: List[Llm]  # all of the run, by `request.model`
    draft_model: int  # the one that drafts, if the parameter `drafter` is "model"; 0: none
    param: Dict[str, Any]
    seed: int
    kv_block_tokens: int
    kv_capacity_tokens: int
    # Facts of the instant.
    now_ns: int = 0
    epoch: int = 0
    kv_free_tokens: int = 0
    free_slots: List[int]  # launches each device would accept now
    requests: Dict[int, Request]  # live ones by id

    # ---- hooks ----

    def init(self) -> None:
        """Before anything happens; `map` is the only action. An exception refuses the run."""

    def request_arrived(self, r: Request) -> None:
        raise NotImplementedError(type(self).__name__ + " lacks request_arrived")

    def request_cancelled(self, r: Request) -> None:
        """Its user gave up: it must leave every queue."""

    def launch_done(self, launch: Launch) -> None:
        """It ended or yielded (`launch.outcome`)."""

    def pass_done(self, p: Pass) -> None:
        """Tokens are out; requests may have finished. Or `p.state` is "cancelled": the users of all
        its requests gave up while it was on no device."""

    def resident_ready(self, kind: str, a: int, b: int) -> None:
        """A compile or load finished."""

    def kv_moved(self, r: Request) -> None:
        """KV went out when `r.kv_swapped`, else it is back in."""

    def refused(self, what: Refused) -> None:
        """An action was refused."""

    def schedule(self) -> None:
        raise NotImplementedError(type(self).__name__ + " lacks schedule")

    def exit(self) -> None:
        """The run is over."""

    # ---- actions ----

    def _do(self, action: Tuple[Any, ...], before: Iterable[Tuple[Any, str, Any]] = ()) -> None:
        """Gathers an action. before: (object, member, value) each, as they are again if it is refused."""
        self._out.append(action)
        self._was.append(before)

    def form(self, segments: Sequence[Segment], fused: bool = False) -> Pass:
        """Forms a pass and reserves KV for it: struct pass_spec."""
        p = Pass()
        self._n_passes += 1
        p.id = self._n_passes
        p.segments = segments
        p.fused_layers = fused
        p.state = "ready"
        p.op = p.rows_active = p.last_op_devices = p.n_launches = 0
        p.emitted = ()
        p.data = None
        ahead = segments[0][1] == "ahead"
        own = segments[0][0].model
        window = (self.models[own] if own else self.llm).sliding_window
        shape = shape_of(segments, self._in_passes(segments[0][0]) if ahead else 0, window)
        if segments[0][1] == "draft":  # xpusim says how many tokens the draft model has to read
            shape = shape._replace(model=self.draft_model)
        p.shape = shape
        p.rows_todo = shape[0]
        llm = self.models[shape[7]] if shape[7] else self.llm
        p.layer = ("layer",) if fused else llm.layer
        p.n_ops = llm.n_layers * len(p.layer) + (shape[1] > 0)
        self._passes[p.id] = p
        rows = []
        before = [(p, "state", "refused")]
        for r, role, n in segments:
            rows.append((r.id, role, n))
            if not ahead:
                before.append((r, "pass_", r.pass_))
                r.pass_ = p
        self._do(("form", p.id, rows, fused), before)
        return p

    def _in_passes(self, r: Request) -> int:
        """Tokens of a request that live passes compute."""
        return sum(s[2] for p in self._passes.values() for s in p.segments if s[0] is r)

    def cancel(self, p: Pass) -> None:
        """Gives up a ready pass."""
        of = [s.request for s in p.segments if s.request.pass_ is p]
        self._do(("cancel", p.id), [(p, "state", p.state)] + [(r, "pass_", p) for r in of])
        p.state = "cancelled"
        for r in of:
            r.pass_ = None

    def launch(self, p: Pass, device: int, n_ops: int = 0, rows: int = 0, **usual: Any) -> Launch:
        """Puts a span of a pass on a device: all that is left of it, or n_ops from the cursor on, or
        rows of the one at the cursor. `usual`: yield_ ("kernel", "op", "layer", "pass"), chunk_rows,
        graph, graph_block, inflight, columns (struct launch_spec). After a launch of columns the pass
        shows all rows as left until xpusim has spoken."""
        x = Launch()
        self._n_launches += 1
        x.id = self._n_launches
        x.pass_ = p
        x.device = device
        x.state = "queued"
        x.outcome = x.start_ns = x.data = None
        x.stop_requested = False
        x.op_begin = p.op
        x.op_end = p.op + n_ops if n_ops else p.n_ops
        x.rows = rows or p.rows_todo
        before = [(x, "state", "refused"), (p, "state", p.state), (p, "n_launches", p.n_launches),
                  (p, "rows_todo", p.rows_todo), (p, "rows_active", p.rows_active)]
        p.state = "running"
        p.n_launches += 1
        if "columns" in usual:
            p.rows_active = x.rows
        else:
            p.rows_todo -= x.rows
            p.rows_active += x.rows
        self._launches[x.id] = x
        self.free_slots[device] -= 1
        if n_ops:
            usual["n_ops"] = n_ops
        if rows:
            usual["rows"] = rows
        if "yield_" in usual:
            usual["yield"] = usual.pop("yield_")
        self._do(("launch", x.id, p.id, device, usual) if usual else ("launch", x.id, p.id, device), before)
        return x

    def preempt(self, launch: Launch, **how: bool) -> None:
        """Asks a launch to stop: at its next yield point, or as struct preempt_spec says: now, discard,
        drain."""
        options = {name: how.pop(name, False) for name in PREEMPT_OPTIONS}
        if how:
            raise TypeError("preempt has no " + ", ".join(how))
        self._do(("preempt", launch.id, options), [(launch, "stop_requested", launch.stop_requested)])
        launch.stop_requested = True

    def compile(self, kind: str, a: int, b: int = 0) -> None:
        self._do(("compile", kind, a, b))

    def load(self, kind: str, a: int, b: int, bytes_: float) -> None:
        self._do(("load", kind, a, b, bytes_))

    def map(self, kind: str, a: int, b: int, bytes_: float) -> None:
        self._do(("map", kind, a, b, bytes_))

    def graph(self, version: int, rows: int, n_blocks: int) -> None:
        """Says what a version of graphs is; answering init only."""
        self._do(("graph", version, rows, n_blocks))

    def drop(self, kind: str, a: int, b: int = 0) -> None:
        """Evicts a resident."""
        self._do(("drop", kind, a, b))

    def kv(self, r: Request, to: str, from_token: int = 0) -> None:
        """Brings a request's KV to "memory", "flash" or "nowhere" (from a token on)."""
        self._do(("kv", r.id, to, from_token), [(r, m, getattr(r, m)) for m in ("state", "kv_tokens", "preemptions")])
        if to != "memory":
            r.preemptions += 1
        if to == "nowhere":
            r.state, r.kv_tokens = "queued", from_token

    def kv_session(self, session_id: int, to: str) -> None:
        """Says where a session's KV is between two turns: "memory", "cache", "flash", "nowhere"."""
        self._do(("kv_session", session_id, to))

    def kv_rank(self, r: Request, rank: int) -> None:
        """Cached KV of the lowest rank gives way first (`sched_kv_rank`)."""
        self._do(("kv_rank", r.id, rank))

    def set_timer(self, at_ns: int) -> None:
        self._do(("timer", at_ns))

    def occupy(self, device: int, until_ns: int) -> None:
        """An idle device works apart from passes until then, or longer where limits slow it (`sched_occupy`)."""
        self._do(("occupy", device, until_ns))
        self.free_slots[device] = 0

    def shed(self, r: Request) -> None:
        self._do(("shed", r.id), [(r, "state", r.state)])
        r.state = "shed"

    def note(self, counter: str, add: int = 1) -> None:
        """Adds to a counter of the policy's own, shown in results as policy.NAME."""
        self._do(("note", counter, add))

    # ---- questions; each is a message, so ask many at once ----

    def sync(self) -> bool:
        """Sends what was gathered now. True when nothing of it was refused; facts and objects are
        then those after it."""
        return self._wire.sync()

    def estimates(self, questions: Sequence[Tuple[Any, ...]]) -> List[Union[Estimate, str]]:
        """Annotated costs of many (shape, op, device, rows=0, [chunk_rows, graph=0]), in their order;
        without chunk_rows those of the device. One that the contract refuses is the error's name."""
        answers = self._wire.ask([("estimate",) + tuple(q) for q in questions])
        return [a if isinstance(a, str) else Estimate(*a) for a in answers]

    def estimate(self, shape: Shape, op: str, device: int, rows: int = 0) -> Union[Estimate, str]:
        return self.estimates([(shape, op, device, rows)])[0]

    def machine_state(self) -> MachineState:
        """The conditions now. `schedule` is called after every event of the machine."""
        return MachineState(*self._wire.ask([("machine_state",)])[0])

    def resident_state(self, kind: str, a: int, b: int = 0) -> str:
        """"absent", "pending" or "ready"."""
        return self._wire.ask([("resident", kind, a, b)])[0]

    def draft_tokens(self, requests: Sequence[Request]) -> List[int]:
        """Tokens the run's drafter offers for the next verification of each."""
        return self._wire.ask([("draft", r.id) for r in requests])

    def kv_cached_tokens(self, requests: Sequence[Request]) -> List[int]:
        """Tokens of the KV of each that count as free: of a prefix that it has found, and that nobody works with."""
        return self._wire.ask([("cached", r.id) for r in requests])

    def oracle_output_tokens(self, requests: Sequence[Request]) -> List[int]:
        """Hidden output lengths; needs the flag "oracle"."""
        return self._wire.ask([("oracle", r.id) for r in requests])

    # ---- the package's own ----

    _wire: Any
    _out: List[Tuple[Any, ...]]
    _was: List[Iterable[Tuple[Any, str, Any]]]
    _n_passes: int = 0
    _n_launches: int = 0
    _passes: Dict[int, Pass]
    _launches: Dict[int, Launch]

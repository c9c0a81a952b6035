"""What several policies share: placement, pieces of work, orders, a prefill over two devices."""

from __future__ import annotations

import heapq
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from .policy import Launch, Machine, Param, Pass, Policy, Request, Segment

PLACES = ("auto", "npu", "igpu", "cpu", "gpu")


def device_param(help_: str = "device that runs everything; auto: the iGPU") -> Param:
    return Param("device", "auto", help_, choices=PLACES)


def place(machine: Machine, choice: str) -> int:
    """Index of the chosen device; auto: the iGPU, else the first that can run whole passes."""
    d = machine.find("igpu" if choice == "auto" else choice)
    if d is None and choice == "auto":
        d = next((x for x in machine.devices if not x.static_attention), None)
    if d is None:
        raise ValueError("the machine lacks a device that it is to use: " + choice)
    if d.static_attention:
        raise ValueError("%s runs only compiled attention of one prompt length, so nothing decodes there" % d.name)
    return d.index


def next_piece(r: Request, max_tokens: int = 1 << 30) -> Segment:
    """The next work of a request: one decode token, or up to max_tokens of its prompt."""
    if r.state == "decode":
        return tuple.__new__(Segment, (r, "decode", 1))  # a fifth of the time of Segment(...)
    return Segment(r, "prefill", min(r.prefill_left, max_tokens))


def form(policy: Policy, segments: Sequence[Segment]) -> Pass:
    """Forms a pass; a lone decode has its layers fused, as in policies/common/batch.h."""
    return policy.form(segments, len(segments) == 1 and segments[0].role == "decode")


def fits(policy: Policy, segments: Sequence[Segment]) -> bool:
    """Is there KV for all of it, whatever blocks are half full? A prefix that was found at arrival
    counts as free until a pass holds it. False does not say that there is none."""
    tokens = sum(s.n_tokens + s.request.kv_state_tokens + (s.request.kv_tokens if s.request.reused_tokens else 0)
                 for s in segments)
    return tokens + len(segments) * policy.kv_block_tokens <= policy.kv_free_tokens


class Order:
    """Requests by (key, arrival, id), the least first; any member can be removed. O(log n)."""

    def __init__(self) -> None:
        self._heap: List[Tuple[Any, int, int]] = []
        self._at: Dict[int, Tuple[Any, Request]] = {}
        self._last: Dict[int, Any] = {}  # the key of the last entry that was made, while it is in the heap

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, r: Request) -> bool:
        return r.id in self._at

    def __iter__(self) -> Iterator[Request]:
        return (r for _, r in self._at.values())

    def push(self, r: Request, key: Any) -> None:
        """Puts r in, or gives it another key. One that comes back with its key finds its old entry."""
        i = r.id
        self._at[i] = (key, r)
        if self._last.get(i) != key:
            self._last[i] = key
            heapq.heappush(self._heap, (key, r.arrival_ns, i))

    def remove(self, r: Request) -> None:
        self._at.pop(r.id, None)

    def key(self, r: Request) -> Any:
        return self._at[r.id][0]

    def first(self) -> Optional[Tuple[Any, Request]]:
        """The least, with its key."""
        heap, at = self._heap, self._at
        while heap:
            key, _, i = heap[0]
            x = at.get(i)
            if x is not None and x[0] == key:
                return x
            heapq.heappop(heap)  # an old place of one that left or moved
            if self._last[i] == key:
                self._last[i] = None
        return None

    def top(self) -> Optional[Request]:
        x = self.first()
        return x[1] if x is not None else None


class Hetero:
    """One prefill op by op on an NPU and an iGPU (policies/common/hetero.h): static chunks of
    token-level ops on the NPU; attention, head and the prompt's margin on the iGPU."""

    def __init__(self, policy: Policy, npu: int, igpu: int) -> None:
        self.policy = policy
        self.device = {"npu": npu, "igpu": igpu}
        self.clear()

    def clear(self) -> None:
        self.pass_: Optional[Pass] = None
        self.planned = -1
        self.rows = {"npu": 0, "igpu": 0}
        self.on: Dict[str, Optional[Launch]] = {"npu": None, "igpu": None}
        self.ready_ns = 0

    def begin(self, p: Pass) -> None:
        self.clear()
        self.pass_ = p

    def at_boundary(self) -> bool:
        p = self.pass_
        return p is not None and p.op < p.n_ops and p.n_launches == 0 and self.planned != p.op

    def plan(self, chunk: int, margin_on_npu: bool) -> None:
        """Splits the cursor's op: whole chunks of a token-level op for the NPU."""
        p = self.pass_
        assert p is not None
        npu = 0
        if p.op_kind() in ("qkv", "ffn"):
            npu = p.rows_todo if margin_on_npu else p.rows_todo // chunk * chunk
        self.planned = p.op
        self.rows = {"npu": npu, "igpu": p.rows_todo - npu}
        self.ready_ns = self.policy.now_ns

    def launch(self, kind: str) -> bool:
        """Launches a planned share; False when there is nothing to launch or the device is busy."""
        n, d = self.rows[kind], self.device[kind]
        if n == 0 or self.on[kind] is not None or self.policy.free_slots[d] == 0:
            return False
        assert self.pass_ is not None
        self.on[kind] = self.policy.launch(self.pass_, d, n_ops=1, rows=n)
        self.rows[kind] = 0
        return True

    def ended(self, launch: Launch) -> bool:
        """True when it was one of this prefill's."""
        for kind in ("npu", "igpu"):
            if self.on[kind] is launch:
                self.on[kind] = None
                if launch.outcome != "done":
                    self.planned = -1
                    self.rows = {"npu": 0, "igpu": 0}
                return True
        return False


class Iterations(Policy):
    """Iteration-level scheduling on one device (policies/common/iter.h, its default axes): every
    iteration takes requests in the order of `key`, decodes one token each, prompts in chunks up to a
    token budget. An order is a class that says what its key is."""

    once = sleeps = True
    needs = ("spans", "kv_move")
    params = (device_param(),
              Param("max_batch", 16, "sequences per iteration", 1, 4096),
              Param("token_budget", 512, "tokens per iteration", 1, 1000000),
              Param("class", "rt_first", "reactive before proactive, or the order alone", choices=("rt_first", "blind")))

    def key(self, r: Request) -> float:
        """Smaller goes first. Asked when r arrives or returns, and when it is about to be taken."""
        raise NotImplementedError

    def init(self) -> None:
        self.device = place(self.machine, self.param["device"])
        self.ready = Order()
        self.holders: Set[Request] = set()  # a pass has worked on their KV, or flash has brought it back
        self.running: Optional[Pass] = None
        self.arrivals = 0
        self.classes = self.param["class"] == "rt_first"

    def _key(self, r: Request) -> Any:
        return (self.classes and r.cls == "proactive", self.key(r))

    def _place(self, r: Request) -> Any:
        """Who keeps memory when it is short: a fixed order, whatever the key."""
        return (self.classes and r.cls == "proactive", r.data)

    def _wait(self, r: Request) -> None:
        self.ready.push(r, self._key(r))

    def _take(self, r: Request) -> None:
        self.ready.remove(r)

    def request_arrived(self, r: Request) -> None:
        self.arrivals += 1
        r.data = self.arrivals
        self._wait(r)

    def request_cancelled(self, r: Request) -> None:
        self._take(r)
        self.holders.discard(r)

    def pass_done(self, p: Pass) -> None:
        self.running = None
        for s in p.segments:
            if s.request.left:
                self.holders.discard(s.request)
            else:
                self._wait(s.request)
                self.holders.add(s.request)

    def kv_moved(self, r: Request) -> None:
        self._wait(r)
        if not r.kv_swapped:
            self.holders.add(r)

    def _only_found(self, r: Request) -> bool:
        """All its KV is a prefix that it has found: that counts as free until it begins."""
        return r.kv_tokens > 0 and r.kv_tokens == r.reused_tokens and not r.generated_tokens

    def _needed(self, r: Request) -> int:
        """Blocks that its prompt takes out of what counts as free, or one token (policies/common/blocks.h)."""
        size, has = self.kv_block_tokens, r.kv_tokens
        end = has + (r.prefill_left if r.state == "queued" else 1)
        found = self.kv_cached_tokens([r])[0] if self._only_found(r) else 0
        return -(-end // size) - -(-has // size) + -(-found // size) + r.kv_state_tokens // size

    def _fill(self) -> List[Segment]:
        ready = self.ready
        batch: List[Segment] = []
        others: List[Request] = []  # of other models than the first
        tokens = committed = 0
        most, budget = self.param["max_batch"], self.param["token_budget"]
        while len(batch) < most and tokens < budget:
            x = ready.first()
            if x is None:
                break
            r = x[1]
            key = self._key(r)
            if key > x[0]:
                ready.push(r, key)  # keys may grow while their owner waits
                continue
            if batch and r.model != batch[0].request.model:
                ready.remove(r)
                others.append(r)
                continue
            needed = 0 if r.kv_swapped else self._needed(r)
            begins = not r.kv_swapped and (r.kv_tokens == 0 or self._only_found(r))
            if begins and batch and (committed + needed) * self.kv_block_tokens > self.kv_free_tokens:
                break  # admitting it would only make the others evict it again
            committed += needed
            self._take(r)
            if r.kv_swapped:
                self.kv(r, "memory")
                if not self.sync():
                    self._wait(r)
                    break
                continue
            s = next_piece(r, budget - tokens)
            batch.append(s)
            tokens += s[2]
        for r in others:
            ready.push(r, self._key(r))
        return batch

    def _evict_after(self, first: Request) -> bool:
        """Takes KV from the last one in memory order that waits and comes after `first`."""
        victim = max((r for r in self.holders if r.kv_tokens > 0 and r in self.ready), key=self._place, default=None)
        if victim is None or self._before(victim) <= self._before(first):
            return False
        self.kv(victim, "nowhere")
        if not self.sync():
            return False
        self.ready.push(victim, self._key(victim))
        self.holders.remove(victim)
        return True

    def _before(self, r: Request) -> Any:
        return (self.classes and r.cls == "proactive", r.arrival_ns, r.id)

    def _form(self, batch: List[Segment]) -> bool:
        while batch:
            p = form(self, batch)
            if fits(self, batch) or self.sync():
                self.running = p
                return True
            short = self._why == "no_memory"
            if not short or not self._evict_after(min((s.request for s in batch), key=self._before)):
                self._wait(batch[-1].request)
                batch = batch[:-1]
        return False

    _why = ""

    def refused(self, what: Any) -> None:
        self._why = what.error
        if self.running is not None and self.running.state == "refused":
            for s in self.running.segments:
                self._wait(s.request)
            self.running = None

    def _first_alone(self) -> bool:
        """Nobody at the front of the order fits: the first in memory order does, alone."""
        first = min(self.ready, key=self._place, default=None)
        if first is None:
            return True
        if first.kv_swapped:
            self.kv(first, "memory")
            while not self.sync():
                if self._why != "no_memory" or not self._evict_after(first):
                    return False
                self.kv(first, "memory")
            self._take(first)
            return True
        self._take(first)
        return self._form([next_piece(first, self.param["token_budget"])])

    def schedule(self) -> None:
        if self.running is None:
            if not self._form(self._fill()):
                self._first_alone()
        if self.running is not None and self.running.state == "ready":
            self.launch(self.running, self.device)


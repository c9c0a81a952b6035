"""A session's KV while a tool runs, and KV on flash (docs/clauses.md E.16, policies/README.md, policies/common/gap.h and flash.h), as
parts of policies with plain lists (judges.py)."""
import math
from types import SimpleNamespace

from xpusim.policy import Param

E9 = 1e9

PARAMS = (Param("gap_kv", "cache", "", choices=("cache", "preserve", "discard", "swap", "infercept", "ttl", "reactive")), Param("gap_s", 0.0, "", 0, 1e6))
FLASH = (Param("flash", "off", "", choices=("off", "cheaper", "always")),)


def states(p, model):
    """Tokens of memory that the recurrent states of a sequence take."""
    m, size = p.models[model], p.kv_block_tokens
    return math.ceil(m.kv_state_bytes / (size * m.kv_bytes_per_token)) * size


class Gaps:
    """A part of a policy. Every session whose tool runs is a row of `out`, in order of the answers."""

    def __init__(self, policy, context_ns):
        self.policy, self.context_ns = policy, context_ns
        self.rule, self.expected = policy.param["gap_kv"], round(policy.param["gap_s"] * E9)
        self.out, self.seen, self.fresh, self.swap_until = [], [], [], 0
        self.back = []  # turns whose KV is on flash, where the policy reads none back itself

    def finished(self, r):
        if self.rule not in ("cache", "reactive") and r.state == "finished" and r.calls_tool:
            tokens = r.kv_tokens  # the last one has none, but where a verification has seen it
            self.out.append(SimpleNamespace(session=r.session_id, tokens=tokens, model=r.model, since=self.policy.now_ns, kept=False, over=False, due=0,
                                            out_until=0))

    def arrived(self, r):
        if self.rule == "reactive" and r.cls == "reactive":
            self.fresh.append(r)
        for i, x in enumerate(self.out):
            if x.session == r.session_id:
                self.seen = (self.seen + [self.policy.now_ns - x.since])[-64:]
                self.out[i] = self.out[-1]
                self.out.pop()
                return

    def holds(self, r):
        if r.kv_swapped:
            self.back.append(r)
        return r.kv_swapped

    def put(self, x, where):
        self.policy.kv_session(x.session, where)
        done = self.policy.sync()
        if done and where == "flash":  # one after the other
            x.out_until = self.swap_until = max(self.policy.now_ns, self.swap_until) + self.transfer(x)
        x.kept, x.over = done and where == "memory", not done or where != "memory"

    def reload(self, x):
        return self.context_ns(x.model, x.tokens)

    def transfer(self, x):
        return self.transfer_ns(x.model, x.tokens)

    def transfer_ns(self, model, tokens):
        m = self.policy.machine
        return m.swap_fixed_ns + int((tokens * self.token_bytes(model) + self.policy.models[model].kv_state_bytes) / m.swap_bytes_per_s * E9)

    def lives(self, x):
        """The time to live that would have cost least."""
        if self.expected:
            return self.expected
        again = self.reload(x)
        return min([0] + sorted(self.seen), key=lambda t: sum(d if d <= t else t + again for d in self.seen)) if self.seen else again

    def schedule(self):
        now = self.policy.now_ns
        while self.back:
            self.policy.kv(self.back[0], "memory")
            if not self.policy.sync():
                break
            self.back.pop(0)
        for r in reversed(self.fresh):
            if not r.left:
                self.policy.kv_rank(r, 1)
        self.fresh = []
        new = [x for x in self.out if not x.kept and not x.over]
        if self.rule in ("preserve", "discard", "swap"):
            for x in new:
                self.put(x, {"preserve": "memory", "discard": "nowhere", "swap": "flash"}[self.rule])
        elif self.rule == "ttl":
            for x in [x for x in self.out if not x.over]:
                if x in new:
                    x.until = x.since + self.lives(x)
                if x.until < now and x not in new:
                    self.put(x, "nowhere")
                elif x in new:
                    self.put(x, "memory")
                    self.policy.set_timer(round(x.until) + 1)
        elif self.rule == "infercept":
            self.judge([x for x in self.out if not x.over and x.due <= now])

    def token_bytes(self, model):
        """And of the model that drafts for it."""
        p, drafts = self.policy, getattr(self.policy, "draft_model", 0)
        return p.models[model].kv_bytes_per_token + (p.models[drafts].kv_bytes_per_token if drafts not in (0, model) else 0)

    # InferCept: tokens times time
    def held(self, x):
        return x.tokens + states(self.policy, x.model)

    def bytes(self, tokens, model):
        size = self.policy.kv_block_tokens
        return -(-tokens // size) * size * self.token_bytes(model)

    def others(self):
        """Bytes of requests that are here, and of no session whose tool runs."""
        p = self.policy
        held = (p.kv_capacity_tokens - p.kv_free_tokens) * max(map(self.token_bytes, range(len(p.models))))
        return max(0, held - sum(self.bytes(self.held(x), x.model) for x in self.out if x.kept or p.now_ns < x.out_until))

    def judge(self, rows):
        """Whoever has wasted as much as its cheapest way out; the most wasteful first, for it may have the one transfer to flash."""
        now, others = self.policy.now_ns, self.others()
        for x in rows:
            passed = now - x.since
            x.keep = (self.expected - passed if self.expected > passed else passed) * self.held(x)
            x.token = self.token_bytes(x.model)
            x.drop, x.swap = self.reload(x) * (self.held(x) - x.tokens / 2 + others / x.token), 2 * self.transfer(x) * self.held(x)
        for x in sorted(rows, key=lambda x: -min(x.keep, x.drop) * x.token):
            if now >= self.swap_until and x.swap < min(x.keep, x.drop):
                self.put(x, "flash")
            elif x.drop < x.keep:
                self.put(x, "nowhere")
            else:
                if not x.kept:
                    self.put(x, "memory")
                x.due = x.since + max(int(min(x.drop, x.swap) / self.held(x)), self.expected) + 1
                x.due = x.due if x.due > now else self.swap_until
                self.policy.set_timer(x.due)

    def yields(self):
        """Nobody could run, and memory is not being freed: the session kept longest."""
        if self.policy.now_ns < self.swap_until:
            self.policy.set_timer(self.swap_until)
            return False
        x = min((x for x in self.out if x.kept), key=lambda x: x.since, default=None)
        if x is None:
            return False
        self.put(x, "cache")
        return True

    def evicts(self, prompts):
        """And sessions keep nothing, nor is their KV on its way out: the last prompt that holds KV computes it again."""
        p = self.policy
        if p.now_ns < self.swap_until:
            p.set_timer(self.swap_until)
            return False
        r = next((r for r in reversed(prompts) if r.kv_tokens > (p.kv_cached_tokens([r])[0] if p.is_cached(r) else 0)), None)
        if r is not None:
            p.kv(r, "nowhere")
            p.sync()
        return r is not None


class Flash:
    """KV that is taken where memory is short: written one at a time, and read back, reactive first, then by arrival (flash.h)."""

    def __init__(self, policy, context_ns):
        self.policy, self.context_ns, self.rule = policy, context_ns, policy.param["flash"]
        self.out, self.there = None, []

    def takes(self, r):
        p = self.policy
        if self.rule == "off" or self.rule == "cheaper" and 2 * p.gap.transfer_ns(r.model, r.kv_tokens) >= self.context_ns(r.model, r.kv_tokens):
            return False
        p.kv(r, "flash")
        if p.sync():
            self.out = r
        return self.out is r

    def moved(self, r):
        """True: the policy has it again."""
        if r.kv_swapped:
            self.out = None
            self.there.append(r)
            self.there.sort(key=lambda r: (r.cls == "proactive", r.arrival_ns, r.id))
        return not r.kv_swapped

    def back(self, spare, alone):
        p, read = self.policy, False
        while self.there and self.out is None:
            r = self.there[0]
            if r.kv_tokens + r.kv_state_tokens + spare > p.kv_free_tokens and not alone:
                break
            p.kv(r, "memory")
            if not p.sync():
                break
            self.there.pop(0)
            alone, read = False, True
        return read

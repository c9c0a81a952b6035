"""Draws random workloads for step-by-step comparisons, and finds the smallest that still differs.

A workload is a list of requests, in the order of their arrival, and the settings of the scheduler. It runs on a machine
whose every iteration takes one second."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Request:
    step: int  # arrives before this step; of a later turn: steps after the end of the turn before
    prompt: int  # tokens; of a later turn: those it adds to the turns before
    output: int
    priority: int = 0
    session: int = -1  # requests with the same session >= 0 are turns of it, in order


@dataclasses.dataclass(frozen=True)
class Workload:
    requests: tuple
    blocks: int  # KV capacity
    budget: int  # tokens an iteration
    seqs: int
    rules: tuple = ()  # (name, value) pairs that only some judges know

    def rule(self, name, default=None):
        return dict(self.rules).get(name, default)

    def with_rules(self, **rules):
        return dataclasses.replace(self, rules=tuple((dict(self.rules) | rules).items()))


def turns(w):
    """Returns (index, index of the turn before or None, whole prompt, tokens shared with it) of each request."""
    last, out = {}, []
    for i, r in enumerate(w.requests):
        before = last.get(r.session) if r.session >= 0 else None
        shared = 0 if before is None else out[before][2] + w.requests[before].output
        out.append((i, before, shared + r.prompt, shared))
        last[r.session] = i
    return out


def first_turns_first(todo):
    """Sorts requests that have not come yet, {index: (index of the turn before or None, ...)}, as they come before one
    step. A later turn counts from the end of the turn before, which is some microseconds after the second."""
    return sorted(todo.items(), key=lambda item: item[1][0] is not None)


def longest(w):
    """Returns the tokens of the longest sequence."""
    return max(prompt + w.requests[i].output for i, _, prompt, _ in turns(w))


def draw_requests(rng, most=8, block=32):
    """Draws short and long prompts and outputs, some around whole blocks. They come all at once, in bursts, or one by
    one."""
    n = rng.randint(1, most)
    short, rare = rng.choice([(20, 3), (60, 20), (200, 20), (200, 70)])
    form = rng.choice(["once", "bursts", "singly"])
    at, out = 0, []
    for _ in range(n):
        if form == "singly" or (form == "bursts" and rng.random() < 0.4):
            at += rng.choice([1, 1, 2, 3, 7, 30])
        prompt = rng.choice([rng.randint(1, short), rng.randint(1, short), block, 2 * block, 2 * block + 1])
        out.append(Request(at, prompt, rng.randint(1, rare)))
    return out


def with_turns(rng, requests):
    """Makes some of them turns of sessions. They then come so many steps after the turn before."""
    out = []
    for r in requests:
        session = rng.choice([-1, 0, 1, 2])
        again = session >= 0 and any(q.session == session for q in out)
        out.append(dataclasses.replace(r, session=session, step=rng.choice([0, 0, 1, 5]) if again else r.step))
    return out


def _smaller(w):
    """Yields workloads one step simpler, the boldest first."""
    for i in range(len(w.requests)):
        if len(w.requests) > 1:
            yield dataclasses.replace(w, requests=w.requests[:i] + w.requests[i + 1:])
    for i, r in enumerate(w.requests):
        for field, least in (("step", 0), ("output", 1), ("prompt", 1), ("priority", 0), ("session", -1)):
            now = getattr(r, field)
            for value in sorted({least, (now + least) // 2, now - 1}):
                if least <= value < now:
                    changed = dataclasses.replace(r, **{field: value})
                    yield dataclasses.replace(w, requests=w.requests[:i] + (changed,) + w.requests[i + 1:])


def shrink(w, differs, tries=400):
    """Returns the smallest workload on which differs() still holds. Requests stay in order."""
    again = True
    while again and tries > 0:
        again = False
        for s in _smaller(w):
            first = [r.step for i, r in enumerate(s.requests) if turns(s)[i][1] is None]
            if first != sorted(first) or tries == 0:
                continue
            tries -= 1
            if differs(s):
                w, again = s, True
                break
    return w

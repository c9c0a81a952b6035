"""Accepted drafts by hwmodels/speculation.h and hwmodels/speculation/README.md: a second implementation. A step's four numbers are drawn from
xoshiro256++ (Blackman and Vigna), whose state splitmix64 fills from a key of seed, request and step (sim/base/rng.h)."""
import csv
import json
from pathlib import Path

WORD = (1 << 64) - 1
SPECULATION = 10  # the purpose of these streams
FOLDER = Path(__file__).resolve().parents[2] / "hwmodels" / "speculation"


def mix(x):
    z = (x + 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def key(seed, a, b):
    h = mix(seed)
    for x in (SPECULATION, a, b):
        h = mix(h ^ x)
    return h


def uniforms(k, n):
    def turned(x, by):
        return ((x << by) | (x >> (64 - by))) & WORD

    s, out = [mix((k + i * 0x9E3779B97F4A7C15) & WORD) for i in range(4)], []
    for _ in range(n):
        word = (turned((s[0] + s[3]) & WORD, 23) + s[0]) & WORD
        out.append((word >> 11) * 2.0**-53)
        t = (s[1] << 17) & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turned(s[3], 45)
    return out


def geometric(u, ratio, most):
    k, tail = 0, ratio
    while u < tail and k < most:
        k, tail = k + 1, tail * ratio
    return k


class Drafts:
    def __init__(self, options, seed):
        self.o, self.seed = options, seed
        numbers = json.loads((FOLDER / "constants.json").read_text())
        self.drafters, self.lengths, self.history = (
            {k: v["value"] for k, v in numbers[part].items()} for part in ("drafters", "lengths", "history"))
        with open(FOLDER / "acceptance.csv", encoding="utf-8") as f:
            table = [r for r in csv.DictReader(line for line in f if line[0] != "#")
                     if (r["dataset"], r["model"], int(r["ours"])) == (options["dataset"], options["model"], options["ours"])]
        self.solve({r["method"]: float(r["accepted_tokens"]) for r in table})
        own = {"pld": self.drafters["pld_draft_tokens"], "eagle": 6}
        self.most = options["max_draft_tokens"] or own.get(options["method"], self.drafters["sam_draft_tokens"])
        self.fixed = self.drafters["eagle_accepted_tokens"] if options["method"] == "eagle" else 0

    def solve(self, mean):
        """hit and alpha: hit (1 + alpha + ... ) over 10 and 40 tokens are the published means of PLD and SAM."""
        def sums(alpha):
            return [sum(alpha**i for i in range(self.drafters[f"{m}_draft_tokens"])) for m in ("pld", "sam")]

        low, high = 0.0, 1.0
        for _ in range(100):
            alpha = (low + high) / 2
            few, many = sums(alpha)
            low, high = (alpha, high) if many / few < mean["sam"] / mean["pld"] else (low, alpha)
        self.alpha, self.hit = low, mean["pld"] / sums(low)[0]

    def drawn(self, request, step):
        return uniforms(key(key(self.seed, request, 0), step, 1), 4)

    def length(self, u):
        n, by_match = self.lengths, self.drafters["sam_tokens_per_match"]
        if self.o["length"] == "prop":  # 1 + 4 m < 8 where m < 2
            ratio = (1 - n["short_frac"]) ** (1 / -(-(n["short_tokens"] - 1) // by_match))
            return min(self.most, 1 + by_match * geometric(u[2], ratio, self.most))
        if self.o["length"] == "empirical":
            part = (u[2] >= n["short_frac"]) + (u[2] >= n["unfriendly_frac"])
            ends = [0, n["short_tokens"], n["friendly_tokens"], self.most + 1]
            return min(self.most, ends[part] + int(u[3] * max(1, ends[part + 1] - ends[part])))
        return self.most

    def run(self, u):
        return 1 + geometric(u[1], self.alpha, self.most)

    def hits(self, request, step):
        """Of all steps so far the last: after a hit that ended in a rejection the next one hits more often."""
        known = {"full": None, "turn": 0, "trace": request}[self.o["history"]]  # all requests are first turns
        h, again, reuse = self.hit, False, self.o["reuse_frac"]
        if known is not None:
            cold = self.history["cold_frac"]
            h *= cold + (1 - cold) * known / (known + self.history["half_requests"])
        for k in range(0 if reuse else step, step + 1):
            u = self.drawn(request, k)
            hit = u[0] < (reuse + (1 - reuse) * h if again else h)
            again = hit and self.run(u) < self.length(u)
        return hit

    def accepted(self, request, reactive, step, drafted):
        if not reactive and not self.o["proactive"]:
            return 0
        u = self.drawn(request, step)
        if drafted > self.length(u):
            raise ValueError(f"step {step} of request {request} verifies {drafted} of {self.length(u)} drafted tokens")
        right = self.run(u) if not self.fixed and self.hits(request, step) else 0
        if self.fixed:
            right = int(self.fixed) + (u[1] < self.fixed - int(self.fixed))
        return min(right, drafted)

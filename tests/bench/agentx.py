"""An hour of coding agents in the form of the AgentX data set: one JSON line per session, for `xpusim trace import`.

    python3 tests/bench/agentx.py >hour.jsonl
    build/xpusim trace import hour.jsonl --share --rate-per-min 60 -o hour.csv
    build/xpusim run --policy agent-xpu-v2 --trace hour.csv --sketch --json -q

Four sessions are busy from the first minute on, some 4,000 requests with 4.5 million output tokens in all. A context
grows by what tools return and by answers, until it is compacted. Every number is made up.
"""
import json
import random

LANES = 4
STEPS = 805  # requests of the agent itself, a lane
OUTPUT_MEAN = 1125
CONTEXT_TOKENS = 20_000  # is compacted above
BLOCK = 64
TOKENS_PER_S = 1250 / LANES


class Lane:
    def __init__(self, number):
        self.draw = random.Random(number)
        self.next_block = 0

    def blocks(self, n):
        self.next_block += n
        return list(range(self.next_block - n, self.next_block))

    def request(self, t, context):
        """One model call after `context` (blocks); returns it and its context afterwards."""
        new = int(min(self.draw.lognormvariate(6.0, 1.0), 4000))
        out = int(min(self.draw.lognormvariate(6.64, 0.92), 8000)) + 1
        prompt = context + self.blocks(-(-new // BLOCK))
        r = {"t": round(t, 3), "type": "s", "model": "leader", "in": len(prompt) * BLOCK, "out": out,
             "hash_ids": prompt, "api_time": round(out / TOKENS_PER_S, 3)}
        return r, prompt + self.blocks(-(-out // BLOCK))

    def subagent(self, t, context, background):
        requests = []
        now = t
        own = context[:40] + self.blocks(5)
        for _ in range(self.draw.randint(1, 5)):
            r, own = self.request(now, own)
            requests.append(r)
            now += r["api_time"] + self.draw.expovariate(1.0)
        status = "async_launched" if background else "completed"
        return {"t": round(t, 3), "type": "subagent", "agent_id": f"a{self.next_block}", "status": status,
                "requests": requests}, now

    def session(self, name):
        requests, t = [], 0.0
        context = system = self.blocks(40)
        for _ in range(STEPS):
            r, context = self.request(t, context)
            requests.append(r)
            t += r["api_time"] + min(self.draw.lognormvariate(0.0, 1.2), 60)
            if self.draw.random() < 0.08:
                background = self.draw.random() < 0.4
                sub, end = self.subagent(t, context, background)
                requests.append(sub)
                t = t + 0.5 if background else end + 0.5
            if len(context) * BLOCK > CONTEXT_TOKENS:
                context = system + self.blocks(30)
        return {"id": name, "models": ["leader"], "block_size": BLOCK, "hash_id_scope": "local", "requests": requests}


for lane in range(LANES):
    print(json.dumps(Lane(lane).session(f"lane{lane}"), separators=(",", ":")))

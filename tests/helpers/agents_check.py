"""Workloads of agents whose numbers are constants, drawn at random, against requests that this file derives by itself:
lengths, instants, gaps, and who waits for whom. It compares graphs, regardless of how requests are numbered.

    agents_check.py XPUSIM N SEED       N workloads; exit 1 with the first that differs
"""
import csv
import hashlib
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

# ---- random workloads ----


def random_job(r, depth, client):
    j = {"name": f"j{r.randrange(10 ** 9)}", "prompt_tokens": r.randint(1, 500), "answer_tokens": r.randint(1, 60)}
    if r.random() < 0.6:
        j["turns"] = r.randint(1, 5)
        j[r.choice(["growth_tokens", "new_tokens"])] = r.randint(1, 90)
    for key, chance, make in (("gap_s", 0.5, lambda: r.randint(0, 8) / 4), ("start_s", 0.4, lambda: r.randint(0, 40) / 4),
                              ("class", 0.3, lambda: r.choice(["reactive", "proactive"])),
                              ("shared_prompt", 0.3, lambda: r.choice(["p", "q"])), ("gap_kind", 0.3, lambda: r.choice(["tool", "think"]))):
        if r.random() < chance:
            j[key] = make()
    if r.random() < 0.4:
        j["count"] = r.randint(1, 3)
    if not client:
        kind = r.randrange(4)
        if kind == 1:
            j["before"] = True
        if kind >= 2:
            j["background"] = True
            j["ends_with_job"] = kind == 3
        j["with_context"] = "shared_prompt" not in j and r.random() < 0.5
        if r.random() < 0.4:
            j["on_turns"] = sorted(r.sample(range(1, 6), r.randint(1, 3)))
        if r.random() < 0.2:
            j["probability"] = r.choice([0, 1])
    if depth < 2 and r.random() < 0.7:
        j["subagents"] = [random_job(r, depth + 1, False) for _ in range(r.randint(1, 2))]
    return j


def random_workload(r):
    w = {"duration_s": r.randint(20, 60), "shared_prompts": {"p": 70, "q": 11}, "clients": []}
    for _ in range(r.randint(1, 3)):
        c = random_job(r, 0, True)
        kind = r.randrange(3)
        if kind == 1:
            c["every_s"] = r.randint(20, 80) / 4
        if kind == 2:
            c["think_s"] = r.randint(20, 80) / 4
            c["same_session"] = r.random() < 0.5 and not any(s.get("before") for s in c.get("subagents", []))
        if kind > 0 and r.random() < 0.5:
            c["jobs"] = r.randint(1, 3)
        w["clients"].append(c)
    return w


# ---- what they mean ----


class Request:
    def __init__(self, **of):
        self.__dict__.update(of)


class Model:
    def __init__(self, workload):
        self.w, self.all, self.client = workload, [], 0
        for c in workload["clients"]:
            for _ in range(c.get("count", 1)):
                self.run_client(c)
                self.client += 1

    def run_client(self, c):
        limit = self.w["duration_s"]
        at, last, talk = c.get("start_s", 0), None, []
        repeats = "every_s" in c or "think_s" in c
        for k in range(c.get("jobs", 10 ** 9 if repeats else 1)):
            if k > 0:
                at += c["every_s"] if "every_s" in c else c["think_s"]
            if at >= limit:
                return
            if not c.get("same_session"):
                talk = []
            start = {"at": at, "after": [], "gap": None, "starts": False, "until": None}
            if k > 0 and "think_s" in c:
                start = {"at": None, "after": [last], "gap": c["think_s"], "starts": True, "until": limit}
            place = {"class": c.get("class", "reactive"), "background": False, "ends": None, "context": 0, "of": None}
            before = len(talk)
            last = self.run_job(c, place, talk, start)
            if "think_s" in c:
                at += c.get("gap_s", 0) * (len(talk) - before - 1)

    def run_job(self, j, place, talk, start):
        turns = j.get("turns", 1)
        last = Request(final=True)  # filled when it is made; subagents may end with it
        answers = 0
        for n in range(1, turns + 1):
            if n > 1:
                start = {"at": None, "after": [talk[-1], *waited], "gap": j.get("gap_s", 0), "starts": False, "until": None}
            so_far = talk[-1].input + talk[-1].output if talk else 0
            before = talk[-1] if talk else None
            for s in j.get("subagents", []):
                if s.get("before") and n in s.get("on_turns", [n]) and s.get("probability", 1) > 0:
                    ended = [self.run_sub(s, place, start, so_far, before, last) for _ in range(s.get("count", 1))]
                    answers += sum(e.output for e in ended)
                    start = {"at": None, "after": ended, "gap": 0, "starts": False, "until": None}
            me = last if n == turns else Request(final=False)
            if n == 1:
                prompt = j["prompt_tokens"]
                prompt += so_far if talk else place["context"] + self.w["shared_prompts"].get(j.get("shared_prompt"), 0)
            elif "growth_tokens" in j:
                prompt = max(talk[-1].input + j["growth_tokens"], so_far + 1)
            else:
                prompt = so_far + answers + j["new_tokens"]
            parents = {id(p): p for p in [*start["after"], *talk[-1:]]}.values()
            shared = j.get("shared_prompt") if not talk else None
            group = {"p": 1, "q": 2}.get(shared, 0)
            prefix = so_far if talk else place["context"] or self.w["shared_prompts"].get(shared, 0)
            tool = len(talk) > 0 and not start["starts"] and j.get("gap_kind", "tool") == "tool"
            me.__dict__.update(input=prompt, output=j["answer_tokens"], prefix=prefix, source=None if talk else place["of"], turn=len(talk), at=start["at"], gap=start["gap"],
                               cls=place["class"], background=place["background"], ends=place["ends"], parents=list(parents),
                               starts=start["starts"], until=start["until"], client=self.client, group=group, tool=tool)
            self.all.append(me)
            talk.append(me)
            waited, answers = [], 0
            for s in j.get("subagents", []):
                useless = n == turns and (not s.get("background") or s.get("ends_with_job"))
                if not s.get("before") and not useless and n in s.get("on_turns", [n]) and s.get("probability", 1) > 0:
                    then = {"at": None, "after": [me], "gap": 0, "starts": False, "until": None}
                    ended = [self.run_sub(s, place, then, me.input + me.output, me, last) for _ in range(s.get("count", 1))]
                    if not s.get("background"):
                        waited += ended
                        answers += sum(e.output for e in ended)
        return last

    def run_sub(self, s, place, start, context, of, last):
        own = {"class": s.get("class", "proactive" if s.get("background") else place["class"]),
               "background": place["background"] or bool(s.get("background")),
               "ends": last if s.get("ends_with_job") else place["ends"],
               "context": context if s.get("with_context") else 0, "of": of if s.get("with_context") else None}
        later = dict(start)
        later["at" if start["at"] is not None else "gap"] += s.get("start_s", 0)
        return self.run_job(s, own, [], later)


# ---- comparing graphs ----


def signatures(requests):
    """A sorted list of what every request is, with all that it waits for and ends with."""
    plain, full = {}, {}

    def own(q):
        return (q.input, q.output, q.prefix, q.turn, q.at, q.gap, q.cls, q.background, q.starts, q.until, q.client, q.group, q.tool)

    def deep(q):
        if id(q) not in full:
            text = repr((own(q), sorted(deep(p) for p in q.parents)))
            full[id(q)] = hashlib.sha256(text.encode()).hexdigest()
        return full[id(q)]

    sys.setrecursionlimit(100000)
    for q in requests:
        plain[id(q)] = deep(q)
    return sorted((plain[id(q)], *(plain[id(o)] if o else "" for o in (q.ends, q.source)), str(own(q))) for q in requests)


def read(path):
    with open(path, encoding="utf-8") as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    by_id, by_turn = {}, {}
    for row in rows:
        by_id[row["request_id"]] = by_turn[row["session_id"], row["turn"]] = Request(row=row)
    for q in by_id.values():
        row = q.row
        parents = [by_id[p.partition("+")[0]] for p in row["parent_ids"].split(";") if p]
        before = by_turn.get((row["session_id"], str(int(row["turn"]) - 1)))
        number = {key: float(row.get(key) or "nan") for key in ("arrival_s", "gap_s", "until_s")}
        number = {key: None if x != x else x for key, x in number.items()}
        q.__dict__.update(input=int(row["input_tokens"]), output=int(row["output_tokens"]), prefix=int(row["prefix_tokens"]),
                          turn=int(row["turn"]), at=number["arrival_s"], gap=number["gap_s"], cls=row["class"],
                          background=row["background"] == "1", ends=by_id.get(row["ends_with"]), source=by_id.get(row.get("prefix_of")) if row["turn"] == "0" else None, parents=parents + ([before] if before else []),
                          starts=row.get("starts_job") == "1", until=number["until_s"], client=int(row["client_id"]),
                          group=int(row["prefix_group"]), tool=row.get("gap_kind") == "tool")
    return list(by_id.values())


def floats(requests):
    for q in requests:
        for key in ("at", "gap", "until"):
            value = getattr(q, key)
            setattr(q, key, None if value is None else float(value))
    return requests


def main(xpusim, n, seed):
    total = graphs = 0
    with tempfile.TemporaryDirectory() as folder:
        spec, out = Path(folder) / "w.json", Path(folder) / "w.csv"
        for i in range(n):
            w = random_workload(random.Random(seed + i))
            mine = Model(w).all
            spec.write_text(json.dumps(w), encoding="utf-8")
            run = subprocess.run([xpusim, "trace", "gen", "--workload", spec, "-o", out], capture_output=True, text=True, check=False)
            if not mine:
                if run.returncode != 2 or "no client starts" not in run.stderr:
                    print(f"{json.dumps(w)}: {run.stderr}")
                    return 1
                continue
            theirs = read(out) if run.returncode == 0 else []
            a, b = signatures(floats(mine)), signatures(floats(theirs))
            if a != b:
                print(f"workload {seed + i} differs ({len(mine)} requests, {len(theirs)} made) {run.stderr}\n{json.dumps(w)}")
                for x, y in zip(a, b):
                    if x != y:
                        print(f"by hand {x[-1]}\nmade    {y[-1]}")
                        break
                return 1
            total, graphs = total + len(mine), graphs + any(len(q.parents) > 1 for q in mine)
    print(f"note: {n} random workloads, {graphs} with joins, {total} requests: equal to those derived here")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

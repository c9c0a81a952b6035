"""Traces of others, drawn: what `trace import` makes of a file is worked out again, from traces/README.md and the help."""
import csv
import datetime
import json
import math
import os
import random
import re
import subprocess
import sys

X, DIR = sys.argv[1:]
bad = checked = 0


def fail(what):
    global bad
    bad += 1
    if bad < 20:
        print("FAILED: " + what)


class Row:
    """A request of a source. Its output tokens are its name: each has its own, and 0 means that it failed."""

    def __init__(self, start, output, **more):
        self.start, self.output, self.end = start, output, None
        self.input, self.prefix, self.cls = 0, 0, "reactive"
        self.after = self.key = None  # names of the turn before, and for the next one
        self.blocks = []
        self.__dict__.update(more)


def limit(output):
    n = 256
    while n < 2 * output:
        n *= 2
    return n


def common(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def turns_up_to(row):
    """A turn, and those before it."""
    while row is not None:
        yield row
        row = row.before


def expected(rows, o):
    """Sessions as {output: (session's first output, turn, class, ns, input, prefix, limit, prefix_of)}, and the counts."""
    lost = {"failed": sum(r.output == 0 for r in rows), "gaps": 0, "early": 0, "prefix": 0, "input": 0,
            "grown": sum(r.after is not None for r in rows) if o.get("grows") else 0}
    rows = [r for r in rows if r.output > 0]
    lost["input"] = sum(r.input for r in rows)
    rows.sort(key=lambda r: r.start)
    bt = o.get("block_tokens", 0)
    names, gone, ends, seen = {}, set(), {}, set()
    for r in rows:
        r.before = None
        if r.after is not None:
            last = names.get(r.after)
            if last is not None and not (r.after != r.key and r.after in gone):
                r.before = last
                if r.after != r.key:
                    gone.add(r.after)
        elif o.get("link") and r.key is None:
            for block in reversed(r.blocks):
                if ends.get(block) is not None:
                    r.before, ends[block] = ends[block], None
                    break
        if r.key is not None:
            names[r.key] = r
            gone.discard(r.key)
        elif o.get("link") and min(r.input // bt, len(r.blocks)) > 0:
            ends[r.blocks[min(r.input // bt, len(r.blocks)) - 1]] = r
        known = next((k for k, b in enumerate(r.blocks) if b not in seen), len(r.blocks)) * bt if bt else r.prefix
        known = min(known, r.input)
        seen |= set(r.blocks)
        r.turn, r.first, r.served = 0, r, 0
        if r.before is not None:
            last = r.before
            r.turn, r.first = last.turn + 1, last.first
            r.served = r.prefix if o.get("grows") and r.after is not None else min(r.input, common(last.blocks, r.blocks) * bt if bt else
                           last.input + last.output if o.get("history") else min(r.prefix, last.input + last.output))
            lost["gaps"] += last.end is None
            r.ended = max(x.start if x.end is None else x.end for x in turns_up_to(last))
            lost["early"] += r.ended > r.start
        lost["prefix"] += max(0, known - r.served)
    zero = rows[0].start if o.get("rebase") else 0
    start, end = o.get("from", 0), o.get("to", 1e9)
    out, owner = {}, {}
    if o.get("share"):
        lost["prefix"] = 0
    for r in rows:
        if not start <= (r.first.start - zero) / 1e9 < end:
            continue
        source = None
        if o.get("share"):
            shared = 0
            while shared < len(r.blocks) and r.blocks[shared] in owner:
                shared += 1
            if shared > 0:
                source = owner[r.blocks[shared - 1]]
                r.served = min(shared * bt, source.input, r.input)
            elif r.before is not None:
                source = r.before
            for b in r.blocks:
                owner.setdefault(b, r)
        if r.before is not None:
            ns = max(0, r.start - r.ended)
        else:
            ns = r.start - zero
            if o.get("rate_scale", 1) != 1 or start > 0:
                ns = round((ns / 1e9 - max(0, start)) / o.get("rate_scale", 1) * 1e9)
        out[r.output] = (r.first.output, r.turn, o.get("class", r.cls), ns, r.input, r.served, limit(r.output),
                         source.output if source else None)
    return out, lost


def read(text, share):
    rows = list(csv.DictReader(line for line in text.split("\n") if line and not line.startswith("#")))
    by_id = {r["request_id"]: r for r in rows}
    first = {r["session_id"]: r["output_tokens"] for r in rows if r["turn"] == "0"}
    out, instants = {}, []
    for r in rows:
        time = r["gap_s"] if int(r["turn"]) > 0 else r["arrival_s"]
        whole, _, part = time.partition(".")
        source = r.get("prefix_of") if share else None
        out[int(r["output_tokens"])] = (
            int(first[r["session_id"]]), int(r["turn"]), r["class"], int(whole) * 10**9 + int((part + "0" * 9)[:9]),
            int(r["input_tokens"]), int(r["prefix_tokens"]), int(r["max_output_tokens"]),
            int(by_id[source]["output_tokens"]) if source else None)
    return out, len(rows)


FLAGS = {"from": "--from", "to": "--to", "rate_scale": "--rate-scale", "class": "--class", "chars": "--chars-per-token",
         "think": "--think-s", "rate": "--rate-per-min", "sample": "--sample", "seed": "--seed"}


def imported(name, text, o):
    path = os.path.join(DIR, "source")
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    words = [X, "trace", "import", path] + [w for k, flag in FLAGS.items() if k in o for w in (flag, str(o[k]))]
    words += ["--" + k for k in ("link", "share") if o.get(k)] + (["--history"] if o.get("ask_history") else [])
    words += ["--block-tokens", str(o["block_tokens"])] if o.get("block_tokens", 512) not in (512, 16) or "grows" in o else []
    words += ["--format", name] if o.get("named") else []
    return subprocess.run(words, capture_output=True, text=True)


def count(note, pattern):
    m = re.search(pattern, note)
    return int(m.group(1)) if m else 0


def check(name, text, rows, o):
    global checked
    p = imported(name, text, o)
    what = "%s %s" % (name, {k: v for k, v in o.items() if k not in ("rebase", "block_tokens")})
    want, lost = expected(rows, o)
    if not want:
        if p.returncode != 2 or "none of its sessions begins" not in p.stderr:
            fail("%s: an empty window: %s" % (what, p.stderr[:200]))
        return
    if p.returncode != 0:
        fail("%s: %s" % (what, p.stderr[:300]))
        return
    got, n = read(p.stdout, o.get("share"))
    checked += 8 * len(want)
    if n != len(want) or set(got) != set(want):
        fail("%s: %d requests, not %d" % (what, n, len(want)))
    for k in sorted(set(got) & set(want)):
        if got[k] != want[k]:
            fail("%s: request of %d tokens: %s, not %s" % (what, k, got[k], want[k]))
            break
    said = {"failed": sum(count(p.stderr, r"(\d+) requests? without %s" % x) for x in ("output", "numbers")), "gaps": count(p.stderr, r"(\d+) gaps? between"),
            "early": count(p.stderr, r"(\d+) turns? sent before"), "grown": count(p.stderr, r"(\d+) turns? with the length"),
            "prefix": count(p.stderr, r"can serve (\d+) more"),
            "input": count(p.stderr, r"more of (\d+) prompt") if lost["prefix"] else lost["input"]}
    if said != lost:
        fail("%s: notes say %s, not %s" % (what, said, lost))
    sessions = len({v[0] for v in want.values()})
    if "read as %s: %d request%s, %d session%s\n" % (name, len(want), "s"[len(want) == 1:], sessions, "s"[sessions == 1:]) not in p.stderr:
        fail("%s: %s" % (what, p.stderr[-120:]))


def sampled(name, text, o):
    """A share of the sessions, each whole and as it is in the whole trace; another seed draws others."""
    global checked
    whole = read(imported(name, text, o).stdout, False)[0]
    sessions = {v[0] for v in whole.values()}
    drawn = []
    for seed in range(1, 9):
        p = imported(name, text, dict(o, sample=0.5, seed=seed))
        got = read(p.stdout, False)[0] if p.returncode == 0 else {}
        mine = {v[0] for v in got.values()}
        if got != {k: v for k, v in whole.items() if v[0] in mine}:
            fail("%s --sample: sessions are not whole" % name)
        drawn.append(frozenset(mine))
        checked += 8 * len(got)
    n, share = 8 * len(sessions), sum(map(len, drawn)) / (8 * len(sessions))
    if len(set(drawn)) < 4 or abs(share - 0.5) > 4 * math.sqrt(0.25 / n):
        fail("%s --sample 0.5: %g of %d sessions, %d different draws" % (name, share, n, len(set(drawn))))


def times(r, n, step):
    """Instants in ns, whole steps, some equal, in any order."""
    return [r.randrange(40) * step + r.randrange(3) * 10**9 for _ in range(n)]


def outputs(r, n, fails=0.12):
    names = r.sample(range(1, 4000), n)
    return [0 if r.random() < fails else k for k in names]


def plain(r):
    n = 24
    rows, lines = [], ["class,input_tokens,output_tokens,arrival_s,prefix_tokens,session_id,other"]
    for t, k in zip(times(r, n, 125 * 10**6), outputs(r, n)):
        name = r.choice(["a", "b", "c d", ""])
        row = Row(t, k, input=r.randrange(1, 900), prefix=r.randrange(1200), cls=r.choice(["reactive", "proactive", ""]))
        row.after = row.key = name or None
        rows.append(row)
        lines.append("%s,%d,%d,%.9f,%d,%s,x" % (row.cls, row.input, k, t / 1e9, row.prefix, name))
        row.cls = row.cls or "reactive"
    return "\n".join(lines) + "\n", rows, {}


def burstgpt(r):
    n = 20
    elapsed = r.random() < 0.7
    rows, lines = [], ["Timestamp,Session ID,%sModel,Request tokens,Response tokens" % ("Elapsed time," if elapsed else "")]
    for t, k in zip(times(r, n, 10**9), outputs(r, n)):
        t += 77 * 10**9
        name = r.choice(["s1", "s2", "s3", ""])
        row = Row(t, k, input=r.randrange(1, 900))
        row.after = row.key = name or None
        took = r.randrange(0, 8000) / 1000
        row.end = t + round(took * 1e9) if elapsed else None
        rows.append(row)
        lines.append("%d,%s,%sGPT-4,%d,%d" % (t // 10**9, name, "%.3f," % took if elapsed else "", row.input, k))
    return "\n".join(lines) + "\n", rows, {"rebase": elapsed}


def azure(r):
    """Dates over the end of a month and of a leap year, with and without zones."""
    n = 16
    zero = r.choice([datetime.datetime(2023, 12, 31, 23, 59, 30), datetime.datetime(2024, 2, 28, 23, 59, 40),
                     datetime.datetime(2100, 2, 28, 23, 59, 40), datetime.datetime(1999, 10, 31, 11, 0, 0)])
    rows, lines = [], ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    epoch = datetime.datetime(1970, 1, 1)
    for t, k in zip(times(r, n, 1234567 * 10**3), outputs(r, n)):
        minutes = r.choice([None, 0, 90, -570, 840])
        local = zero + datetime.timedelta(minutes=minutes or 0, seconds=t // 10**9)
        zone = "" if minutes is None else r.choice(["Z", "+00:00"]) if minutes == 0 else "%s%02d:%02d" % (
            "-" if minutes < 0 else "+", abs(minutes) // 60, abs(minutes) % 60)
        at = (zero - epoch) // datetime.timedelta(seconds=1) * 10**9 + t // 10**9 * 10**9 + t % 10**9 // 100 * 100
        rows.append(Row(at, k, input=r.randrange(1, 900)))
        lines.append("%s.%07d%s,%d,%d" % (local.strftime("%Y-%m-%d" + r.choice("T ") + "%H:%M:%S"), t % 10**9 // 100, zone,
                                          rows[-1].input, k))
    return "\r\n".join(lines) + "\r\n", rows, {"rebase": True}


def other_csv(r):
    name, header = r.choice([("splitwise", "arrival_timestamp,prompt_size,token_size"),
                             ("vidur", "arrived_at,num_prefill_tokens,num_decode_tokens")])
    rows = [Row(t, k, input=r.randrange(1, 900)) for t, k in zip(times(r, 12, 10**8), outputs(r, 12))]
    text = header + "\n" + "".join("%.9f,%d,%d\n" % (x.start / 1e9, x.input, x.output) for x in rows)
    return name, text, rows


def blocks_of(r, rows, bt):
    """Prompts that begin as an earlier one does, or not; the last block is not whole."""
    known, fresh = [], iter(range(10, 10**6))
    for row in rows:
        base = r.choice(known)[:r.randrange(1, 6)] if known and r.random() < 0.75 else []
        row.blocks = base + [next(fresh) for _ in range(r.randrange(0 if base else 1, 3))]
        row.input = max(1, (len(row.blocks) - 1) * bt + r.randrange(1, bt + 1))
        known.append(row.blocks)


def mooncake(r):
    rows = [Row(t, k) for t, k in zip(times(r, 26, 5 * 10**8), outputs(r, 26))]
    blocks_of(r, rows, 512)
    text = "".join(json.dumps({"timestamp": x.start / 1e6, "input_length": x.input, "output_length": x.output,
                               "hash_ids": x.blocks}) + r.choice(["\n", "\n\n"]) for x in rows)
    return text, rows, {"block_tokens": 512}


def mooncake_sessions(r):
    """Sessions as AIPerf writes them, where a turn's length is what is new, or as Dynamo does, with whole prompts. Their turns
    wait for a delay, come at an instant, or follow at once; the clock of a delay has answers that take no time."""
    whole, bt, rows, lines, last, fresh = r.random() < 0.5, r.choice([16, 512]), [], [], {}, iter(range(10, 10**6))
    heads = [[next(fresh) for _ in range(r.randrange(1, 4))] for _ in range(3)]
    for at, k in zip(sorted(times(r, 30, 5 * 10**8)), r.sample(range(1, 4000), 30)):
        name = r.choice(["a", "é\t\"b", "c" * 300, "", None])
        before = last.get(name) if name else None
        row, o = Row(at, k, key=name or None), {}
        new = [next(fresh) for _ in range(r.randrange(1, 4))]
        if before is None:
            blocks = r.choice(heads)[:r.randrange(0, 4)] + new
            o["timestamp"] = at / 1e6
        else:
            row.after, blocks = name, before.blocks[:-1] + new if whole else new
            way, delay = r.random(), r.randrange(0, 4 * 10**6) * 1000
            if way < 0.5:
                o[r.choice(["delay", "delay_ms"])] = delay / 1e6
                row.start, before.end = before.start + delay, before.start
            elif way < 0.6 or at < before.start:
                o["timestamp"] = None
                row.start = before.end = before.start
            else:
                o[r.choice(["timestamp", "created_time"])] = at / 1e6
        row.blocks, row.input = blocks, (len(blocks) - 1) * bt + r.randrange(1, bt + 1)
        o.update({"input_length": row.input, "output_length": k, "group_id": 3,
                  "hash_ids": blocks if r.random() < 0.5 else [float(b) for b in blocks]})
        o.update({"session_id": name} if name is not None or r.random() < 0.3 else {})
        if before is not None and not whole:
            row.prefix = before.input + before.output
            row.input += row.prefix
            row.blocks = []
        last[name] = row
        rows.append(row)
        pairs = list(o.items())
        r.shuffle(pairs)
        lines.append(json.dumps(dict(pairs), ensure_ascii=r.random() < 0.5))
    if not whole:
        for x in rows:
            x.blocks = x.blocks if x.after is None else []
    return r.choice(["\n", "\r\n", "\n \n"]).join(lines), rows, {"block_tokens": bt, "grows": not whole}


def bailian(r):
    rows = []
    for i, (t, k) in enumerate(zip(times(r, 26, 5 * 10**8), outputs(r, 26))):
        parent = r.randrange(i) if i and r.random() < 0.6 else 77 if r.random() < 0.2 else None
        rows.append(Row(t, k, key=i, after=parent))
    blocks_of(r, rows, 16)
    text = "".join(json.dumps({"chat_id": x.key, "parent_chat_id": -1 if x.after is None else x.after, "turn": 1,
                               "timestamp": x.start / 1e9, "input_length": x.input, "output_length": x.output,
                               "hash_ids": x.blocks}) + "\n" for x in rows)
    return text, rows, {"block_tokens": 16}


def aiperf(r):
    rows, lines = [], []
    for t, k in zip(times(r, 24, 10**7), outputs(r, 24, 0)):
        t = (1700000000 * 10**9 + t) // 1024 * 1024  # a number of JSON has 53 bits
        name, turn, kind = r.choice(["u", "v", "w", ""]), r.randrange(3), r.random()
        row = Row(t, k, input=r.randrange(1, 900), key=name or None)
        row.after = row.key if turn > 0 else None
        row.end = t + r.randrange(10**6) * 1024 if r.random() < 0.7 else None
        meta = {r.choice(["x_correlation_id", "conversation_id"]): name, "turn_index": turn,
                r.choice(["request_start_ns", "timestamp_ns"]): t}
        if row.end is not None:
            meta["request_end_ns"] = row.end
        o = {"metadata": meta, "metrics": {"input_sequence_length": {"value": row.input, "unit": "tokens"},
                                           "output_sequence_length": {"value": k}}, "error": None}
        if kind < 0.1:
            meta[r.choice(["benchmark_phase", "credit_phase"])] = "warmup"
        elif kind < 0.25:
            row.output = 0
            o.update({"error": {"code": 500}} if kind < 0.18 else {})
            meta.update({} if kind < 0.18 else {"was_cancelled": True})
        if kind >= 0.1:
            rows.append(row)
        lines.append(json.dumps(o))
    return "\n".join(lines) + "\n", rows, {"rebase": True}


def vllm(r):
    rows = [Row(t + 99 * 10**9, k, input=r.randrange(1, 900)) for t, k in zip(times(r, 15, 10**8), outputs(r, 15))]
    # Without sessions an end is of nobody.
    text = json.dumps({"backend": "vllm", "start_times": [x.start / 1e9 for x in rows], "input_lens": [x.input for x in rows],
                       "output_lens": [x.output for x in rows], "ttfts": [0.5 for x in rows],
                       "itls": [[0.1, 0.2] for x in rows]})
    return text, rows, {"rebase": True}


def inference_perf(r):
    """Lengths by the server's usage or the client's count; those of 2025 have both counts in one place."""
    rows, items = [], []
    for t, k in zip(times(r, 15, 10**8), outputs(r, 15)):
        row = Row(t + 5 * 10**9, k, input=r.randrange(1, 900))
        info = r.choice([{"input_tokens": row.input, "output_tokens": k, "output_token_times": []},
                         {"input_tokens": row.input, "response_metrics": {"output_tokens": k, "server_usage": None}},
                         {"input_tokens": 7, "response_metrics": {"output_tokens": 8, "server_usage": {
                             "prompt_tokens": row.input, "completion_tokens": k}}}])
        failed = k == 0 and r.random() < 0.5
        items.append({"start_time": row.start / 1e9, "end_time": row.start / 1e9 + 0.5, "request": '{"messages": [{"content": "a"}]}',
                      "response": None if failed else "data", "info": None if failed else info,
                      "error": {"error_type": "E", "error_msg": ""} if failed else None})
        rows.append(row)
    return json.dumps(items, indent=r.choice([None, 2])), rows, {"rebase": True}


def guidellm(r):
    """Conversations over two benchmarks; what a cache served."""
    rows, benchmarks, tokens = [], [], iter(outputs(r, 24))
    for begin in (1700000000, 1700000100):
        good, errored = [], []
        for t, k in zip(times(r, 12, 10**7), tokens):
            t = begin * 10**9 + t // 10**9 * 10**9  # a number of JSON has 53 bits
            name, turn = r.choice(["a", "b", None]), r.randrange(3)
            row = Row(t, k, input=r.randrange(1, 900), key=name, end=t + r.randrange(9) * 10**9)
            row.after = name if turn > 0 else None
            cached = r.choice([None, 0, r.randrange(1000)])
            row.prefix = cached or 0
            if k == 0 and r.random() < 0.5:
                errored.append({"request_start_time": None})
            else:
                good.append({"request_start_time": t / 1e9, "request_end_time": row.end / 1e9, "prompt_tokens": row.input,
                             "output_tokens": k or None, "cached_tokens": cached, "info": {"conversation_id": name, "turn_index": turn}})
            rows.append(row)
        benchmarks.append({"requests": {"successful": good, "errored": errored, "incomplete": []}})
    return json.dumps({"metadata": {"guidellm_version": "0.8.1"}, "benchmarks": benchmarks}), rows, {"rebase": True}


def openai(r):
    """Chat completions, each by itself, and responses, which may continue an earlier one. Whole seconds. Or the answers of a batch."""
    rows, lines, batch = [], [], r.random() < 0.4
    for i, (t, k) in enumerate(zip(times(r, 24, 10**9), outputs(r, 24))):
        row = Row((1700000000 + t // 10**9) * 10**9, k, input=r.randrange(1, 900))
        one, two = ("prompt_tokens", "completion_tokens")
        o = {"id": "x%d" % i, "object": "chat.completion", "created": row.start // 10**9}
        if r.random() < 0.6:
            one, two = ("input_tokens", "output_tokens")
            o = {"id": "x%d" % i, "object": "response", "created_at": row.start // 10**9, "error": None, "previous_response_id": None}
            row.key = "x%d" % i
            earlier = [x.key for x in rows if x.key]
            if earlier and r.random() < 0.7:
                o["previous_response_id"] = row.after = r.choice(earlier)
        o["usage"] = {one: row.input, two: k}
        if r.random() < 0.5:
            row.prefix = r.randrange(1000)
            o["usage"][one + "_details"] = {"cached_tokens": row.prefix}
        rows.append(row)
        if i > 0 and k == 0:  # it failed, or was cut short
            o = r.choice([o, {"error": {"message": "no"}}, dict(o, usage=None), {x: o[x] for x in o if x != "usage"}])
        if batch:  # one of its lines has no answer
            o = {"id": "b%d" % i, "custom_id": "c%d" % i, "response": {"status_code": 200, "request_id": "q", "body": o}, "error": None}
            o = dict(o, response=None, error={"code": "expired"}) if i > 0 and k == 0 and r.random() < 0.5 else o
        lines.append(json.dumps(o) + "\n")
    return "".join(lines), rows, {"rebase": True}


def genai_perf(r):
    """With the server's usage, or by texts: pieces of the answer, and the prompt's characters over four."""
    rows, requests = [], []
    for t, k in zip(times(r, 10, 10**8), r.sample(range(1, 30), 10)):
        t = (1700000000 * 10**9 + t) // 1024 * 1024
        row = Row(t, k)
        parts = ["x" * r.randrange(1, 60), "\u00e9" * r.randrange(1, 30)]
        outputs = [{"response": 'data: {"choices":[{"delta":{"content":%s"%s"}}]}' % (r.choice(["", " "]), p)}
                   for p in [""] + ["w"] * k + [""]]
        if r.random() < 0.4:
            row.input = r.randrange(1, 900)
            outputs.append({"response": 'data: {"usage":{"prompt_tokens":%d,"completion_tokens": %d}}' % (row.input, k)})
        else:
            row.input = math.ceil(sum(map(len, parts)) / 4)
        message = r.choice([{"prompt": "".join(parts)}, {"messages": [{"role": "user", "content": p} for p in parts]},
                            {"messages": [{"content": [{"type": "text", "text": p} for p in parts]}]}])
        requests.append({"timestamp": t, "request_inputs": {"payload": json.dumps(message)},
                         "response_timestamps": [t + 1, t + 5], "response_outputs": outputs})
        rows.append(row)
    cut = r.randrange(1, 9)
    text = json.dumps({"experiments": [{"requests": requests[:cut]}, {"requests": requests[cut:]}]})
    return text, rows, {"rebase": True}


def conversations(r, chars):
    """Texts of people: answers are turns, after all that was said before. Returns text and turns of each conversation."""
    out, turns = [], []
    for _ in range(60):
        messages, before, asked, mine = [], 0, False, []
        for _ in range(r.randrange(1, 8)):
            answer = r.random() < 0.5
            text = r.choice("ab\u00fc\u4e2d") * r.randrange(0, 50)
            who = r.choice(["gpt", "assistant"]) if answer else r.choice(["human", "user", "system"])
            messages.append({r.choice(["from", "role"]): who, r.choice(["value", "content"]): text})
            tokens = math.ceil(len(text) / chars)
            if answer and asked and before > 0:
                mine.append((before, tokens))
                asked = False
            asked = asked or not answer
            before += tokens
        out.append({r.choice(["conversations", "messages"]): messages})
        turns.append([(a, b) for a, b in mine])
    return json.dumps(out), turns


def sharegpt(r):
    global checked
    chars, think, rate = r.choice([2, 4, 3.5]), r.choice([0.5, 10]), r.choice([6, 30])
    text, turns = conversations(r, chars)
    begins = []
    for factor in (1, 2):
        p = imported("sharegpt", text, {"chars": chars, "think": think, "rate": rate * factor})
        rows = list(csv.DictReader(line for line in p.stdout.split("\n") if line and not line.startswith("#")))
        sessions, gaps = {}, {}
        for x in sorted(rows, key=lambda x: (int(x["session_id"]), int(x["turn"]))):
            sessions.setdefault(x["session_id"], []).append(
                (int(x["input_tokens"]), int(x["output_tokens"]), int(x["prefix_tokens"])))
            gaps.setdefault(x["session_id"], []).append(float(x["gap_s"] or x["arrival_s"]))
        # Empty answers are requests that failed: the session goes on without them.
        want, failed, late = [], 0, {}
        for mine in turns:
            failed += sum(b == 0 for _, b in mine)
            kept, last = [], None
            for i, (a, b) in enumerate(mine):
                if b > 0:
                    wait = i if last is None else wait
                    kept.append((a, b, 0 if last is None else min(a, last)))
                    last = a + b
            if kept:
                late[tuple(kept)] = None if tuple(kept) in late else wait * think
                want.append(kept)
        got = list(sessions.values())
        if sorted(got) != sorted(want) or count(p.stderr, r"(\d+) requests? without output") != failed:
            fail("sharegpt: %d sessions, not %d: %s" % (len(got), len(want), p.stderr[:200]))
            return
        # Those that nothing else equals: when they began, without the time before their first answer.
        keys = {tuple(v): gaps[k][0] for k, v in sessions.items()}
        begins.append([keys[k] - wait for k, wait in sorted(late.items()) if wait is not None])
        whole = [round(g / think) * think for session in gaps.values() for g in session[1:]]
        if any(abs(g - w) > 1e-6 or w < think for w, g in zip(whole, (g for session in gaps.values() for g in session[1:]))):
            fail("sharegpt: turns begin %s s apart" % sorted({g for s in gaps.values() for g in s[1:]})[:5])
        checked += 3 * len(rows)
    if any(abs(a - 2 * b) > 1e-6 for a, b in zip(*begins)):
        fail("sharegpt: twice the rate is not half of the times")
    # The last of 60 begins is a sum of 60 exponentials, of which a few may have no turns: five standard errors.
    mean = 60 * 60 / rate
    if not 0.3 * mean < max(begins[0]) < mean * (1 + 5 / math.sqrt(60)):
        fail("sharegpt: the last conversation begins after %g s, not about %g" % (max(begins[0]), mean))


KINDS = [("plain", plain), ("burstgpt", burstgpt), ("azure", azure), ("mooncake", mooncake), ("mooncake", mooncake_sessions),
         ("bailian", bailian),
         ("aiperf", aiperf), ("vllm", vllm), ("genai-perf", genai_perf), ("inference-perf", inference_perf), ("guidellm", guidellm), ("openai", openai)]
for seed in range(4):
    r = random.Random(seed)
    for name, make in KINDS:
        text, rows, o = make(r)
        ways = [{}, {"from": 3, "to": 9}, {"rate_scale": 4, "class": "proactive", "named": True}, {"from": 2, "rate_scale": 0.5}]
        if name in ("mooncake", "bailian"):
            ways += [{"link": True}, {"share": True}, {"share": True, "from": 1, "to": 12}]
        if name == "plain":
            ways += [{"ask_history": True, "history": True}, {"class": "reactive"}]
        # Every way at least once over the seeds, and the first one always.
        for way in [ways[0]] + ways[1 + seed % 2::2]:
            check(name, text, rows, dict(o, **way))
    check(*other_csv(r), {})
    sharegpt(r)
    if seed < 2:
        name, make = [("plain", plain), ("aiperf", aiperf)][seed]
        sampled(name, make(r)[0], {})
if checked < 5000:
    fail("only %d numbers" % checked)
print("%d numbers of imported traces, %d wrong" % (checked, bad))
sys.exit(bad > 0)

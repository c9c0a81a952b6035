"""Agents of others, drawn: `trace import` of eight logs of agents, worked out again by the rules of traces/README.md."""
import csv
import json
import os
import random
import re
import subprocess
import sys
import time

X, DIR = sys.argv[1:]
MS, BASE = 10**6, 1780000000 * 10**9
bad = checked = 0


def fail(what):
    global bad
    bad += 1
    if bad < 20:
        print("FAILED: " + what)


class Request:
    """Its output tokens are its name: each has its own. Times in ms."""

    def __init__(self, start, end, output, agent, parent, **more):
        self.start, self.end, self.output, self.agent, self.parent = start, end, output, agent, parent
        self.input, self.prefix, self.model, self.tool, self.blocks = 0, 0, "m", False, []
        self.__dict__.update(more)


class Agent:
    def __init__(self, parent, place):
        self.parent, self.children, self.sent = parent, [], []
        self.job = parent.job if parent else place
        self.begun = self.waited = self.background = False
        self.origin = None


def ended_last(requests, by):
    """The one that ended last by then; of equals the later one."""
    found = None
    for r in requests:
        if r.end <= by and (found is None or r.end >= found.end):
            found = r
    return found


def common(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def sources(order, block_tokens):
    """What each prompt begins like: the turn before, or else the earliest request that has as much."""
    owner = {}
    for r in order:
        known = 0
        while known < len(r.blocks) and r.blocks[known] in owner:
            known += 1
        r.source = owner[r.blocks[known - 1]] if known else None
        shared = common(r.source.blocks, r.blocks) if r.source else 0
        if r.before and common(r.before.blocks, r.blocks) >= shared:
            r.source, shared = r.before, common(r.before.blocks, r.blocks)
        r.source = r.source if shared else None
        r.served = min(shared * block_tokens, r.input, r.source.input) if shared else r.served
        for b in r.blocks:
            owner.setdefault(b, r)


def last_of(agent):
    """What ends last of it and of those whom it started and did not wait for; of equals its own."""
    last = ended_last(agent.all, 10**15)
    for c in reversed(agent.children):
        if not c.waited and last_of(c).end > last.end:
            last = last_of(c)
    return last


def hide(agent):
    """Nobody waits for it, and so for nothing that it starts, now or later."""
    agent.background = True
    for x in agent.sent:
        x.background = True
    for c in agent.children:
        hide(c)


def graph(requests, block_tokens):
    """{output: (session, turn, background, ms of arrival or gap, input, prefix, prefix_of, parents, job, tool)}, counts."""
    lost = {"empty": 0, "other": 0, "overlapping": 0, "prefix": 0}
    lost["other"] = sum(r.model != requests[0].model for r in requests)
    lost["empty"] = sum(r.output == 0 for r in requests)
    order = sorted(requests, key=lambda r: r.start)
    agents, of = {}, {}
    for i, r in enumerate(order):
        a = agents.get(r.agent) if r.agent is not None else None
        if a is None:
            mother = agents.get(r.parent) if r.parent is not None and r.parent != r.agent else None
            a = Agent(mother, len(set(map(id, of.values()))))
            if r.agent is not None:
                agents[r.agent] = a
            if mother:
                mother.children.append(a)
            a.all = []
        a.all.append(r)
        of[id(r)] = a
    for r in order:
        a = of[id(r)]
        if not a.begun and a.parent:
            a.origin = ended_last(a.parent.sent, r.start)
        a.begun, r.background, r.parents, r.before, r.continued = True, a.background, [], None, False
        most = -1
        for x in a.sent:
            same = common(x.blocks, r.blocks)
            if not x.continued and x.end <= r.start and (same > 0 or not r.blocks):
                if r.before is None or same > most or (same == most and x.end >= r.before.end):
                    r.before, most = x, same
        lost["overlapping"] += r.before is None and bool(a.sent)
        after = r.before or ended_last(a.sent, r.start) or a.origin
        if r.before:
            r.before.continued = True
        elif after:
            r.parents.append(after)
        from_ms = after.end if after else r.start
        for c in a.children:
            if c.begun and not c.waited:
                c.waited = True
                last = last_of(c)
                if last.end <= r.start:
                    if last not in r.parents:
                        r.parents.append(last)
                    from_ms = max(from_ms, last.end)
                else:
                    hide(c)
        r.gap = r.start - from_ms
        most = min(r.input, r.before.input + max(1, r.before.output)) if r.before else 0
        lost["prefix"] += max(0, r.prefix - most)
        r.served, r.source = min(r.prefix, most), None
        r.turn = r.before.turn + 1 if r.before else 0
        r.first = r.before.first if r.before else r
        a.sent.append(r)
    if block_tokens:
        sources(order, block_tokens)
    zero = order[0].start
    out = {}
    for r in order:
        r.name = max(1, r.output)
    for r in order:
        waits = r.before is not None or bool(r.parents)
        served = r.served if r.before or r.source else 0
        source = r.source or (r.before if block_tokens else None)
        out[r.name] = (r.first.name, r.turn, r.background, r.gap if waits else r.start - zero, r.input, served,
                       source.name if source else None, frozenset(p.name for p in r.parents), of[id(r)].job, r.tool)
    jobs = {}
    for r in order:  # their numbers do not matter, but who is in which does
        jobs.setdefault(of[id(r)].job, len(jobs))
    return {k: v[:8] + (jobs[v[8]], v[9]) for k, v in out.items()}, lost


def read(text):
    rows = [r for r in csv.DictReader(line for line in text.split("\n") if line and not line.startswith("#"))]
    name = {r["request_id"]: int(r["output_tokens"]) for r in rows}
    first = {r["session_id"]: int(r["output_tokens"]) for r in rows if r["turn"] == "0"}
    out, jobs = {}, {}
    if len({int(r["output_tokens"]) for r in rows}) != len(rows):
        fail("a request is there twice")
    for r in sorted(rows, key=lambda r: int(r["request_id"])):
        parents = [p.split("+") for p in r["parent_ids"].split(";") if p]
        whole, _, part = (r["gap_s"] or r["arrival_s"]).partition(".")
        ns = int(whole) * 10**9 + int((part + "0" * 9)[:9])
        out[name[r["request_id"]]] = (
            first[r["session_id"]], int(r["turn"]), r["background"] == "1", ns / MS, int(r["input_tokens"]),
            int(r["prefix_tokens"]), name[r["prefix_of"]] if r.get("prefix_of") else None,
            frozenset(name[p[0]] if len(p) == 1 else (name[p[0]], round(float(p[1]) * 1000)) for p in parents),
            jobs.setdefault(r["client_id"], len(jobs)), r.get("gap_kind") == "tool")
        if (r["class"] == "proactive") != (r["background"] == "1"):
            fail("class %s of background %s" % (r["class"], r["background"]))
    return out


def count(note, pattern):
    m = re.search(pattern, note)
    return int(m.group(1)) if m else 0


def check(name, text, requests, block_tokens=0, tools=False, failed=0, untimed=0, unsent=0):
    want, lost = graph(requests, block_tokens)
    if not tools:
        want = {k: v[:9] + (False,) for k, v in want.items()}
    compare(name, text, want, dict(lost, failed=failed, untimed=untimed, unsent=unsent))


NOTES = {"empty": r"(\d+) answers? without tokens", "other": r"(\d+) requests? of another model",
         "overlapping": r"(\d+) requests? sent while", "prefix": r"can serve (\d+) more",
         "failed": r"(\d+) requests? without output", "untimed": r"(\d+) requests? without a time",
         "unsent": r"(\d+) requests? taken to begin", "gaps": r"(\d+) gaps? between",
         "not before": r"(\d+) requests? that had to wait for an instant"}


def compare(name, text, want, lost):
    global checked
    path = os.path.join(DIR, "source")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    p = subprocess.run([X, "trace", "import", path], capture_output=True, text=True)
    if p.returncode != 0:
        fail("%s: %s" % (name, p.stderr[:300]))
        return
    got = read(p.stdout)
    checked += 10 * len(want)
    if set(got) != set(want):
        fail("%s: %d requests, not %d: %s" % (name, len(got), len(want), p.stderr[:200]))
        return
    for k in sorted(got):
        if got[k] != want[k]:
            fail("%s: request of %d tokens: %s, not %s" % (name, k, got[k], want[k]))
            return
    said = {k: count(p.stderr, pattern) for k, pattern in NOTES.items()}
    if said != {k: lost.get(k, 0) for k in NOTES}:
        fail("%s: notes say %s, not %s" % (name, said, lost))


def drawn(r, n, overlap, nested=True):
    """Agents and their subagents. With overlap some send a request while another runs."""
    agents = [("a", None), ("b", None)]
    names = iter(r.sample(range(2, 3000), n))
    out, free = [], {}
    for i in range(n):
        if i and nested and r.random() < 0.25 and len(agents) < 9:
            agents.append((chr(ord("c") + len(agents)), r.choice(agents)[0]))
        agent, parent = r.choice(agents)
        start = free.get(agent, r.randrange(3000)) + r.randrange(0, 4000) * (r.random() < 0.9)
        if overlap and r.random() < 0.2:
            start = max(0, start - r.randrange(3000))
        if parent is not None:
            start = max(start, min((x.start for x in out if x.agent == parent), default=0) + 1)
        end = start + r.randrange(1, 5000)
        free[agent] = max(free.get(agent, 0), end)
        out.append(Request(start, end, next(names), agent, parent, input=r.randrange(1, 900), model=r.choice("mmmn")))
    # Who has not begun when its child does is nobody's parent: every parent has a request before.
    return out


def family(r):
    """Agents that ask once or twice, start others and leave the answer to them; the first one asks again, later."""
    names, out, letters = iter(r.sample(range(2, 3000), 200)), [], iter("%d" % i for i in range(200))

    def agent(parent, at, depth):
        who = next(letters)
        for _ in range(r.randrange(1, 3)):
            out.append(Request(at, at + r.randrange(1, 2000), next(names), who, parent, input=r.randrange(1, 900)))
            at = out[-1].end + r.randrange(0, 500)
        for _ in range(r.randrange(0, 4) if depth < 3 else 0):
            agent(who, at + r.randrange(1, 3000), depth + 1)
        return who
    for _ in range(3):
        first = agent(None, r.randrange(1, 20000), 0)
        later = max(x.end for x in out) + r.randrange(-6000, 2000)
        later = max(later, max(x.end for x in out if x.agent == first))
        out.append(Request(later, later + r.randrange(1, 2000), next(names), first, None, input=r.randrange(1, 900)))
    return out


def dynamo(r):
    requests = drawn(r, 30, True) if r.random() < 0.5 else family(r)
    for x in requests:
        if r.random() < 0.1:
            x.agent = x.parent = None
        if r.random() < 0.05 and not any(y.output == 0 for y in requests):
            x.output = 0
    beginnings(r, [x for x in requests if r.random() < 0.85], 16)
    lines = []
    for x in requests:
        at = 10**9
        request = {"model": x.model, "output_tokens": x.output}
        request.update({"request_received_ms": at + x.start, "total_time_ms": 1} if r.random() < 0.5 else
                       {"total_time_ms": x.end - x.start})
        if x.blocks:
            request["replay"] = {"trace_block_size": 16, "input_length": x.input, "input_sequence_hashes": x.blocks}
        else:
            request["input_tokens"] = x.input
        o = {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": at + x.end, "request": request}
        if x.agent is not None:
            kind = r.choice(["trajectory", "session"])
            o["agent_context"] = {kind + "_id": x.agent}
            if x.parent is not None:
                o["agent_context"]["parent_%s_id" % kind] = x.parent
        lines.append(json.dumps({"event": o} if r.random() < 0.3 else o))
        if r.random() < 0.1:
            lines.append(json.dumps({"schema": "dynamo.request.trace.v1", "event_type": "tool_end", "event_time_unix_ms": at}))
    check("dynamo", "\n".join(lines) + "\n", requests, 16)


def stamp(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(BASE // 10**9 + ms // 1000)) + ".%03dZ" % (ms % 1000)


def claude_code(r):
    """A main conversation and side chains. An answer is one message in lines, and was sent with the line before its first."""
    requests = [x for x in drawn(r, 26, False, False)]
    for x in requests:
        x.agent, x.parent = ("main", None) if x.agent == "a" else (r.choice(["x", "y"]), "main")
    free = {}
    for x in requests:  # a chain is a line of time
        x.start = max(free.get(x.agent, 0), x.start)
        x.end = x.start + r.randrange(1, 3000)
        free[x.agent] = x.end
    begin = min((x.start for x in requests if x.agent == "main"), default=0)
    for x in requests:
        if x.agent != "main" and x.start <= begin:
            x.start, x.end = x.start + begin + 1, x.end + begin + 1
    lines, failed, untimed, unsent, last = [], 0, 0, 0, {}
    for i, x in enumerate(requests):
        x.prefix, made, fresh = r.randrange(900), r.randrange(300), r.randrange(300)
        x.input, x.tool = max(1, x.prefix + made + fresh), r.random() < 0.4
        common = {"sessionId": "s", "isSidechain": x.agent != "main"}
        if x.agent != "main":
            common["agentId"] = x.agent
        question = {"type": "user", "uuid": "u%d" % i, "parentUuid": last.get(x.agent), "timestamp": stamp(x.start), "message": {
            "content": [{"type": "tool_result" if x.tool else "text"}] if r.random() < 0.7 or x.tool else "words"}}
        lines.append((x.start, dict(common, **question)))
        parts = r.randrange(1, 4)
        before = "u%d" % i
        for k in range(r.choice([0, 0, 1, 2])):  # what hooks add is between a result and the answer
            note = r.choice([{"type": "attachment", "attachment": {"type": "hook_success"}}, {"type": "system", "content": "words"},
                             {"type": "progress", "data": {"type": "hook_progress"}},
                             {"type": "user", "isMeta": True, "message": {"role": "user", "content": [{"type": "text"}]}}])
            lines.append((x.start, dict(common, uuid="h%d.%d" % (i, k), parentUuid=before, timestamp=stamp(x.start), **note)))
            before = "h%d.%d" % (i, k)
        steps = sorted(r.randrange(x.start, x.end + 1) for _ in range(parts - 1)) + [x.end]
        for k, at in enumerate(steps):
            usage = {"input_tokens": fresh, "cache_creation_input_tokens": made, "cache_read_input_tokens": x.prefix,
                     "output_tokens": x.output if k + 1 == parts else r.randrange(x.output)}
            lines.append((at, dict(common, type="assistant", uuid="a%d.%d" % (i, k), parentUuid=before, timestamp=stamp(at),
                                   requestId="r%d" % i, message={"id": "m%d" % i, "model": x.model, "usage": usage})))
            before = "a%d.%d" % (i, k)
        last[x.agent] = before
        if r.random() < 0.15:
            failed += 1
            lines.append((x.end, dict(common, type="assistant", uuid="f%d" % i, parentUuid=before, timestamp=stamp(x.end), message={
                "id": "f%d" % i, "model": "<synthetic>", "usage": {"input_tokens": 5, "output_tokens": 5}})))
        if r.random() < 0.1:
            untimed += 1
            lines.append((x.end, dict(common, type="assistant", uuid="t%d" % i, parentUuid=before, message={
                "id": "t%d" % i, "model": "m", "usage": {"input_tokens": 5, "output_tokens": 5}})))
    lines = [{"type": "summary", "isSidechain": False, "summary": "s"}] + [o for _, o in lines]
    if r.random() < 0.5:  # resumed: the second session begins with a copy of the first one's lines
        cut = r.randrange(2, len(lines))
        lines = lines[:cut] + [dict(o, sessionId="t") for o in lines[1:]]
    check("claude-code", "".join(json.dumps(o) + "\n" for o in lines), requests, 0, True, failed, untimed, unsent)


def codex(r):
    """Threads, each in a file of its own; a count of tokens ends a request, and says the same again without one."""
    requests = drawn(r, 24, False)
    threads = {}
    for x in requests:
        threads.setdefault(x.agent, []).append(x)
    lines, ordered, free, unsent, untimed, total = [], [], {}, 0, 0, 0
    files = {}
    for agent, mine in threads.items():
        meta = {r.choice(["id", "session_id"]): agent}
        if mine[0].parent is not None:
            meta.update({"parent_thread_id": mine[0].parent} if r.random() < 0.5 else
                        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": mine[0].parent}}}})
        elif files and r.random() < 0.5:
            meta["forked_from_id"] = r.choice(sorted(files))
        lines.append({"type": "session_meta", "timestamp": stamp(0), "payload": meta})
        source = meta.get("forked_from_id", mine[0].parent)
        mark, base = len(lines) - 1, 0
        if source in files and r.random() < 0.6:  # it begins with what the other one was, perhaps as if that were now
            copied = files[source][:r.randrange(1, len(files[source]) + 1)]
            lines += [dict(o, timestamp=stamp(mine[0].start)) for o in copied] if r.random() < 0.5 else copied
            lines.append({"type": "event_msg", "timestamp": stamp(mine[0].start), "payload": {"type": "task_started"}})
            base = max([o["payload"]["info"]["total_token_usage"]["total_tokens"] for o in copied if o["payload"].get("info")], default=0)
        last_total, total = total, 0
        for x in mine:
            x.start = max(x.start, free.get(agent, 0))
            x.end = x.start + r.randrange(2, 3000)
            x.prefix, x.tool, free[agent] = r.randrange(900), r.random() < 0.4, x.end
            def say(ms, payload, kind="response_item"):
                lines.append({"type": kind, "timestamp": stamp(ms), "payload": payload})
            lines.append({"type": "turn_context", "timestamp": stamp(x.start), "payload": {"model": x.model}})
            sent = r.random() < 0.85
            if sent:
                say(max(0, x.start - 1), {"type": "message", "role": "user"})
                say(x.start, {"type": "function_call_output"} if x.tool else r.choice(
                    [{"type": "user_message"}, {"type": "message", "role": "user"}]))
            else:
                unsent, x.tool = unsent + 1, False
            first = r.randrange(x.start, x.end) if sent else x.start
            say(first, r.choice([{"type": "reasoning"}, {"type": "function_call"}, {"type": "message", "role": "assistant"}]))
            if r.random() < 0.3:  # what comes while it answers is the next one's
                say(x.end - 1 if x.end - 1 >= first else first, {"type": "message", "role": "assistant"})
            if total == 0 and base == 0 and last_total > x.output and r.random() < 0.5:
                x.input = last_total - x.output  # as many as the thread before had in all
            total += x.input + x.output + (base if total == 0 else 0)
            info = {"last_token_usage": {"input_tokens": x.input, "cached_input_tokens": x.prefix, "output_tokens": x.output},
                    "total_token_usage": {"total_tokens": total}}
            say(x.end, {"type": "token_count", "info": info}, "event_msg")
            if r.random() < 0.3:
                say(x.end, {"type": "token_count", "info": r.choice([info, None])}, "event_msg")
            ordered.append(x)
        files[agent] = lines[mark:]
    check("codex", "".join(json.dumps(o) + "\n" for o in lines), ordered, 0, True, 0, untimed, unsent)


def otel(r):
    """Spans of agents around spans of requests, with tools between, in any order and as several documents. Where they name
    conversations, each agent has one, and a request that of its agent or one of its own."""
    requests = drawn(r, 24, True)
    named = r.random() < 0.5
    lines, spans, ids, invoked, ends = [], [], iter(range(1, 10**6)), {}, {}  # ends: of an agent's tools, in ms

    def span(parent, start, end, trace, **attributes):
        me = "%016x" % next(ids)
        values = {k: {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v} for k, v in attributes.items()}
        o = {"traceId": trace, "spanId": me, "startTimeUnixNano": str(BASE + start * MS), "endTimeUnixNano": str(BASE + end * MS),
             "attributes": [{"key": "gen_ai." + k.replace("__", "."), "value": v} for k, v in values.items()]}
        if parent:
            o["parentSpanId"] = parent
        spans.append(o)
        return me

    def agent(name, parent):
        if name not in invoked:
            mother = agent(*parent) if parent else None
            trace = mother[1] if mother else "trace-" + name
            tool = span(mother[0], 0, 1, trace, operation__name="execute_tool") if mother and r.random() < 0.5 else None
            if tool:
                ends.setdefault(parent[0], []).append(1)
            invoked[name] = (span(tool or (mother and mother[0]), 0, 1, trace, operation__name="invoke_agent",
                                  usage__input_tokens=77, **({"conversation__id": "of " + name} if named else {})), trace)
        return invoked[name]

    parents = {x.agent: x.parent for x in requests}
    chain = lambda name: (name, chain(parents[name]) if parents.get(name) else None)
    for x in requests:
        x.prefix = r.randrange(900)
        place, trace = agent(*chain(x.agent))
        now = r.random() < 0.5
        if r.random() < 0.4:
            end = x.start - r.choice([0, 0, 1, 50, 700])
            if end > 0:
                span(place, max(0, end - 20), end, trace, operation__name="execute_tool")
                ends.setdefault(x.agent, []).append(end)
        talk = {"conversation__id": "of " + x.agent if r.random() < 0.5 else "of %d" % next(ids)} if named else {}
        span(span(place, x.start, x.end, trace, operation__name="chain") if r.random() < 0.3 else place, x.start, x.end, trace,
             operation__name="chat", request__model=x.model, **talk,
             **{"usage__input_tokens" if now else "usage__prompt_tokens": x.input,
                "usage__output_tokens" if now else "usage__completion_tokens": x.output,
                "usage__cache_read.input_tokens" if now else "usage__cached_tokens": x.prefix})
    for agent_of in {x.agent for x in requests}:  # a tool of the agent ended since the request before it began
        mine = [x for x in requests if x.agent == agent_of]
        for x in mine:
            before = max((y.start for y in mine if y.start < x.start), default=10**15)
            x.tool = any(before < end <= x.start for end in ends.get(agent_of, []))
    if r.random() < 0.4:  # as the SDK of JavaScript has them: a span a line, among metrics and events
        lines = [json.dumps({"hrTime": [1, 2], "body": "event", "instrumentationScope": {"name": "c"}}),
                 json.dumps({"resource": {}, "scopeMetrics": [{"metrics": []}]})]
        for s in spans:
            start, end = int(s["startTimeUnixNano"]), int(s["endTimeUnixNano"])
            values = {a["key"]: int(v["intValue"]) if "intValue" in v else v["stringValue"] for a in s["attributes"] for v in [a["value"]]}
            lines.append(json.dumps({"resource": {"attributes": {}}, "instrumentationScope": {"name": "c"}, "traceId": s["traceId"],
                                     "spanId": s["spanId"], "parentSpanId": s.get("parentSpanId"), "name": "n",
                                     "startTime": divmod(start, 10**9), "endTime": divmod(end, 10**9), "attributes": values}))
        check("otel", "\n".join(lines) + "\n", requests, 0, True)
        return
    cut = len(spans) // 2
    for part in (spans[:cut], spans[cut:]) if r.random() < 0.5 else (spans[:cut], spans[cut:], spans[:cut]):  # some are sent twice
        lines.append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": part[::2]}, {"spans": part[1::2]}]}]}))
    # In the order in which the requests stand there.
    place = {s["startTimeUnixNano"] + s["endTimeUnixNano"] + str(next((a["value"].get("intValue") for a in s["attributes"]
             if "output" in a["key"] or "completion" in a["key"]), "")): i
             for i, s in enumerate(spans[:cut][::2] + spans[:cut][1::2] + spans[cut:][::2] + spans[cut:][1::2])}
    requests.sort(key=lambda x: place["%d%d%d" % (BASE + x.start * MS, BASE + x.end * MS, x.output)])
    check("otel", "\n".join(lines) + "\n", requests, 0, True)


def beginnings(r, requests, block_tokens):
    """Prompts that begin as an earlier one does, or not; the last block is not whole."""
    known, fresh = [], iter(range(10, 10**6))
    for x in sorted(requests, key=lambda x: x.start):
        base = r.choice(known)[:r.randrange(1, 5)] if known and r.random() < 0.7 else []
        x.blocks = base + [next(fresh) for _ in range(r.randrange(0 if base else 1, 3))]
        x.input = max(1, (len(x.blocks) - 1) * block_tokens + r.randrange(1, block_tokens + 1))
        known.append(x.blocks)


def weka(r):
    """A session with nested subagents, which their agent waits for, or not, or never meant to."""
    names, every, lost = iter(r.sample(range(2, 3000), 60)), [], {"overlapping": 0, "gaps": 0, "other": 0, "empty": 0}

    def draw(begin, depth):
        """Requests and subagents of an agent, as they stand there."""
        at, things = begin, []
        for _ in range(r.randrange(2, 6 - depth)):
            at += r.randrange(1, 4000)
            if depth < 2 and things and r.random() < 0.4:
                things.append((at, r.choice(["async_launched", "done", None]), draw(at, depth + 1) if r.random() < 0.9 else []))
                continue
            known = r.random() < 0.85
            x = Request(at, at + (r.randrange(1, 6000) if known else 0), next(names), None, None, known=known, model=r.choice("mmmn"))
            every.append(x)
            things.append(x)
        return things

    def text(things, base, relative):
        out = []
        for x in things:
            if isinstance(x, tuple):
                o = {"t": (x[0] - base) / 1000, "type": "subagent", "requests": text(x[2], x[0] if relative else base, relative)}
                out.append(dict(o, status=x[1]) if x[1] else o)
                continue
            o = {"t": (x.start - base) / 1000, "type": r.choice("ns"), "model": x.model, "in": x.input, "out": x.output,
                 "hash_ids": x.blocks}
            out.append(dict(o, api_time=(x.end - x.start) / 1000) if x.known else o)
        return out

    def read_again(things, origin, rows):
        sent, children = [], []
        for x in things:
            if isinstance(x, tuple):
                mine = []
                last = read_again(x[2], ended_last(sent, x[0]) or origin, mine)
                rows += mine
                apart = x[1] == "async_launched" or not mine
                for y in mine if x[1] == "async_launched" else []:
                    y.background = True
                children.append([last, mine, apart])
                continue
            x.background, x.parents, x.before, x.continued, most = False, [], None, False, -1
            for y in sent:
                same = common(y.blocks, x.blocks)
                if not y.continued and y.end <= x.start and same > 0 and (
                        x.before is None or same > most or (same == most and y.end >= x.before.end)):
                    x.before, most = y, same
            lost["overlapping"] += x.before is None and bool(sent)
            after = x.before or ended_last(sent, x.start) or origin
            if x.before:
                x.before.continued = True
            elif after:
                x.parents.append(after)
            lost["gaps"] += after is not None and not after.known
            from_ms = after.end if after else x.start
            for c in children:
                if not c[2] and c[0].end <= x.start:
                    x.parents += [c[0]] if c[0] not in x.parents else []
                    from_ms = max(from_ms, c[0].end)
                elif not c[2]:
                    for y in c[1]:
                        y.background = True
                c[2] = True
            x.gap, x.served, x.source = x.start - from_ms, 0, None
            x.turn, x.first = (x.before.turn + 1, x.before.first) if x.before else (0, x)
            rows.append(x)
            sent.append(x)
        last = ended_last(sent, 10**15)
        for c in children:
            last = c[0] if not c[2] and (last is None or c[0].end > last.end) else last
        return last

    things = draw(0, 0)
    relative = r.random() < 0.5 and any(isinstance(x, tuple) and x[2] and x[2][0].start - x[0] < x[0] for x in things)
    beginnings(r, every, 64)
    rows = []
    read_again(things, None, rows)
    sources(sorted(rows, key=lambda x: x.start), 64)
    lost["other"] = sum(x.model != rows[0].model for x in rows)
    o = {"id": "s", "models": ["m"], "block_size": 64, "hash_id_scope": r.choice(["local", "global"]),
         "requests": text(things, 0, relative)}
    want = {}
    for x in rows:
        waits, source = x.before is not None or bool(x.parents), x.source or x.before
        want[x.output] = (x.first.output, x.turn, x.background, x.gap if waits else x.start, x.input,
                          x.served if x.before or x.source else 0, source.output if source else None,
                          frozenset(p.output for p in x.parents), 0, False)
    compare("weka", json.dumps(o) + "\n", want, lost)


def agentic_mooncake(r):
    """What each request waits for, in all: so long after the ends of others, or after what another waits for."""
    lines = [{"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 64, "hash_id_scope": "local"}]
    names, done, want, sessions, jobs = iter(r.sample(range(2, 3000), 40)), [], {}, {}, {}
    lost, known = {"not before": 0, "other": 0}, []
    for i in range(24):
        play, session = r.choice("pq"), r.choice("st")
        x = Request(r.choice([0, 0, r.randrange(1, 5000)]), 0, next(names), None, None, model=r.choice("mmn"), play=play)
        x.waits, x.id, x.priority, x.served, dependencies = {}, "r%d" % i, r.choice([0, 3]), 0, []
        base = r.choice(known)[:r.randrange(1, 4)] if known and r.random() < 0.7 else []  # also of the other play
        x.blocks = base + [100 * i + k for k in range(r.randrange(0 if base else 1, 3))]
        x.input = max(1, (len(x.blocks) - 1) * 64 + r.randrange(1, 65))
        known.append(x.blocks)
        others = [y for y in done if y.play == play]
        stated = x.start
        for y in r.sample(others, min(len(others), r.randrange(3))):
            delay, dispatch = r.randrange(500), r.random() < 0.3
            dependencies.append({"request_id": y.id, "trigger": "dispatch" if dispatch else "completion", "delay_ms": delay})
            for z, ms in (y.waits.items() if dispatch else [(y, 0)]):
                x.waits[z] = max(x.waits.get(z, 0), ms + delay)
            if dispatch and not y.waits:
                x.start = max(x.start, y.start + delay)
        least = min(x.waits.values(), default=0)
        last = sessions.get((play, session))
        x.before = last if last is not None and x.waits.get(last) == least else None
        x.turn, x.first = (x.before.turn + 1, x.before.first) if x.before else (0, x)
        lost["not before"] += bool(x.waits) and x.start > 0
        lost["other"] += bool(done) and x.model != done[0].model
        arrival = x.start
        x.start = max([x.start] + [y.start for y in x.waits])
        lines.append({"request_id": x.id, "play_id": play, "session_id": session, "model": x.model, "not_before_ms": stated,
                      r.choice(["input_length", "input_tokens"]): x.input, r.choice(["output_length", "output_tokens"]): x.output,
                      "hash_ids": x.blocks, "priority": x.priority, "dependencies": dependencies})
        x.arrival, x.least = arrival, least
        sessions[play, session] = x
        done.append(x)
    for play in "pq":
        sources(sorted((x for x in done if x.play == play), key=lambda x: x.start), 64)
    for x in done:
        parents = frozenset((y.output, ms - x.least) for y, ms in x.waits.items() if y is not x.before)
        source = x.source or x.before
        want[x.output] = (x.first.output, x.turn, False, x.least if x.waits else x.arrival, x.input,
                          x.served if x.before or x.source else 0, source.output if source else None, parents,
                          jobs.setdefault(x.play, len(jobs)), False)
    compare("agentic-mooncake", "".join(json.dumps(o) + "\n" for o in lines),
            {k: v[:7] + (frozenset(p if p[1] else p[0] for p in v[7]),) + v[8:] for k, v in want.items()}, lost)


def copilot(r):
    """Sessions of calls that say when they ended and how long they took; helpers have no tokens."""
    requests = drawn(r, 24, r.random() < 0.5, nested=False)
    sessions, failed, untimed, unsent = {}, 0, 0, 0
    for x in requests:
        x.prefix, x.tool = r.randrange(900), r.random() < 0.5
        tokens = {"prompt": x.input, "completion": x.output, "cached": x.prefix}
        if x.prefix < 100:
            x.prefix = 0
            tokens["cached"] = None
        call = {"timestamp": stamp(x.end), "duration_ms": float(x.end - x.start), "model": x.model,
                "initiator_type": "agent" if x.tool else "user", "tokens": tokens}
        if r.random() < 0.1:
            x.start, unsent = x.end, unsent + 1
            call["duration_ms"] = None
        calls = [call]
        if r.random() < 0.2:
            failed += 1
            calls.append(dict(call, tokens=r.choice([{}, {"prompt": None, "completion": None}, {"prompt": 0, "completion": 3}])))
        if r.random() < 0.1:
            untimed += 1
            calls.insert(0, dict(call, timestamp=r.choice(["", "noon", None])))
        turns = sessions.setdefault(x.agent, [[]])
        if r.random() < 0.3:
            turns.append([])
        turns[-1] += calls
    lines = [{"session_id": k, "date": "2026-06-01", "turns": [{"turn_id": "t", "llm_calls": t, "tool_batches": None} for t in v]}
             for k, v in sessions.items()]
    order = [x for k in sessions for x in requests if x.agent == k]
    check("copilot", "".join(json.dumps(o) + "\n" for o in lines), order, 0, True, failed, untimed, unsent)


def tracelab(r):
    """Rounds of sessions: sent with the last input before the answer, over with the answer's last part."""
    global checked
    answers = ["text", "reasoning", "tool_call", "usage_report"]
    lines, want, free, untimed, first = [], {}, {}, 0, None
    for output in r.sample(range(1, 3000), 20):
        who = (r.choice("pq"), r.choice("fg"), r.choice("st"))
        start = free.get(who, 0) + r.randrange(1, 3000)
        end = start + r.randrange(1, 3000)
        inputs = [start] + [r.randrange(start) for _ in range(r.randrange(2))]
        parts = [end] + [r.randrange(start, end + 1) for _ in range(r.randrange(3))]
        events = [{"event_type": "tool_result", "timestamp": stamp(t)} for t in inputs]
        events += [{"event_type": r.choice(answers), "timestamp": stamp(t)} for t in parts]
        r.shuffle(events)
        o = {"project": who[0], "session_file": who[1], "session_id": who[2], "input_tokens_total": r.randrange(1, 900),
             "prefix_tokens": r.randrange(900), "newly_append_tokens": 1, "output_tokens": output, "timing_events": events}
        if r.random() < 0.1:
            untimed += 1
            o["timing_events"] = []
        else:
            free[who] = end
            want.setdefault(who, []).append((start, end, o["input_tokens_total"], min(o["prefix_tokens"], o["input_tokens_total"]), output))
        lines.append(json.dumps(o))
    path = os.path.join(DIR, "source")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    p = subprocess.run([X, "trace", "import", path], capture_output=True, text=True)
    zero = min(turns[0][0] for turns in want.values())
    expected = {}
    for turns in want.values():
        for i, (start, end, n, prefix, output) in enumerate(turns):
            left = turns[i - 1][2] + turns[i - 1][4] if i else 0  # of the round before
            expected[output] = (i, start - zero if i == 0 else start - turns[i - 1][1], n, min(prefix, left))
    got = {int(x["output_tokens"]): (int(x["turn"]), round(float(x["gap_s"] or x["arrival_s"]) * 1000), int(x["input_tokens"]),
                                     int(x["prefix_tokens"]))
           for x in csv.DictReader(line for line in p.stdout.split("\n") if line and not line.startswith("#"))}
    checked += 4 * len(expected)
    if got != expected or count(p.stderr, r"(\d+) requests? without a time") != untimed:
        fail("tracelab: %s" % [(k, got.get(k), expected[k]) for k in expected if got.get(k) != expected[k]][:3])


def places(r):
    """What is wrong with a request is said with the line on which it begins: blank lines count, and lines of a value."""
    global checked
    far = [(1000, 6), (2 * 10**12, 7)]  # ms: two turns, 63 years apart
    values = [{"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": at, "agent_context": {"session_id": "a"},
               "request": {"model": "m", "input_tokens": 5, "output_tokens": output, "total_time_ms": 1}} for at, output in far]
    text = json.dumps(values[0], indent=r.choice([None, 1])) + "\n" * r.randrange(1, 5) + " "
    want = text.count("\n") + 1
    checked += 2
    for what, last, line in (("31 years", json.dumps(values[1]), want), ("malformed JSON", "{\n\n nothing", want)):
        path = os.path.join(DIR, "source")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text + last)
        p = subprocess.run([X, "trace", "import", path], capture_output=True, text=True)
        if p.returncode != 2 or "source:%d: " % line not in p.stderr or what not in p.stderr:
            fail("places: %s, not on line %d" % (p.stderr[:120], line))
    with open(path, "w", encoding="utf-8") as f:
        f.write("arrival_s,input_tokens,output_tokens,session_id\n" + "".join("%d-01-01 00:00:00,9,9,a\n" % y for y in (1980, 2030)))
    p = subprocess.run([X, "trace", "import", path], capture_output=True, text=True)
    if "source:3: " not in p.stderr:
        fail("places: %s" % p.stderr[:120])


for seed in range(8):
    places(random.Random("places %d" % seed))
    for make in (dynamo, claude_code, codex, copilot, otel, tracelab, weka, agentic_mooncake):
        make(random.Random("%s %d" % (make.__name__, seed)))
if checked < 5000:
    fail("only %d numbers" % checked)
print("%d numbers of imported agents, %d wrong" % (checked, bad))
sys.exit(bad > 0)

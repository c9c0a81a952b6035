"""`observe` against a server of known answers (tests/helpers/curl/scripted.c), on random traces: what was sent and when, and what a row
says, worked out again. A request's max_tokens is its name.

    observed_check.py XPUSIM LIBRARY FOLDER [SEEDS]
"""
import csv
import json
import os
import random
import re
import subprocess
import sys

X, LIBRARY, DIR = sys.argv[1:4]
SEEDS = int(sys.argv[4]) if len(sys.argv) > 4 else 40
PATHS = [os.path.dirname(LIBRARY)] + [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p]
MS, S = 10**6, 10**9
WATTS, WRAPS = 20, 50000000  # of the package: its counter begins again after 2.5 s
LATE = MS + 1000  # a due request is sent within a millisecond, and files have microseconds
bad = checked = 0
longest = 0.0  # replay, s


def fail(what):
    global bad
    bad += 1
    if bad < 20:
        print("FAILED: " + what)


class Row:
    def __init__(self, n, **more):
        self.id, self.name = n, 11 + 3 * n
        self.session, self.turn, self.after, self.next = n, 0, None, None
        self.arrival = self.gap = 0  # ns
        self.parents = []            # (row, ns)
        self.input, self.prefix, self.group, self.source = 0, 0, None, None
        self.cls, self.cancel, self.until = "reactive", None, None
        self.model = ""
        self.__dict__.update(more)


# ---- a trace

def sessions(r, n):
    rows = []
    for i in range(n):
        row = Row(i, cls=r.choice(["reactive", "proactive"]))
        ends = [x for x in rows if x.next is None]
        if ends and r.random() < 0.5:
            last = r.choice(ends)
            last.next, row.after, row.session, row.turn = row, last, last.session, last.turn + 1
            row.gap, row.prefix = r.randrange(1, 400) * MS, r.choice([0, last.input // 2, last.input, last.input + r.randrange(1, 25)])
            row.until = r.choice([None, None, r.randrange(200, 2000) * MS])
        else:
            row.arrival = r.randrange(1, 1500) * MS
        row.input = row.prefix + r.randrange(9, 60)
        row.cancel = r.randrange(20, 300) * MS if r.random() < 0.2 else None
        rows.append(row)
    return rows


def graph(r, n):
    rows = []
    for i in range(n):
        row = Row(i, cls=r.choice(["reactive", "proactive"]))
        if rows and r.random() < 0.75:
            for p in r.sample(rows, min(len(rows), r.randrange(1, 4))):
                row.parents.append((p, r.choice([0, r.randrange(1, 500) * MS])))
            row.gap = r.choice([0, r.randrange(1, 200) * MS])
        else:
            row.arrival = r.randrange(1, 800) * MS
        row.model = r.choice(["", "small", "big"])
        kind = r.random()
        if kind < 0.3:
            row.group, row.prefix = r.randrange(1, 3), 20
        elif kind < 0.6 and row.parents:
            row.source = row.parents[0][0]
            row.prefix = row.source.input - r.randrange(0, 5)
        row.input = row.prefix + r.randrange(9, 60)
        rows.append(row)
    return rows


def seconds(ns):
    return "%.9f" % (ns / S)


def trace_of(rows, is_graph):
    lines = ["# xpusim-trace v%d" % (2 if is_graph else 1),
             "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,cancel_s,until_s" +
             (",prefix_group,prefix_of,model,parent_ids" if is_graph else "")]
    for x in rows:
        waits = x.turn > 0 or x.parents
        cells = [x.id, x.session, x.turn, x.cls, "" if waits else seconds(x.arrival), seconds(x.gap) if waits else "",
                 x.input, x.name, x.prefix, seconds(x.cancel) if x.cancel else "", seconds(x.until) if x.until else ""]
        if is_graph:
            cells += [x.group or "", x.source.id if x.source else "", x.model,
                      ";".join("%d+%s" % (p.id, seconds(ns)) if ns else "%d" % p.id for p, ns in x.parents)]
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


# ---- a server

def event(o):
    return "data: %s" % json.dumps(o)


class Answer:
    """What comes for a request, and what a row should say of it: status, http, tokens, prompt, first and last text in ns."""

    def __init__(self, r, row, chat, timeout):
        self.pieces, self.end = [], None
        self.first = self.last = None
        self.prompt, self.said, self.texts, self.spoken, self.answer = None, None, 0, 0, ""
        self.row, self.at = row, 0
        kind = r.choice(["ok"] * 8 + ["http", "gone", "cut", "broken", "error", "empty", "hangs"])
        status = {"http": "http", "gone": "refused", "cut": "broken", "broken": "broken", "error": "broken", "empty": "empty",
                  "hangs": None}.get(kind, "ok")
        http, code = 200, 0
        if kind in ("http", "gone"):
            http, code = (r.choice([400, 404, 429, 500, 503]), 0) if kind == "http" else (0, 7)
        else:
            self.stream(r, chat, kind)
            code = r.choice([18, 56]) if kind == "broken" else 0
        self.at += r.randrange(1, 40) * MS
        limit = min(timeout, row.cancel or timeout)
        late = kind == "hangs" or self.at > limit
        if late:
            status = "cancelled" if limit < timeout else "timeout"
            self.pieces = [p for p in self.pieces if p[0] < limit]
            self.at = limit
            http = 200 if self.pieces else 0
        self.whole = not late and code == 0
        self.count()
        self.status, self.http = status, http
        self.script = ["data %d %d %s" % (row.name, at, text.replace("\n", "\\n").replace("\r", "\\r")) for at, text in self.pieces]
        if not late:
            self.script.append("end %d %d %d %d" % (row.name, self.at, code, http))

    def stream(self, r, chat, kind):
        """Lines of a stream, a few at a time, and cut anywhere."""
        lines = []
        usage = r.choice([None, "last", "each"])
        self.row_tokens = r.randrange(100, 5000)
        n = 0 if kind == "empty" else r.randrange(1, 6)
        said = 0
        if chat:
            lines.append(event({"choices": [{"delta": {"role": "assistant", "content": ""}}]}))
        for k in range(n):
            word = r.choice(["w%d " % k, "\u00e9 ", '"\\ ', "a b "])
            said += len(word.split())
            thought = chat and k < n - 1 and r.random() < 0.3
            part = {"delta": {r.choice(["reasoning", "reasoning_content"]) if thought else "content": word}} if chat else {"text": word}
            o = {"id": "x", "choices": [part]}
            if usage == "each":
                o["usage"] = {"prompt_tokens": self.row_tokens, "completion_tokens": said}
            lines.append(event(o))
            if r.random() < 0.2:
                lines.append(r.choice([": ping", "", "event: x", "data: {\"choices\": 7", "retry: 10"]))
        if kind == "error":
            lines.append(event({"error": r.choice(["overloaded", {"message": "no", "code": 500}])}))
        if usage == "last":
            lines.append(event({"choices": [], "usage": {"prompt_tokens": self.row_tokens, "completion_tokens": said + 7}}))
        elif r.random() < 0.5:
            lines.append(event({"choices": [], "usage": None}))
        if kind not in ("cut", "broken", "hangs"):
            lines.append(r.choice(["data: [DONE]", "data:[DONE]"]))
        end = r.choice(["\n\n", "\r\n\r\n", "\n"])
        text = "".join(line + end for line in lines)
        text = text.rstrip() if r.random() < 0.2 else text  # the last line ends with the stream
        while text:
            self.at += r.randrange(1, 30) * MS + r.randrange(1, 999) * 1000
            size = r.choice([1 + r.randrange(30), 1 + r.randrange(400), len(text)])
            self.pieces.append((self.at, text[:size]))
            text = text[size:]

    def count(self):
        """Reads the stream again, piece by piece: a line counts when its end is there."""
        rest = ""
        for at, text in self.pieces + ([(self.at, "\n")] if self.whole else []):
            *lines, rest = (rest + text).replace("\r", "").split("\n")
            for line in lines:
                if not line.startswith("data:") or line[5:].strip() == "[DONE]":
                    continue
                try:
                    o = json.loads(line[5:])
                except json.JSONDecodeError:
                    continue
                choices = o.get("choices") or [{}]
                delta = choices[0].get("delta", {})
                texts = [choices[0].get("text"), delta.get("content"), delta.get("reasoning_content"), delta.get("reasoning")]
                if any(texts):
                    self.first = at if self.texts == 0 else self.first
                    self.last = at
                    self.texts += 1
                    self.answer += texts[0] or texts[1] or ""
                    self.spoken += bool(texts[0] or texts[1])
                if o.get("usage"):
                    self.prompt, self.said = o["usage"]["prompt_tokens"], o["usage"]["completion_tokens"]
        self.tokens = self.said if self.texts and self.said else self.texts
        # Those that are no reasoning: every piece has as many.
        self.spoken = int(self.spoken * self.tokens / self.texts + 0.5) if self.texts else 0


# ---- what comes of it

def expect_times(rows, answers, got, scale):
    """When each request is due, from the instants at which those before it ended."""
    end = {}
    for x in sorted(got, key=lambda x: got[x]["at"]):
        end[x] = got[x]["at"] + answers[x].at
    for x in rows:
        before = [x.after] if x.after else [p for p, _ in x.parents]
        if any(p not in end for p in before):
            due = None
        elif x.after:
            due = end[x.after] + int(x.gap * scale)
        elif x.parents:
            due = max(end[p] + int(ns * scale) for p, ns in x.parents) + int(x.gap * scale)
        else:
            due = int(x.arrival * scale)
        if due is not None and before and x.until is not None:
            over = int(x.until * scale)
            if abs(due - over) < 3 * LATE:
                continue  # either
            due = None if due > over else due
        yield x, due


def check_prompts(x, got, answers, body, words, what):
    """A prompt has the words that its length is, and begins with what the trace says."""
    global checked
    text = body["messages"][0]["content"] if "messages" in body else body["prompt"]
    source = x.source or (x.after if x.prefix else None)
    share = words(x.prefix) if x.prefix else 0
    if source is not None and source in got:
        first = got[source]["prompt"]
        mine, theirs = text.split(), first.split()
        n = min(share, words(source.input))
        # An answer may end in the middle of a word, and its words have any length.
        if not got[source]["mixed"] and mine[:n] != theirs[:n]:
            fail("%s: the prompt does not begin with %d words of request %d" % (what, n, source.id))
        answered = words(answers[source].spoken, 0)
        whole, own = first + answers[source].answer, words(x.input) - words(source.input) - answered
        if answered > 0 and share >= words(source.input) + answered:
            if not text.startswith(whole):
                fail("%s: the prompt does not begin with request %d and its answer" % (what, source.id))
            elif len(text[len(whole):].split()) != max(0, own):
                fail("%s: %d words behind request %d and its answer, not %d" % (what, len(text[len(whole):].split()), source.id, own))
        got[x]["mixed"] = got[source]["mixed"] or share > words(source.input)
    if not got[x]["mixed"] and len(text.split()) != max(1, words(x.input)):
        fail("%s: a prompt of %d words for %d tokens" % (what, len(text.split()), x.input))
    checked += 3
    got[x]["prompt"] = text


def check(seed):
    global checked, longest
    r = random.Random(seed)
    is_graph = r.random() < 0.5
    rows = (graph if is_graph else sessions)(r, r.randrange(3, 14))
    chat, scale, timeout = r.random() < 0.5, r.choice([1, 1, 0.25, 3]), r.choice([120, 5000]) * MS
    says = r.choice(["", "ask", "tokenize"])
    word, fixed = (r.choice([1, 2]), r.randrange(0, 5)) if says else (1, 0)
    answers = {x: Answer(r, x, chat, timeout) for x in rows}
    path = os.path.join(DIR, "script")
    if os.path.exists(path + ".log"):
        os.remove(path + ".log")
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for a in answers.values() for line in a.script) + ("%s %d %d\n" % (says, word, fixed) if says else ""))
    with open(os.path.join(DIR, "trace.csv"), "w", encoding="utf-8") as f:
        f.write(trace_of(rows, is_graph))
    url, model = "http://host.test:8/v1", r.choice(["default", "some/model"])
    command = [X, "observe", "--url", url, "--trace", os.path.join(DIR, "trace.csv"), "--scale", str(scale), "--timeout",
               str(timeout / S)] + (["--chat"] if chat else []) + (["--model", model] if model != "default" else [])
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    env = dict(os.environ, SCRIPT=path, ASAN_OPTIONS=options, LD_PRELOAD=LIBRARY, LD_LIBRARY_PATH=":".join(PATHS))
    zone = os.path.join(DIR, "rapl", "intel-rapl:0")
    os.makedirs(zone, exist_ok=True)
    for name, text in (("name", "package-0"), ("energy_uj", "0"), ("max_energy_range_uj", str(WRAPS))):
        with open(os.path.join(zone, name), "w", encoding="utf-8") as f:
            f.write(text + "\n")
    env.update(XPUSIM_RAPL_DIR=os.path.dirname(zone), METER=os.path.join(zone, "energy_uj"), METER_WATTS=str(WATTS), METER_UJ=str(WRAPS))
    p = subprocess.run(command, capture_output=True, text=True, env=env)
    what = "seed %d" % seed
    drew = re.search(r"package drew ([0-9.]+) J in ([0-9.]+) s", p.stderr)
    if drew is None or abs(float(drew[1]) - WATTS * float(drew[2])) > 0.05 + 0.005 * WATTS:  # as they are rounded
        fail("%s: %s at %d W" % (what, drew and drew[0], WATTS))
    longest = max(longest, float(drew[2])) if drew else longest
    lines = p.stdout.split("\n")
    if lines[:2] != ["# xpusim-run v1", "# observed at %s, model %s" % (url, model)]:
        fail("%s: head %s, %s" % (what, lines[:2], p.stderr[:200]))
        return
    by_id = {x.id: x for x in rows}
    got = {}
    for o in csv.DictReader(line for line in lines if line and line[0] != "#"):
        got[by_id[int(o["request_id"])]] = dict(o, at=round(float(o["arrival_s"]) * S), mixed=False)
    for x, due in expect_times(rows, answers, got, scale):
        if (due is None) != (x not in got):
            fail("%s: request %d is %s" % (what, x.id, "sent" if x in got else "not sent"))
        elif due is not None and not due - 1000 <= got[x]["at"] <= due + LATE:
            fail("%s: request %d, due at %.6f s, is sent at %s" % (what, x.id, due / S, got[x]["arrival_s"]))
    log = [line.split(" ", 3) for line in open(path + ".log", encoding="utf-8")]
    bodies = {json.loads(body)["max_tokens"]: (int(at), int(ms), to, json.loads(body)) for at, ms, to, body in log if '"stream":true' in body}

    if [to for _, _, to, body in log if to.endswith("tokenize")] != ["http://host.test:8/tokenize"] * {"": 1, "ask": 0, "tokenize": 2}[says]:
        fail("%s: the tokenizer is asked elsewhere, or not as often" % what)

    def words(tokens, around=fixed):
        return int((tokens - around) / word + 0.5)
    for x in sorted(got, key=lambda x: got[x]["at"]):
        o, a = got[x], answers[x]
        at, ms, to, body = bodies.get(x.name, (0, 0, "", {}))
        limit = min(timeout, x.cancel or timeout)
        asked = {"model": x.model or model, "max_tokens": x.name, "temperature": 0, "stream": True, "ignore_eos": True,
                 "stream_options": {"include_usage": True}}
        sent = {k: v for k, v in body.items() if k not in ("prompt", "messages")}
        if to != url + ("/chat/completions" if chat else "/completions") or ms != limit // MS or sent != asked or abs(at - o["at"]) > 1000:
            fail("%s: request %d asks %s of %s at %d ns within %d ms" % (what, x.id, sent, to, at, ms))
            continue
        check_prompts(x, got, answers, body, words, "%s: request %d" % (what, x.id))
        prompt, by = (a.prompt, "server") if a.prompt else (word * max(1, words(x.input)) + fixed, "probe") if says else (x.input, "unknown")
        want = {"class": x.cls, "asked": str(x.name), "http": str(a.http), "status": a.status, "output_tokens": str(a.tokens),
                "prompt_count": by, "input_tokens": str(prompt)}
        if o["mixed"] and by == "probe":
            del want["input_tokens"]
        for k, v in want.items():
            if o[k] != v:
                fail("%s: request %d: %s is %s, not %s" % (what, x.id, k, o[k], v))
        for k, ns in (("ttft_s", a.first), ("e2e_s", a.last)):
            if (o[k] == "") != (ns is None) or (ns is not None and not abs(float(o[k]) * S - ns) <= 2000):
                fail("%s: request %d: %s is %s, not %s" % (what, x.id, k, o[k], ns))
        checked += len(want) + 3
    for status in {a.status for a in answers.values()} | {"unsent"}:
        n = sum(answers[x].status == status for x in got) if status != "unsent" else len(rows) - len(got)
        said = next((line for line in p.stderr.split("\n") if line[:1].isdigit() and line.split()[1] == status), "0 none")
        if int(said.split()[0]) != n:
            fail("%s: %s of %s, not %d" % (what, said, status, n))
    if (p.returncode == 0) != any(answers[x].status == "ok" for x in got):
        fail("%s: exit status %d %s" % (what, p.returncode, p.stderr[-900:]))


for seed in range(SEEDS):
    check(seed)
if checked < 40 * SEEDS:
    fail("only %d numbers" % checked)
if longest < 6:
    fail("no replay in which the counter begins again twice: %.1f s at most" % longest)
print("%d numbers of observed requests, %d wrong" % (checked, bad))
sys.exit(bad > 0)

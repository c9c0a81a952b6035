#!/bin/sh
# Policies run in other processes. The Python examples decide the same as their C twins, byte for
# byte. A program's fault costs its own run and is reported by name and reason. The other commands
# take them as any policy.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
x=$(cd "$build" && pwd)/xpusim
python=${XPUSIM_PYTHON:-python3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
load="mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"
examples=policies/python/examples

fail() {
    echo "FAILED: $*"
    bad=1
}
must() { # command...
    "$@" >"$dir/out" 2>"$dir/err" || {
        fail "$*"
        cat "$dir/out" "$dir/err"
    }
}
refuse() { # status, text the message must hold, command...
    status=$1
    want=$2
    shift 2
    "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    if [ $got -ne "$status" ] || ! grep -qF -- "$want" "$dir/err"; then
        fail "(exit $got, wanted $status and \"$want\"): $*"
        cat "$dir/err"
    fi
}

differ() { # a command that finds a difference
    "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] && [ ! -s "$dir/err" ] || {
        fail "no difference: $*"
        cat "$dir/out" "$dir/err"
    }
}

# Both halves of a prompt are passes at the same time; their shapes are what the core says of them. A sync in init is answered.
cat >"$dir/ahead.py" <<'END'
from xpusim import Policy, Segment
from xpusim.helpers import place


class Ahead(Policy):
    """Prompts in two passes, in arrival order."""

    def init(self):
        self.device, self.waiting, self.live, self.seen = place(self.machine, "auto"), [], [], []
        assert self.sync() and self.free_slots == [d.inflight_depth for d in self.machine.devices]

    def request_arrived(self, r):
        self.waiting.append(r)

    def pass_done(self, p):
        self.live.remove(p)
        r = p.segments[0].request
        assert r.pass_ is (self.live[0] if self.live else None)
        if r.left:
            self.waiting.remove(r)

    def schedule(self):
        for p, shape, ops in self.seen:  # replaced by what was said of it since
            assert (tuple(p.shape), p.n_ops) == (shape, ops), (p.shape, shape)
        if not self.live and self.waiting:
            r = self.waiting[0]
            n = r.prefill_left
            if n > 1:
                self.live = [self.form([Segment(r, "prefill", n // 2)])]
                self.live.append(self.form([Segment(r, "ahead", n - n // 2)]))
                assert r.pass_ is self.live[0]
            else:
                self.live = [self.form([Segment(r, "prefill" if n else "decode", 1)])]
            self.seen = [(p, tuple(p.shape), p.n_ops) for p in self.live]
        if self.live and self.live[0].state == "ready" and self.free_slots[self.device] > 0:
            self.launch(self.live[0], self.device)
END
must "$x" run --policy "python:$dir/ahead.py:Ahead" --workload "$load"

# The model that drafts: a program knows which one it is, and the operators of a pass of it.
cat >"$dir/drafts.py" <<'END'
from xpusim import Param, Policy, Segment


class Drafts(Policy):
    """Every decoding step of a request after a draft of it."""

    needs = ("verify",)
    params = (Param("drafter", "model", "who drafts", choices=("run", "model")),)

    def init(self):
        assert self.draft_model == (2 if self.param["drafter"] == "model" else 0), self.draft_model
        assert [m.n_layers for m in self.models] == [36, 32, 28], self.models
        self.waiting, self.live, self.drafted = [], None, False

    def request_arrived(self, r):
        self.waiting.append(r)

    def launch_done(self, launch):
        pass

    def pass_done(self, p):
        drafts = p.segments[0].role == "draft"
        self.live, self.drafted = None, drafts
        if drafts:
            assert p.shape.model == self.draft_model and p.shape.rows > 0, p.shape
        llm = self.models[p.shape.model]
        assert p.layer == llm.layer and p.n_ops == llm.n_layers * len(llm.layer) + (p.shape.logit_rows > 0)
        if p.segments[0].request.left:
            self.waiting.remove(p.segments[0].request)

    def schedule(self):
        if self.live is None and self.waiting:
            r = self.waiting[0]
            drafts = self.draft_model > 0 and not r.prefill_left and not self.drafted
            role, n = ("prefill", r.prefill_left) if r.prefill_left else ("draft", 0) if drafts else ("decode", 1)
            self.live = self.form([Segment(r, role, n)])
            shape = self.live.shape
            assert shape.model == (self.draft_model if role == "draft" else 0), shape
            assert self.live.layer == self.models[shape.model].layer
            self.launch(self.live, next(d.index for d in self.machine.devices if d.kind == "igpu"))
END
for drafter in run model; do
    must "$x" run --policy "python:$dir/drafts.py:Drafts:drafter=$drafter" --workload "$load" \
        --llm qwen3-4b --llm other=llama-3.1-8b --llm draft=qwen3-0.6b --set sim.speculation.method=eagle
done

# Until xpusim has answered, objects show the state that holds if it accepts an action, and the
# former state once it has refused it.
cat >"$dir/truth.py" <<'END'
from xpusim import Policy, Segment
from xpusim.helpers import next_piece

MEMBERS = {"Request": ("state", "kv_tokens", "pass_", "preemptions"),
           "Pass": ("state", "op", "rows_todo", "rows_active", "n_launches"),
           "Launch": ("stop_requested",)}


class Truth(Policy):
    """Two prompts at a time, and every action in turn. Objects show what xpusim says of them afterwards."""

    def init(self):
        self.live, self.tried = [], 0

    def request_arrived(self, r):
        self.live.append(r)

    def pass_done(self, p):
        self.live = [r for r in self.live if not r.left]

    def shown(self, objects):
        return [tuple(getattr(x, m) for m in MEMBERS[type(x).__name__]) for x in objects]

    def check(self, accepted, *objects):
        """Objects show now the state that xpusim reports."""
        before, slots = self.shown(objects), list(self.free_slots)
        assert self.sync() == accepted, (self.tried, accepted)
        assert before == self.shown(objects) or not accepted, (self.tried, before, self.shown(objects))
        assert slots == self.free_slots or not accepted, (slots, self.free_slots)
        self.tried += 1

    def refused_as_before(self, act, *objects):
        """An action that is refused leaves nothing."""
        before = self.shown(objects)
        act()
        assert not self.sync()
        assert before == self.shown(objects), (self.tried, before, self.shown(objects))
        self.tried += 1

    def schedule(self):
        if not self.live:
            return
        igpu = self.machine.find("igpu").index
        r = self.live[0]
        if r.pass_:  # the rest of it
            if r.pass_.state == "ready" and r.pass_.op < r.pass_.n_ops:
                self.launch(r.pass_, igpu)
            return
        p = self.form([next_piece(r, 64)])
        self.check(True, r, p)
        self.refused_as_before(lambda: self.form([next_piece(r, 64)]), r, p)
        self.refused_as_before(lambda: self.shed(r), r, p)
        self.refused_as_before(lambda: self.kv(r, "nowhere"), r, p)
        self.refused_as_before(lambda: [self.form([next_piece(r, 9)]), self.form([next_piece(r, 8)])], r, p)
        self.cancel(p)
        self.check(True, r, p)
        p = self.form([next_piece(r, 64)])
        self.cancel(p)
        self.check(True, r, p)
        assert r.pass_ is None
        if r.kv_tokens > 9 and r.preemptions < 3:
            keep = r.kv_tokens // 2
            self.kv(r, "nowhere", keep)
            self.check(True, r)
            p = self.form([next_piece(r, 64)])
            self.check(True, r, p)
            self.cancel(p)
        p = self.form([next_piece(r, 64)])
        self.refused_as_before(lambda: self.launch(p, igpu, n_ops=p.n_ops + 1), r, p)
        rows = p.rows_todo + 1
        self.refused_as_before(lambda: [self.launch(p, igpu, rows=rows), self.launch(p, igpu, rows=rows)], r, p)
        x = self.launch(p, igpu, n_ops=1, rows=1)
        self.check(True, r, p, x)
        self.preempt(x)
        self.check(True, r, p, x)
        self.refused_as_before(lambda: self.preempt(x), r, p, x)
        self.refused_as_before(lambda: self.cancel(p), r, p, x)
END
must "$x" run --policy "python:$dir/truth.py:Truth" --workload mixed:duration_s=20,reactive_per_min=20,proactive_per_min=20
cat >"$dir/once.py" <<'END'
from xpusim import Policy
from xpusim.helpers import form, next_piece


class Once(Policy):
    """Its first launch is stopped in the line that made it, and its pass is ready again."""
    once = True

    def init(self):
        self.live, self.launches, self.device = [], 0, self.machine.find("igpu").index

    def request_arrived(self, r):
        self.live.append(r)

    def launch_done(self, x):
        if self.launches == 1:
            p = x.pass_
            assert (x.outcome, p.state, p.n_launches, p.rows_active, p.rows_todo) == ("yielded", "ready", 0, 0, p.shape.rows)

    def pass_done(self, p):
        self.live = [r for r in self.live if not r.left]

    def schedule(self):
        if not self.live:
            return
        p = self.live[0].pass_
        if p is None:
            form(self, [next_piece(self.live[0])])
            self.set_timer(self.now_ns + 1000)
        elif p.state == "ready":
            self.launches += 1
            x = self.launch(p, self.device)
            if self.launches == 1:
                self.preempt(x)
END
must "$x" run --policy "python:$dir/once.py:Once" --workload "$load"

# A class sees the settings of the machine's events, also one that sleeps when launches end.
cat >"$dir/window.py" <<'END'
from xpusim import Policy
from xpusim.helpers import form, next_piece, place


class Window(Policy):
    """Background work in windows, in arrival order."""
    sleeps = True

    def init(self):
        self.device, self.waiting, self.seen = place(self.machine, "auto"), [], []

    def request_arrived(self, r):
        self.waiting.append(r)

    def pass_done(self, p):
        if p.segments[0].request.left:
            self.waiting.remove(p.segments[0].request)

    def schedule(self):
        now = self.machine_state()
        open_ = now.background_window
        if 10e9 <= self.now_ns < 20e9:
            assert not open_ and now.on_battery and 0 < now.battery_frac <= 0.5, now
            assert now.memory_taken_bytes == 2**30 and now.power_limit_watts == 25, now
        elif self.now_ns > 20e9:
            assert open_ and not now.on_battery and now.memory_taken_bytes == 0, now
        for r in self.waiting:
            if open_ or r.cls == "reactive":
                p = r.pass_ or form(self, [next_piece(r)])
                if p.state == "ready":
                    self.launch(p, self.device)
                    assert open_ or r.cls == "reactive"
                return
END
cat >"$dir/window.json" <<'END'
{"machine": [{"at_s": 10, "window": "closed", "source": "battery", "battery_j": 5000, "battery_full_j": 10000, "memory_mib": 1024, "power_w": 25},
             {"at_s": 20, "window": "open", "source": "mains", "memory_mib": 0}]}
END
must "$x" run --policy "python:$dir/window.py:Window" --machine "$dir/window.json" --workload "$load" --requests "$dir/window.csv"
"$python" - "$dir/window.csv" <<'END' || fail "proactive work began while the window was closed, or none did when it opened"
import csv, sys
rows = list(csv.DictReader(x for x in open(sys.argv[1]) if x[0] != "#"))
begins = [float(r["start_s"]) for r in rows if r["class"] == "proactive"]
sys.exit(any(10 <= b < 20 for b in begins) or not any(20 <= b < 20.001 for b in begins))
END

# Without Python, and with a shell alone, a program in sh lets all requests wait, which is a stall.
cat >"$dir/idle.sh" <<'END'
read -r hello
echo '{"protocol":1,"name":"idle","summary":"does nothing","params":[{"name":"n","type":"int","default":2,"min":0,"max":9}]}'
read -r init || exit 0
echo "$init" >&2
echo '["do",[]]'
while read -r line; do echo '["do",[]]'; done
END
must "$x" list policy "exec:sh $dir/idle.sh"
grep -q '^idle: does nothing' "$dir/out" || fail "list policy does not say what a program says of itself"
grep -q 'limit_s' "$dir/out" || fail "list policy does not show the wall-clock limit"
refuse 1 "stalled" "$x" run --policy "exec:sh $dir/idle.sh:n=3" --workload "$load" --trouble "$dir/trouble"
grep -q '"params":{"n":3}' "$dir/err" || fail "a parameter did not reach the program"
refuse 2 "n=10: must be a whole number from 0 to 9" "$x" run --policy "exec:sh $dir/idle.sh:n=10" --workload "$load"
refuse 2 "there is no such program" "$x" run --policy "exec:$dir/nothing-here" --workload "$load"
grep -q 'there is no such program$' "$dir/err" || fail "a program that is missing said something: $(cat "$dir/err")"
refuse 2 "a command is missing" "$x" run --policy "exec: " --workload "$load"
XPUSIM_PYTHON=$dir/no-python refuse 2 "no-python was not found: install it (Debian: python3)" \
    "$x" run --policy "python:$examples/fcfs.py:Fcfs" --workload "$load"
for wrong in '{"protocol":2,"name":"a","summary":"b"}=it speaks version 2 of the protocol, this xpusim 1' \
    '{"protocol":1,"name":"fcfs","summary":"b"}=that of a built-in policy' \
    '{"protocol":1,"name":"A b","summary":"b"}=must be [a-z0-9-]+' \
    '{"protocol":1,"name":"a","summary":"b","needs":["luck"]}=it names a need that there is not: luck' \
    '{"protocol":1,"name":"a","summary":"b","more":1}=more: unknown key' \
    '{"protocol":1,"name":"a","summary":"b","params":[{"name":"n","type":"bool","default":true},{"name":"n","type":"bool","default":true}]}=parameter n: two have this name' \
    '{"protocol":1,"name":"a","summary":"b","params":[{"name":"limit_s","type":"bool","default":true}]}=parameter limit_s: two have this name' \
    '{"protocol":1,"name":"a"}=summary: missing' \
    'good morning=its first line must be what it is'; do
    printf '%s' "${wrong%%=*}" >"$dir/description"
    refuse 2 "${wrong#*=}" "$x" run --policy "exec:echo \$(cat $dir/description)" --workload "$load"
done

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "skipped: no python3 of 3.9 or newer, so no policies in Python"
    exit $bad
fi

# A tuple of one member without its comma is that member.
for wrong in 'params = (Param("n", 4))' 'flags = ("oracle")' 'needs = "npu"' 'ablations = ("n=2")'; do
    printf '%s\n' 'from xpusim import Param, Policy' 'class One(Policy):' "    $wrong" >"$dir/one.py"
    refuse 2 "${wrong%% *}: must be a tuple, which ends with a comma where it has one member" "$x" list policy "python:$dir/one.py:One"
done

# A run that hangs is tried again with less patience, for a bounded time. The result is a small
# trace, and a command that shows it again. That is half a minute of waiting, so the tests below run
# at the same time.
cat >"$dir/hang.py" <<'END'
import time
from my_loop import Loop

class Hang(Loop):
    """Hangs from the tenth call on."""
    calls = 0
    def schedule(self):
        self.calls += 1
        if self.calls > 9:
            time.sleep(600)  # a loop without end would take a processor for all the time that is waited for it
        super().schedule()
END
sed -n '/^```python$/,/^```$/p' README.md | grep -v '^```' | sed 's/class MyPolicy/class Loop/' >"$dir/my_loop.py"
"$x" run --policy "python:$dir/hang.py:Hang:limit_s=4" --workload mixed:duration_s=60 --trouble "$dir/hung" >"$dir/hung.out" 2>"$dir/hung.err" &
hanging=$!

# A program gets every number of the machine, and here no two are equal.
"$python" - hwmodels/soc/core-ultra-5-125h.json "$dir/odd.json" "$dir/told" <<'END'
import json, sys
soc = json.load(open(sys.argv[1]))
n = 2.0
def odd(where, key, unit):
    """Sets another number than all before, and returns it in the unit that programs get."""
    global n
    n += 1
    x = 0.3 + 0.01 * n if unit == "frac" else n
    where.setdefault(key, {"unit": "1" if key == "ddr_weight" else "s", "kind": "assumed", "source": "this test"})
    where[key].update(value=x, low=x, high=x)
    return x if unit == "frac" else x * unit
told = {"name": soc["name"]}
devices = []
for i, d in enumerate(soc["devices"]):
    d.update(inflight_depth=2 + i, max_shared=6 + i, can_withdraw=i != 1, can_reset=i != 0, can_suspend=i == 2)
    same = ("name", "kind", "sharing", "inflight_depth", "max_shared", "chunk_rows", "static_attention", "can_withdraw",
            "can_reset", "can_suspend")
    devices.append({k: d[k] for k in same})
    for ours, key, unit in (("shared_efficiency_frac", "shared_efficiency", "frac"), ("submit_ns", "submit", 1e3),
                            ("completion_ns", "completion", 1e3), ("reset_ns", "reset", 1e3),
                            ("idle_watts", "idle_power", 1), ("decode_watts", "decode_power", 1),
                            ("prefill_watts", "prefill_power", 1), ("ddr_weight", "ddr_weight", 1)):
        devices[-1][ours] = odd(d, key, unit)
for ours, group, key, unit in (("ddr_cap_frac", "ddr", "together", "frac"), ("sync_ns", "host", "sync", 1e3),
                               ("schedule_ns", "host", "schedule", 1e3), ("sample_ns_per_token", "host", "sample", 1e3),
                               ("poll_watts", "host", "poll", 1), ("compile_fixed_ns", "compiler", "fixed", 1e9),
                               ("compile_ns_per_token", "compiler", "per_token", 1e6),
                               ("compile_watts", "compiler", "power", 1), ("loader_bytes_per_s", "loader", "bandwidth", 1e9),
                               ("loader_fixed_ns", "loader", "fixed", 1e9),
                               ("swap_bytes_per_s", "loader", "swap_bandwidth", 1e9),
                               ("swap_fixed_ns", "loader", "swap_fixed", 1e9),
                               ("loader_evict_ns", "loader", "evict_fixed", 1e9),
                               ("compile_evict_ns", "compiler", "evict_fixed", 1e9),
                               ("memory_usable_frac", "memory", "usable", "frac")):
    told[ours] = odd(soc[group], key, unit)
told["idle_watts"] = odd(soc, "idle_power", 1)
told["ddr_peak_bytes_per_s"] = soc["ddr"]["peak"]["value"] * 1e9
told["memory_bytes"] = soc["memory"]["capacity"]["value"] * 1e9
told["devices"] = devices
json.dump(soc, open(sys.argv[2], "w"))
json.dump(told, open(sys.argv[3], "w"))
END
"$x" run --policy "exec:sh $dir/idle.sh" --soc "$dir/odd.json" --workload "$load" >/dev/null 2>"$dir/err"
"$python" - "$dir/err" "$dir/told" <<'END' || fail "a program is told another machine"
import json, sys
lines = [l for l in open(sys.argv[1]) if l.startswith('{"init"')]
got, want = json.loads(lines[0])["init"]["machine"], json.load(open(sys.argv[2]))
def differ(at, got, want):
    if isinstance(want, dict):
        return [x for k in set(want) | set(got) for x in differ(at + "." + k, got.get(k), want.get(k))]
    if isinstance(want, list):
        return [x for i, w in enumerate(want) for x in differ("%s[%d]" % (at, i), got[i], w)]
    near = isinstance(want, float) and abs(got - want) <= 1e-9 * abs(want)
    return [] if near or got == want else ["%s: %s, not %s" % (at, got, want)]
wrong = differ("machine", got, want)
print("\n".join(wrong))
sys.exit(bool(wrong))
END

# These are the twins. Memory is little too, so there passes are refused and KV is taken from
# requests.
twin() { # policy, example, options...
    c=$1
    p=python:$examples/$2
    shift 2
    must "$x" run --policy "$c" --decisions "$dir/c" "$@"
    must "$x" run --policy "$p" --decisions "$dir/p" "$@"
    tail -n +2 "$dir/c" >"$dir/c.log" # the first line is the policy's name
    tail -n +2 "$dir/p" >"$dir/p.log"
    [ "$(wc -l <"$dir/c.log")" -gt 500 ] || fail "$c decided nothing: $*"
    cmp "$dir/c.log" "$dir/p.log" || fail "$p decides otherwise than $c: $*"
}
tight="--set sim.kv_capacity_tokens=5000 --workload mixed:reactive_per_min=10,proactive_per_min=20,duration_s=60"
twin fcfs fcfs.py:Fcfs --workload "$load"
twin fcfs:device=cpu fcfs.py:Fcfs:device=cpu --workload "$load"
twin edf edf.py:Edf --workload "$load"
# shellcheck disable=SC2086
twin edf edf.py:Edf $tight --seed 3
grep -q '^.* form .*= -12$' "$dir/p.log" || fail "no pass lacked memory: the test tests nothing"
# A prefix that a turn has found counts as free: others work with a part of it, and it is not enough for the rest.
flows="--set sim.kv_capacity_tokens=14000 --workload flows --seed 1"
# shellcheck disable=SC2086
twin edf edf.py:Edf $flows
twin edf:max_batch=2,token_budget=100,class=blind edf.py:Edf:max_batch=2,token_budget=100,class=blind --workload "$load"
twin npu-serial npu_serial.py:NpuSerial --workload "$load"
twin npu-serial:margin=igpu npu_serial.py:NpuSerial:margin=igpu --workload "$load" --seed 2

# Bytes are equal for any number of workers, and the twins are identical in every replication.
for jobs in 1 3; do
    must "$x" compare --policy fcfs --policy "python:$examples/fcfs.py:Fcfs" --policy "python:$examples/edf.py:Edf" \
        --replications 3 --workload "$load" --jobs $jobs --metric all.e2e_s.mean --quiet
    cp "$dir/out" "$dir/jobs$jobs"
done
cmp "$dir/jobs1" "$dir/jobs3" || fail "compare depends on --jobs"
grep -F "fcfs.py:Fcfs" "$dir/jobs1" | grep -q identical || fail "compare tells fcfs from its twin"

# This shows how each launch ended, and the sum of a note: every request is stopped once, 1 ms after
# it began.
cat >"$dir/stop.py" <<'END'
import sys
from xpusim import Policy
from xpusim.helpers import form, next_piece

class Stop(Policy):
    """Stops every prompt once, 1 ms after its first launch."""
    def init(self):
        self.waiting, self.running, self.asked = [], None, set()
    def request_arrived(self, r):
        self.waiting.append(r)
    def launch_done(self, launch):
        sys.stderr.write("ended: %s\n" % launch.outcome)
        if launch.outcome == "yielded":
            self.note("stopped", 3)
        self.running = None
    def pass_done(self, p):
        self.waiting = [r for r in self.waiting if not r.left]
    def schedule(self):
        if not self.waiting:
            return
        r = self.waiting[0]
        if self.running is not None:
            if r.id not in self.asked and self.now_ns >= self.due:
                self.asked.add(r.id)
                self.preempt(self.running)
            return
        p = r.pass_ or form(self, [next_piece(r)])
        if p.state == "ready":
            self.running = self.launch(p, 1, yield_="kernel")
            self.due = self.now_ns + 1000000
            if r.id not in self.asked:
                self.set_timer(self.due)
END
must "$x" run --policy "python:$dir/stop.py:Stop" --workload "$load" --json
n=$(sed -n 's/.*"all.finished":[[:space:]]*\([0-9]*\).*/\1/p' "$dir/out")
[ "$(grep -c '^ended: yielded' "$dir/err")" -eq "${n:-0}" ] || fail "$n requests were stopped otherwise than once each"
grep -q "\"policy.stopped\":[[:space:]]*$((3 * ${n:-1}))\b" "$dir/out" || fail "three for each of $n stops do not add up"

# These are faults that a program may have.
cat >"$dir/wrong.py" <<'END'
import os, random, signal, sys, time
from xpusim import Param, Pass, Policy
from xpusim.helpers import form, next_piece

class Wrong(Policy):
    """Serves one request after the other, until something goes wrong at the tenth call."""
    params = (Param("how", "none", choices=("none", "segv", "exit", "hang", "print", "raw", "raise", "shape", "action",
                                            "number", "object", "two", "gone", "busy", "device", "init", "random", "read")),)
    def init(self):
        self.calls, self.waiting = 0, []
        if self.param["how"] == "init":
            raise ValueError("does not want this machine")
    def request_arrived(self, r):
        self.waiting.append(r)
    def pass_done(self, p):
        self.waiting = [r for r in self.waiting if not r.left]
    def refused(self, what):
        sys.stderr.write("refused: %s %s\n" % (what.action[0], what.error))
    def schedule(self):
        self.calls += 1
        if self.calls == 10:
            getattr(self, "do_" + self.param["how"])()
        if self.waiting and self.waiting[0].pass_ is None:
            self.launch(form(self, [next_piece(self.waiting[0])]), 1)
    def do_none(self): pass
    def do_init(self): pass
    def do_segv(self): os.kill(os.getpid(), signal.SIGSEGV)
    def do_exit(self): os._exit(3)
    def do_hang(self): time.sleep(600)
    def do_print(self): print("hello from the policy")
    def do_raw(self): os.write(1, b"hello from below\n"); time.sleep(600)
    def do_raise(self): return {}["nothing"]
    def do_read(self): open("data.csv")
    def do_shape(self): os.write(1, b'["maybe"]\n'); time.sleep(600)
    def do_object(self): os.write(1, b'{"do": []}\n'); time.sleep(600)
    def do_action(self): self._do(("fly", 1))
    def do_number(self): self._do(("timer", "soon"))
    def do_two(self): os.write(1, b'["do",[]]\n["do",[]]\n')
    def do_gone(self):
        self._do(("cancel", 4711))
        q = Pass()
        q.id, q.state, q.op, q.n_ops, q.rows_todo, q.rows_active, q.n_launches = 4711, "ready", 0, 1, 1, 0, 0
        self.launch(q, 0, n_ops=1)
    def do_busy(self):
        p = self.waiting[0].pass_ or form(self, [next_piece(self.waiting[0])])
        self.launch(p, 1)
        self.launch(p, 1)
    def do_device(self): self._do(("launch", 901, 1, 9))
    def do_random(self): self.note("drawn", random.randrange(1000) + 1000 * (hash("policy") % 1000))
END
# No least trace is looked for (plugin.sh has that): each try would start Python again.
wrong=python:$dir/wrong.py:Wrong
must "$x" run --policy "$wrong" --workload "$load"
while IFS='|' read -r how says; do # not `want`, which refuse sets
    limit=120 # Python starts within it, however busy the machine
    [ "$how" = hang ] && limit=5
    refuse 1 "policy wrong, seed 1" "$x" run --policy "$wrong:how=$how,limit_s=$limit" --workload "$load" --trouble ''
    grep -qF -- "$says" "$dir/err" || {
        fail "how=$how is not reported as: $says"
        cat "$dir/err"
    }
done <<'END'
segv|its process was killed by signal 11
exit|its process ended with status 3
hang|gave no answer within 5 s (limit_s)
print|wrote to standard output, which carries the protocol (print to standard error): hello from the policy (wrong.py:
raw|wrote to standard output, which carries the protocol (print to standard error): hello from below
raise|KeyError: 'nothing' (wrong.py:32, do_raise)
read|FileNotFoundError: [Errno 2] No such file or directory: 'data.csv' (wrong.py:33, do_read); a policy sees the system's files
shape|answered nonsense: a line is ["do", ...]
object|answered nonsense: a line is ["do", ...]
action|answered nonsense: no such action: ["do",[["fly",1],["form",
number|answered nonsense: when: ["do",[["timer","soon"],["form",
two|wrote more than one line where one answers
device|answered nonsense: there is no such device
END
refuse 2 "ValueError: does not want this machine (wrong.py:12, init)" "$x" run --policy "$wrong:how=init" --workload "$load"
refuse 2 "has no class Missing derived from xpusim.Policy" "$x" run --policy "python:$dir/wrong.py:Missing" --workload "$load"
refuse 2 "cannot read: No such file" "$x" run --policy "python:$dir/none.py:Wrong" --workload "$load"
refuse 2 "must be python:FILE.py:CLASS" "$x" run --policy "python:$dir/wrong.py" --workload "$load"
must "$x" run --policy "$wrong:how=gone" --workload "$load"
grep -q '^refused: cancel gone$' "$dir/err" || fail "an action on what is gone is not refused by name"
grep -q '^refused: launch gone$' "$dir/err" || fail "options of a launch of what is gone end the run"
must "$x" run --policy "$wrong:how=busy" --workload "$load"
grep -qE '^refused: launch (busy|invalid)$' "$dir/err" || fail "a launch that cannot be is not refused by name"
# random numbers are those of the run's seed
must "$x" run --policy "$wrong:how=random" --workload "$load" --json
grep '"policy.drawn"\|drawn' "$dir/out" >"$dir/drawn" || fail "a note did not reach the results"
must "$x" run --policy "$wrong:how=random" --workload "$load" --json
grep '"policy.drawn"\|drawn' "$dir/out" | cmp - "$dir/drawn" || fail "random numbers differ from run to run"
# it costs its run only: the others of a comparison end
"$x" compare --policy fcfs --policy "$wrong:how=segv" --replications 2 --workload "$load" --metric all.e2e_s.mean \
    --quiet >"$dir/out" 2>&1
grep -qE 'fcfs +[0-9.]+ ' "$dir/out" || fail "a policy that crashes takes the others with it"
grep -q 'killed by signal 11' "$dir/out" || fail "compare does not say that a policy crashed"

# One never comes to rest. Its questions, answers or timers take no time, and their number ends it.
cat >"$dir/restless.py" <<'END'
from xpusim import Param, Policy

class Restless(Policy):
    """Does nothing for ever."""
    params = (Param("how", "ask", choices=("ask", "sync", "timer", "patient")),)
    def init(self):
        pass
    def request_arrived(self, r):
        pass
    def schedule(self):
        if self.param["how"] == "timer":
            self.set_timer(self.now_ns + 1)
        if self.param["how"] == "patient":
            for _ in range(10):
                self.resident_state("graph_block", 0)
            self.set_timer(self.now_ns + 1_000_000_000)
        while self.param["how"] == "ask":
            self.resident_state("graph_block", 0)
        while self.param["how"] == "sync":
            self.sync()
END
for how in ask sync timer; do
    refuse 1 "wrote more than 20000 lines within a millisecond of simulated time" \
        timeout 300 "$x" run --policy "python:$dir/restless.py:Restless:how=$how" --workload "$load" --trouble ''
done
# 3600 s of ten questions a second are twice as many lines, and never too many at a time.
refuse 1 "nothing on any device for 3600 s of simulated time, only timers" timeout 300 "$x" run --policy "python:$dir/restless.py:Restless:how=patient" --workload "$load" --trouble ''

# The child ends with its parent, for any end of that.
cat >"$dir/sleeper.py" <<'END'
import os, sys, time
from xpusim import Policy
class Sleeper(Policy):
    """Sleeps."""
    def init(self):
        print(os.getpid(), file=sys.stderr, flush=True)
        time.sleep(600)
END
"$x" run --policy "python:$dir/sleeper.py:Sleeper:limit_s=500" --workload "$load" >/dev/null 2>"$dir/pid" &
parent=$!
for _ in $(seq 6000); do
    [ -s "$dir/pid" ] && break
    sleep 0.1
done
child=$(cat "$dir/pid" 2>/dev/null)
kill -9 $parent
for _ in $(seq 6000); do
    kill -0 "${child:-1}" 2>/dev/null || break
    sleep 0.1
done
[ -n "$child" ] || fail "the policy of the child test never started"
[ -n "$child" ] && kill -0 "$child" 2>/dev/null && fail "the policy outlives xpusim"

# Every command takes them.
must "$x" explain --request 3 --policy "python:$examples/fcfs.py:Fcfs" --workload "$load"
cp "$dir/out" "$dir/explained"
must "$x" explain --request 3 --policy fcfs --workload "$load"
sed 's/fcfs-py/fcfs/' "$dir/explained" | grep -v '^xpusim ' >"$dir/a"
grep -v '^xpusim ' "$dir/out" | cmp - "$dir/a" || fail "explain differs from the twin's"
whole=${WHOLE:-} # the commands that start Python most often
loads=${whole:+2}
if [ -n "$whole" ]; then
    must "$x" compare --policy fcfs --policy "python:$examples/fcfs.py:Fcfs" --tune 3 --replications 2 --workload "$load" \
        --metric all.e2e_s.mean --quiet
    grep -q 'fcfs.py:Fcfs' "$dir/out" || fail "--tune lost the policy"
fi
must "$x" diff --policy fcfs --b-policy "python:$examples/fcfs.py:Fcfs" --workload "$load"
differ "$x" diff --policy fcfs --b-policy "python:$examples/edf.py:Edf" --workload "$load"
grep -q 'form' "$dir/out" || fail "diff does not show where a policy decides otherwise"
if [ -n "$whole" ]; then
    must "$x" bisect --policy fcfs --b-policy "python:$examples/edf.py:Edf" --workload "$load" --max-tests 20 -o "$dir/least.csv"
    differ "$x" diff --policy fcfs --b-policy "python:$examples/edf.py:Edf" --trace "$dir/least.csv"
fi
for policy in npu_serial.py:NpuSerial ${whole:+fcfs.py:Fcfs edf.py:Edf}; do
    must "$x" check-policy "python:$examples/$policy" --loads 1
done
# A launch that is refused is tried again: here every third one is.
cat >"$dir/refused.py" <<'END'
from my_policy import MyPolicy
from fcfs import Fcfs
from edf import Edf

class Third:
    tried = 0
    def launch(self, p, device, **usual):
        self.tried += 1
        return super().launch(p, device, **(dict(usual, n_ops=p.n_ops + 1) if self.tried % 3 == 0 else usual))

class ThirdOfMine(Third, MyPolicy):
    """The example of a README."""
class ThirdOfFcfs(Third, Fcfs):
    name = "third-fcfs"
class ThirdOfEdf(Third, Edf):
    name = "third-edf"
END
third() { # class
    PYTHONPATH=$examples must "$x" run --policy "python:$dir/refused.py:$1" --workload "$load" --trouble ''
    grep -q refused "$dir/out" "$dir/err" || fail "$1: no launch was refused: the test tests nothing"
}
# The examples of both README files, pasted into the file that the text names: they run, and the suite accepts them.
for page in README.md policies/python/README.md; do
    sed -n '/^```python$/,/^```$/p' "$page" | grep -v '^```' >"$dir/my_policy.py"
    [ -s "$dir/my_policy.py" ] || fail "$page: no example"
    must "$x" run --policy "python:$dir/my_policy.py:MyPolicy" --workload "$load"
    must "$x" check-policy "python:$dir/my_policy.py:MyPolicy" --loads "${loads:-1}"
    third ThirdOfMine
done
# No check shortens the time that a policy has for an answer. Among its seven parameters, load 5 would give it 66 ms.
cat >"$dir/slow.py" <<'END'
import time
from fcfs import Fcfs
from xpusim import Param

class Slow(Fcfs):
    name = "slow"
    params = tuple(Param(n, False) for n in "abcdefg")

    def init(self):
        self.param = {**self.param, "device": "auto"}
        super().init()

    def request_arrived(self, r):
        super().request_arrived(r)
        time.sleep(0.2 if self.param["d"] and len(self.waiting) == 1 else 0)
END
PYTHONPATH=$examples must "$x" check-policy "python:$dir/slow.py:Slow" --loads 5
# It sets the others: in load 5 one at which this policy fails.
sed -i 's/time.sleep(.*/1 \/ (not self.param["d"])/' "$dir/slow.py"
(top=$PWD && cd "$dir" && PYTHONPATH=$top/$examples "$x" check-policy python:slow.py:Slow --loads 5) >"$dir/out" 2>&1
grep -q "with [a-z=,]*d=true.*ZeroDivisionError" "$dir/out" || fail "no check sets a program's own parameters: $(cat "$dir/out")"
third ThirdOfFcfs
third ThirdOfEdf
# A file is edited while a command runs (here by the policy itself, in its first run). The runs
# after it are refused, and none has the name of the other text. In its jail it could not edit.
cat >"$dir/edited.py" <<'END'
from fcfs import Fcfs

class Edited(Fcfs):
    name = "edited"

    def init(self):
        super().init()
        with open(__file__, "a") as f:
            f.write("# another text\n")
END
XPUSIM_JAIL=off PYTHONPATH=$examples "$x" compare --policy "python:$dir/edited.py:Edited" --replications 3 --jobs 1 --workload "$load" -q >"$dir/out" 2>"$dir/err"
[ $? = 1 ] && grep -q "replication 1 .* and 1 other: .*its file was changed after this command began" "$dir/err" && [ "$(grep -c "^# another" "$dir/edited.py")" = 1 ] ||
    fail "an edited file: $(cat "$dir/out" "$dir/err" "$dir/edited.py")"
# These are the runs that hung since the begin.
wait "$hanging"
grep -q '^Looking for a smaller trace .* at most 20 s' "$dir/hung.err" || fail "shrinking is not announced: $(cat "$dir/hung.err")"
grep -q '^Enough to show it: [1-9] of ' "$dir/hung.err" || fail "no small trace that hangs: $(cat "$dir/hung.err")"
exit $bad

#!/bin/sh
# The Python package is used outside of a run. pip installs it from the clone and from a prefix,
# without network and without writing there. It reads the files that xpusim wrote. A program uses
# the protocol by itself (exec:).
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
x=$(cd "$build" && pwd)/xpusim
python=${XPUSIM_PYTHON:-python3}
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
bad=0
load="mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"

fail() {
    echo "FAILED: $*"
    bad=1
}
must() { # command...
    "$@" >"$dir/out" 2>&1 || {
        fail "$*"
        cat "$dir/out"
    }
}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "skipped: no python3 of 3.9 or newer, so no package for it"
    exit 0
fi

must make -s install-built BUILD="$build" PREFIX="$dir/prefix"
installed=$dir/prefix/share/xpusim
find "$installed/policies/python" -name '__pycache__' -exec rm -rf {} +
chmod -R a-w "$installed/policies/python"
site=$PWD/policies/python
if "$python" -c "import pip" >/dev/null 2>&1; then
    for from in policies/python "$installed/policies/python"; do
        before=$(cd "$from" && find . -not -path '*__pycache__*' | sort)
        must "$python" -m pip install -q --no-cache-dir --no-index --disable-pip-version-check --root-user-action=ignore \
            --target "$dir/$(echo "$from" | tr -dc a-z)" "$from"
        [ "$before" = "$(cd "$from" && find . -not -path '*__pycache__*' | sort)" ] || fail "pip left something in $from"
    done
    site=$dir/policiespython
    diff -r -x __pycache__ "$site/xpusim" policies/python/xpusim || fail "pip did not install all of the package"
    diff -r -x __pycache__ "$dir/$(echo "$installed/policies/python" | tr -dc a-z)/xpusim" policies/python/xpusim ||
        fail "pip did not install all of the package from the prefix"
else
    echo "skipped: no pip for $python, so the package was not installed by it"
fi
# a run under the prefix uses the prefix's package
XPUSIM_DATA_DIR=$installed must "$dir/prefix/bin/xpusim" run --workload "$load" \
    --policy "python:$installed/policies/python/examples/fcfs.py:Fcfs"

# a class as a program, with the package that pip put somewhere
cat >"$dir/mine.py" <<'END'
from xpusim import Policy, serve
from xpusim.helpers import form, next_piece

class Mine(Policy):
    """The last comes first; asks what its next decode would take, and has a timer."""
    def init(self):
        self.stack, self.asked = [], 0
    def request_arrived(self, r):
        self.stack.append(r)
    def pass_done(self, p):
        self.stack = [r for r in self.stack if not r.left]
    def schedule(self):
        if self.stack and all(r.pass_ is None for r in self.stack):
            p = form(self, [next_piece(self.stack[-1])])
            assert self.sync() and p.state == "ready" and self.stack[-1].pass_ is p
            a, b = self.estimates([(p.shape, "ffn" if p.op_kind() != "layer" else "layer", 1), (p.shape, "head", 9)])
            assert a.t_ns > 0 and a.watts > 0 and b == "invalid", (a, b)
            assert self.resident_state("graph_block", 0, 1) == "absent"
            self.note("asked")
            self.set_timer(self.now_ns + 1000)
            self.launch(p, 1, yield_="kernel")

serve(Mine)
END
PYTHONPATH=$site must "$x" run --policy "exec:$python $dir/mine.py:limit_s=60" --workload "$load" --json
grep -q '"asked"' "$dir/out" || grep -q 'policy.asked' "$dir/out" || fail "a note did not reach the results"

# what is read is what was written
must "$x" run --policy edf --workload "$load" --requests "$dir/r.csv" --decisions "$dir/d"
must "$x" run --policy llm-npu --workload "$load" --decisions "$dir/ahead"
cat >"$dir/spec.json" <<'END'
{"name": "two", "base": {"workload": "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"},
 "axes": {"policy": ["fcfs", "edf"], "rate": [0.5, 1.0]}, "replications": 2, "metrics": ["all.e2e_s.*"]}
END
must "$x" sweep "$dir/spec.json" -o "$dir/s.db" --quiet
cat >"$dir/read.py" <<'END'
import sys
import xpusim
from xpusim.results import XpusimError
d, load = sys.argv[1:]
requests = xpusim.read_requests(d + "/r.csv")
rows = [line for line in open(d + "/r.csv") if not line.startswith("#")][1:]
assert len(requests) == len(rows) > 5
assert [r["request_id"] for r in requests] == [int(line.split(",")[0]) for line in rows]
decisions = xpusim.read_decisions(d + "/d")
assert len(decisions) == sum(" = " in line for line in open(d + "/d")) > 100
first = decisions[0]
assert first["action"] == "form" and first["segments"][0][1] == "prefill" and first["result"] == 0, first
assert decisions[1]["action"] == "launch" and decisions[1]["pass"] == 1 and decisions[1]["yield"] == 3, decisions[1]
ahead = [s for r in xpusim.read_decisions(d + "/ahead") for s in r.get("segments", []) if s[1] == "ahead"]
assert ahead and len(ahead) == open(d + "/ahead").read().count(":4:"), len(ahead)  # SEGMENT_AHEAD of sim/api/pass.h is 4
store = xpusim.read_store(d + "/s.db", ["all.e2e_s.mean"])
assert len(store) == 2 * 2 * 2, len(store)  # policies, rates, replications
assert sorted({(r["axis.policy"], r["axis.rate"]) for r in store}) == [("edf", .5), ("edf", 1.), ("fcfs", .5), ("fcfs", 1.)]
one = next(r for r in store if r["policy"] == "edf" and r["axis.rate"] == 1 and r["seed"] == 1)
run = xpusim.run("edf", workload=load, seed=1)
assert abs(run["metrics"]["all.e2e_s.mean"] - one["all.e2e_s.mean"]) < 1e-9, one
c = xpusim.compare("fcfs", "edf", replications=2, workload=load, set={"sim.horizon_s": 60})
of = {r["policy"]: r for r in c.metric("all.e2e_s.mean")}
assert c.baseline == "fcfs" and of["fcfs"]["n"] == 2
assert of["fcfs"]["verdict"] is None and of["edf"]["verdict"] and {tuple(r) for r in c.table} == {tuple(c.table[0])}
assert abs(of["edf"]["mean"] - of["fcfs"]["mean"] - of["edf"]["diff"]) < 1e-9
assert c.raw["config"]["sim"]["horizon_s"] == 60
s = xpusim.compare("fcfs", "edf", suite="laptop-2026.1", replications=2)
rows = s.metric("reactive.e2e_s.mean")
assert s.baseline == "fcfs" and len(rows) == 2 * len(s.raw["points"]) == 2 * 8 and "laptop-2026.1" in repr(s), rows
assert [r["mean"] for r in rows[:2]] == [s.raw["points"][0]["policies"][p]["reactive.e2e_s.mean"]["mean"] for p in ("fcfs", "edf")]
assert rows[2]["point"] == s.raw["points"][1]["point"] != rows[0]["point"], rows[2]
for loads in (None, [0.3]):
    b = xpusim.compare("fcfs", "edf", select=0.9, indifference="50%", workload=load, metric="all.e2e_s.mean", load=loads)
    assert [(r["policy"], r["metric"], r.get("load")) for r in b.table] == [(p, "all.e2e_s.mean", loads and 0.3) for p in ("fcfs", "edf")]
    assert "best" in {r["state"] for r in b.table}, b.table
off = xpusim.run("edf", workload=load, set={"sim.prefix_reuse": False, "sim.horizon_s": 60})
assert off["config"]["sim"]["prefix_reuse"] is False and run["config"]["sim"]["prefix_reuse"] is True
try:
    xpusim.run("no-such-policy")
    raise SystemExit("no error for a policy that there is not")
except XpusimError as e:
    assert "no policy is called 'no-such-policy'" in str(e)
END
must env -u PYTHONPATH XPUSIM="$x" PYTHONPATH="$site" "$python" "$dir/read.py" "$dir" "$load"
# The table of policies/python/README.md has every member that a policy sees, and no other.
must env PYTHONPATH="$site" "$python" - policies/python/README.md <<'END'
import re, sys
from xpusim import policy as of
seen = {}
for who, members in re.findall(r"^\| (request|pass|launch|device|policy) \| ([^|]*) \|", open(sys.argv[1]).read(), re.M):
    seen.setdefault(who, []).extend(re.findall(r"`(\w+)`", members))
def slots(c):
    own = [n for base in c.__mro__ for n in getattr(base, "__slots__", ())]
    return own + [n for n in vars(c) if n[0] != "_" and (isinstance(vars(c)[n], property) or n == "op_kind")]
settings = {"name", "summary", "flags", "needs", "params", "ablations", "limit_s", "once", "sleeps", "steady"}
has = {"request": slots(of.Request), "pass": slots(of.Pass), "launch": slots(of.Launch), "device": of.Device._fields,
       "policy": [n for n in of.Policy.__annotations__ if n[0] != "_" and n not in settings]}
for who in has:
    assert sorted(seen[who]) == sorted(set(has[who])), (who, set(seen[who]) ^ set(has[who]))
END
# with pandas they are tables: any module of that name will do
mkdir "$dir/pandas"
echo 'class DataFrame(list): columns = ()' >"$dir/pandas/pandas.py"
must env XPUSIM="$x" PYTHONPATH="$dir/pandas:$site" "$python" -c "
import pandas, sys, xpusim
for t in (xpusim.read_requests('$dir/r.csv'), xpusim.read_store('$dir/s.db'), xpusim.read_decisions('$dir/d')):
    assert type(t) is pandas.DataFrame and len(t) > 5"
exit $bad

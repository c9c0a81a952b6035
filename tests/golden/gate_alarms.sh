#!/bin/sh
# The metric gate reports a worsened machine, missing rows and another binary. Nothing here is
# recorded. gate.sh has the matrix of the policies and a report.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}

# A small matrix of its own.
cat >"$dir/small.json" <<'END'
{"format": 1, "groups": [
  {"name": "small", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "test": "exact", "seed": 1,
   "workload": "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60", "set": [],
   "policies": ["fcfs", "agent-xpu-v2"]}]}
END
# A policy whose process ends has no runs. So nothing is recorded, and the last line says so.
sed 's,"agent-xpu-v2","exec:/bin/false",' "$dir/small.json" >"$dir/none.json"
cp "$dir/none.json" "$dir/none.was"
"$x" gate --baseline "$dir/none.json" --update >"$dir/out" 2>"$dir/err" && fail "runs that fail are recorded"
tail -n 1 "$dir/out" | grep -q '; not recorded$' || fail "failed runs: $(tail -n 1 "$dir/out")"
cmp -s "$dir/none.json" "$dir/none.was" || fail "an update of runs that fail changed the file"
# A metric that no run has would fail each comparison from then on.
sed 's/"set"/"metrics": [{"name": "throughput_req_per_min", "better": "higher"}, {"name": "all.e2e_s.mean", "better": "lower"}], "set"/' "$dir/small.json" >"$dir/name.json"
cp "$dir/name.json" "$dir/name.was"
"$x" gate --baseline "$dir/name.json" --update >"$dir/out" 2>"$dir/err"
[ $? = 2 ] && grep -q '; not recorded$' "$dir/out" && cmp -s "$dir/name.json" "$dir/name.was" &&
    grep -q 'group small: metric throughput_req_per_min: no metric is called so' "$dir/err" || fail "an update with a wrong name: $(cat "$dir/err")"
"$x" gate --baseline "$dir/small.json" --update >"$dir/out" 2>/dev/null || fail "recording"
grep '^ADDED' "$dir/out" | grep -qv 'recorded for the first time$' && fail "what is recorded first: $(cat "$dir/out")"
grep -q '^16 rows: 16 ADDED; recorded$' "$dir/out" || fail "an update shows the differences first"
# as many rows as it counts: those above, and those that it names
awk '/^ADDED/ { shown++ } /^and [0-9]+ rows? of metrics/ { rest = $2 } END { exit !(shown > 0 && rest > 0 && shown + rest == 16) }' "$dir/out" ||
    fail "16 rows are $(cat "$dir/out")"
"$x" gate --baseline "$dir/small.json" --strict >/dev/null || fail "unchanged code passes"
XPUSIM_DATA_DIR=$PWD "$x" gate --baseline "$dir/small.json" --against "$x" --strict >/dev/null ||
    fail "a binary passes against itself"

# A default that matters on no load changes. A row names it, and nothing else changes. No command
# shows it.
sed 's/max_batch=32/max_batch=33/' "$dir/small.json" >"$dir/default.json"
cmp -s "$dir/small.json" "$dir/default.json" && fail "agent-xpu-v2 has no max_batch=32 in the baseline"
"$x" gate --baseline "$dir/default.json" --markdown "$dir/default.md" >"$dir/out" && fail "another default passes"
grep -q 'STATUS .*agent-xpu-v2 .*max_batch=32, was 33' "$dir/out" || fail "another default: $(cat "$dir/out")"
grep -q '^16 rows: 15 OK, 1 STATUS; FAILED$' "$dir/out" || fail "another default changes one row: $(tail -n 1 "$dir/out")"
grep -q 'xpusim diff' "$dir/default.md" && fail "a command shows another default"

# Without a tenth of the iGPU the gate reports worse, exit 1, and the table as recorded.
sed 's/"set":[[:space:]]*\[\]/"set": ["sim.graphics.reserve_time_frac=0.1"]/' "$dir/small.json" >"$dir/slow.json"
"$x" gate --baseline "$dir/slow.json" --all --markdown "$dir/slow.md" --junit "$dir/slow.xml" >"$dir/slow.txt"
[ $? -eq 1 ] || fail "a slower iGPU passes"
grep -q 'tests="16" failures="' "$dir/slow.xml" || fail "JUnit"
"$x" gate --baseline "$dir/slow.json" --html "$dir/slow.html" >/dev/null
for text in "12 REGRESSION; FAILED" "P90 reactive time to first token (s), lower is better" "worse by 17 %, tolerance 0.001 %" "--update" \
    "xpusim diff --policy fcfs --soc core-ultra-5-125h --llm llama-3.2-3b --workload mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60 --set sim.graphics.reserve_time_frac=0.1 --seed 1 --against OLD/build/xpusim"; do
    for view in "$dir/slow.md" "$dir/slow.html"; do grep -qF -- "$text" "$view" || fail "$view does not say: $text"; done
done
grep -qE 'https?://|<script' "$dir/slow.html" && fail "the page refers to something outside"

# The mean improves, and one replication is worse, and both are printed. Recorded values are made 2
# % larger in replication 0 and 1 % smaller in replication 1, so that the run is better in the
# first, worse in the second.
python3 - "$dir/small.json" "$dir/mixed.json" <<'END'
import json, sys
tree = json.load(open(sys.argv[1]))
for cell in tree["results"]:
    a, b = cell["metrics"]["reactive.e2e_s.p90"]
    cell["metrics"]["reactive.e2e_s.p90"] = [a * 1.05, b * 0.99]
json.dump(tree, open(sys.argv[2], "w"))
END
"$x" gate --baseline "$dir/mixed.json" >"$dir/out" && fail "a worse replication passes"
grep -q 'REGRESSION .*reactive.e2e_s.p90 .*mean improved; replication 1 worse by 1.01 %, tolerance 0.001 %' "$dir/out" || fail "a mean that improved: $(cat "$dir/out")"

# The history page shows two commits of a baseline, and a value that moved by a tenth.
if command -v git >/dev/null 2>&1; then
    mkdir "$dir/repo"
    for step in 1 2; do
        sed "s/REPLACED/$step/" >"$dir/repo/b.json" <<'END'
{"results": [{"group": "g", "policy": "p", "metrics": {"m": [1, REPLACED], "same": [5, 5]}}]}
END
        git -C "$dir/repo" init -q 2>/dev/null
        git -C "$dir/repo" add b.json
        git -C "$dir/repo" -c user.name=x -c user.email=x@x commit -qm "step $step"
    done
    python3 experiments/gate/history.py "$dir/repo/b.json" -o "$dir/history.html" || fail "history"
    for text in "2 commits recorded results" "Of 2 values 1 are shown" "+50.00 %" "step 2"; do # means 1 and 1.5
        grep -qF -- "$text" "$dir/history.html" || fail "the history does not say: $text"
    done
    python3 experiments/gate/history.py "$dir/small.json" -o "$dir/none.html" 2>/dev/null && fail "a history without a repository"
fi
# The gate names the decision that changed first, for a policy with another order under the same
# name.
cat >"$dir/old" <<END
#!/bin/sh
# the same program, which runs srpt where it is asked for fcfs
for a; do shift; [ "\$a" != fcfs ] || a=srpt; set -- "\$@" "\$a"; done
exec "$x" "\$@"
END
chmod +x "$dir/old"
"$x" gate --baseline "$dir/small.json" --against "$dir/old" --markdown "$dir/first.md" --html "$dir/first.html" >"$dir/out" && fail "another order passes"
"$x" gate --baseline "$dir/small.json" --against "$dir/old" --json >"$dir/first.json"
set -- --soc core-ultra-5-125h --llm llama-3.2-3b --workload mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60
"$x" diff --policy fcfs --b-policy srpt "$@" --seed "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["first_decisions"][0]["seed"])' "$dir/first.json")" --json >"$dir/diff.json"
python3 - "$dir" <<'END' || fail "the first decision that changed"
import json, sys
from pathlib import Path
d = Path(sys.argv[1])
want, found = json.load(open(d / "diff.json")), json.load(open(d / "first.json"))["first_decisions"]
assert len(found) == 1, found
one = found[0]
for side, key in (("a", "now"), ("b", "before")):
    epoch, instant, action = want[side].split(" ", 2)
    assert one[key] == action and abs(one[key + "_s"] - int(instant) / 1e9) < 1e-9, (one, want)
assert one["decision"] == want["decision"] and one["group"] == "small" and one["policy"] == "fcfs", (one, want)
for view in ("first.md", "first.html", "out"):
    text = (d / view).read_text().replace("&lt;", "<").replace("&gt;", ">")
    assert f"decision {want['decision']} is another: `{one['before']}` at" in text and one["now"] in text, (view, text)
END
"$x" gate --baseline "$dir/slow.json" --old "$x" >"$dir/out" # the recorded machine is another, both programs are the same
grep -q "every decision is the same in 2 replications; only what they cost has changed" "$dir/out" || fail "equal decisions: $(cat "$dir/out")"
"$x" gate --baseline "$dir/small.json" --old "$dir/none" >/dev/null 2>&1
[ $? -eq 2 ] || fail "no program before the change"

# The workflow of docs/ci.md is run: the gate's step unchanged, on the small matrix, without and
# with a base.
sed -n '/name: Gate$/,/name: Show/p' docs/ci/gate.yml | sed -n 's/^          //p' >"$dir/step"
grep -q -- --old "$dir/step" || fail "the workflow's step was not found"
for base in none base; do
    mkdir -p "$dir/$base/build" "$dir/$base/experiments/gate" "$dir/$base/base/build"
    ln -s "$x" "$dir/$base/build/xpusim"
    cp "$dir/small.json" "$dir/$base/experiments/gate/policies.json"
    [ $base = none ] || ln -s "$dir/$base/build/xpusim" "$dir/$base/base/build/xpusim"
    (export XPUSIM_DATA_DIR=$PWD && cd "$dir/$base" && sh -e "$dir/step" >/dev/null && [ -s gate.md ] && [ -s gate.html ] && [ -s gate.xml ]) || fail "the workflow's step, $base"
done

# The workflow for a policy of one's own is run, too. A policy that does worse fails the gate's
# step, and the next one names the decision.
steps() { sed -n "/name: $1\$/,/^      - /p" docs/ci/own-policy.yml | sed -n 's/^          //p'; }
steps Gate >"$dir/step" && steps "First decision" >"$dir/first"
grep -q "check-policy" "$dir/step" && grep -q "worktree" "$dir/first" || fail "the steps of own-policy.yml were not found"
cat >"$dir/own.sh" <<'EOF'
mkdir "$1/mine"
cd "$1/mine"
xpusim new-policy policy
cat >gate.json <<END
{"format": 1, "groups": [{"name": "g", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "workload": "mixed:duration_s=120", "test": "exact",
  "seed": 1, "policies": ["./policy/policy.so"], "metrics": [{"name": "reactive.ttft_s.p95", "better": "lower"}]}]}
END
make -s -C policy
xpusim gate --baseline gate.json --update
echo '*.so' >.gitignore
git init -q .
git add .
git -c user.name=a -c user.email=a@b commit -q -m a
sh -e ../step # as recorded
sed -i 's/reqq_push(&p->waiting, r);.*/reqq_insert_after(\&p->waiting, NULL, r);/' policy/policy.c # last come, first served
if sh -e ../step; then exit 1; fi
grep -q "REGRESSION" gate.md
grep -q '<failure message="REGRESSION' gate.xml
BASE=HEAD sh -e ../first
grep -q "^    decision [0-9]* is the first that differs" gate.md
EOF
PATH="$(cd "$(dirname "$x")" && pwd):$PATH" XPUSIM_DATA_DIR=$PWD XPUSIM_INCLUDE=$PWD sh -e "$dir/own.sh" "$dir" >"$dir/out" 2>&1 ||
    fail "the workflow of a policy of one's own: $(cat "$dir/out")"

# A policy in Python has its own steps, and the baseline that docs/ci.md shows.
steps() { sed -n "/name: $1\$/,/^      - /p" docs/ci/own-python-policy.yml | sed -n 's/^          //p'; }
steps Gate >"$dir/step" && steps "First decision" >"$dir/first"
sed -n '/^```json/,/^```/{//!p}' docs/ci.md >"$dir/gate.json"
cat >"$dir/own.sh" <<'EOF'
mkdir -p "$1/python/policy"
sed 's/^class Fcfs/class Mine/' policies/python/examples/fcfs.py >"$1/python/policy/mine.py"
cd "$1/python"
cp ../gate.json .
xpusim gate --baseline gate.json --update
git init -q .
git add .
git -c user.name=a -c user.email=a@b commit -q -m a
sh -e ../step # as recorded
sed -i 's/self.waiting.append(r)/self.waiting.appendleft(r)/' policy/mine.py # last come, first served
if git diff --quiet; then exit 1; fi
if sh -e ../step; then exit 1; fi
grep -q "REGRESSION" gate.md
BASE=HEAD sh -e ../first
grep -q "^    decision [0-9]* is the first that differs" gate.md
EOF
PATH="$(cd "$(dirname "$x")" && pwd):$PATH" XPUSIM_DATA_DIR=$PWD sh -e "$dir/own.sh" "$dir" >"$dir/out" 2>&1 ||
    fail "the workflow of a policy in Python: $(cat "$dir/out")"

# A row that is missing, on either side, does not pass.
sed 's/"fcfs", //' "$dir/small.json" >"$dir/fewer.json"
"$x" gate --baseline "$dir/fewer.json" >"$dir/out" && fail "a recorded policy that is not run passes"
grep -q '^REMOVED' "$dir/out" || fail "no REMOVED row"
sed 's/"fcfs", /"fcfs", "srpt", /' "$dir/small.json" >"$dir/more.json"
"$x" gate --baseline "$dir/more.json" >"$dir/out" && fail "a policy without a baseline passes"
grep -q '^ADDED' "$dir/out" || fail "no ADDED row"
sed 's/"fcfs"/"nonesuch"/' "$dir/small.json" >"$dir/other.json"
"$x" gate --baseline "$dir/other.json" >/dev/null && fail "an unknown policy passes"
printf '#!/bin/sh\nexit 1\n' >"$dir/broken"
chmod +x "$dir/broken"
"$x" gate --baseline "$dir/small.json" --against "$dir/broken" >/dev/null 2>&1
[ $? -eq 2 ] || fail "a binary that runs nothing lets everything pass"

# Recorded values are those of single runs: of a recorded trace, with settings, on a machine and
# with a model of its own.
"$x" trace gen --workload mixed:reactive_per_min=9,proactive_per_min=9,duration_s=40 --seed 4 -o "$dir/trace.csv" || fail "trace gen"
cat >"$dir/own.json" <<END
{"format": 1, "groups": [
  {"name": "t", "soc": "core-ultra-7-258v", "llm": "llama-3.2-1b", "test": "exact", "seed": 7, "replications": 1, "trace": "$dir/trace.csv",
   "set": ["soc.host.sync=100", "sim.contention=none"], "policies": ["edf:max_batch=4", "srpt"]},
  {"name": "w", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "test": "exact", "seed": 9, "replications": 2,
   "workload": "mixed:reactive_per_min=9,proactive_per_min=9,duration_s=40", "set": [], "policies": ["edf"]}]}
END
"$x" gate --baseline "$dir/own.json" --update -q >/dev/null 2>&1 || fail "recording runs of a trace"
python3 - "$x" "$dir" <<'END' || fail "recorded values are not those of the runs"
import json, subprocess, sys
x, d = sys.argv[1:]
tree, checked = json.load(open(f"{d}/own.json")), 0
seeds = json.loads(subprocess.run([x, "compare", "--policy", "edf", "--policy", "fcfs", "--workload", "mixed:reactive_per_min=9,proactive_per_min=9,duration_s=40", "--seed", "9",
                                   "--replications", "2", "--json", "-q"], capture_output=True, text=True).stdout)["seeds"]
for cell in tree["results"]:
    g = next(g for g in tree["groups"] if g["name"] == cell["group"])
    for k in range(g["replications"]):
        words = [x, "run", "--policy", cell["policy"], "--soc", g["soc"], "--llm", g["llm"], "--seed", str(g["seed"] if k == 0 else seeds[k]), "--json", "-q"]
        words += ["--trace", g["trace"]] if "trace" in g else ["--workload", g["workload"]]
        words += [w for s in g["set"] for w in ("--set", s)]
        run = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        for name, values in cell["metrics"].items():
            want = run["metrics"][name]
            checked += 1
            assert (values[k] is None) == (want is None) and (want is None or abs(values[k] - want) <= 1e-12 * abs(want)), (cell["group"], cell["policy"], name, k, values[k], want)
    assert sum(cell["verdicts"]) == g["replications"] and cell["failed"] == 0, cell
assert len(tree["results"]) == 3 and checked >= 20, (len(tree["results"]), checked)
END
# A fresh group is recorded on its own seed, and compared on others: by default and with a seed of one's own.
cat >"$dir/fresh.json" <<END
{"format": 1, "groups": [{"name": "f", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "test": "fresh", "seed": 9, "replications": 30,
  "workload": "mixed:reactive_per_min=9,proactive_per_min=9,duration_s=40", "policies": ["edf"]}]}
END
"$x" gate --baseline "$dir/fresh.json" --update -q >/dev/null 2>&1 || fail "recording a fresh group"
python3 - "$x" "$dir/fresh.json" <<'END' || fail "seeds of a fresh group"
import json, subprocess, sys
x, path = sys.argv[1:]
workload, name = "mixed:reactive_per_min=9,proactive_per_min=9,duration_s=40", "reactive.e2e_s.p90"
def said(*words):
    return json.loads(subprocess.run([x, *words, "--json", "-q"], capture_output=True, text=True, check=True).stdout)
def gate(*words):
    return next(r for r in said("gate", "--baseline", path, "--all", *words)["rows"] if r["metric"] == name)
def same(a, b):
    return abs(a - b) <= 1e-5 * abs(b)
seeds = said("compare", "--policy", "edf", "--policy", "fcfs", "--workload", workload, "--seed", "9", "--replications", "30")["seeds"]
recorded = json.load(open(path))["results"][0]["metrics"][name]
for k, value in enumerate(recorded):
    run = said("run", "--policy", "edf", "--workload", workload, "--soc", "core-ultra-5-125h", "--llm", "llama-3.2-3b", "--seed", str(seeds[k]))
    assert same(value, run["metrics"][name]), (k, value, run["metrics"][name])
assert len(recorded) == 30
# Equal requests give an equal mean, and other ones another.
own, usual, other = gate("--seed", "9"), gate(), gate("--seed", "10")
assert same(own["measured"], own["baseline"]), own
assert not same(usual["measured"], usual["baseline"]) and not same(other["measured"], other["baseline"]), (usual, other)
assert not same(usual["measured"], other["measured"]) and usual == gate(), (usual, other)
END
exit $bad

#!/bin/sh
# Suites and judgements are tested: scores against a computation of its own, the sealed split, and
# refusals.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
refuse() { # what, words, command
    what=$1 words=$2
    shift 2
    "$@" >"$dir/out" 2>"$dir/err"
    test $? -eq 2 || fail "$what: exit status is not 2"
    grep -q -- "$words" "$dir/err" || fail "$what: $(cat "$dir/err")"
}

# The shipped suites are those that were frozen. With --update they are frozen again, which makes
# other suites of them.
for s in $(cd experiments/suites && ls | sed -n "s/\.json$//p" | grep -v archive); do
    $x arena judge edf --suite $s --replications 2 --json >"$dir/$s" 2>/dev/null || fail "$s"
    hash=$(sed -n 's/.*"hash":.*"\([0-9a-f]*\)".*/\1/p' "$dir/$s")
    test "${1:-}" != --update || sed -i "s/\"hash\": \"[0-9a-f]*\"/\"hash\": \"$hash\"/" experiments/suites/$s.json
    grep -q '"frozen":.*true' "$dir/$s" || test "${1:-}" = --update ||
        fail "$s: configurations or traces changed (make golden-update freezes another suite): now $hash"
done
test "${1:-}" != --update || exit $bad

# The archive in the tree is of these suites, and of this program, so a row of one is computed
# again. With WHOLE=yes that is a row of each, and one of a policy that uses the NPU. Under a
# sanitizer nothing runs: these are some hundred runs whose scores the usual build compares, and the
# suites below run every line of them.
[ -z "${SANITIZED:-}" ] || echo "skipped: under a sanitizer: rows of the shipped archives, which the usual build computes again"
for f in experiments/suites/*.archive.json; do
    [ -z "${SANITIZED:-}" ] || continue
    s=$(basename "$f" .archive.json)
    again=edf
    [ -z "${WHOLE:-}" ] || again="edf llm-npu"
    hash=$(sed -n 's/.*"hash":.*"\([0-9a-f]*\)".*/\1/p' "$dir/$s")
    grep -q "\"hash\":.*\"$hash\"" "$f" || fail "$f is of another suite: make archive"
    [ -n "${WHOLE:-}" ] || [ "$s" = agents-2026.1 ] || continue
    # shellcheck disable=SC2086
    $x arena judge $again --suite "$s" --ledger "$dir/ledger" --json -q >"$dir/again" 2>/dev/null || fail "$s: $again"
    python3 - "$f" "$dir/again" "$(echo "$again" | wc -w)" <<'PY' || fail "$f is old: make archive"
import json, sys
archive, again = (json.load(open(f)) for f in sys.argv[1:3])
judgements = again["judgements"] if "judgements" in again else [again]
same = archive["hash"] == again["hash"] and len(judgements) == int(sys.argv[3])
for j in judgements:
    same = same and archive["leaderboard"][j["policy"]]["score"] == j["score"]
sys.exit(not same)
PY
done

suite() { # name, further members of "suite", further members
    cat >"$dir/$1.json" <<JSON
{"name": "$1", "suite": {"about": "a test", "references": ["fcfs", "edf"]$2},
 "base": {"seed": 11},
 "rows": [{"point": "a", "workload": "mixed:reactive_per_min=8,proactive_per_min=8,duration_s=60"},
          {"point": "b", "soc": "snapdragon-8elite", "llm": "qwen2.5-1.5b",
           "workload": "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=60"}],
 "replications": 4, "metrics": ["reactive.e2e_s.mean", "all.throughput_req_per_min"]$3}
JSON
}
suite one ', "unscored": ["a"]' ''
suite two ', "sealed": "one.json"' ''

# A score is computed from the runs of a sweep, by arithmetic that is not the program's.
$x arena judge vtc --suite "$dir/two.json" --json >"$dir/judged" 2>/dev/null || fail "judge"
$x sweep "$dir/two.json" --policy fcfs --policy vtc -o "$dir/s.db" -q --export json >"$dir/runs" || fail "sweep"
python3 - "$dir/judged" "$dir/runs" <<'PY' || fail "the score is not that of the runs"
import json, math, sys
judged, runs = (json.load(open(f)) for f in sys.argv[1:])
by = {(r["policy"], r["settings"]["point"], r["replication"]): r["metrics"] for r in runs}
gains = []
for k in range(4):
    g = []
    for point in "ab":
        mine, other = by["vtc", point, k], by["fcfs", point, k]
        g.append(math.log(other["reactive.e2e_s.mean"] / mine["reactive.e2e_s.mean"]))
        g.append(math.log(mine["all.throughput_req_per_min"] / other["all.throughput_req_per_min"]))
    gains.append(sum(max(-math.log(2), min(math.log(2), v)) for v in g) / len(g))
score = math.exp(sum(gains) / 4)
ok = abs(score - judged["score"]) < 1e-9 * score
print("score", judged["score"], "of the runs", score)
sys.exit(not ok)
PY

# The reference against itself gains and loses nothing.
$x arena judge fcfs --suite "$dir/two.json" --json 2>/dev/null >"$dir/same"
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not (
    d["score"] == 1 and d["p_better"] == 1 and d["significant_regressions"] == [] and d["passes"] is False))' "$dir/same" ||
    fail "the reference is not equal to itself"

# The sealed split is counted, once for each candidate, and gives no words.
l=$dir/ledger.csv
refuse "sealed without a ledger" "needs --ledger" $x arena judge edf --suite "$dir/two.json" --sealed
refuse "no sealed split" "no sealed split" $x arena judge edf --suite "$dir/one.json" --sealed --ledger "$l"
$x arena judge edf vtc srpt --suite "$dir/two.json" --ledger "$l" >/dev/null 2>&1 || fail "public"
$x arena judge edf --suite "$dir/two.json" --sealed --ledger "$l" --words --json >"$dir/sealed" 2>/dev/null || fail "sealed"
grep -q '"candidates":.*3,' "$dir/sealed" || fail "three candidates were looked at: $(grep candidates "$dir/sealed")"
grep -q artefacts "$dir/sealed" && fail "the sealed split explains itself"
refuse "sealed twice" "answers once" $x arena judge edf --suite "$dir/two.json" --sealed --ledger "$l"
test "$(grep -c '^sealed' "$l")" = 1 || fail "a refused judgement is in the ledger"

# Words name a request and a decision of the point where most was lost.
$x arena judge edf --suite "$dir/two.json" --reference srpt --words --json >"$dir/words" 2>/dev/null || fail "words"
python3 -c 'import json, sys; a = json.load(open(sys.argv[1]))["artefacts"]; sys.exit(not (
    "took" in a["worst_request"] and "decision" in a["first_difference"] and a["failure"] is None))' "$dir/words" ||
    fail "words: $(cat "$dir/words")"
$x arena judge edf --suite "$dir/two.json" --reference srpt --words --falsify 8 --json >"$dir/searched" 2>/dev/null || fail "falsify"
python3 -c 'import json, sys; a, b = (json.load(open(f))["artefacts"]["worst_scenario"] for f in sys.argv[1:]); sys.exit(a == b)' \
    "$dir/words" "$dir/searched" || fail "--falsify names no other scenario"

# compare, sweep and search take a suite, too.
$x compare --suite "$dir/two.json" --policy fcfs --policy vtc -q >"$dir/compared" || fail "compare --suite"
test "$(grep -c '==== point' "$dir/compared")" = 2 || fail "compare --suite has not two points"
$x search --suite "$dir/two.json" --policy vtc --slo 'reactive.e2e_s.mean<=30' --replications 2 --precision 4 -q >"$dir/searched"
test "$(grep -c '==== point' "$dir/searched")" = 2 || fail "search --suite has not two points"
refuse "two machines" "do not go with it" $x compare --suite "$dir/two.json" --policy edf --soc rk3588
refuse "no policies" "names no policy" $x sweep "$dir/two.json" -o "$dir/n.db"
refuse "no suite" "nope: neither a file ending in .json nor a shipped suite" $x arena judge edf --suite nope
refuse "an experiment is none" "no suite" $x arena judge edf --suite experiments/specs/machines.json
suite three ', "unscored": ["c"]' ''
refuse "a point that is not there" "no point is called c" $x arena judge edf --suite "$dir/three.json"
suite four ', "extra": 1' ''
refuse "an unknown key" "extra" $x arena judge edf --suite "$dir/four.json"

# The archive has all candidates, best first, and a certificate that no value beats.
$x arena archive --suite "$dir/two.json" --policy vtc --policy fcfs --policy edf --json --store "$dir/a.db" >"$dir/two.archive.json" 2>/dev/null ||
    fail "archive"
$x arena archive --suite "$dir/two.json" --policy vtc --policy fcfs --policy edf --json --store "$dir/a.db" 2>"$dir/err" |
    cmp - "$dir/two.archive.json" || fail "archive: with a store other bytes"
grep -q ' 0 runs added' "$dir/err" || fail "archive: runs again: $(cat "$dir/err")"
python3 - "$dir/two.archive.json" <<'PY' || fail "archive: its numbers"
import json, sys
d = json.load(open(sys.argv[1]))
scores = [row["score"] for row in d["leaderboard"].values()]
rows = [row for point in d["certificate"].values() for row in point.values()]
e2e = [point["reactive.e2e_s.mean"] for point in d["certificate"].values()]
ok = (scores == sorted(scores, reverse=True) and d["leaderboard"]["fcfs"]["score"] == 1 and
      all(r["headroom"] >= 1 for r in rows) and all(r["bound"] <= r["best"] <= r["hindsight"] for r in e2e))
sys.exit(not ok)
PY
$x arena judge edf --suite "$dir/two.json" --json 2>/dev/null | grep -q '"headroom_left":.*[0-9]' || fail "no headroom from the archive"
$x arena judge edf --suite "$dir/two.json" --replications 5 --json 2>/dev/null | grep -qE '"(headroom_left|best)":.*[0-9]' && fail "the best of other requests"

# Selection names the candidate that a judgement of many runs puts first, and stops early for the
# others.
$x arena judge edf vtc srpt --suite "$dir/two.json" --select 0.95 --indifference 1% --json 2>/dev/null >"$dir/selected" || fail "select"
$x arena judge edf vtc srpt --suite "$dir/two.json" --replications 40 --json 2>/dev/null >"$dir/forty" || fail "forty"
python3 - "$dir/selected" "$dir/forty" <<'PY' || fail "select: $(cat "$dir/selected")"
import json, sys
s, forty = (json.load(open(f)) for f in sys.argv[1:])
s = s["selection"]
scores = {j["policy"]: j["score"] for j in forty["judgements"]}
sys.exit(not (s["decided"] and s["best"] == max(scores, key=scores.get) and s["runs"] <= s["equal_runs"] and
              all(p["state"] == "behind" for n, p in s["policies"].items() if n != s["best"])))
PY
for most in 12 6; do # also where the first stage would have ten
    $x compare --policy srpt:sigma=1,draw=1 --policy srpt:sigma=1,draw=2 --select 0.99 --indifference 0.01% --at-most $most \
        --workload mixed:duration_s=120 -q >"$dir/open" 2>&1
    test $? = 1 && grep -q "; $most replications from seed 1" "$dir/open" && grep -q "not decided after $most replications" "$dir/open" || fail "an open selection: $(cat "$dir/open")"
done
refuse "an indifference alone" "belongs to --select" $x arena judge edf vtc --suite "$dir/two.json" --indifference 1%
refuse "no share" "is no share" $x arena judge edf vtc --suite "$dir/two.json" --select 0.95 --indifference x

# An archive of shards is that of one machine, and runs none of their runs again.
for i in 0 1; do
    $x arena archive --suite "$dir/two.json" --policy vtc --policy fcfs --policy edf --shard $i/2 --store "$dir/s$i.db" -q || fail "shard $i"
done
$x merge -o "$dir/m.db" "$dir/s0.db" "$dir/s1.db" -q || fail "merge"
$x arena archive --suite "$dir/two.json" --policy vtc --policy fcfs --policy edf --json --store "$dir/m.db" 2>"$dir/err" |
    cmp - "$dir/two.archive.json" || fail "archive of shards: other bytes"
grep -q ' 0 found there' "$dir/err" && fail "archive of shards: $(cat "$dir/err")"
! $x arena archive --suite "$dir/two.json" --policy edf --slurm-scripts --store "$dir/none.db" 2>"$dir/err" &&
    grep -q 'go with --slurm TASKS' "$dir/err" || fail "scripts without tasks: $(cat "$dir/err")"
$x arena archive --suite "$dir/two.json" --policy edf --slurm 3 --slurm-scripts --store "$dir/far.db" 2>/dev/null || fail "slurm"
grep -q "'arena' 'archive'.*'--policy' 'edf'" "$dir/far.db.slurm/array.sh" || fail "slurm: $(cat "$dir/far.db.slurm/array.sh")"
refuse "a shard without a store" "need --store" $x arena archive --suite "$dir/two.json" --shard 0/2

# At the end of a search by selection, the candidate with the highest score in 20 runs of each is
# named, and it takes fewer runs.
cat >"$dir/few.json" <<'END'
{"name": "few", "suite": {"about": "one short point", "references": ["fcfs"], "unscored": []}, "base": {"seed": 1},
 "rows": [{"point": "one", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b",
           "workload": "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"}],
 "replications": 2, "metrics": ["reactive.e2e_s.mean"]}
END
XPUSIM=$x python3 experiments/arena/evolve.py edf fcfs hhpf --candidates 3 --final 3 --replications 2 --suite "$dir/few.json" --select 0.95 \
    --ledger "$dir/evolved.csv" --log "$dir/evolved.log" || fail "evolve.py --select"
best=$($x arena judge edf fcfs hhpf --replications 20 --suite "$dir/few.json" --json -q |
    python3 -c 'import json, sys; print(max(json.load(sys.stdin)["judgements"], key=lambda j: j["score"])["policy"])')
sed -n 's/^selected of 3 with \([0-9]*\) runs for \([0-9]*\), decided: \(.*\)/\1 \2 \3/p' "$dir/evolved.log" >"$dir/selected"
read -r runs equal named <"$dir/selected"
[ "$named" = "$best" ] && [ "$runs" -lt "$equal" ] || fail "evolve.py --select: $(cat "$dir/evolved.log"), and $best is best"

# A policy of one's own has parameters, too, and colons in its name.
XPUSIM=$x python3 experiments/arena/evolve.py python:policies/python/examples/edf.py:Edf:max_batch=4 --candidates 3 --final 1 --replications 2 \
    --suite "$dir/few.json" --ledger "$dir/own.csv" --log "$dir/own.log" >"$dir/err" 2>&1 && grep -q "edf.py:Edf:.*max_batch=" "$dir/own.csv" ||
    fail "evolve.py on a policy in Python: $(cat "$dir/err")"
for wrong in edf:nope=3 nope; do
    XPUSIM=$x python3 experiments/arena/evolve.py $wrong --candidates 2 --suite "$dir/few.json" --ledger "$dir/own.csv" --log "$dir/own.log" 2>"$dir/err" &&
        fail "evolve.py on $wrong"
    grep -q "^xpusim: error: .*nope" "$dir/err" && ! grep -q Traceback "$dir/err" || fail "evolve.py does not say what is wrong: $(cat "$dir/err")"
done

# The lengths of answers are hidden. A policy that says that it asks for them has no score.
printf '%s\n' 'from xpusim import Policy' 'class Seer(Policy):' '    name = "seer"' '    flags = ("oracle",)' >"$dir/seer.py"
refuse "who knows the lengths of answers" "lengths of answers (oracle)" $x arena judge "python:$dir/seer.py:Seer" --suite "$dir/two.json"
refuse "who knows the lengths of answers, in a selection" "lengths of answers (oracle)" $x arena judge edf "python:$dir/seer.py:Seer" --select 0.9 --suite "$dir/two.json"

# A folder to begin in has a baseline that serves all requests and has a score. No file is written
# over.
$x arena new "$dir/mine" >"$dir/said" || fail "arena new"
program=$(cd "${x%/*}" && pwd)/xpusim
XPUSIM=$program sh "$dir/mine/test.sh" >"$dir/tested" 2>&1 || fail "arena new: test.sh: $(cat "$dir/tested")"
XPUSIM=$program SUITE=$dir/two.json sh "$dir/mine/score.sh" >"$dir/scored" 2>/dev/null || fail "arena new: score.sh"
grep -q "my-policy\|MyPolicy" "$dir/scored" || fail "arena new: no score: $(cat "$dir/scored")"
XPUSIM=$program SUITE=$dir/two.json sh "$dir/mine/score.sh" >"$dir/again" 2>"$dir/err" || fail "arena new: score.sh again"
grep -q ' 0 runs added' "$dir/err" && cmp "$dir/scored" "$dir/again" || fail "arena new: the reference is run again: $(cat "$dir/err")"
test "$(grep -c '^public' "$dir/mine/ledger.csv")" = 2 || fail "arena new: no ledger"
refuse "a folder with files" "File exists" $x arena new "$dir/mine"
test "$(ls "$dir/mine" | wc -l)" = 6 || fail "arena new: $(ls "$dir/mine")"

# With WHOLE=yes the policy that was found here is better on the public split, and each of its rules
# decides something. That takes a second of a processor for the scores of its page. A sanitized
# build only takes longer to compute them.
[ -z "${SANITIZED:-}" ] || echo "skipped: under a sanitizer: what the page of guarded-xpu says, which the usual build judges"
[ -n "${WHOLE:-}" ] && [ -z "${SANITIZED:-}" ] || {
    test $bad -eq 0 && echo "arena: suites, scores, sealed split, archive: fine"
    exit $bad
}
v2=agent-xpu-v2
set -- $v2:shortest=all,cap=open,b_rf=4,epsilon=0.15,guard=true $v2:elastic=class,cap=open,b_rf=4,epsilon=0.15,guard=true \
    $v2:elastic=class,shortest=all,guard=true $v2:elastic=class,shortest=all,cap=open,b_rf=4,epsilon=0.15 guarded-xpu warm-xpu
$x arena judge "$@" --replications 2 --json -q >"$dir/found" || fail "guarded-xpu"
python3 - "$dir/found" <<'PY' || fail "guarded-xpu is not what its page says"
import json, math, sys
*less, best, warm = json.load(open(sys.argv[1]))["judgements"]
def gain(j, metric):
    return sum(math.log(p[metric]["gain"]) for p in j["cells"].values())
split, order, batch, guard = less
ok = (best["score"] > 1.05 and gain(best, "reactive.e2e_s.mean") < gain(warm, "reactive.e2e_s.mean") and
      warm["score"] > 1.05 and warm["significant_regressions"] == [] and
      gain(split, "reactive.ttft_s.mean") < gain(best, "reactive.ttft_s.mean") and
      gain(order, "proactive.e2e_s.mean") < gain(best, "proactive.e2e_s.mean") and
      gain(batch, "proactive.e2e_s.mean") < gain(best, "proactive.e2e_s.mean") and
      gain(guard, "reactive.e2e_s.mean") < gain(best, "reactive.e2e_s.mean"))
sys.exit(not ok)
PY

test $bad -eq 0 && echo "arena: suites, scores, sealed split, archive: fine"
exit $bad

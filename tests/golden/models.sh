#!/bin/sh
# Several models are given on the command line. The test checks names, bindings, refusals, and the
# ways on which a request's model must reach a policy: Python, the protocol, a replayed log.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$PWD/${BUILD:-build}/xpusim
root=$PWD
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cd "$d" || exit 2
status=0
ok() { # what, command...
    what=$1
    shift
    if ! "$@" >out 2>&1; then
        echo "FAILED: $what: $*"
        head -n 5 out
        status=1
    fi
}
refused() { # what, text, command...
    what=$1
    text=$2
    shift 2
    "$@" >out 2>&1
    rc=$?
    if [ $rc -ne 2 ] || ! grep -qF -- "$text" out; then
        echo "FAILED: $what: exit $rc, not 2 with '$text': $*"
        head -n 5 out
        status=1
    fi
}
printf '%s\n' '# xpusim-trace v2' \
    request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,parent_ids,model \
    0,0,0,reactive,1,,512,12,0,, 1,1,0,reactive,1,,512,12,0,,small 2,2,0,proactive,1.5,,400,8,0,,small >two.csv
both="--llm qwen3-4b:bits=4 --llm small=qwen3-0.6b:bits=4"

# Names.
# shellcheck disable=SC2086
ok "two models" "$x" run --policy edf --trace two.csv $both -q
grep -q 'qwen3-4b:bits=4,small=qwen3-0.6b:bits=4' out || { echo "FAILED: the result does not name both"; status=1; }
refused "an unknown model" "two.csv:4: column model: no model of the run is called 'small'; there are qwen3-4b, tiny" \
    "$x" run --policy edf --trace two.csv --llm qwen3-4b --llm tiny=qwen3-0.6b
refused "two of a name" "two models are called 'qwen3-4b'" "$x" run --policy edf --trace two.csv --llm qwen3-4b --llm qwen3-4b:bits=4
refused "a wrong width" "bits must be" "$x" run --policy edf --trace two.csv --llm qwen3-4b --llm small=qwen3-0.6b:bits=x
refused "an unknown file" "did you mean qwen3-0.6b" "$x" run --policy edf --trace two.csv --llm qwen3-4b --llm small=qwen3-0.6c
sed 's/v2/v1/; s/,parent_ids,/,/; s/,,small/,small/; s/,,$/,/' two.csv >one.csv
refused "a v1 file" 'column model needs "# xpusim-trace v2"' "$x" run --policy edf --trace one.csv
sed 's/,small$/,a b/' two.csv >bad.csv
refused "a name that is none" 'bad.csv:4' "$x" run --policy edf --trace bad.csv
sed 's/^1,1,0/1,0,1/; s/^1,0,1,reactive,1,,/1,0,1,reactive,,1,/' two.csv >session.csv
refused "a session of two models" "session.csv:4: request 1: column model" "$x" run --policy edf --trace session.csv
echo '{"clients": [{"name": "a", "model": "draft", "prompt_tokens": 9, "answer_tokens": 9}]}' >w.json
refused "a workload's model" "w.json: clients[0].model: no model of the run is called 'draft'" \
    "$x" run --policy edf --workload w.json --llm qwen3-4b --llm small=qwen3-0.6b

# With one model all requests use it, and the output says so once. The results are those of the
# trace without the column.
ok "one model" "$x" run --policy edf --trace two.csv --llm qwen3-4b --json
[ "$(grep -c '^xpusim: note: requests name the models small' out)" = 1 ] || { echo "FAILED: no note"; status=1; }
grep -E '"(reactive|proactive)\.' out >with.txt
sed -n 2,5p two.csv | cut -d, -f1-10 | { echo '# xpusim-trace v2'; cat; } >without.csv
"$x" run --policy edf --trace without.csv --llm qwen3-4b --json 2>/dev/null | grep -E '"(reactive|proactive)\.' >without.txt
cmp -s with.txt without.txt && [ -s with.txt ] || { echo "FAILED: one model differs from none"; status=1; }

# A written trace has the names, and the same results.
# shellcheck disable=SC2086
roles="--llm leader=qwen3-4b:bits=4 --llm subagent=qwen3-0.6b:bits=4"
ok "trace gen" "$x" trace gen --workload leader-subagents --seed 2 -o leader.csv
# shellcheck disable=SC2086
for w in "--workload leader-subagents" "--trace leader.csv"; do
    "$x" run --policy edf $w --seed 2 $roles --json -q | grep -E '"(reactive|proactive)\.' >"r$(echo "$w" | cut -c3)"
done
cmp -s rw rt && [ -s rw ] || { echo "FAILED: the written trace runs otherwise"; status=1; }

# A model is measured by the entries of its own width, also where it is not the first. That is what a
# meter reads (258V), and how far kernels are calibrated. A GB10's are up to 4,096 rows at 4 bits, and
# up to 8,192 at 8.
printf '%s\n' '# xpusim-trace v2' "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,model" 0,0,0,reactive,0,,8000,40,0,b >second.csv
for soc in core-ultra-7-258v nvidia-gb10; do
    for first in "--llm a=qwen3-4b:bits=4" ""; do
        # shellcheck disable=SC2086
        "$x" run --policy fcfs --soc $soc $first --llm b=qwen3-4b --trace second.csv --json -q 2>/dev/null | grep -E '"(igpu.extrapolated_frac|metered.energy_j)"' >"m${first:+2}"
    done
    cmp -s m m2 && [ -s m ] || { echo "FAILED: $soc measures a second model otherwise"; status=1; }
done

# Two models on other ways: a log and its replay, Python, compare, sweep's one text.
# shellcheck disable=SC2086
"$x" run --policy edf --trace two.csv $both --decisions log -q --json 2>/dev/null | grep -E '"(reactive|proactive)\.' >a
# shellcheck disable=SC2086
"$x" run --replay log --trace two.csv $both -q --json 2>/dev/null | grep -E '"(reactive|proactive)\.' >b
cmp -s a b && [ -s a ] || { echo "FAILED: the replay differs"; status=1; }
cat >p.py <<'P'
from collections import deque
from xpusim import Policy
from xpusim.helpers import form, next_piece, place

class P(Policy):
    def init(self):
        assert [m.name for m in self.models] == ["qwen3-4b:bits=4", "qwen3-0.6b:bits=4"], self.models
        assert self.models[1].n_layers == 28 and self.models[0].n_layers == 36
        self.device, self.waiting = place(self.machine, "auto"), deque()
    def request_arrived(self, r):
        assert r.model == (0 if r.id == 0 else 1), (r.id, r.model)
        self.waiting.append(r)
    def pass_done(self, p):
        if p.segments[0].request.left:
            self.waiting.popleft()
    def schedule(self):
        if self.waiting:
            p = self.waiting[0].pass_ or form(self, [next_piece(self.waiting[0])])
            if p.state == "ready":
                self.launch(p, self.device)
P
# shellcheck disable=SC2086
PYTHONPATH=$root/policies/python ok "Python sees the models" "$x" run --policy python:p.py:P --trace two.csv $both -q
# shellcheck disable=SC2086
ok "compare" "$x" compare --policy edf --policy fcfs --workload leader-subagents --replications 3 --jobs 2 $roles -q
ok "a list in one text" "$x" run --policy edf --trace two.csv --llm qwen3-4b:bits=4,small=qwen3-0.6b:bits=4 -q
# shellcheck disable=SC2086
ok "explain" "$x" explain --policy edf --trace two.csv $both --request 1
# It has two minutes, because a search runs it fifty times and only names are compared.
sed 's/"duration_s": 900/"duration_s": 120/' "$root/traces/workloads/leader-subagents.json" >leader-subagents.json
# shellcheck disable=SC2086
ok "falsify" "$x" falsify --policy fcfs --baseline edf --workload leader-subagents.json $roles --metric reactive.ttft_s.p95 \
    --over workload --budget 8 --replications 1 --confirm 3 -q
grep -q 'leader=.*,subagent=.*--workload leader-subagents.json' out || { echo "FAILED: falsify names both models"; status=1; }
# A model that no request names: a name of two is misspelt, or was forgotten in the workload. One that drafts is meant.
# shellcheck disable=SC2086
"$x" run --policy edf --trace two.csv $both --llm spare=qwen3-0.6b --llm draft=qwen3-0.6b -q 2>err >out
[ "$(cat err)" = "xpusim: note: models of --llm that no request names: spare" ] || { echo "FAILED: the model that nobody names: $(cat err)"; status=1; }
# The second of two recordings names it.
mkdir recorded
for m in '' spare; do
    printf '%s\n' '# xpusim-trace v2' request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,model "0,0,0,reactive,1,,100,3,0,$m" >"recorded/a$m.csv"
done
"$x" compare --policy edf --policy fcfs --trace recorded --llm a=qwen3-0.6b --llm spare=qwen3-0.6b -q 2>err >out
[ "$(cat err)" = "xpusim: note: models of --llm that no request of the first replication names: spare" ] || { echo "FAILED: the model that a later recording names: $(cat err)"; status=1; }
# A wait for the weights of a model has its name: 0.1 s and the bytes at 0.8 GB/s, by the loader of a 258V.
printf '%s\n' '# xpusim-trace v2' request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,model \
    0,0,0,reactive,1,,100,3,0,a 1,1,0,reactive,60,,100,3,0,b >late.csv
set -- --policy edf --trace late.csv --soc core-ultra-7-258v --set models.at_start=false --llm a=qwen3-8b:bits=4 --llm b=qwen3-4b:bits=4 -q
"$x" run "$@" --json 2>err >out
"$x" explain --request 1 "$@" 2>err >why
"$x" explain --request 0 "$@" 2>err >>why
waited=$(awk '/^  graph_load .* a graph or the weights of a model were loaded$/ { s += $2 } END { printf "%.4f", s }' why)
[ "$waited" = "$(awk '/"model.load_bytes"/ { printf "%.4f", 2 * 0.1 + $2 / 0.8e9 }' out)" ] || { echo "FAILED: a wait for weights: $(cat why)"; status=1; }
for c in "characterize" "list kernels" "drive --policy edf --trace two.csv"; do
    # shellcheck disable=SC2086
    refused "$c" "takes one --llm, not several" "$x" $c $both
done
exit $status

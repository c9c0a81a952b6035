#!/bin/sh
# Where a message counts one thing, its noun is singular. These commands have one of everything to
# report.
set -eu
cd "$(dirname "$0")/../.."
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
one="--workload w1:n=1"
fails="$one --set sim.kv_capacity_tokens=16" # which its prompt does not fit
cat >"$dir/one.csv" <<'EOF'
# xpusim-trace v2
request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,parent_ids
0,0,0,reactive,0,,20,5,0,
1,1,0,reactive,,0,20,5,0,0
2,2,0,reactive,,0,20,5,0,0
3,3,0,reactive,,0,20,5,0,1;2
EOF
(sed 2q "$dir/one.csv" && echo 0) >"$dir/column.csv"
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,9,3\n2023-11-16 18:15:47.6805900,9,0\n' >"$dir/azure.csv"
cat >"$dir/agent.jsonl" <<'EOF'
{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"x"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:05.000Z","requestId":"r1","message":{"id":"m1","role":"assistant","model":"one","usage":{"input_tokens":50,"output_tokens":9}}}
{"type":"user","uuid":"u2","parentUuid":"a1","isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:06.000Z","message":{"role":"user","content":"x"}}
{"type":"assistant","uuid":"a2","parentUuid":"u2","isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:09.000Z","requestId":"r2","message":{"id":"m2","role":"assistant","model":"two","usage":{"input_tokens":90,"output_tokens":0}}}
EOF
for limit in 16 4000; do
    echo '{"name": "t", "base": {"workload": "w1:n=1", "sim.kv_capacity_tokens": '$limit'}, "axes": {"policy": ["fcfs"]},
        "metrics": ["energy_j"]}' >"$dir/$limit.json"
done
cat >"$dir/idle.sh" <<'EOF'
read -r hello
echo '{"protocol":1,"name":"idle","summary":"serves nobody"}'
read -r init || exit 0
echo '["do",[]]'
while read -r line; do echo '["do",[]]'; done
EOF
n=0
say() { # command: what it prints, to people; its status is another test's
    n=$((n + 1))
    echo "\$ xpusim $*" >>"$dir/said"
    (cd "$dir" && "$x" "$@" </dev/null) >>"$dir/said" 2>&1 || :
}
# shellcheck disable=SC2086
{
    say run --policy fcfs $one
    say run --policy fcfs $fails --trouble again
    say run --policy fcfs $one --set sim.horizon_s=0.5
    say run --policy fcfs $one --decisions a.log
    say run --policy fcfs $one --steady
    say compare --policy fcfs --policy edf --replications 1 $one --store kept.db
    say compare --policy fcfs --policy edf --replications 1 $fails
    say compare --policy fcfs --replications 1 $one --tune 1
    say trace gen $one -o single.csv
    say trace stats single.csv
    say trace stats one.csv
    say trace import azure.csv --format azure -o imported.csv
    say sweep 4000.json -o a.db --dry-run
    say sweep 4000.json -o a.db
    say sweep 4000.json -o a.db
    say sweep 16.json -o b.db
    say merge -o c.db a.db
    say explain --policy fcfs --job 0 --trace single.csv
    say bisect --policy fcfs --b-policy agent-xpu-v2 $one -o least.csv
    say bisect --policy fcfs --b-policy fcfs $one -o least.csv
    say diff a.log a.log
    say falsify --policy edf --baseline fcfs --budget 8 --replications 1 --confirm 3 --workload mixed:duration_s=60 --over machine
    say claims --replications 1 A10
    say graphs --p 3 --d 4 --s 9 --chunks 1
    say run --policy "exec:sh ./idle.sh" $one --trouble ''
    say check-policy fcfs --load 1 --trace single.csv
    say check-policy srpt --loads 1
    say compare --policy edf --regret --replications 1 --workload mixed:duration_s=120
    say trace import agent.jsonl -o imported.csv
    say run --policy fcfs --trace column.csv
    say compare --policy fcfs --policy edf --resample jobs --trace one.csv
    say run --policy fcfs $one --llm llama-3.1-70b:bits=4 --set soc.memory.capacity=16 --trouble ''
}
plural='requests|runs|sessions|jobs|forks|joins|points|traces|stores|decisions|replications|policies|scenarios|seeds|rows|pairs|passes|slots|gaps|steps|loads|fields|kernels|recordings|answers|turns|copies|values'
if grep -E "(^|[ (])1 (([a-z]+ )?of 1 )?($plural|machines|models|blocks|chunks|configurations|claims)\b" "$dir/said"; then
    echo "FAILED: one of them, and a plural"
    exit 1
fi
for noun in request run session job point store trace claim load replication answer field; do # or the commands say nothing of what is looked for
    grep -qE "\b1 $noun\b" "$dir/said" || { echo "FAILED: nothing says \"1 $noun\""; exit 1; }
done
echo "$n command lines"

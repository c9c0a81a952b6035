#!/bin/sh
# Numbers that pages quote outside of what tutorial.sh runs: each is computed again and looked for in its page.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
quotes() { # page, text that it must hold
    tr '\n' ' ' <"$1" | grep -qF -- "$2" || {
        echo "FAILED: $1 does not say \"$2\""
        bad=1
    }
}
# docs/commands.md: how long a request took, and its first token.
seconds() { # options of explain
    "$x" explain --request 9 --policy agent-xpu-v2 "$@" | sed -n '1s/.*: \([0-9.]*\) s from .*/\1/p' | awk '{ printf "%.0f", $1 }'
}
quotes docs/commands.md "# why it took $(seconds) s;"
quotes docs/commands.md "# why its first token took $(seconds --until first-token) s"
# README.md: the coding agent, every line of both tables.
"$x" compare --policy openvino-cb --policy agent-xpu-v2 --policy edf --workload coding-agent --soc core-ultra-7-258v \
    --llm qwen3-4b:bits=4 --metric reactive.ttft_s.p95 --metric reactive.job_s.mean -q >"$dir/out" || exit 1
sed -n '/^reactive.ttft_s.p95$/,$p' "$dir/out" | grep . >"$dir/agent"
while IFS= read -r line; do
    quotes README.md "    $line"
done <"$dir/agent"
[ "$(wc -l <"$dir/agent")" = 8 ] || { echo "FAILED: the coding agent's tables have other rows"; bad=1; }
# experiments/README.md: the README's comparison on 64 machines. With WHOLE=yes: two seconds for five numbers of one page.
if [ -n "${WHOLE:-}" ]; then
    "$x" compare --policy openvino-cb --policy agent-xpu-v2 --baseline openvino-cb --uncertainty 64 --replications 10 \
        --metric energy_active_j_per_token --metric reactive.e2e_s.mean -q >"$dir/out" || exit 1
    energy=$(awk '/^energy_active_j_per_token +agent-xpu-v2 +[01]/ { printf "%s +- %s", $3, $4; exit }' "$dir/out")
    lower=$(sed -n '/^energy_active_j_per_token$/,/^$/s/.*agent-xpu-v2 .*lower by \([0-9.]*\) % (significant)/\1/p' "$dir/out")
    turns=$(awk '/host.poll/ && $NF + 0 == $NF { printf "%.2g to %.2g W", $(NF - 2), $(NF - 1); exit }' "$dir/out")
    quotes experiments/README.md "$lower % lower on the file's machine"
    quotes experiments/README.md "a share of $energy of the machines"
    quotes experiments/README.md "draws $turns"
    sooner=$(awk '/^reactive.e2e_s.mean +agent-xpu-v2 +[01]/ { printf "%s +- %s", $3, $4; exit }' "$dir/out")
    quotes experiments/README.md "lower with a probability of $sooner over 64 machines"
fi
exit $bad

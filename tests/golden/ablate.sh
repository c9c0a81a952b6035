#!/bin/sh
# `ablate` compares a policy with each of its declared variants. It must give the same numbers as
# when they are named one by one, also for a class in Python. Settings that the user has given
# already are left out.
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
o="--workload mixed:duration_s=300 --replications 2 -q --metric reactive.e2e_s.mean"
# shellcheck disable=SC2086
$x ablate vllm-priority $o >"$dir/short" || fail "ablate"
# shellcheck disable=SC2086
$x compare --policy vllm-priority --policy vllm-priority:force_preempt=false --policy vllm-priority:by_priority=false \
    --policy vllm-priority:chunked_prefill=false $o >"$dir/long" || fail "compare"
cmp "$dir/short" "$dir/long" || fail "ablate and compare differ"
# shellcheck disable=SC2086
$x ablate vllm-priority:by_priority=false,mode=v0 $o --json >"$dir/json" || fail "ablate with parameters"
python3 - "$dir/json" <<'END' || fail "variants of a policy with parameters"
import json, sys
d = json.load(open(sys.argv[1]))
base = "vllm-priority:by_priority=false,mode=v0"
assert d["baseline"] == base, d["baseline"]
got = list(d["policies"])
assert got == [base, base + ",force_preempt=false", base + ",chunked_prefill=false"], got
END
refuse() { # message, policy
    $x ablate "$2" >"$dir/out" 2>&1
    [ $? = 2 ] && grep -q -- "$1" "$dir/out" || fail "$2: $(cat "$dir/out")"
}
refuse 'fcfs: the policy declares no mechanism' fcfs
refuse 'it sets each of its mechanisms already' sarathi:stall_free=false
refuse "no policy is called 'fcsf'" fcsf
$x ablate >"$dir/out" 2>&1
[ $? = 2 ] && grep -q 'POLICY is missing' "$dir/out" || fail "no policy: $(cat "$dir/out")"
# A value that an alias has already is no variant: balanced-xpu is agent-xpu-v2 with margin=choose. Other values are.
# shellcheck disable=SC2086
$x ablate balanced-xpu $o >"$dir/alias" || fail "an alias"
grep -q '^  balanced-xpu:elastic=off ' "$dir/alias" && ! grep -q 'margin=choose' "$dir/alias" || fail "variants of an alias: $(cat "$dir/alias")"
# Devices that a policy must have, or which one it takes by default.
$x list policy | awk '{ d[$1] = $2 } END { exit !(d["agent-xpu-v2"] == "npu+igpu" && d["llm-npu"] == "npu+cpu" && d["sd-npu"] == "npu" &&
    d["llama-cpp"] == "cpu" && d["fcfs"] == "one" && d["reef"] == "one" && d["balanced-xpu"] == "npu+igpu") }' || fail "devices of list policy"
$x list policy sarathi-hetero | grep -q 'xpusim ablate sarathi-hetero.*: parallel=false' || fail "list policy"
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    cat >"$dir/two.py" <<'END'
from xpusim import Param, Policy
from xpusim.helpers import form, next_piece, place


class Two(Policy):
    """Either end of the queue."""
    params = (Param("lifo", True, "the youngest first"),)
    ablations = ("lifo=false",)

    def init(self):
        self.device, self.queue = place(self.machine, "auto"), []

    def request_arrived(self, r):
        self.queue.append(r)

    def pass_done(self, p):
        if p.segments[0].request.left:
            self.queue.remove(p.segments[0].request)

    def schedule(self):
        running = [r for r in self.queue if r.pass_ or r.generated_tokens > 0]
        if self.queue:
            r = running[0] if running else self.queue[-1 if self.param["lifo"] else 0]
            p = r.pass_ or form(self, [next_piece(r)])
            if p.state == "ready":
                self.launch(p, self.device)
END
    # shellcheck disable=SC2086
    $x ablate "python:$dir/two.py:Two" $o >"$dir/out" 2>&1 || fail "a class in Python: $(cat "$dir/out")"
    grep -q 'Two:lifo=false  .*[0-9]' "$dir/out" || fail "no variant of the class: $(cat "$dir/out")"
    sed -i 's/"lifo=false",/7,/' "$dir/two.py"
    refuse 'ablations\[0\]: must be a string' "python:$dir/two.py:Two"
else
    echo "skipped: no python3 of 3.9 or newer, so no class in Python"
fi
exit $bad

#!/bin/sh
# diff and bisect are tested without a recording (diff.sh has one). Equal runs pass, and a
# difference is exit 1. The shrunk trace still shows it and is smaller, and two logs or another
# binary part at the same decision.
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
load="--workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60 --seed 3"
pair="--policy agent-xpu-v2 --b-policy agent-xpu-v2:b_rf=1"
# shellcheck disable=SC2086
{
    "$x" diff --policy agent-xpu-v2 $load | grep -q '^no difference in [0-9]* decisions$' || fail "equal runs differ"
    XPUSIM_DATA_DIR=$PWD "$x" diff --policy agent-xpu-v2 $load --against "$x" >/dev/null || fail "a binary differs from itself"
    "$x" diff $pair $load >"$dir/said"
    [ $? -eq 1 ] || fail "a difference is not exit 1"
    "$x" diff $pair $load --json >"$dir/said.json"
    "$x" bisect $pair $load -o "$dir/small.csv" >"$dir/bisected" || fail "bisect"
    "$x" diff $pair --trace "$dir/small.csv" --seed 3 --json >"$dir/small.json" && fail "the shrunk trace does not show it"
    "$x" bisect --policy fcfs $load -o "$dir/none.csv" >/dev/null && fail "bisect of equal runs"
    [ -e "$dir/none.csv" ] && fail "a trace without a difference is written"
    "$x" run --policy agent-xpu-v2 $load --decisions "$dir/a.log" -q >/dev/null
    "$x" run --policy agent-xpu-v2:b_rf=1 $load --decisions "$dir/b.log" -q >/dev/null
    "$x" trace gen $load -o "$dir/all.csv" >/dev/null || fail "trace gen"
}
"$x" diff "$dir/a.log" "$dir/b.log" >"$dir/logs"
[ $? -eq 1 ] || fail "logs that differ are not exit 1"
[ "$(head -n 1 "$dir/logs")" = "$(head -n 1 "$dir/said")" ] || fail "logs part elsewhere: $(head -n 1 "$dir/logs" "$dir/said")"
"$x" diff "$dir/a.log" "$dir/a.log" >/dev/null || fail "a log differs from itself"
# The decision is found by comparing the logs line by line. No request of the shrunk trace can be
# left out.
python3 - "$dir" "$x" <<'END' || fail "the decision, or the shrunk trace"
import json, pathlib, subprocess, sys
d, x = pathlib.Path(sys.argv[1]), sys.argv[2]
lines = lambda name: [l for l in (d / name).read_text().split("\n") if l[:1].isdigit()]
a, b = lines("a.log"), lines("b.log")
at = next(i for i, (p, q) in enumerate(zip(a, b)) if p != q)
said = json.loads((d / "said.json").read_text())
assert (said["decision"], said["a"], said["b"]) == (at + 1, a[at], b[at]), (said["decision"], said["a"], said["b"], at + 1, a[at], b[at])
assert said["context"] == a[at - 4:at], (said["context"], a[at - 4:at])
text = (d / "small.csv").read_text().split("\n")
rows = [i for i, l in enumerate(text) if l[:1].isdigit()]
assert 0 < len(rows) < sum(l[:1].isdigit() for l in (d / "all.csv").read_text().split("\n")), len(rows)
for out in rows:
    kept = [l for i, l in enumerate(text) if i != out]
    numbered = iter(range(len(rows)))
    first = next((i for i, l in enumerate(kept) if l[:1].isdigit()), None)
    if first is None:
        continue
    kept = [f"{n},{n}," + l.split(",", 2)[2] if l[:1].isdigit() and (n := next(numbered)) >= 0 else l for l in kept]
    (d / "less.csv").write_text("\n".join(kept))
    r = subprocess.run([x, "diff", "--policy", "agent-xpu-v2", "--b-policy", "agent-xpu-v2:b_rf=1", "--trace", str(d / "less.csv"), "--seed", "3"], capture_output=True, text=True)
    assert r.returncode == 0, (out, r.returncode, r.stdout[:200], r.stderr[:200])
END
exit $bad

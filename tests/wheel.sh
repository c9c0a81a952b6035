#!/bin/sh
# The wheel, put into a bare virtual environment: no compiler, no network, no other library than the C library's. It says what
# the program of the build says, byte for byte. A link of its own, so `make wheel` runs it, not `make check`.
set -eu
cd "$(dirname "$0")/.."
build=$(cd "${BUILD:-build}" && pwd)
wheel=$(ls "$build"/wheel/xpusim-*.whl)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --no-index --disable-pip-version-check "$wheel"
x=$dir/env/bin/xpusim
for library in gsl sqlite3 csv; do
    ldd "$x" | grep -q "lib$library" && { echo "wheel: the program needs lib$library of the machine"; exit 1; }
done
ldd "$x" | grep libcjson | grep -q "$dir/env/" || { echo "wheel: libcjson is not the wheel's"; exit 1; }
cd "$dir"
bare() { env -i PATH="$dir/env/bin" HOME="$dir" "$@"; }
load=mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120
for words in "run --policy agent-xpu-v2 --seed 3 --workload $load" "compare --policy edf --policy agent-xpu-v2 --replications 4 --workload $load" \
    "run --policy sd-npu --soc snapdragon-8gen2 --llm qwen2.5-1.5b --workload summary:n=4,gap_s=5" "list metric" "arena judge edf --replications 2" \
    "validate --points reference"; do
    # shellcheck disable=SC2086
    "$build/xpusim" $words --json -q >native.json
    # shellcheck disable=SC2086
    bare "$x" $words --json -q >wheel.json
    cmp native.json wheel.json || { echo "wheel: another result of $words"; exit 1; }
done
cat >mine.py <<'END'
from xpusim import Policy
from xpusim.helpers import form, next_piece, place
class Mine(Policy):
    """One at a time."""
    def init(self): self.device, self.waiting = place(self.machine, "auto"), []
    def request_arrived(self, r): self.waiting.append(r)
    def pass_done(self, p): self.waiting = [r for r in self.waiting if not r.left]
    def schedule(self):
        if self.waiting:
            p = self.waiting[0].pass_ or form(self, [next_piece(self.waiting[0])])
            if p.state == "ready":
                self.launch(p, self.device)
END
bare "$dir/env/bin/python" - "$load" <<'END'
import sys
import xpusim
c = xpusim.compare("fcfs", "python:mine.py:Mine", replications=2, workload=sys.argv[1])
of = {r["policy"]: r["mean"] for r in c.metric("all.e2e_s.mean")}
assert len(of) == 2 and len(set(of.values())) == 1, of
page = c._repr_html_()
assert page.startswith("<iframe") and "fcfs" in page and len(page) > 10000, page[:200]
print("wheel: " + repr(c))
END
du -h "$wheel" | sed 's,/.*/,,'
echo "wheel: built, installed, compared, used"

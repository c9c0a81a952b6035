#!/bin/sh
# The headlines' table says the same as `xpusim claims ID`, check by check. The page and README say
# the same as the marks in the claims files.
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ids="A7 B14 B15 D1"
# shellcheck disable=SC2086
"$x" claims $ids --headline --replications 4 --uncertainty 2 --json -q >"$dir/rows.json"
# shellcheck disable=SC2086
"$x" claims $ids --reading taken --replications 4 --json -q >"$dir/claims.json"
# Two machines have the first two traces each: one machine after the other is the same as one run of
# both.
"$x" claims B14 --headline --replications 4 --uncertainty 2 --json -q >"$dir/one.json"
python3 - "$dir" <<'EOF'
import json, re, sys
folder = sys.argv[1]
rows, judged, one = (json.load(open(f"{folder}/{n}.json")) for n in ("rows", "claims", "one"))
marked = {}
for name in ("agent-xpu-v1", "agent-xpu-v2", "sd-npu"):
    for claim in json.load(open(f"experiments/claims/{name}.json"))["claims"]:
        for check in claim.get("checks", []):
            if "headline" in check:
                marked[claim["id"], check["name"]] = check
ids = {c["id"] for c in judged}
assert {(r["id"], r["check"]) for r in rows} == {k for k in marked if k[0] in ids}, "other rows than are marked"
for r in rows:
    claim = next(c for c in judged if c["id"] == r["id"])
    check = next(k for k in claim["checks"] if k["name"] == r["check"])
    same = ["simulated", "low", "high", "verdict", "published", "unit",
            "independent_simulated", "independent_low", "independent_high", "independent_verdict"]
    wrong = [k for k in same if r.get(k) != check.get(k)]
    assert not wrong, (r["id"], r["check"], wrong, r, check)
    assert r["headline"] == marked[r["id"], r["check"]]["headline"]["says"]
    assert r["machines"] == 2 and r["machines_low"] <= r["machines_high"], r
    assert r["machines_low"] != r["simulated"], "a drawn machine is the file's"
assert [r for r in rows if r["id"] == "B14"] == one, "a row depends on its neighbours"

def table(path):
    """Rows of the first table below a header with `claim` or `headline`: lists of cells."""
    lines = [l for l in open(path, encoding="utf-8") if l.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", l)[1:-1]] for l in lines]
page = [r for r in table("docs/headlines.md") if re.fullmatch(r"[ABD]\d+", r[0])]
want = sorted((k[0], c["headline"]["says"], c["headline"]["decides"], c["headline"]["takes"]) for k, c in marked.items())
assert sorted((r[0], r[2], r[8], r[9]) for r in page) == want, "docs/headlines.md: make headlines"
readme = [r for r in table("README.md") if re.fullmatch(r"[ABD]\d+", r[0])]
assert len(readme) == 8, f"README has {len(readme)} headlines"
for r in readme:
    of = [p for p in page if p[0] == r[0] and p[3] == r[2]]
    assert len(of) == 1, ("README: no such headline in docs/headlines.md", r)
    p = of[0]
    assert r[1] == p[2] and r[3:] == [p[4], p[5], p[7]], ("README says other than docs/headlines.md", r, p)
EOF

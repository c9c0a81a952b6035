#!/bin/sh
# Shipped machines have numbers from others, as these are now. A copy that is older than its original fails, and so does one
# that does not say that it is a copy. The second part shows that a changed number is found.
set -eu
BUILD=${BUILD:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 hwmodels/siblings.py "$BUILD/xpusim"
mkdir "$dir/hwmodels"
cp hwmodels/siblings.py "$dir/hwmodels"
cp -r hwmodels/soc "$dir/hwmodels"
python3 - "$dir/hwmodels/soc" <<'EOF'
import json, sys
def change(name, how):
    path = "%s/%s.json" % (sys.argv[1], name)
    soc = json.load(open(path))
    how(soc)
    json.dump(soc, open(path, "w"))
def slower(soc):
    soc["devices"][0]["runtimes"][0]["decode_attention"]["value"] *= 0.5
change("rk3576", slower)
change("core-ultra-7-268v", lambda soc: soc.pop("like"))
change("ryzen-ai-9-hx-370", lambda soc: soc["devices"][0]["runtimes"][1].pop("expert_rows"))
EOF
if XPUSIM_DATA_DIR=$PWD python3 "$dir/hwmodels/siblings.py" "$BUILD/xpusim" >"$dir/found"; then
    echo "a changed copy was not found"
    exit 1
fi
cat >"$dir/wanted" <<'EOF'
core-ultra-7-268v: made from core-ultra-7-258v, and has no "like"
rk3576: devices.npu.runtimes.rkllm/8.decode_attention
ryzen-ai-9-hx-370: devices.npu.runtimes.fastflowlm-0.9/4.expert_rows
EOF
sed 's/ is .*//' "$dir/found" | sort | diff "$dir/wanted" -

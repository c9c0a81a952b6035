#!/bin/sh
# Devices of OpenVINO on the command line are matched by kind and probed, and their compilers'
# reasons are printed. A fake NPU replaces the real one (XPUSIM_FAKE_NPU;
# hwmodels/engines/openvino_fake.c).
set -u
cd "$(dirname "$0")/../.." || exit 2
BUILD=${BUILD:-build}
x=$BUILD/xpusim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }
export XDG_CACHE_HOME="$tmp/cache"

XPUSIM_ENGINES=$tmp $x drive --probe NPU >"$tmp/out" 2>"$tmp/err"
[ $? = 2 ] && grep -q 'engine openvino is not there' "$tmp/err" || fail "no engine: $(cat "$tmp/err")"
if grep -q __asan_init "$x"; then
    echo "skipped: engine openvino cannot be loaded under the address sanitizer"
    exit $bad
fi
if [ ! -e "$BUILD/engines/openvino.so" ]; then
    echo "skipped: engine openvino is not there (make engines)"
    exit $bad
fi
cat >"$tmp/t.csv" <<'END'
# xpusim-trace v1
request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens
0,0,0,reactive,0,,70,4,0
1,1,0,proactive,0.001,,20,3,0
END
probe() { # exit status, what the fake has
    XPUSIM_FAKE_NPU=$2 $x drive --probe npu --llm random-256 --json >"$tmp/out" 2>"$tmp/err"
    [ $? = "$1" ] || fail "probe of '$2': $(cat "$tmp/out" "$tmp/err")"
}
all() { tr -d ' \t\n' <"$tmp/out"; }

# One FFN of many rows, one of one row and one attention are each compiled and run, with the CPU's
# results.
probe 0 driver
[ "$(all | grep -o '"result":"ok","compiler":"driver","cached":false' | wc -l)" = 3 ] || fail "probe: $(all)"
[ "$(all | grep -o '"off_frac":0,' | wc -l)" = 3 ] || fail "probe differs from the CPU: $(all)"
grep -q 'kernel 3 of 3' "$tmp/err" || fail "probe without progress: $(cat "$tmp/err")"
# A second run takes them from the cache, and the other compiler compiles again.
probe 0 driver
[ "$(all | grep -o '"compiler":"driver","cached":true' | wc -l)" = 3 ] || fail "probe, cached: $(all)"
probe 0 plugin
[ "$(all | grep -o '"result":"ok","compiler":"plug-in"' | wc -l)" = 3 ] || fail "the plug-in's compiler: $(all)"
probe 1 none
[ "$(all | grep -o 'driver.scompiler:fakeNPU:thedriverhasnocompiler;theplug-in.s:fakeNPU:libopenvino' | wc -l)" = 3 ] ||
    fail "both reasons: $(all)"
$x drive --probe XPU >"$tmp/out" 2>"$tmp/err"
[ $? = 2 ] && grep -q 'finds no such device here; it has CPU' "$tmp/err" || fail "no such device: $(cat "$tmp/err")"

# The real plug-in without a device says why neither compiler can work. Where there is one, this is
# not asked.
$x drive --probe NPU --llm random-256 >"$tmp/out" 2>"$tmp/err"
if [ $? = 2 ]; then
    $x drive --policy fcfs --trace "$tmp/t.csv" --llm random-256 --clock cpu --engine openvino --devices NPU,CPU >"$tmp/out" 2>"$tmp/err"
    [ $? = 1 ] && grep -q "driver's compiler: .*device.*; the plug-in's: .*ompiler" "$tmp/err" || fail "no NPU: $(cat "$tmp/err")"
fi

# It is found by kind, anywhere in the list. The machine file for it is the default then.
drive() { # exit status, options...
    want=$1
    shift
    XPUSIM_FAKE_NPU=driver $x drive --policy agent-xpu-v2 --trace "$tmp/t.csv" --llm random-256 --clock cpu "$@" --json \
        >"$tmp/out" 2>"$tmp/err"
    [ $? = "$want" ] || fail "drive $*: $(cat "$tmp/err")"
}
for list in NPU,CPU CPU,NPU; do
    drive 0 --engine openvino --devices $list
    grep -q '"engines":.*"npu = openvino [0-9.]*, NPU, core 0; igpu = openvino [0-9.]*, CPU, core' "$tmp/out" || fail "$list: $(cat "$tmp/out")"
    grep -q '"name":.*"npu-and-gpu"' "$tmp/out" || fail "$list: another machine"
done
drive 0 --engine mixed --devices NPU --soc core-ultra-5-125h
grep -q 'npu = openvino [0-9.]*, NPU, core 0; igpu = ggml [0-9.]*, CPU, core' "$tmp/out" || fail "mixed: $(cat "$tmp/out" "$tmp/err")"
refused() { # text, options...
    text=$1
    shift
    drive 2 "$@"
    grep -q -- "$text" "$tmp/err" || fail "drive $*: $(cat "$tmp/err")"
}
refused 'names nothing for igpu of npu-and-gpu; CPU is every device that is not named' --engine openvino --devices NPU
refused 'GPU is for no device of npu-and-gpu, which has npu, igpu' --engine openvino --devices NPU,GPU,GPU
refused 'NPU.1 is for no device of npu-and-gpu' --engine openvino --devices NPU,NPU.1,CPU
# A machine file without static shapes is refused before anything is compiled.
drive 1 --engine openvino --devices NPU,CPU --soc two-cores
grep -q 'static_attention true (it has false), as npu-and-gpu does' "$tmp/err" || fail "two-cores: $(cat "$tmp/err")"
[ $bad -eq 0 ] && echo "npu: fine"
exit $bad

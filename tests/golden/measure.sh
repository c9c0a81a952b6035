#!/bin/sh
# `xpusim measure` runs from end to end on simulated devices, with a short real run and everything
# that can be wrong. A fault gives a plain message or a flagged row, never a crash or a hang.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0

expect() { # exit status, text on either stream, arguments...
    want=$1
    text=$2
    shift 2
    timeout 900 "$x" measure --quiet "$@" >"$dir/out" 2>&1
    got=$?
    if [ $got -ne "$want" ] || { [ -n "$text" ] && ! grep -qF -- "$text" "$dir/out"; }; then
        echo "FAILED (exit $got, wanted $want and \"$text\"): measure $*"
        head -n 5 "$dir/out"
        status=1
    fi
}
holds() { # text, file
    grep -qF -- "$1" "$2" || {
        echo "FAILED: no \"$1\" in $(basename "$2")"
        status=1
    }
}

# measured, fitted, written, run
expect 0 "" --backend sim --sim noise=0.02 -o "$dir/sim.csv"
expect 0 "the form holds" --fit "$dir/sim.csv" -o "$dir/soc.json"
"$x" run --soc "$dir/soc.json" --policy openvino-cb --workload mixed:duration_s=30 >"$dir/own" 2>"$dir/out" || {
    echo "the fitted SoC file does not run:"
    cat "$dir/out"
    status=1
}
# with the form it was fitted with, which --set still changes
"$x" run --soc "$dir/soc.json" --policy openvino-cb --workload mixed:duration_s=30 --set sim.hwmodel=p-norm | cmp -s "$dir/own" - || {
    echo "the fitted file does not run with its own form"
    status=1
}
"$x" run --soc "$dir/soc.json" --policy openvino-cb --workload mixed:duration_s=30 --set sim.hwmodel=extended 2>/dev/null | cmp -s "$dir/own" - && {
    echo "sim.hwmodel changes nothing"
    status=1
}
expect 0 "parameters" --fit "$dir/sim.csv" --json
# generators of another form are found out
expect 0 "" --backend sim --sim noise=0.01,form=steps -o "$dir/steps.csv"
expect 1 "WRONG FORM" --fit "$dir/steps.csv"
# a device that hangs: its rows are flagged, the rest is there
expect 1 "" --backend sim --sim hang=0.02 -o "$dir/hang.csv" --deadline-s 1
holds deadline "$dir/hang.csv"
# others at work, in the devices' own account
expect 1 "foreign_cpu  others used the processor" --backend sim --sim foreign=0.5 -o "$dir/busy.csv" --repetitions 1 --alone
holds foreign "$dir/busy.csv"
# real processors: seconds only, no speed is expected
export XPUSIM_PROC_DIR="$dir/none" XPUSIM_RAPL_DIR="$dir/none" XPUSIM_ACCEL_DIR="$dir/none"
expect 1 "unscreened   nothing says who else used the processor" --backend native --size tiny --repetitions 1 --window-s 0.001 \
    --samples 3 --retries 0 --pool-mb 16 -o "$dir/native.csv"
holds native "$dir/native.csv"
# Before it begins it says how long it takes, and which others use the machine.
announces() { # text, options...
    text=$1
    shift
    timeout 900 "$x" measure --backend native --devices cpu0 --alone --size tiny --repetitions 1 --window-s 0.001 --samples 3 \
        --retries 0 --pool-mb 16 "$@" -o "$dir/said.csv" >"$dir/out" 2>"$dir/err"
    n=$(sed -n 's/^xpusim: \([0-9]*\) windows of 0.001 s: .* s at least, .*/\1/p' "$dir/err")
    [ "${n:-0}" -ge 10 ] && grep -q "$text" "$dir/err" || { echo "FAILED: announces: $(cat "$dir/err")"; status=1; }
    rm -f "$dir"/said.csv*
}
announces 'nothing says who else uses the processors'
unset XPUSIM_PROC_DIR XPUSIM_RAPL_DIR XPUSIM_ACCEL_DIR
announces 'others use [0-9]* % of the processors now, the hypervisor [0-9]* %'
# With limits of 0 any tick of another process is too much, unless there was none.
announces 'above 0 and 0 % a row is flagged\|others use 0 % of the processors now, the hypervisor 0 %' --foreign-limit 0 --steal-limit 0
short="--backend native --size tiny --repetitions 1 --window-s 0.002 --samples 3 --retries 0 --alone --pool-mb 16 --foreign-limit 1"
# Other processes here are not this test's matter, so it does not ask how many rows can be trusted.
short() {
    # shellcheck disable=SC2086
    timeout 900 "$x" measure --quiet $short "$@" >"$dir/out" 2>&1
    [ $? -le 1 ] && grep -q " times can be trusted" "$dir/out" || {
        echo "FAILED: measure $short $*: $(cat "$dir/out")"
        status=1
    }
}
# The processor is one device of all its threads. Without a counter there is no row of energy, and
# none of 0.
export XPUSIM_RAPL_DIR="$dir/none"
short --devices cpu -o "$dir/cpu.csv"
holds "device cpu: " "$dir/cpu.csv"
[ "$(grep -c ",cpu,native,gemm-.*,kernel_ms," "$dir/cpu.csv")" -gt 10 ] || {
    echo "no products of all threads"
    status=1
}
grep -q ",power_w," "$dir/cpu.csv" && {
    echo "energy without a counter"
    status=1
}
# This package zone counts 5 J at each read. It is a tree of files, as the kernel shows it.
mkdir -p "$dir/rapl/intel-rapl:0"
echo package-0 >"$dir/rapl/intel-rapl:0/name"
echo 5000000 >"$dir/rapl/intel-rapl:0/energy_uj"
echo 262143328850 >"$dir/rapl/intel-rapl:0/max_energy_range_uj"
export XPUSIM_RAPL_DIR="$dir/rapl"
short -o "$dir/whole.csv"
grep -q ",power_w," "$dir/whole.csv" || {
    echo "no energy although a counter can be read"
    status=1
}
# It is killed, and the same command runs again. Every step runs once, as without the interruption.
key() { grep -v "^#" "$1" | cut -d, -f2,4,9,17,18 | sort; }
# shellcheck disable=SC2086
"$x" measure --quiet $short -o "$dir/again.csv" >/dev/null 2>&1 &
pid=$!
n=0
rows=0
while [ "${rows:-0}" -lt 20 ] && [ ! -e "$dir/again.csv" ] && kill -0 $pid 2>/dev/null && [ $n -lt 6000 ]; do
    n=$((n + 1))
    sleep 0.02
    rows=$(grep -c kernel_ms "$dir/again.csv.partial" 2>/dev/null)
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
if [ -e "$dir/again.csv" ]; then
    echo "note: the measurement was over before it was killed"
else
    cp "$dir/again.csv.partial.state" "$dir/state"
    # A file of another measurement is refused, and left unchanged.
    expect 2 "is of another measurement" --backend native --size tiny --repetitions 2 --alone -o "$dir/again.csv"
    cmp -s "$dir/state" "$dir/again.csv.partial.state" || {
        echo "a refused measurement changed the one it was refused for"
        status=1
    }
    short -o "$dir/again.csv"
    holds "going on after" "$dir/out"
fi
key "$dir/whole.csv" >"$dir/keys1"
key "$dir/again.csv" >"$dir/keys2"
cmp -s "$dir/keys1" "$dir/keys2" && [ ! -e "$dir/again.csv.partial" ] && [ ! -e "$dir/again.csv.partial.state" ] || {
    echo "an interrupted measurement has other rows: $(diff "$dir/keys1" "$dir/keys2" | head -4)"
    status=1
}
# OpenVINO has its processor device when the engine is there, and one sentence and exit 2 when it is
# not.
if grep -q __asan_init "$x"; then
    echo "skipped: backend openvino cannot be loaded under the address sanitizer"
elif [ -e "${BUILD:-build}/engines/openvino.so" ]; then
    # With WHOLE=yes its 56 kernels compile for two seconds, and measure_windows.sh measures them
    # with another program, too.
    [ -z "${WHOLE:-}" ] || timeout 900 "$x" measure --quiet --backend openvino --devices CPU --size tiny --repetitions 1 --window-s 0.005 --retries 0 \
        --pool-mb 16 --foreign-limit 1 -o "$dir/ov.csv" >"$dir/out" 2>&1
    [ $? -le 1 ] && { [ -z "${WHOLE:-}" ] || [ "$(grep -c ",cpu,openvino,.*,kernel_ms," "$dir/ov.csv")" -gt 40 ]; } || {
        echo "openvino: $(cat "$dir/out")"
        status=1
    }
    expect 2 "backend openvino has no device NPU7; it has cpu" --backend openvino --devices NPU7 -o "$dir/x.csv"
fi
mkdir -p "$dir/engines"
XPUSIM_ENGINES="$dir/engines" "$x" measure --backend openvino -o "$dir/x.csv" 2>"$dir/out"
[ $? = 2 ] && [ "$(wc -l <"$dir/out")" = 1 ] && grep -q "engine openvino is not there: .make engines. fetches" "$dir/out" || {
    echo "an absent engine: $(cat "$dir/out")"
    status=1
}
ls "$dir"/x.csv* 2>/dev/null && {
    echo "a refused measurement left a file"
    status=1
}
# refusals
expect 2 "nonesuch" --backend nonesuch -o "$dir/x.csv"
expect 2 "nonesuch" --backend sim --devices nonesuch -o "$dir/x.csv"
expect 2 "package" --backend opencl --library "$dir/none.so" -o "$dir/x.csv"
expect 2 "package" --backend blas --library "$dir/none.so" -o "$dir/x.csv"
expect 2 "repetitions" --backend sim --repetitions 0 -o "$dir/x.csv"
expect 2 "no/such/folder" --backend sim -o "$dir/no/such/folder/x.csv"
expect 2 "none.csv" --fit "$dir/none.csv"
head -n 12 "$dir/sim.csv" >"$dir/few.csv"
expect 2 "trusted rows" --fit "$dir/few.csv"
# rows that determine no rate make no machine
expect 0 "" --backend sim --sim noise=0.4 --size tiny --alone --repetitions 2 -o "$dir/noisy.csv"
expect 2 "npu, 8 bits: the rows do not determine its rate" --fit "$dir/noisy.csv" -o "$dir/noisy.json"
holds "measure more products of many rows" "$dir/out"
test ! -e "$dir/noisy.json" || {
    echo "a fit that determines nothing wrote a file"
    status=1
}
printf 'soc,device\na,b\n' >"$dir/bad.csv"
expect 2 "bad.csv" --fit "$dir/bad.csv" -o "$dir/bad.json"
test ! -e "$dir/bad.json" || {
    echo "a refused fit wrote a file"
    status=1
}
exit $status

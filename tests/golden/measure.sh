#!/bin/sh
# `xpusim measure` from end to end on simulated devices, a short real run, and everything that can be
# wrong: a plain message or a flagged row, never a crash or a hang.
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
    timeout 120 "$x" measure --quiet "$@" >"$dir/out" 2>&1
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
"$x" run --soc "$dir/soc.json" --policy openvino-cb --workload mixed:duration_s=30 >/dev/null 2>"$dir/out" || {
    echo "the fitted SoC file does not run:"
    cat "$dir/out"
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
expect 0 "" --backend sim --sim foreign=0.5 -o "$dir/busy.csv" --repetitions 1 --alone
holds foreign "$dir/busy.csv"
# real processors: seconds only, no speed is expected
expect 0 "" --backend native --size tiny --repetitions 1 --window-s 0.01 --samples 3 --retries 0 \
    --pool-mb 16 --proc-dir "$dir/none" --rapl-dir "$dir/none" --accel-dir "$dir/none" -o "$dir/native.csv"
holds native "$dir/native.csv"
# a package zone that counts 5 J whenever it is read: a tree of files, as the kernel shows it
mkdir -p "$dir/rapl/intel-rapl:0"
echo package-0 >"$dir/rapl/intel-rapl:0/name"
echo 5000000 >"$dir/rapl/intel-rapl:0/energy_uj"
echo 262143328850 >"$dir/rapl/intel-rapl:0/max_energy_range_uj"
expect 0 "" --backend native --size tiny --repetitions 1 --window-s 0.01 --samples 3 --retries 0 --alone \
    --pool-mb 16 --rapl-dir "$dir/rapl" -o "$dir/rapl.csv"
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
printf 'soc,device\na,b\n' >"$dir/bad.csv"
expect 2 "bad.csv" --fit "$dir/bad.csv" -o "$dir/bad.json"
test ! -e "$dir/bad.json" || {
    echo "a refused fit wrote a file"
    status=1
}
exit $status

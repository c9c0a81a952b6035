#!/bin/sh
# `xpusim send-in` and `new-soc --from` are tested: the contents of an archive, an interrupted run
# that continues, and damaged archives. The machine's files are another's (XPUSIM_ROOT), with names
# and serial numbers planted in them.
set -u
cd "$(dirname "$0")/../.." || exit 2
BUILD=${BUILD:-build}
case $BUILD in /*) x=$BUILD/xpusim ;; *) x=$PWD/$BUILD/xpusim ;; esac
traces=$PWD/traces/drive
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

# Another machine: two modules of 64 bits at 5600 MT/s are 2 x 8 x 5.6e9 = 89.6e9 bytes/s.
root=$tmp/root
put() { # path, text
    mkdir -p "$root/$(dirname "$1")"
    printf '%s\n' "$2" >"$root/$1"
}
put proc/cpuinfo 'model name	: Intel(R) Core(TM) Ultra 7 155H of plantedowner'
put proc/meminfo 'MemTotal:       32000000 kB'
put proc/sys/kernel/hostname plantedhost
put proc/sys/kernel/osrelease 6.11.0-plantedhost
put etc/os-release 'PRETTY_NAME="Ubuntu 24.04"'
put sys/class/dmi/id/product_name 'Laptop 14'
put sys/class/dmi/id/product_serial PLANTEDSERIAL
put sys/class/dmi/id/product_uuid PLANTEDSERIAL
put sys/class/dmi/id/board_asset_tag PLANTEDSERIAL
put sys/devices/system/cpu/cpu0/cpufreq/scaling_governor powersave
put sys/class/power_supply/AC/type Mains
put sys/class/power_supply/AC/online 0
put sys/class/power_supply/BAT0/type Battery
put sys/class/power_supply/BAT0/serial_number PLANTEDSERIAL
put sys/class/powercap/intel-rapl:0/name package-0
put sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw 28000000
put sys/class/powercap/intel-rapl:0/constraint_0_time_window_us 27983872
put sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw 64000000
mkdir -p "$root/sys/class/accel/accel0/device" "$root/bus/intel_vpu"
ln -s ../../../../../bus/intel_vpu "$root/sys/class/accel/accel0/device/driver"
put run/udev/data/+dmi:id 'E:MEMORY_DEVICE_0_SIZE=17179869184
E:MEMORY_DEVICE_0_TYPE_DETAIL=Synchronous
E:MEMORY_DEVICE_0_TYPE=DDR5
E:MEMORY_DEVICE_0_DATA_WIDTH=64
E:MEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=5600
E:MEMORY_DEVICE_0_SERIAL_NUMBER=PLANTEDSERIAL
E:MEMORY_DEVICE_1_SIZE=17179869184
E:MEMORY_DEVICE_1_TYPE=DDR5
E:MEMORY_DEVICE_1_DATA_WIDTH=64
E:MEMORY_DEVICE_1_CONFIGURED_SPEED_MTS=5600'
export XPUSIM_ROOT="$root" HOME="$tmp/plantedowner" USER=plantedowner LOGNAME=plantedowner XDG_CACHE_HOME="$tmp/cache"
mkdir -p "$HOME" "$tmp/none" "$HOME/work"
cd "$HOME/work" || exit 2
planted() { # file
    ! grep -aiE 'planted|/tmp/' "$1" >"$tmp/found" || fail "$1 has $(head -n 3 "$tmp/found")"
}

# 1. The dry list: every fact, nothing that is planted, and nothing is measured.
XPUSIM_ENGINES=$tmp/none $x send-in --dry >"$tmp/dry" || fail "dry: exit $?"
while read -r fact; do
    grep -q "^$fact *\$" "$tmp/dry" || fail "dry without: $fact"
done <<'END'
processor .*Core(TM) Ultra 7 155H of removed
kernel  *6.11.0-removed
distribution  *Ubuntu 24.04
product  *Laptop 14
governor  *powersave
memory_type  *DDR5
memory_modules  *2
memory_bits  *128
memory_mt_per_s  *5600
memory_peak_bytes_per_s  *89600000000
memory_bytes  *32768000000
on_mains  *no
battery  *yes
pl1_w  *28
pl1_window_s  *27.98[0-9]*
pl2_w  *64
npu_driver  *intel_vpu
END
planted "$tmp/dry"
[ "$(ls -A "$HOME/work")" = "" ] || fail "a dry run left something"
refuse() { # text, command...
    text=$1
    shift
    ls -A >"$tmp/before"
    "$@" >"$tmp/out" 2>"$tmp/err"
    [ $? = 2 ] && grep -q -- "$text" "$tmp/err" || fail "$*: $(cat "$tmp/out" "$tmp/err")"
    ls -A | cmp -s - "$tmp/before" || fail "$* left a file"
}
refuse 'must be a path ending in .tar.gz' $x send-in -o m.tar

# 2. It is killed in the middle, and the same command continues it. Without engines there are two
# steps, of this processor. It may end before it is killed, where others have the processors. Then
# it is killed another time.
for _ in 1 2 3 4 5; do
    rm -rf m.tar.gz
    XPUSIM_ENGINES=$tmp/none $x send-in --size tiny -o m.tar.gz >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    for _ in $(seq 6000); do
        [ "$(awk '{print $1}' m.tar.gz.partial/rows.csv.partial.state 2>/dev/null)" -ge 5 ] 2>/dev/null && break
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ -e m.tar.gz ] || break
done
[ ! -e m.tar.gz ] || fail "the send-in was over before it was killed, five times"
[ ! -e m.tar.gz ] || fail "an archive of half a measurement"
XPUSIM_ENGINES=$tmp/none refuse 'is of another send-in (xpusim .*, size tiny, devices ); remove it' $x send-in --size small -o m.tar.gz
XPUSIM_ENGINES=$tmp/none $x send-in --size tiny -o m.tar.gz >"$tmp/out" 2>"$tmp/err"
[ $? -le 1 ] && grep -q 'going on after' "$tmp/err" || fail "not continued: $(cat "$tmp/err")"
[ -e m.tar.gz ] && [ ! -e m.tar.gz.partial ] || fail "no archive, or a folder left"
tar tzf m.tar.gz >"$tmp/out" && printf 'about.json\nrows.csv\npairs.csv\n' | cmp -s - "$tmp/out" || fail "members: $(cat "$tmp/out")"
tar tvzf m.tar.gz | grep -vq ' 0/0 .* 1970-01-01 ' && fail "owner or time: $(tar tvzf m.tar.gz)"
zcat m.tar.gz >"$tmp/all"
planted "$tmp/all"
grep -aq '"step":.*"measure"' "$tmp/all" || fail "no steps"

# 3. Rows make the machine that `measure --fit` makes of them, with the memory's peak.
pack() { # archive, files...
    out=$1
    shift
    tar --format=ustar -czf "$out" "$@"
}
$x measure --quiet --backend sim --sim noise=0.02 --name mine -o rows.csv >/dev/null
tar xzf m.tar.gz about.json pairs.csv
pack rows.tar.gz about.json rows.csv
$x measure --fit rows.csv --ddr-peak 89.6 -o fit.json >/dev/null
$x new-soc mine --from rows.tar.gz >"$tmp/out" || fail "new-soc: exit $?: $(cat "$tmp/out")"
cmp -s fit.json mine.json || fail "another machine than measure --fit makes: $(diff fit.json mine.json | head -4)"
grep -q '^memory_mt_per_s *5600' "$tmp/out" && grep -q 'on [1-9][0-9]* held-out shapes the fit is off by' "$tmp/out" ||
    fail "not said what it is: $(cat "$tmp/out")"
refuse 'mine.json: is there already' $x new-soc mine --from rows.tar.gz
refuse 'must be a path ending in .json' $x new-soc other --from rows.tar.gz -o other

# 4. Damaged archives: the file and the place, and no machine.
from() { refuse "$1" $x new-soc other --from "$2"; }
from 'none.tar.gz' none.tar.gz
head -c 3000 rows.tar.gz >cut.tar.gz
from 'cut.tar.gz: byte [0-9]* of the unpacked archive: the packed file is damaged or cut off from here on' cut.tar.gz
echo 'hello' >text.tar.gz
from 'text.tar.gz: byte 6 of the unpacked archive: it ends here' text.tar.gz
pack only.tar.gz rows.csv
from 'only.tar.gz: has no about.json' only.tar.gz
mkdir d && cp about.json rows.csv d && cd d || exit 2
pack ../about.tar.gz about.json && cd ..
from 'about.tar.gz: has neither soc.json nor rows.csv' about.tar.gz
with() { # file, sed script: of the good files one is changed
    cp about.json rows.csv d
    sed -i "$2" "d/$1"
    (cd d && pack ../bad.tar.gz about.json rows.csv)
}
with about.json '2s/.*/"format": 7,/'
from 'bad.tar.gz:about.json: format: must be 1' bad.tar.gz
with about.json '3s/.*/{/'
from 'bad.tar.gz:about.json:3: malformed JSON' bad.tar.gz
row=$(grep -n kernel_ms rows.csv | head -n 1 | cut -d: -f1)
with rows.csv "${row}s/kernel_ms/nonsense/"
from "bad.tar.gz:rows.csv:$row: column metric" bad.tar.gz
with rows.csv '1s/v1/v9/'
from 'bad.tar.gz:rows.csv: the first line must be' bad.tar.gz
row=$(grep -n co_slowdown pairs.csv | head -n 1 | cut -d: -f1)
cp about.json rows.csv d && sed "${row}s/co_slowdown/nonsense/" pairs.csv >d/pairs.csv && (cd d && pack ../bad.tar.gz about.json rows.csv pairs.csv)
from "bad.tar.gz:pairs.csv:$row: column metric" bad.tar.gz
cp about.json rows.csv d && echo '{"format": 1, "name": "x"}' >d/soc.json && (cd d && pack ../bad.tar.gz about.json rows.csv soc.json)
from 'bad.tar.gz:soc.json' bad.tar.gz

# 5. With engines: a fake NPU that works, one that cannot compile, calibration and comparison.
if grep -q __asan_init "$x"; then
    echo "skipped: engine openvino cannot be loaded under the address sanitizer"
    exit $bad
fi
unset XPUSIM_ENGINES
if ! $x measure --list | grep -q '^  cpu .*OpenVINO'; then
    echo "skipped: engine openvino is not there (make engines)"
    exit $bad
fi
started() { # what the fake has, file, text to wait for in it: a send-in that is killed when it is there
    XPUSIM_FAKE_NPU=$1 $x send-in --size tiny -o npu.tar.gz >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    n=0
    while ! grep -q "$3" "npu.tar.gz.partial/$2" 2>/dev/null && kill -0 $pid 2>/dev/null && [ $n -lt 6000 ]; do
        n=$((n + 1))
        sleep 0.1
    done
    kill -9 $pid
    wait $pid 2>/dev/null
    grep -q "$3" "npu.tar.gz.partial/$2" || fail "no $2: $(cat "$tmp/err")"
}
# An NPU that cannot compile: the reason is in the archive, and nothing is driven on it.
started none rows.csv.partial ',npu,openvino,.*,not_prepared$'
grep -q "driver's compiler" npu.tar.gz.partial/probe-npu.json || fail "the probe's reason"
grep -q '^probe-npu 1 ' npu.tar.gz.partial/done || fail "the probe's status"
rm -r npu.tar.gz.partial
# With WHOLE=yes one that can is killed after the calibration, and continued. It compiles and
# calibrates for 12 s of a processor. Its parts by themselves are in check_send (every step, and
# continuing), drive.sh (a calibration) and above (an archive).
if [ -z "${WHOLE:-}" ]; then
    [ $bad -eq 0 ] && echo "send-in: fine, without a whole one on OpenVINO"
    exit $bad
fi
started driver soc.json .
# A step of the killed one may have its file open and still write: the next try has a file of its own.
echo stale >"$tmp/old"
ln -f "$tmp/old" npu.tar.gz.partial/compare-1.json.part
XPUSIM_FAKE_NPU=driver $x send-in --size tiny -o npu.tar.gz >"$tmp/out" 2>"$tmp/err"
[ $? -le 1 ] || fail "send-in with an NPU: $(cat "$tmp/err")"
for step in probe-npu measure pairs calibrate; do
    grep -q " of 7: $step is done" "$tmp/err" || fail "$step ran again: $(cat "$tmp/err")"
done
[ "$(cat "$tmp/old")" = stale ] || fail "a step wrote into the file of a killed one"
[ ! -e npu.tar.gz.partial ] || fail "a folder left: $(ls npu.tar.gz.partial)"
zcat npu.tar.gz >"$tmp/all"
planted "$tmp/all"
$x new-soc npu --from npu.tar.gz >"$tmp/out" || fail "new-soc of a calibrated machine: $(cat "$tmp/out")"
# Weights of --size tiny stay in the CPU's cache, so that its pairs say nothing of the DDR (check_take.c has some that do).
grep -a 'co_kernel_ms' "$tmp/all" >"$tmp/pairs" || fail "no pairs in the archive"
grep -q ',$' "$tmp/pairs" && fail "a pair from a cache is trusted"
grep -q '^pairs: not used (no pair of kernels has 5 samples or more, and weights outside a cache ([1-9]' "$tmp/out" ||
    fail "pairs: $(cat "$tmp/out")"
for trace in held-out-1 held-out-2 sessions; do
    grep -q "^$trace.csv *agent-xpu-v2 .* [0-9]" "$tmp/out" || fail "no validation on $trace: $(cat "$tmp/out")"
done
grep -A2 '"peak"' npu.json | head -n 2 | grep -q '89.6' || fail "the memory's peak"
$x run --soc npu.json --llm random-256 --policy fcfs --trace "$traces/held-out-1.csv" >"$tmp/out" 2>&1 || fail "it does not run: $(cat "$tmp/out")"
[ $bad -eq 0 ] && echo "send-in: fine"
exit $bad

#!/bin/sh
# hwmodels/measure_windows.py is tested: its answers from Windows and from Linux, the kernels of
# `xpusim measure`, an interrupted measurement that continues, and an archive from which `new-soc
# --from` makes a machine.
set -u
cd "$(dirname "$0")/../.." || exit 2
BUILD=${BUILD:-build}
case $BUILD in /*) x=$BUILD/xpusim ;; *) x=$PWD/$BUILD/xpusim ;; esac
script=$PWD/hwmodels/measure_windows.py
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }
engine=${XDG_CACHE_HOME:-$HOME/.cache}/xpusim/openvino-2026.4.1
export PYTHONPATH="$engine/python" PYTHONDONTWRITEBYTECODE=1
# Compiled modules are for this Python, and numpy is: the import itself is a quarter of a second.
if ! python3 -c 'import importlib.util as u, os, sys, sysconfig
openvino = u.find_spec("openvino")
suffix = sysconfig.get_config_var("EXT_SUFFIX")
sys.exit(openvino is None or u.find_spec("numpy") is None or
         not os.path.exists(os.path.join(openvino.submodule_search_locations[0], "_pyopenvino" + suffix)))'; then
    echo "skipped: the Python package openvino is not there (make engines, with Python 3.11)"
    exit 0
fi
root=$tmp/root
put() { # path, text
    mkdir -p "$root/$(dirname "$1")"
    printf '%s\n' "$2" >"$root/$1"
}
put proc/cpuinfo 'model name	: Processor of plantedowner'
put proc/meminfo 'MemTotal:       32000000 kB'
put proc/sys/kernel/hostname plantedhost
put proc/sys/kernel/osrelease 6.11.0-plantedhost
put sys/class/dmi/id/product_serial PLANTEDSERIAL
export XPUSIM_ROOT="$root" HOME="$tmp/plantedowner" USER=plantedowner LOGNAME=plantedowner XDG_CACHE_HOME="$tmp/cache"
mkdir -p "$HOME/work"
cd "$HOME/work" || exit 2
planted() { # file
    ! grep -aiE 'planted|/tmp/' "$1" >"$tmp/found" || fail "$1 has $(head -n 3 "$tmp/found")"
}

# 1. The dry list.
python3 "$script" --dry >"$tmp/dry" 2>&1 || fail "dry: $(cat "$tmp/dry")"
for fact in 'processor  *Processor of removed' 'kernel  *6.11.0-removed' 'memory_bytes  *32768000000' 'CPU.FULL_DEVICE_NAME  *[A-Za-z]'; do
    grep -q "^  $fact" "$tmp/dry" || fail "dry without $fact: $(cat "$tmp/dry")"
done
planted "$tmp/dry"
[ -z "$(ls -A)" ] || fail "a dry run left something"
refuse() { # text, options...
    text=$1
    shift
    python3 "$script" "$@" >"$tmp/out" 2>&1
    [ $? = 2 ] && grep -q -- "$text" "$tmp/out" || fail "$*: $(cat "$tmp/out")"
}
refuse 'OpenVINO finds no TPU here; it has CPU' --devices TPU
refuse 'must end in .tar.gz' -o m.zip

# 2. Windows answers by its shell: two modules of 64 bits at 5600 MT/s, on battery. Facts that no
# command asks for stay out.
mkdir "$tmp/bin"
cat >"$tmp/bin/powershell" <<'END'
#!/bin/sh
cat <<'JSON'
{"processor": {"Name": " Intel(R) Core(TM) Ultra 7 258V ", "SerialNumber": "PLANTEDSERIAL"},
 "memory": [{"Capacity": 17179869184, "ConfiguredClockSpeed": 8533, "DataWidth": 64, "SMBIOSMemoryType": 35, "SerialNumber": "PLANTEDSERIAL"},
            {"Capacity": 17179869184, "ConfiguredClockSpeed": 8533, "DataWidth": 64, "SMBIOSMemoryType": 35}],
 "computer": {"Manufacturer": "Maker", "Model": "Laptop of plantedowner"}, "board": {"Product": "Board"}, "bios": {"SMBIOSBIOSVersion": "1.2"},
 "system": {"Caption": "Microsoft Windows 11 Pro", "Version": "10.0.26100"}, "battery": {"BatteryStatus": 1},
 "drivers": [{"DeviceName": "Intel(R) AI Boost", "DriverVersion": "32.0.100.4404", "DeviceClass": "COMPUTEACCELERATOR"},
             {"DeviceName": "Intel(R) Arc(TM) 140V", "DriverVersion": "32.0.101.6987", "DeviceClass": "DISPLAY"}],
 "plan": {"ElementName": "Balanced"}}
JSON
END
chmod +x "$tmp/bin/powershell"
cat >"$tmp/windows.py" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import measure_windows as m
for key, value in m.without_names(m.windows_facts()).items():
    print(f"{key}={value}")
END
PATH=$tmp/bin:$PATH python3 "$tmp/windows.py" "$(dirname "$script")" >"$tmp/out" 2>&1
cat >"$tmp/wanted" <<'END'
processor=Intel(R) Core(TM) Ultra 7 258V
kernel=10.0.26100
distribution=Microsoft Windows 11 Pro
vendor=Maker
product=Laptop of removed
board=Board
bios_version=1.2
governor=Balanced
memory_bytes=34359738368
memory_modules=2
memory_type=LPDDR5
memory_bits=128
memory_mt_per_s=8533
memory_peak_bytes_per_s=136528000000.0
battery=yes
on_mains=no
npu_driver=Intel(R) AI Boost 32.0.100.4404
gpu_driver=Intel(R) Arc(TM) 140V 32.0.101.6987
END
cmp -s "$tmp/out" "$tmp/wanted" || fail "Windows: $(diff "$tmp/out" "$tmp/wanted")"

# 3. It is killed in the middle, and the same command runs again. Each kernel has one repetition,
# because it compiles for 30 ms of a processor. With WHOLE=yes it has two.
times=1
[ -z "${WHOLE:-}" ] || times=2
all=$((56 * times))
short="--size tiny --devices CPU --repetitions $times --window-s 0.002 --foreign-limit 1"
# It may end before it is killed, where others have the processors. Then it is killed another time.
for _ in 1 2 3 4 5; do
    rm -rf m.tar.gz
    # shellcheck disable=SC2086
    python3 "$script" $short -o m.tar.gz >"$tmp/out" 2>&1 &
    pid=$!
    for _ in $(seq 6000); do
        n=$(sed -n 's/.*"done": \([0-9]*\).*/\1/p' m.tar.gz.partial/state.json 2>/dev/null)
        [ "${n:-0}" -ge 10 ] && break
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ -e m.tar.gz ] || break
done
[ ! -e m.tar.gz ] || fail "the measurement was over before it was killed, five times"
[ ! -e m.tar.gz ] || fail "an archive of half a measurement"
# shellcheck disable=SC2086
python3 "$script" $short --repetitions 3 -o m.tar.gz >"$tmp/out" 2>&1 && fail "another measurement was continued"
grep -q 'is of another measurement' "$tmp/out" || fail "another measurement: $(cat "$tmp/out")"
echo 'half,a,row' >>m.tar.gz.partial/rows.csv # of the step that was killed
# shellcheck disable=SC2086
python3 "$script" $short -o m.tar.gz >"$tmp/out" 2>&1 || fail "not continued: $(cat "$tmp/out")"
head -n 1 "$tmp/out" | grep -q "^[1-9][0-9]* of $all: " || fail "it began again: $(head -n 1 "$tmp/out")"
[ ! -e m.tar.gz.partial ] || fail "a folder left"
tar tvzf m.tar.gz | grep -vq ' 0/0 .* 1970-01-01 ' && fail "owner or time: $(tar tvzf m.tar.gz)"
zcat m.tar.gz >"$tmp/all"
planted "$tmp/all"
tar xzf m.tar.gz
rows() { grep -v '^#' "$1" | sed 's/"[^"]*"/S/' | awk -F, "$2"; }
[ "$(rows rows.csv '$9 == "kernel_ms"' | cut -d, -f4,18 | sort -u | wc -l)" = $all ] || fail "not each of 56 kernels in each repetition"
[ "$(rows rows.csv '$9 == "kernel_ms"' | wc -l)" = $all ] || fail "a step ran twice"

# 4. The kernels of `xpusim measure`: the same names, work and bytes, fitted or held out.
if grep -q __asan_init "$x"; then
    echo "skipped: engine openvino cannot be loaded under the address sanitizer"
else
    "$x" measure --quiet --backend openvino --devices CPU --size tiny --repetitions 1 --window-s 0.002 --retries 0 --alone --pool-mb 16 \
        --foreign-limit 1 -o own.csv >"$tmp/out" 2>&1
    key() { rows "$1" '$9 == "kernel_ms"' | cut -d, -f2-9,12-17,24 | sort -u; }
    key own.csv >"$tmp/own"
    key rows.csv | cmp -s - "$tmp/own" || fail "other kernels: $(key rows.csv | diff - "$tmp/own" | head -4)"
fi

# 5. A machine of known numbers in its rows, two of each kernel: 20 us a launch, 0.2 TFLOP/s, 20 GB/s, attention at half the rate.
grep '^#' rows.csv >known.csv
grep -v '^#' rows.csv | head -n 1 >>known.csv
grep -v '^#' rows.csv | sed 1d | awk -v OFS=, '{
    quoted = match($0, /"[^"]*"/) ? substr($0, RSTART, RLENGTH) : ""
    sub(/"[^"]*"/, "S")
    n = split($0, c, ",")
    if (c[9] != "kernel_ms" || c[18] != 0) next
    rate = c[13] == "prefill" || c[13] == "decode" ? 0.1e12 : 0.2e12
    for (c[18] = 0; c[18] < 2; c[18]++) {
        ms = (20e-6 + c[15] / rate + c[16] / 20e9) * 1e3 * (1 + 0.002 * (2 * c[18] - 1))
        c[10] = c[20] = c[21] = ms; c[11] = quoted; c[19] = 10; c[25] = ""
        for (i = 1; i <= 25; i++) printf("%s%s", c[i], i < 25 ? "," : "\n")
    }
}' >>known.csv
mv known.csv rows.csv
tar --format=ustar -czf known.tar.gz about.json rows.csv
"$x" new-soc known --from known.tar.gz >"$tmp/out" 2>&1
[ $? -le 1 ] || fail "new-soc: $(cat "$tmp/out")"
"$x" list soc known.json | awk '
    $1 ~ /runtimes.*\/8.rate$/ { rate = $2 }
    $1 ~ /runtimes.*\/8.launch$/ { launch = $2 }
    END { exit !(rate > 0.19 && rate < 0.21 && launch > 19 && launch < 21) }' || fail "not the numbers of the rows: $("$x" list soc known.json)"
[ $bad -eq 0 ] && echo "measure_windows: fine"
exit $bad

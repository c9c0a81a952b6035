#!/usr/bin/env python3
"""Measures the CPU, GPU and NPU of this computer with OpenVINO, on Windows and on Linux.

    pip install openvino
    python measure_windows.py --dry                  # prints what would go in, and measures nothing
    python measure_windows.py -o my-machine.tar.gz   # half an hour; the same command goes on after an interruption

It needs nothing but the package `openvino`. The kernels, the rows and the archive are those of
`xpusim measure --backend openvino` and `xpusim send-in`, so `xpusim new-soc NAME --from my-machine.tar.gz`
makes a machine file of it. The archive has no host name, user, folder, address or serial number.
Nothing is sent anywhere.
"""
import argparse
import collections
import csv
import datetime
import getpass
import gzip
import io
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time

# Threads of numpy that wait for work take a processor from what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import openvino as ov
from openvino import opset13 as ops

FORMAT = 1
SEED = 1
COMPILERS = ("DRIVER", "PLUGIN")  # of an NPU, in the order in which they are tried
WIDTHS = (8, 16, 4)
ACT_BITS, KV_BITS = 32, 16
MIN_SAMPLES = 5
RETRIES = 1  # of a disturbed window
SPIKES = 0.1  # share of samples over twice the median: two speeds in one window
MAX_COPIES = 16  # of a kernel's weights, so that no cache holds them
MIN_POOL = 640 << 20
COLUMNS = (
    "soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value,source,kind,op,rows,flop,"
    "bytes,partner,repetition,samples,p10,p90,foreign_frac,steal_frac,set,flag"
).split(",")

Scale = collections.namedtuple("Scale", "dim rows_max heads kv_heads head_dim context repetitions window_s")
SCALES = {
    "tiny": Scale(256, 64, 8, 2, 64, 128, 3, 0.04),
    "small": Scale(1024, 256, 16, 4, 64, 512, 5, 0.3),
    "full": Scale(4096, 512, 32, 8, 128, 1024, 5, 0.3),
}
Spec = collections.namedtuple("Spec", "op bits rows n k heads kv_heads head_dim context held")


# ---- kernels (hwmodels/kernel_spec.c, hwmodels/backends/plan.c) ----


def product(bits, rows, n, k, held=False):
    return Spec("gemv" if rows == 1 else "gemm", bits, rows, n, k, 0, 0, 0, 0, held)


def attention(scale, op, rows, context, held=False):
    return Spec(op, KV_BITS, rows, 0, 0, scale.heads, scale.kv_heads, scale.head_dim, context, held)


def name_of(s):
    if s.op in ("gemv", "gemm"):
        return f"{s.op}-w{s.bits}-m{s.rows}-n{s.n}-k{s.k}"
    return f"{s.op}-kv{s.bits}-m{s.rows}-c{s.context}-h{s.heads}x{s.kv_heads}-d{s.head_dim}"


def weight_bytes(s):
    if s.op in ("gemv", "gemm"):
        return s.n * s.k * s.bits // 8
    sequences = s.rows if s.op == "decode" else 1
    return 2 * sequences * s.context * s.kv_heads * s.head_dim * s.bits // 8


def flop_and_bytes(s):
    act = ACT_BITS / 8
    if s.op in ("gemv", "gemm"):
        return 2.0 * s.rows * s.n * s.k, weight_bytes(s) + act * s.rows * (s.n + s.k)
    pairs = s.rows * s.context - (0 if s.op == "decode" else s.rows * (s.rows - 1) / 2)
    return 4.0 * s.heads * s.head_dim * pairs, weight_bytes(s) + act * s.rows * 2 * s.heads * s.head_dim


def kernels(scale):
    dim, tiny, c = scale.dim, scale.dim // 16, scale.context
    out = []
    for bits in WIDTHS:
        rows, held = 2, False
        while rows <= scale.rows_max:
            out.append(product(bits, rows, dim, dim, held))
            rows, held = rows * 2, not held
        out += [product(bits, 2, tiny, tiny), product(bits, 8, tiny, tiny)]
        out += [product(bits, 24, dim * 11 // 4, dim, True), product(bits, 48, dim // 2, dim, True)]
        out += [product(bits, 1, n, dim) for n in (dim, 2 * dim, dim // 4)] + [product(bits, 1, tiny, tiny)]
        out += [product(bits, 1, n, dim, True) for n in (dim * 11 // 4, dim // 2)]
    out += [attention(scale, "prefill", c // 16, c // 2), attention(scale, "prefill", c // 8, c)]
    out += [attention(scale, "prefill", c // 16, c * 3 // 4, True)]
    out += [attention(scale, "decode", r, k) for r, k in ((1, c), (1, 4 * c), (4, c))]
    out += [attention(scale, "decode", 1, k, True) for k in (2 * c, 3 * c)]
    return out


def pairs(scale):
    """Pairs of kernels that run together: (first device's, second's, held out)."""
    dim = scale.dim
    out = [(product(b, 1, dim, dim), product(b, 1, dim, dim), False) for b in WIDTHS]
    gemv, gemm = product(WIDTHS[0], 1, dim, dim), product(WIDTHS[0], scale.rows_max // 4, dim, dim)
    decode = attention(scale, "decode", 1, 4 * scale.context)
    out += [(gemm, gemv, False), (gemv, gemm, True), (gemm, gemm, True)]
    return out + [(decode, decode, False), (gemv, decode, True), (gemm, decode, True)]


# ---- models (hwmodels/engines/openvino_ir.c) ----


def weights(bits, n, k):
    """A matrix as exporters store it: integers times a scale per output, decompressed to floats."""
    if bits == 16:
        return ops.convert(ops.constant(np.full((n, k), 1 / 16, np.float16)), "f32")
    data = np.full(n * k * bits // 8, 0x11, np.uint8)
    kind = ov.Type.i8 if bits == 8 else ov.Type.i4
    w = ops.convert(ov.op.Constant(ov.Tensor(data, ov.Shape([n, k]), kind)), "f16")
    return ops.convert(ops.multiply(w, ops.constant(np.full((n, 1), 1 / 64, np.float16))), "f32")


def product_model(s):
    x = ops.parameter([s.rows, s.k], np.float32)
    return ov.Model([ops.matmul(x, weights(s.bits, s.n, s.k), False, True)], [x])


def attention_model(s):
    batch, rows = (s.rows, 1) if s.op == "decode" else (1, s.rows)
    q = ops.parameter([batch, rows, s.heads, s.head_dim], np.float32)
    k = ops.parameter([batch, s.context, s.kv_heads, s.head_dim], np.float16)
    v = ops.parameter([batch, s.context, s.kv_heads, s.head_dim], np.float16)
    mask = ops.parameter([1, 1, rows, s.context], np.float32)

    def turned(x):
        return ops.transpose(x, np.array([0, 2, 1, 3]))

    def spread(x):  # a head for each of the queries'
        x = ops.unsqueeze(turned(ops.convert(x, "f32")), np.array([2]))
        x = ops.broadcast(x, np.array([1, 1, s.heads // s.kv_heads, 1, 1]), broadcast_spec="BIDIRECTIONAL")
        return ops.reshape(x, np.array([0, s.heads, -1, s.head_dim]), True)

    a = ops.scaled_dot_product_attention(turned(q), spread(k), spread(v), mask)
    return ov.Model([turned(a)], [q, k, v, mask])


class Kernel:
    """A kernel on a device: copies of its weights, or of its keys and values, that take turns."""

    def __init__(self, devices, device, spec, copies):
        self.spec, self.device, self.turn = spec, device, 0
        is_product = spec.op in ("gemv", "gemm")
        self.requests, self.inputs = [], []
        for i in range(copies if is_product else 1):
            model = product_model(spec) if is_product else attention_model(spec)
            begin = time.perf_counter()
            compiled = devices.compile(device, model)
            if i == 0:
                self.compile_s = time.perf_counter() - begin
            self.requests.append(compiled.create_infer_request())
        if is_product:
            self.inputs = [[np.full((spec.rows, spec.k), 0.25, np.float32)]]
        else:
            batch, rows = (spec.rows, 1) if spec.op == "decode" else (1, spec.rows)
            q = np.full((batch, rows, spec.heads, spec.head_dim), 0.25, np.float32)
            mask = np.triu(np.full((rows, spec.context), -1e30, np.float32), spec.context - rows + 1)
            shape = (batch, spec.context, spec.kv_heads, spec.head_dim)
            self.inputs = [
                [q, np.full(shape, 1 / 16, np.float16), np.full(shape, 1 / 16, np.float16), mask[None, None]]
                for _ in range(copies)
            ]
        for request in self.requests:
            for i, data in enumerate(self.inputs[0]):
                request.set_input_tensor(i, ov.Tensor(data, shared_memory=True))

    def run(self):
        """One inference; its seconds."""
        request = self.requests[self.turn % len(self.requests)]
        if len(self.inputs) > 1:
            for i in (1, 2):
                data = self.inputs[self.turn % len(self.inputs)][i]
                request.set_input_tensor(i, ov.Tensor(data, shared_memory=True))
        self.turn += 1
        begin = time.perf_counter()
        request.infer()
        return time.perf_counter() - begin


class Devices:
    def __init__(self, cache):
        self.core = ov.Core()
        self.cache, self.compiler = cache, COMPILERS[0]
        self.names = list(self.core.available_devices)
        self.core.set_property("CPU", {"NUM_STREAMS": "1", "INFERENCE_PRECISION_HINT": "f32"})

    def kind(self, name):
        if name.startswith("NPU"):
            return "npu"
        if not name.startswith("GPU"):
            return "cpu"
        return "gpu" if "discrete" in str(self.core.get_property(name, "DEVICE_TYPE")).lower() else "igpu"

    def compile(self, device, model):
        config = {} if device == "CPU" else {"CACHE_DIR": self.cache}
        if not device.startswith("NPU"):
            return self.core.compile_model(model, device, config)
        reasons = {}
        for compiler in sorted(COMPILERS, key=lambda c: c != self.compiler):
            try:
                compiled = self.core.compile_model(model, device, {**config, "NPU_COMPILER_TYPE": compiler})
                self.compiler = compiler
                return compiled
            except RuntimeError as error:
                reasons[compiler] = str(error).strip().splitlines()[-1]
        raise RuntimeError(f"driver's compiler: {reasons['DRIVER']}; plug-in's: {reasons['PLUGIN']}")

    def facts(self):
        keys = (
            "FULL_DEVICE_NAME DEVICE_ARCHITECTURE DEVICE_TYPE OPTIMIZATION_CAPABILITIES NPU_DRIVER_VERSION "
            "NPU_COMPILER_VERSION NPU_DEVICE_TOTAL_MEM_SIZE NPU_MAX_TILES GPU_DRIVER_VERSION GPU_UARCH_VERSION "
            "GPU_EXECUTION_UNITS_COUNT GPU_DEVICE_TOTAL_MEM_SIZE"
        ).split()
        out = {"openvino": ov.get_version().split("-")[0]}
        for name in self.names:
            for key in keys:
                try:
                    value = self.core.get_property(name, key)
                except RuntimeError:
                    continue
                value = " ".join(value) if isinstance(value, (list, tuple)) else str(value)
                out[f"{name}.{key}"] = value.replace("Type.", "").lower() if key == "DEVICE_TYPE" else value
        return out


# ---- this computer ----


def first_line(path):
    try:
        with open(os.environ.get("XPUSIM_ROOT", "") + path, encoding="utf-8", errors="replace") as f:
            return f.readline().strip()
    except OSError:
        return ""


def keyed(path, key):
    try:
        with open(os.environ.get("XPUSIM_ROOT", "") + path, encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith(key):
                    return re.sub(r'^[\s:="]+|["\s]+$', "", line[len(key) :])
    except OSError:
        pass
    return ""


def linux_facts():
    facts = {
        "processor": keyed("/proc/cpuinfo", "model name"),
        "kernel": first_line("/proc/sys/kernel/osrelease"),
        "distribution": keyed("/etc/os-release", "PRETTY_NAME"),
        "vendor": first_line("/sys/class/dmi/id/sys_vendor"),
        "product": first_line("/sys/class/dmi/id/product_name"),
        "bios_version": first_line("/sys/class/dmi/id/bios_version"),
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "platform_profile": first_line("/sys/firmware/acpi/platform_profile"),
    }
    total = keyed("/proc/meminfo", "MemTotal").split(" ")[0]
    facts["memory_bytes"] = int(total) * 1024 if total.isdigit() else 0
    return facts


# What is asked of Windows: these properties only. Win32_BIOS and Win32_PhysicalMemory have serial numbers as well.
WINDOWS = """
$o = @{}
$o.processor = Get-CimInstance Win32_Processor | Select-Object Name
$o.memory = Get-CimInstance Win32_PhysicalMemory | Select-Object Capacity, ConfiguredClockSpeed, DataWidth, SMBIOSMemoryType
$o.computer = Get-CimInstance Win32_ComputerSystem | Select-Object Manufacturer, Model
$o.board = Get-CimInstance Win32_BaseBoard | Select-Object Product
$o.bios = Get-CimInstance Win32_BIOS | Select-Object SMBIOSBIOSVersion
$o.system = Get-CimInstance Win32_OperatingSystem | Select-Object Caption, Version
$o.battery = Get-CimInstance Win32_Battery | Select-Object BatteryStatus
$o.drivers = Get-CimInstance Win32_PnPSignedDriver -Filter "DeviceClass='DISPLAY' or DeviceClass='COMPUTEACCELERATOR'" |
    Select-Object DeviceName, DriverVersion, DeviceClass
$o.plan = Get-CimInstance -Namespace root\\cimv2\\power Win32_PowerPlan -Filter 'IsActive=True' | Select-Object ElementName
$o | ConvertTo-Json -Depth 3
"""
MEMORY_TYPES = {20: "DDR", 24: "DDR3", 26: "DDR4", 30: "LPDDR4", 34: "DDR5", 35: "LPDDR5"}  # SMBIOS, table 78


def as_list(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def windows_facts():
    try:
        said = subprocess.run(
            ["powershell", "-NoProfile", "-NonInteractive", "-Command", WINDOWS],
            capture_output=True, text=True, timeout=120, check=False)
        all_of = json.loads(said.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {"processor": platform.processor(), "kernel": platform.version()}

    def one(part, key):
        found = as_list(all_of.get(part))
        return (found[0].get(key) or "") if found and isinstance(found[0], dict) else ""

    facts = {
        "processor": str(one("processor", "Name")).strip(),
        "kernel": one("system", "Version"),
        "distribution": one("system", "Caption"),
        "vendor": one("computer", "Manufacturer"),
        "product": one("computer", "Model"),
        "board": one("board", "Product"),
        "bios_version": one("bios", "SMBIOSBIOSVersion"),
        "governor": one("plan", "ElementName"),
    }
    modules = [m for m in as_list(all_of.get("memory")) if isinstance(m, dict)]
    bits = sum(m.get("DataWidth") or 0 for m in modules)
    speeds = [m["ConfiguredClockSpeed"] for m in modules if m.get("ConfiguredClockSpeed")]
    if modules:
        facts["memory_bytes"] = sum(int(m.get("Capacity") or 0) for m in modules)
        facts["memory_modules"] = len(modules)
        facts["memory_type"] = MEMORY_TYPES.get(modules[0].get("SMBIOSMemoryType"), "")
        facts["memory_bits"] = bits
    if speeds:
        facts["memory_mt_per_s"] = min(speeds)
        facts["memory_peak_bytes_per_s"] = bits / 8 * min(speeds) * 1e6
    batteries = [b for b in as_list(all_of.get("battery")) if isinstance(b, dict)]
    if batteries:  # 2: on mains (Win32_Battery); a computer without a battery is not asked
        facts["battery"] = "yes"
        facts["on_mains"] = "yes" if batteries[0].get("BatteryStatus") == 2 else "no"
    for d in as_list(all_of.get("drivers")):
        kind = "npu" if str(d.get("DeviceClass", "")).upper() == "COMPUTEACCELERATOR" else "gpu"
        facts.setdefault(f"{kind}_driver", f"{d.get('DeviceName')} {d.get('DriverVersion')}")
    return facts


def without_names(facts):
    """Host and user names that are in a text of the machine are replaced."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = ""
    host = first_line("/proc/sys/kernel/hostname") or platform.node()
    words = {w for w in (host, user, os.path.basename(os.path.expanduser("~"))) if len(w) >= 3}
    out = {}
    for key, value in facts.items():
        if isinstance(value, str):
            for word in words:
                value = re.sub(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", "removed", value, flags=re.I)
            value = "".join(c if c.isprintable() else "?" for c in value)
        if value not in ("", 0, None):
            out[key] = value
    return out


def machine_facts(devices):
    facts = windows_facts() if platform.system() == "Windows" else linux_facts()
    return without_names({**facts, "processors": os.cpu_count(), **devices.facts()})


class Load:
    """Share of the processors that others had; -1 where nothing says it."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read():
        own = sum(os.times()[:2])
        if platform.system() == "Windows":
            import ctypes

            t = [ctypes.c_ulonglong() for _ in range(3)]
            if not ctypes.windll.kernel32.GetSystemTimes(*(ctypes.byref(x) for x in t)):
                return None
            idle, kernel, user = (x.value / 1e7 for x in t)  # kernel holds idle
            return kernel + user, kernel + user - idle, own
        ticks = first_line("/proc/stat").split()[1:9]
        if len(ticks) < 8:
            return None
        hertz = os.sysconf("SC_CLK_TCK")
        t = [int(x) / hertz for x in ticks]
        return sum(t), sum(t) - t[3] - t[4], own

    def foreign(self):
        now = self.read()
        if now is None or self.before is None or now[0] <= self.before[0]:
            return -1.0
        all_s, busy_s, own_s = (b - a for a, b in zip(self.before, now))
        return min(1.0, max(0.0, (busy_s - own_s) / all_s))


# ---- measuring (hwmodels/backends/measure.c) ----


def quantile(sorted_, q):
    at = q * (len(sorted_) - 1)
    low = int(at)
    high = min(low + 1, len(sorted_) - 1)
    return sorted_[low] + (sorted_[high] - sorted_[low]) * (at - low)


class Meter:
    def __init__(self, args, devices, source):
        self.args, self.devices, self.source = args, devices, source
        self.scale = SCALES[args.size]
        self.window_s = args.window_s or self.scale.window_s
        self.rows, self.lost = [], set()

    def copies(self, device, spec):
        size = weight_bytes(spec)
        if self.devices.kind(device) != "cpu":
            return 2
        if self.args.size == "tiny":  # no number of them leaves a processor's cache, and each is compiled
            return 1
        return int(max(2, min(MAX_COPIES, -(-MIN_POOL // max(size, 1)))))

    def row(self, device, spec, metric, value, repetition, p10=None, p90=None, samples=1, foreign=-1.0, flag="",
            partner="", held=None):
        flop, size = flop_and_bytes(spec)
        is_product = spec.op in ("gemv", "gemm")
        held = spec.held if held is None else held
        self.rows.append([
            "this-machine", device.lower(), "openvino", name_of(spec), spec.bits, ACT_BITS,
            spec.rows if is_product else spec.context, spec.rows if spec.op == "decode" else 1, metric,
            f"{value:.9g}", self.source, self.devices.kind(device), spec.op, spec.rows, f"{flop:.15g}", f"{size:.15g}",
            partner, repetition, samples, f"{value if p10 is None else p10:.9g}",
            f"{value if p90 is None else p90:.9g}", "" if foreign < 0 else f"{foreign:.4f}", "",
            "held" if held else "fit", flag])

    def prepare(self, device, spec, repetition, record):
        """A kernel that ran twice, or None: its row says that it cannot be had."""
        if device in self.lost:
            return None
        try:
            kernel = Kernel(self.devices, device, spec, self.copies(device, spec))
            first_s = kernel.run()
            kernel.run()
        except RuntimeError as error:
            print(f"{device}: {name_of(spec)}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
            self.row(device, spec, "kernel_ms", 0.0, repetition, samples=0, flag="not_prepared")
            return None
        if record:
            self.row(device, spec, "compile_ms", kernel.compile_s * 1e3, repetition)
            self.row(device, spec, "first_ms", first_s * 1e3, repetition)
        return kernel

    def window(self, kernels_):
        """Runs them together for a window, again while it is disturbed; their times, load and flag."""
        for _ in range(RETRIES + 1):
            load, times = Load(), [[] for _ in kernels_]
            end = time.perf_counter() + self.window_s

            def work(i, until):
                while time.perf_counter() < until or len(times[i]) < MIN_SAMPLES:
                    times[i].append(kernels_[i].run())

            threads = [threading.Thread(target=work, args=(i, end)) for i in range(1, len(kernels_))]
            for t in threads:
                t.start()
            work(0, end)
            for t in threads:
                t.join()
            foreign, flag = load.foreign(), ""
            for t in times:
                t.sort()
                if sum(x > 2 * quantile(t, 0.5) for x in t) > SPIKES * len(t):
                    flag = "spikes"
            if foreign > self.args.foreign_limit:
                flag = "foreign_cpu"
            if not flag:
                return times, foreign, "unscreened" if foreign < 0 else ""
        return times, foreign, flag

    def alone(self, device, spec, repetition):
        kernel = self.prepare(device, spec, repetition, repetition == 0)
        if kernel is not None:
            (times,), foreign, flag = self.window([kernel])
            self.row(device, spec, "kernel_ms", quantile(times, 0.5) * 1e3, repetition, quantile(times, 0.1) * 1e3,
                     quantile(times, 0.9) * 1e3, len(times), foreign, flag)

    def together(self, names, specs, held, repetition):
        both = [self.prepare(n, s, repetition, False) for n, s in zip(names, specs)]
        if None in both:
            return
        flags, before, after = [], [], []
        for to in (before, after):
            if to is after:
                times, foreign, flag = self.window(both)
                flags.append(flag)
            for kernel in both:
                (own,), _, flag = self.window([kernel])
                to.append(quantile(own, 0.5))
                flags.append(flag)
        flag = next((f for f in flags if f), "")
        for i in (0, 1):
            isolated = (before[i] + after[i]) / 2
            partner = f"{names[1 - i].lower()}:{name_of(specs[1 - i])}"
            q = [quantile(times[i], x) for x in (0.5, 0.1, 0.9)]
            for metric, factor in (("co_kernel_ms", 1e3), ("co_slowdown", 1 / isolated)):
                self.row(names[i], specs[i], metric, q[0] * factor, repetition, q[1] * factor, q[2] * factor,
                         len(times[i]), foreign, flag, partner, held)

    def steps(self):
        """(what it is called, function) in the order in which they run; the same in every call."""
        order = random.Random(SEED)
        names = self.args.devices
        out = []
        for r in range(self.args.repetitions or self.scale.repetitions):
            alone = [(d, s) for d in names for s in kernels(self.scale)]
            order.shuffle(alone)
            out += [(f"{d} {name_of(s)}", lambda d=d, s=s, r=r: self.alone(d, s, r)) for d, s in alone]
            for i, a in enumerate(names):
                for b in names[i + 1 :]:
                    for x, y, held in pairs(self.scale):
                        out.append((f"{a} {name_of(x)} with {b} {name_of(y)}",
                                    lambda a=a, b=b, x=x, y=y, h=held, r=r: self.together((a, b), (x, y), h, r)))
        return out


# ---- the archive ----


def as_csv(rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    for row in rows:
        writer.writerow(row)
    return text.getvalue()


def head(facts):
    lines = [f"# xpusim-kernels v1 memory_bytes={facts.get('memory_bytes', 0)}"]
    lines += [f"# {key}: {facts[key]}" for key in ("processor", "kernel", "distribution", "governor") if key in facts]
    return "\n".join(lines) + "\n" + ",".join(COLUMNS) + "\n"


def write_archive(path, files):
    """ustar in gzip without owner, group or time; whole or not at all."""
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", filename="", mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
    with open(path + ".part", "wb") as f:
        f.write(data.getvalue())
    os.replace(path + ".part", path)


def about(args, facts, steps):
    return json.dumps({"format": FORMAT, "made_by": "measure_windows.py", "size": args.size, "facts": facts,
                       "steps": [{"step": "measure", "exit": 0, "seconds": steps}]}, indent=1) + "\n"


class Progress:
    """Rows so far and the number of complete steps, in a folder next to the archive."""

    def __init__(self, folder, what, header):
        self.state = os.path.join(folder, "state.json")
        self.rows = os.path.join(folder, "rows.csv")
        self.what, self.done, self.seconds = what, 0, 0.0
        os.makedirs(folder, exist_ok=True)
        if os.path.exists(self.state):
            with open(self.state, encoding="utf-8") as f:
                old = json.load(f)
            if old["what"] != what:
                sys.exit(f"{folder}: is of another measurement ({old['what']}); remove it, or give another -o")
            self.done, self.seconds = old["done"], old["seconds"]
            with open(self.rows, "r+", encoding="utf-8") as f:
                f.truncate(old["bytes"])  # an interrupted step is measured again
        else:
            with open(self.rows, "w", encoding="utf-8", newline="") as f:
                f.write(header)
            self.save(0.0)

    def save(self, seconds):
        self.seconds += seconds
        with open(self.state + ".part", "w", encoding="utf-8") as f:
            json.dump({"what": self.what, "done": self.done, "seconds": self.seconds,
                       "bytes": os.path.getsize(self.rows)}, f)
        os.replace(self.state + ".part", self.state)

    def step(self, rows, seconds):
        with open(self.rows, "a", encoding="utf-8", newline="") as f:
            f.write(as_csv(rows))
        self.done += 1
        self.save(seconds)


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-o", "--output", default="my-machine.tar.gz", help="the archive (default: %(default)s)")
    p.add_argument("--size", choices=SCALES, default="small",
                   help="duration: minutes, half an hour, or matrices of a 7B model (default: small)")
    p.add_argument("--devices", type=lambda s: s.split(","), help="devices of OpenVINO (default: all it finds)")
    p.add_argument("--repetitions", type=int, help="repetitions of the plan (default 5, tiny: 3)")
    p.add_argument("--window-s", type=float, help="length of one measurement (default 0.3, tiny: 0.04)")
    p.add_argument("--foreign-limit", type=float, default=0.05,
                   help="share of processor time of other programs above which a row is flagged (default 0.05)")
    p.add_argument("--dry", action="store_true", help="print what would go in, and measure nothing")
    args = p.parse_args()
    if not args.output.endswith(".tar.gz"):
        p.error(f"-o {args.output}: must end in .tar.gz")
    return p, args


def main():
    parser, args = parse()
    folder = args.output + ".partial"
    devices = Devices(os.path.join(folder, "compiled"))
    args.devices = args.devices or devices.names
    for name in args.devices:
        if name not in devices.names:
            parser.error(f"--devices: OpenVINO finds no {name} here; it has {', '.join(devices.names)}")
    facts = machine_facts(devices)
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    meter = Meter(args, devices, f"measure_windows.py, openvino {facts['openvino']}, {today}")
    steps = meter.steps()
    if args.dry:
        print(f"{args.output} would have about.json (the facts below) and rows.csv ({len(steps)} steps on "
              f"{', '.join(args.devices)}, {len(steps) * meter.window_s / 60:.0f} minutes at least):\n")
        print("\n".join(f"  {key:32} {value}" for key, value in facts.items()))
        print("\nNothing else goes in: no host name, user, folder, address or serial number. Nothing is sent anywhere.")
        return 0
    what = f"{args.size} {args.devices} {args.repetitions} {meter.window_s} openvino {facts['openvino']}"
    progress = Progress(folder, what, head(facts))
    shown = 0.0
    for i in range(progress.done, len(steps)):
        if time.monotonic() - shown > 5.0:
            shown = time.monotonic()
            print(f"{i + 1} of {len(steps)}: {steps[i][0]}", file=sys.stderr, flush=True)
        begin, meter.rows = time.monotonic(), []
        steps[i][1]()
        progress.step(meter.rows, time.monotonic() - begin)
    with open(progress.rows, encoding="utf-8") as f:
        rows = f.read()
    write_archive(args.output, {"about.json": about(args, facts, progress.seconds), "rows.csv": rows})
    shutil.rmtree(folder)
    print(f"{args.output}: 2 files; `xpusim new-soc NAME --from {args.output}` makes a machine of it")
    return 0


if __name__ == "__main__":
    sys.exit(main())

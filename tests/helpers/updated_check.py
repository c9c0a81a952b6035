"""Numbers that measured rows update: what a command prints of them is what its file says, at each number's place, and nothing else changed.

    updated_check.py XPUSIM FOLDER
"""
import json
import math
import os
import re
import subprocess
import sys

X, DIR = sys.argv[1:]
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PHASES = ["prefill", "short_prefill", "decode"]
bad = checked = 0


def fail(what):
    global bad
    bad += 1
    if bad < 20:
        print("FAILED: " + what)


def same(printed, value, digits):
    """Whether a printed number is one to so many digits."""
    global checked
    checked += 1
    return abs(float(printed) - value) <= 0.5000001 * 10 ** (math.floor(math.log10(abs(value))) + 1 - digits) if value else float(printed) == 0


def once_each(pairs):
    """A file has no key twice."""
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        fail("a key is there twice: %s" % keys)
    return dict(pairs)


def soc_of(name, one_row):
    with open("%s/hwmodels/soc/%s.json" % (TOP, name)) as f:
        tree = json.load(f)
    for d in tree["devices"]:
        for r in d["runtimes"]:
            if one_row and d["name"] in one_row:  # one row moves its weights faster, and starts quicker
                number = {"low": 1, "high": 400, "source": "made for this test", "kind": "assumed"}
                r["one_row"] = {"rate": r["rate"],
                                "bandwidth": dict(number, value=0.9 * r["bandwidth"]["value"], unit="GB/s"),
                                "launch": dict(number, value=0.5 * r["launch"]["value"] + 1, unit="us")}
    tree["name"] = "mine"
    return tree


def entries(tree):
    return {(d["name"], r["runtime"], str(r["weight_bits"])): r for d in tree["devices"] for r in d["runtimes"]}


def leaves(tree, path=""):
    """Numbers by path, without what an update replaces whole."""
    if isinstance(tree, dict) and "value" in tree:
        return {path: tree}
    if isinstance(tree, dict):
        return {k: v for key, x in tree.items() if key not in ("fit", "note") for k, v in leaves(x, path + "." + key).items()}
    if isinstance(tree, list):
        return {k: v for i, x in enumerate(tree) for k, v in leaves(x, "%s.%d" % (path, i)).items()}
    return {path: tree}


def at(entry, number):
    for key in number.split("."):
        entry = entry[key]
    return entry


def check(name, one_row, rows):
    """`rows` are devices with texts of --measured."""
    global checked
    what = name + (" with one_row" if one_row else "")
    before = soc_of(name, one_row)
    source, out = os.path.join(DIR, "source.json"), os.path.join(DIR, "out.json")
    with open(source, "w") as f:
        json.dump(before, f)
    command = [X, "calibrate", "--soc", source, "-o", out] + [w for _, text in rows for w in ("--measured", text)]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode != 0:
        fail("%s: %s" % (what, p.stderr[:300]))
        return
    with open(out) as f:
        after = json.load(f, object_pairs_hook=once_each)
    old, new = entries(before), entries(after)
    measured = set()
    for line in p.stdout.split("\n"):
        cells = line.split()
        if len(cells) == 10 and tuple(cells[:3]) in new:
            key, number = tuple(cells[:3]), cells[3]
            measured.add(key)
            was, now = at(old[key], number), at(new[key], number)
            if cells[4] != now["unit"] or was["unit"] != now["unit"] or not same(cells[5], was["value"], 4):
                fail("%s: %s %s was %s" % (what, key, number, cells[4:6]))
            if not all(same(c, now[k], 4) for c, k in zip(cells[6:9], ("value", "low", "high"))):
                fail("%s: %s %s is printed as %s" % (what, key, number, cells[6:9]))
            parameters = new[key]["fit"]["parameters"]
            if number not in parameters:
                fail("%s: %s %s is none of the fit" % (what, key, number))
            if not now["low"] <= now["value"] <= now["high"]:
                fail("%s: %s %s is not in its range" % (what, key, number))
    # Every number of an entry with rows is printed once, and each with the same source as all others of its device.
    for key in measured:
        printed = [line.split()[3] for line in p.stdout.split("\n") if tuple(line.split()[:3]) == key and len(line.split()) == 10]
        if printed != new[key]["fit"]["parameters"]:
            fail("%s: %s: printed are %s" % (what, key, printed))
        if one_row and key[0] in one_row and not {"one_row.bandwidth", "one_row.launch"} <= set(printed):
            fail("%s: %s: one_row is not updated" % (what, key))
        errors = [line.split() for line in p.stdout.split("\n") if tuple(line.split()[:3]) == key and len(line.split()) == 6]
        if [e[3] for e in errors] != PHASES:
            fail("%s: %s: phases %s" % (what, key, errors))
        for e in errors:  # what a further model may be off by
            sd = new[key]["fit"]["error_sd"][e[3]]
            if abs(float(e[5]) - math.exp(1.959964 * sd)) > 0.0051 + 1e-3 * float(e[5]):
                fail("%s: %s: %s is printed as %s, of %g" % (what, key, e[3], e[5], sd))
    devices = {d for d, _ in rows}
    for key, entry in new.items():
        names = entry.get("fit", {}).get("parameters", []) if key[0] in devices else []
        matrix = entry.get("fit", {}).get("ln_covariance", []) if key[0] in devices else []
        for n, row in zip(names, matrix):
            variance, q = row[names.index(n)], at(entry, n)
            if len(row) != len(names) or variance <= 0:
                fail("%s: %s: the covariance of %s is %s" % (what, key, n, row))
                continue
            was = old[key].get("fit", {})  # the variance before: of the earlier fit, else by the wider side of the range
            q0 = at(old[key], n)
            if n in was.get("parameters", []) and "ln_covariance" in was:
                prior = was["ln_covariance"][was["parameters"].index(n)][was["parameters"].index(n)]
            elif n in ("rate", "attention"):
                prior = (max(math.log(q0["high"] / q0["value"]), math.log(q0["value"] / q0["low"])) / 1.959964) ** 2
            else:
                prior = 0
            share = variance / prior if prior > 0 else 0.5
            if not 0.45 < share < 0.55:  # an update rounds, and begins a little wider
                checked += 1
                if (q["kind"] == "fitted") != (key in measured and share < 0.5):
                    fail("%s: %s: %s is %s with %g of its variance before" % (what, key, n, q["kind"], share))
            if n in ("rate", "attention"):  # others are logarithms of a sum, or end at the bandwidth of the memory
                width = math.log(q["high"] / q["low"])
                if abs(width - 2 * 1.959964 * math.sqrt(variance)) > 1e-3 * (1 + width):  # all have four digits
                    fail("%s: %s: %s from %g to %g at a variance of %g" % (what, key, n, q["low"], q["high"], variance))
    # Runs use the entry that they used, if its runtime was measured, else one that was.
    for was, now in zip(before["devices"], after["devices"]):
        default = [[r for r in d["runtimes"] if r.get("default")] for d in (was, now)]
        mine = {(r, b) for d, r, b in measured if d == was["name"]}
        kept = not mine or any(r == default[0][0]["runtime"] for r, _ in mine)
        used = [(r["runtime"], "%g" % r["weight_bits"]["value"] if isinstance(r["weight_bits"], dict) else "%g" % r["weight_bits"]) for r in default[1]]
        if len(used) != 1 or (kept and default[1][0]["runtime"] != default[0][0]["runtime"]) or (not kept and used[0] not in mine):
            fail("%s: %s: runs use %s, of %s" % (what, was["name"], used, sorted(mine)))
    numbers = [{k: v for k, v in leaves(t["devices"]).items() if not k.endswith(".default")} for t in (before, after)]
    changed = {k for k, v in numbers[0].items() if numbers[1].get(k) != v}
    allowed = {".%d.runtimes.%d.%s" % (i, j, n) for i, d in enumerate(after["devices"]) if d["name"] in devices
               for j, r in enumerate(d["runtimes"]) for n in r["fit"]["parameters"]}
    if not changed <= allowed or set(numbers[0]) != set(numbers[1]):
        fail("%s: other numbers changed: %s" % (what, sorted(changed - allowed)[:4] + sorted(set(numbers[0]) ^ set(numbers[1]))[:4]))
    # What to measure next: at most once a width of a device, and a width that there is.
    head = p.stdout.find("measure next")
    told = [line.split() for line in p.stdout[head:].split("\n")[1:] if re.search(r" %$", line)] if head >= 0 else []
    pairs = [(t[0], t[1], t[3]) for t in told]
    if len(set(pairs)) != len(pairs) or not set(pairs) <= set(new):
        fail("%s: to measure next: %s" % (what, pairs))
    if len({d for d, _, _ in pairs}) != len(devices):
        fail("%s: nothing to measure next of some device: %s" % (what, pairs))
    if {d for d, _, _ in measured} != devices:
        fail("%s: updated are %s" % (what, measured))


def twice(name, row, more):
    """A row that has updated a file counts no second time: not in the same command, and not in a later one."""
    def updated(source, name, *rows):
        out = os.path.join(DIR, name)
        p = subprocess.run([X, "calibrate", "--soc", source, "-o", out] + [w for text in rows for w in ("--measured", text)], capture_output=True, text=True)
        said = p.stdout.count("has updated the file already")
        return out, open(out).read() if p.returncode == 0 else p.stderr, said
    other = ",".join(sorted(row.split(",")))  # the same rows in another order, which is another text
    once, text, _ = updated(name, "once.json", row)
    n = len(re.findall("_ms@", row))
    for what, a, b in (("in one command", text, updated(name, "both.json", row, other)[1:]),
                       ("after it", updated(once, "more.json", more)[1], updated(once, "all.json", other, more)[1:])):
        if (a, n) != b:
            fail("%s: a row twice %s: %d times said, file %s" % (name, what, b[1], "equal" if a == b[0] else "differs"))
    # A later update leaves nothing of an earlier one, and times that differ in their sixth digit are two rows.
    with open(once) as f:
        json.load(f, object_pairs_hook=once_each)
    for path in (updated(once, "later.json", more)[0], updated(once, "near.json", row.replace("=61.5", "=61.5003"))[0]):
        with open(path) as f:
            json.load(f, object_pairs_hook=once_each)
    if updated(once, "near.json", row.replace("=61.5", "=61.5003"))[2] != n - 1:
        fail("%s: a time that is another one counts as the same" % name)
    said = updated(once, "none.json", row)[1]
    if "every row has updated the file already" not in said or os.path.exists(os.path.join(DIR, "none.json")):
        fail("%s: all rows again: %s" % (name, said[:200]))


def renamed(name, points):
    """A machine that nobody ships is fitted as the one of which it has every number and row."""
    global checked
    fits = {}
    with open("%s/hwmodels/points/%s.csv" % (TOP, points)) as f:
        lines = [line for line in f.read().split("\n") if line.startswith(("#", "soc,", name + ","))]
    for called in (name, "mine"):
        tree, rows = soc_of(name, []), os.path.join(DIR, "rows.csv")
        tree["name"] = called
        with open(os.path.join(DIR, "source.json"), "w") as f:
            json.dump(tree, f)
        with open(rows, "w") as f:
            f.write("\n".join(line.replace(name + ",", called + ",", 1) if line.startswith(name + ",") else line for line in lines))
        p = subprocess.run([X, "calibrate", "--soc", os.path.join(DIR, "source.json"), "--points", rows, "-o", os.path.join(DIR, "out.json")],
                           capture_output=True, text=True)
        if p.returncode != 0:
            fail("%s as %s: %s" % (name, called, p.stderr[:200]))
            return
        with open(os.path.join(DIR, "out.json")) as f:
            fits[called] = leaves(json.load(f, object_pairs_hook=once_each)["devices"])
        checked += sum(isinstance(v, dict) and v["kind"] == "fitted" for v in fits[called].values())
    if fits[name] != fits["mine"]:
        fail("%s: another name, and another fit" % name)


GPU = ("igpu", "model=llama-3-8b,bits=4,runtime=openvino-2025.3,ttft_ms@32=120,ttft_ms@1024=700,tpot_ms@1024=61.5")
GPU16 = ("igpu", "model=phi-2,bits=16,runtime=openvino-2025.3,ttft_ms@1024=420,tpot_ms@1024=70")
NPU = ("npu", "model=llama-3-8b,bits=4,device=npu,ttft_ms@1024=3000,tpot_ms@1024=130")
check("core-ultra-7-258v", [], [GPU])
check("core-ultra-7-258v", ["igpu", "npu"], [GPU, GPU16, NPU])
check("core-ultra-7-155h", ["npu"], [NPU])
check("snapdragon-8gen3", ["npu"], [NPU])
MANY = [("igpu", "model=%s,bits=4,runtime=openvino-2025.3,ttft_ms@32=%g,ttft_ms@1024=%g,tpot_ms@1024=%g" % row) for row in
        (("llama-3.2-1b", 25, 100, 11), ("llama-3.2-3b", 60, 270, 27), ("qwen3-8b", 120, 700, 63), ("phi-3.5-mini", 70, 340, 34))]
check("core-ultra-7-258v", [], [GPU] + MANY)
twice("core-ultra-7-258v", GPU[1], GPU16[1])
renamed("core-ultra-7-258v", "reference")
if checked < 120:
    fail("only %d numbers" % checked)
print("%d updated numbers, %d wrong" % (checked, bad))
sys.exit(bad > 0)

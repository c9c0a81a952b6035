#!/usr/bin/env python3
"""Searches for machines and readings where claims hold together, under the same paper's kernel times.

    fits.py run XPUSIM [NAME...]   runs the fits (all), each into experiments/claims/fits/NAME.json
    fits.py judge XPUSIM NAME      judges claims at NAME-profile.json on fresh traces, into NAME-judged.json
    fits.py page >docs/fits.md     what they found; runs nothing

`make fits` does both. A result has its command, and the processor time that it took.
"""
import json
import os
import resource
import subprocess
import sys

import verdicts

HERE = os.path.dirname(os.path.abspath(__file__))
V1 = "--file agent-xpu-v1.json".split()
V2 = "--file agent-xpu-v2.json".split()
KERNELS = "B17,B20,B23,B24"
SIBLINGS = ["--set", "soc.devices.igpu.runtimes.0.rate=4.15", "--set", "soc.devices.igpu.runtimes.0.attention=0.2",
            "--set", "soc.devices.igpu.runtimes.0.bandwidth=78"]
# Traces of a judgement, and its first seed: traces that chose nothing.
FRESH = {"joint": (16, 2000001), "load": (9, 3000001)}
# name: (arguments, whether its witness is kept as a profile)
FITS = {
    "kernels-7178": (V2 + ["--fit", "B26", "--under", "B17,B26", "--over", "igpu_rate,igpu_attention,npu_rate"], False),
    "kernels-siblings": (V2 + ["--fit", "B26", "--under", KERNELS, *SIBLINGS,
                               "--over", "npu_rate,batch_cost,batch_stretch"], False),
    "joint": (V2 + ["--fit", "B6,B7,B8,B9,B10,B11,B12,B14,B15,B16,B26", "--under", KERNELS, "--budget", "100"], True),
    "load": (V2 + ["--fit", "B6,B7,B22", "--under", KERNELS, "--parameters", "open-load", "--budget", "36",
                   "--replications", "19", "--over",
                   "igpu_bandwidth,variant,proactive_input,proactive_output,reactive_input,reactive_output"], True),
    "v1": (V1 + ["--fit", "A1,A4,A5", "--under", "A7,A8,A10", "--parameters", "open-v1", "--budget", "40",
                 "--over", "cpu_rate,low_rate,high_rate,horizon,t_age,contention,queueing"], False),
    "phones": (["--file", "sd-npu.json", "--fit", "D20,D21,D24", "--parameters", "open-phones", "--budget", "40"], False),
}


def path(name):
    return os.path.join(HERE, "fits", name + ".json")


def read(name):
    with open(path(name), encoding="utf-8") as f:
        return json.load(f)


def claims(xpusim, arguments):
    """What `claims --json` prints, and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([xpusim, "claims", "--json", "-q", *arguments], cwd=HERE, check=True, stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(out.stdout), round(spent, 1)


def run(xpusim, names):
    os.makedirs(os.path.join(HERE, "fits"), exist_ok=True)
    for name in names or FITS:
        arguments, judged = FITS[name]
        found, spent = claims(xpusim, arguments + ["--traces", "2"])
        for long in ("ranges", "settles", "together"):
            found.pop(long, None)
        result = {"command": " ".join(["xpusim claims", *arguments, "--traces", "2"]), "processor_s": spent, "found": found}
        if judged and "profile" in found:
            with open(path(name + "-profile"), "w", encoding="utf-8") as f:
                json.dump(found["profile"], f, indent=1)
        with open(path(name), "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
            f.write("\n")


def judge(xpusim, name):
    traces, seed = FRESH[name]
    ids = [r["id"] for r in rows_of(read(name + "-judged"))]
    rows, _ = claims(xpusim, [*ids, *V2, "--reading", "stated", "--replications", str(traces), "--seed", str(seed),
                              "--profile", path(name + "-profile")])
    with open(path(name + "-judged"), "w", encoding="utf-8") as f:
        json.dump(rows, f, indent=1)
        f.write("\n")


# ---- the page ----


def rows_of(result):
    return result["claims"] if isinstance(result, dict) else result


def number(x):
    return "-" if x is None else f"{x:.3g}"


def sim(check):
    low, high = check["low"], check["high"]
    mean = number(check["simulated"])
    return mean if low is None or low == high else f"{mean} [{number(low)}, {number(high)}]"


def print_checks(rows):
    print("| claim | check | published | simulated | verdict |\n|---|---|---|---|---|")
    for row in rows:
        for c in row["checks"]:
            if not c["informative"]:
                print(f"| {row['id']} | {c['name']} | {c['published']} {c['unit']} | {sim(c)} | {c['verdict']} |")
    print()


def print_found(name):
    result = read(name)
    found = result["found"]
    print(f"    {result['command']}\n")
    if "under" in found:
        print(f"Constraints {', '.join(found['under'])}: of {found['grid']} machines on the grid, all hold on "
              f"{found['grid_holds']}; {found['priced']} machines were priced.")
    print(f"The command takes {result['processor_s']} s of processor time.\n")
    if found.get("constraints_exclude"):
        print("Smallest sets that hold nowhere: "
              + "; ".join("{" + ", ".join(s) + "}" for s in found["constraints_exclude"]) + ".\n")
        return
    holds = found["profile"]["holds"]
    print(f"**{len(holds)} of {len(found['claims'])}** fitted claims hold ({', '.join(holds) or 'none'}), and "
          f"{len(found['compatible'])} are compatible ({', '.join(found['compatible']) or 'none'}): judged on "
          f"{found['confirmed_on']} fresh traces, after {found['points']} points of {found['traces']} traces each from "
          f"seed {found['seed']}.\n")
    print("| parameter | range | witness |\n|---|---|---|")
    for k, p in found["parameters"].items():
        print(f"| `{k}` | {p['low']} to {p['high']} {p['unit']} | {p['witness']} |")
    print()
    if "constraints" in found:
        print_checks(rows_of(found["constraints"]))
    print_checks(rows_of(found["judged"]))
    print("Sets that the emulators rule out: "
          + ("; ".join("{" + ", ".join(s) + "}" for s in found["conflicts"]) or "none of up to three claims") + ".\n")


def on_default():
    """Verdicts on the default machine, as docs/claims.md has them: {id: verdict}."""
    with open(os.path.join(HERE, "..", "..", "docs", "claims.md"), encoding="utf-8") as f:
        rows = [[c.strip() for c in line.strip().strip("|").split(" | ")] for line in f if line.startswith("| ")]
    return {r[0].strip(): r[6] for r in rows if len(r) >= 8 and r[6] in verdicts.VERDICTS}


def print_judged(name):
    """The claims at a profile, how verdicts count, and each verdict that is another than the default machine's."""
    profile = read(name + "-profile")
    rows = rows_of(read(name + "-judged"))
    before = on_default()
    traces, seed = FRESH[name]
    print("The point (`experiments/claims/fits/" + name + "-profile.json`): "
          + ", ".join(f"`{t}`" for key in ("set", "policy", "workload") for t in profile[key])
          + f". Judged on {traces} fresh traces from seed {seed}; fitted to {', '.join(profile['fitted_to'])}.\n")
    print("| of these claims | " + " | ".join(verdicts.VERDICTS) + " |\n|---|" + "---:|" * len(verdicts.VERDICTS))
    for title, words in (("default machine, 39 traces", [before[r["id"]] for r in rows]),
                         ("this point", [r["verdict"] for r in rows])):
        print(f"| {title} | " + " | ".join(str(words.count(v)) for v in verdicts.VERDICTS) + " |")
    print("\n| claim | default machine | this point | why |\n|---|---|---|---|")
    for r in rows:
        print(f"| {r['id']} | {before[r['id']]} | {r['verdict']} | {r['reason'].split(';')[0]} |")
    print()
    print_checks(rows)


def page():
    with open(os.path.join(HERE, "notes", "fits.md"), encoding="utf-8") as f:
        notes = f.read()
    parts = notes.split("<!-- ")
    print(parts[0], end="")
    for part in parts[1:]:
        name, text = part.split(" -->\n", 1)
        if name.startswith("judged "):
            print_judged(name.split()[1])
        else:
            print_found(name)
        print(text, end="")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "run":
        run(os.path.abspath(sys.argv[2]), sys.argv[3:])
    elif len(sys.argv) == 4 and sys.argv[1] == "judge":
        judge(os.path.abspath(sys.argv[2]), sys.argv[3])
    elif sys.argv[1:] == ["page"]:
        page()
    else:
        sys.exit(__doc__)

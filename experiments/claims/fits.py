#!/usr/bin/env python3
"""Searches for machines and readings where claims hold together, under the same paper's kernel times.

    fits.py run [--times] XPUSIM [NAME...]   runs the fits (all), each into experiments/claims/fits/NAME.json
    fits.py page >docs/fits.md               what they found; runs nothing

`make fits` does both, and gives the same bytes again; JOBS says how many runs go at once. A fit whose point is kept as NAME-profile.json is followed by
a judgement of more claims there, on traces that chose nothing: NAME-judged.json. Processor times differ from run to
run, so they are in times.json, which only --times writes.
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
FITS = {
    "kernels-7178": V2 + ["--fit", "B26", "--under", "B17,B26", "--over", "igpu_rate,igpu_attention,npu_rate"],
    "kernels-siblings": V2 + ["--fit", "B26", "--under", KERNELS, *SIBLINGS,
                              "--over", "npu_rate,batch_cost,batch_stretch"],
    "joint": V2 + ["--fit", "B6,B7,B8,B9,B10,B11,B12,B14,B15,B16,B26", "--under", KERNELS, "--budget", "60",
                   "--confirm", "16"],
    "load": V2 + ["--fit", "B1,B2,B6,B7,B22", "--under", KERNELS, "--parameters", "open-load", "--budget", "30",
                  "--set", "soc.devices.igpu.runtimes.0.bandwidth=61.5", "--confirm", "3", "--replications", "9",
                  "--over", "variant,agent_batch,baseline_batch,proactive_input,proactive_output"],
    "v1": V1 + ["--fit", "A1,A4,A5", "--under", "A7,A8,A10", "--parameters", "open-v1", "--budget", "34",
                "--confirm", "16", "--replications", "16",
                "--over", "cpu_rate,low_rate,high_rate,top_rate,horizon,t_age,contention,queueing"],
    "phones": ["--file", "sd-npu.json", "--fit", "D20,D21,D24", "--parameters", "open-phones", "--budget", "40"],
}
# Points that are kept: claims judged there, traces, and their first seed, which no search has. load-hand was found by
# hand, and stays as it is.
JUDGED = {
    "load-hand": (V2, 9, 3000001),
    "joint": (V2 + "B6 B7 B8 B9 B10 B11 B12 B14 B15 B16 B17 B20 B23 B24 B25 B26 B27".split(), 16, 2000001),
    "load": (V2 + "B1 B2 B6 B7 B8 B9 B10 B11 B12 B14 B15 B16 B17 B20 B22 B23 B24 B25 B26 B27".split(), 9, 3000001),
    "v1": (V1 + "A1 A3 A4 A5 A6 A7 A8 A9 A10".split(), 16, 3000001),
}


def path(name):
    return os.path.join(HERE, "fits", name + ".json")


def read(name):
    with open(path(name), encoding="utf-8") as f:
        return json.load(f)


def write(name, tree):
    with open(path(name), "w", encoding="utf-8") as f:
        json.dump(tree, f, indent=1)
        f.write("\n")


def claims(xpusim, arguments):
    """What `claims --json` prints, and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    jobs = ["--jobs", os.environ["JOBS"]] if "JOBS" in os.environ else []
    out = subprocess.run([xpusim, "claims", "--json", "-q", *jobs, *arguments], cwd=HERE, check=True, stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(out.stdout), round(spent, 1)


def run(xpusim, names, timed):
    os.makedirs(os.path.join(HERE, "fits"), exist_ok=True)
    times = read("times") if os.path.exists(path("times")) else {}
    for name in names or FITS:
        arguments = FITS[name] + ["--traces", "2"]
        found, times[name] = claims(xpusim, arguments)
        for other in ("cpu_s", "ranges", "settles", "together"):
            found.pop(other, None)
        write(name, {"command": " ".join(["xpusim claims", *arguments]), "found": found})
        print(f"{name}: {times[name]} s of processor time", file=sys.stderr)
        if name in JUDGED and "profile" in found:
            write(name + "-profile", found["profile"])
            ids, traces, seed = JUDGED[name]
            rows, times[name + "-judged"] = claims(
                xpusim, [*ids, "--reading", "stated", "--replications", str(traces), "--seed", str(seed),
                         "--profile", path(name + "-profile")])
            write(name + "-judged", rows)
            print(f"{name}, judged: {times[name + '-judged']} s", file=sys.stderr)
        if timed:
            write("times", times)


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


def print_parameters(name, found):
    arguments = FITS[name]
    source = arguments[arguments.index("--parameters") + 1] if "--parameters" in arguments else "open-125h"
    with open(os.path.join(HERE, source + ".json"), encoding="utf-8") as f:
        open_ones = json.load(f)["parameters"]
    print("| parameter | range | point | what |\n|---|---|---|---|")
    for k, p in found["parameters"].items():
        unit = "" if p["unit"] in ("", "1") else " " + p["unit"]
        print(f"| `{k}` | {p['low']} to {p['high']}{unit} | {p['witness']} | {open_ones[k]['what']} |")
    print()


def print_best_points(found):
    """How many points may have each claim, and what of that is left on fresh traces."""
    n = found["points"]
    if len(found["plausible"]) > 6:
        print(f"Plausible on {found['traces']} traces, of {n} points:\n")
        print("| claim | " + " | ".join(found["plausible"]) + " |\n|---|" + "---:|" * len(found["plausible"]))
        print("| points | " + " | ".join(str(v) for v in found["plausible"].values()) + " |\n")
    else:
        print(f"Plausible on {found['traces']} traces, of {n} points: "
              + ", ".join(f"{k} at {v}" for k, v in found["plausible"].items()) + ".\n")
    print(f"The best {len(found['best_points'])}, each on {found['each_on']} fresh traces:\n")
    print("| point | hold | compatible |\n|---:|---|---|")
    for b in found["best_points"]:
        print(f"| {b['point']} | {b['holds'] or 'none'} | {b['compatible'] or 'none'} |")
    print()


def print_found(name):
    result = read(name)
    found = result["found"]
    print(f"    {result['command']}\n")
    if "under" in found:
        print(f"Constraints {', '.join(found['under'])}: machines of the grid {found['grid']}, all hold on "
              f"{found['grid_holds']}; {found['priced']} priced.\n")
    if found.get("constraints_exclude"):
        print("Smallest sets that hold nowhere: "
              + "; ".join("{" + ", ".join(s) + "}" for s in found["constraints_exclude"]) + ".\n")
        return
    print_best_points(found)
    holds = found["profile"]["holds"]
    print(f"The best of these, on {found['confirmed_on']} traces that chose nothing: **{len(holds)} of "
          f"{len(found['claims'])}** fitted claims hold ({', '.join(holds) or 'none'}), and "
          f"{len(found['compatible'])} are compatible ({', '.join(found['compatible']) or 'none'}). "
          f"The search had {found['points']} points of {found['traces']} traces each from seed {found['seed']}.\n")
    print_parameters(name, found)
    if not os.path.exists(path(name + "-judged")):
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
    _, traces, seed = JUDGED[name]
    print(f"The point is `experiments/claims/fits/{name}-profile.json`, for `--profile`. It is judged on {traces} "
          f"fresh traces from seed {seed}. It was fitted to {', '.join(profile['fitted_to'])}.\n")
    print("| of these claims | " + " | ".join(verdicts.VERDICTS) + " |\n|---|" + "---:|" * len(verdicts.VERDICTS))
    for title, words in (("default machine, 39 traces", [before[r["id"]] for r in rows]),
                         ("this point", [r["verdict"] for r in rows])):
        print(f"| {title} | " + " | ".join(str(words.count(v)) for v in verdicts.VERDICTS) + " |")
    print("\n| claim | default machine | this point | why |\n|---|---|---|---|")
    for r in rows:
        print(f"| {r['id']} | {before[r['id']]} | {r['verdict']} | {r['reason'].split(';')[0]} |")
    print()
    print_checks(rows)


def print_times():
    times = read("times")
    print("| command | processor time, s |\n|---|---:|")
    for name in FITS:
        for key, title in ((name, f"search `{name}`"), (name + "-judged", f"judgement at the point of `{name}`")):
            if key in times:
                print(f"| {title} | {times[key]} |")
    print(f"| together | {sum(times.values()):.0f} |")


def page():
    with open(os.path.join(HERE, "notes", "fits.md"), encoding="utf-8") as f:
        notes = f.read()
    parts = notes.split("<!-- ")
    print(parts[0], end="")
    for part in parts[1:]:
        name, text = part.split(" -->\n", 1)
        if name == "times":
            print_times()
        elif name.startswith("judged "):
            print_judged(name.split()[1])
        else:
            print_found(name)
        print(text, end="")


def main():
    timed = "--times" in sys.argv
    arguments = [a for a in sys.argv[1:] if a != "--times"]
    if len(arguments) > 1 and arguments[0] == "run":
        run(os.path.abspath(arguments[1]), arguments[2:], timed)
    elif arguments == ["page"]:
        page()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

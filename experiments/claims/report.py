#!/usr/bin/env python3
"""docs/claims.md from judged results: report.py NEUTRAL.json [PROFILE.json [FIT.json]] >docs/claims.md

NEUTRAL and PROFILE are what `xpusim claims --json` prints, FIT what `xpusim claims --fit ... --json`
does. What is not a result (arithmetic, causes) comes from experiments/claims/notes/*.md. `make
claims-report` runs everything.
"""
import json
import os
import subprocess
import sys

import verdicts

HERE = os.path.dirname(os.path.abspath(__file__))
VERDICTS = verdicts.VERDICTS
PAPERS = [
    ("agent-xpu-v1", "Agent.xpu, first text (arXiv 2506.24045v1)"),
    ("agent-xpu-v2", "Agent.xpu, second text (2026 manuscript)"),
    ("sd.npu", "sd.npu (arXiv 2510.15312)"),
]


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def notes(name):
    path = os.path.join(HERE, "notes", name + ".md")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return f.read().strip() + "\n"


def number(v):
    return "-" if v is None else f"{v:.3g}"


def deciding(row):
    """The check that decided: the worst that counts."""
    counted = [c for c in row["checks"] if not c["informative"]]
    return max(counted, key=lambda c: VERDICTS.index(c["verdict"])) if counted else None


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def published(check):
    value = check["published"]
    text = value if isinstance(value, str) else f"{value:g}"
    return f"{text} {check['unit']}".strip() + (" (ours)" if check.get("ours") else "")


def simulated(check):
    if check["every_trace"] and check["low"] != check["high"]:
        return f"{number(check['worst'])} in the worst trace"
    if check["low"] is not None and check["low"] != check["high"]:
        return f"{number(check['simulated'])} [{number(check['low'])}, {number(check['high'])}]"
    return number(check["simulated"])


def rows_of(results, paper):
    """Claims in order: id, the row that counts, all rows."""
    order = []
    by_id = {}
    for row in results:
        if row["paper"] == paper:
            if row["id"] not in by_id:
                order.append(row["id"])
            by_id.setdefault(row["id"], []).append(row)
    for claim in order:
        rows = by_id[claim]
        yield claim, next((r for r in rows if r["counts"]), rows[0]), rows


def tally(rows):
    counts = [(v, sum(1 for r in rows if r["verdict"] == v)) for v in VERDICTS]
    return ", ".join(f"{n} {v}" for v, n in counts if n) + f" of {len(rows)}"


def holds(verdict):
    return verdict in ("reproduced", "calibrated")


def listed(ids):
    return ", ".join(ids) or "none"


def print_summary(neutral):
    """Counts of verdicts by paper, on each machine."""
    print("| paper | machine | " + " | ".join(VERDICTS) + " |\n|---|---|" + "---:|" * len(VERDICTS))
    for paper, title in PAPERS:
        rows = [row for _, row, _ in rows_of(neutral, paper)]
        anchored = any(r.get("independent_verdict") for r in rows)
        for machine, key in (("anchored" if anchored else "phones", "verdict"), ("independent", "independent_verdict")):
            words = [r[key] for r in rows if r.get(key)]
            if words:
                print(f"| {title} | {machine} | " + " | ".join(str(words.count(v)) for v in VERDICTS) + " |")
    print()


def print_holding(rows):
    """Which claims hold where, by name."""
    tests = [r for r in rows if r["verdict"] == "reproduced"]
    if any(r.get("independent_verdict") for r in rows):
        print("* Reproduced on both machines: "
              + listed([r["id"] for r in tests if r.get("independent_verdict") == "reproduced"]) + ".")
        print("* Reproduced on the anchored machine only: "
              + listed([r["id"] for r in tests if r.get("independent_verdict") != "reproduced"]) + ".")
        print("* Reproduced on the independent machine only: "
              + listed([r["id"] for r in rows if r["verdict"] != "reproduced"
                        and r.get("independent_verdict") == "reproduced"]) + ".")
    else:
        print("* Reproduced: " + listed([r["id"] for r in tests]) + ".")
    for word, text in (("calibrated", "Calibrated, so no tests"), ("compatible, not decided", "Not decided"),
                       ("direction", "Right sign, other size"), ("not reproduced", "Not reproduced"),
                       ("not modellable", "Not modellable")):
        ids = [r["id"] for r in rows if r["verdict"] == word]
        if ids:
            print(f"* {text}: {listed(ids)}.")


def elsewhere(row):
    """Verdict on the independent machine, with the number of the check that decides there."""
    word = row.get("independent_verdict")
    counted = [c for c in row["checks"] if not c["informative"]]
    if not word or not counted:
        return word or ""
    check = max(counted, key=lambda c: VERDICTS.index(c["independent_verdict"]))
    low, high = check["independent_low"], check["independent_high"]
    value = number(check["independent_simulated"])
    if check["every_trace"]:
        return word
    name = "" if check["name"] == deciding(row)["name"] else check["name"] + ": "
    return f"{word} ({name}{value}{f' [{number(low)}, {number(high)}]' if low != high else ''})"


def print_paper(paper, title, neutral, profile):
    claims = list(rows_of(neutral, paper))
    if not claims:
        return
    rows = [row for _, row, _ in claims]
    fitted = {r["id"]: r for r in profile or [] if r["counts"]}
    print(f"## {title}\n")
    print_holding(rows)
    own = [fitted[c] for c, _, _ in claims if c in fitted]
    anchored = any(r.get("independent_verdict") for r in rows)
    if own:
        lost = [r["id"] for r in rows if holds(r["verdict"]) and not holds(fitted[r["id"]]["verdict"])]
        print(f"* On the profile `paper-125h`, fitted to ten of these claims: {tally(own)}. "
              f"It fails {listed(lost)}, which hold on the anchored machine.")
    head = "| claim | where | statement | deciding check | published | simulated | verdict |"
    head += " independent machine |" if anchored else ""
    print("\n" + head + (" paper profile |" if own else ""))
    print("|---|---|---|---|---|---|---|" + "---|" * (anchored + bool(own)))
    for claim, row, _ in claims:
        check = deciding(row)
        parts = [claim, row["where"], row["statement"]]
        parts += [check["name"], published(check), simulated(check)] if check else ["-", "-", "-"]
        parts.append(row["verdict"])
        if anchored:
            parts.append(elsewhere(row))
        if own:
            parts.append(fitted[claim]["verdict"] if claim in fitted else "")
        print("| " + " | ".join(cell(p) for p in parts) + " |")
    print()
    print_readings(claims)
    print(notes(paper))


def print_readings(claims):
    """What a text leaves open of a set-up: the readings, once; then each claim under each of them."""
    why = {r["reading"]: r["why"] for _, _, rows in claims for r in rows if r.get("why")}
    if why:
        print("### Readings of the set-ups\n\nA text may leave a set-up open. Each reading is judged separately, on the "
              "default machine; the one taken is in bold.\n")
        print("| reading | what it changes, and why |\n|---|---|")
        print("| `stated` | nothing: the quantities as the claims file has them |")
        for name, text in why.items():
            print(f"| `{name}` | {cell(text)} |")
        print("\n| claim | reading | verdict | deciding check | simulated |\n|---|---|---|---|---|")
        for claim, taken, rows in claims:
            for r in rows if len(rows) > 1 else []:
                check = deciding(r)
                name = f"**`{r['reading']}`**" if r is taken else f"`{r['reading']}`"
                print(f"| {claim} | {name} | {r['verdict']} | {cell(check['name'])} | {simulated(check)} |")
        print()
    print("### What decided\n\n| claim | the text's set-up | what decided, and remarks |\n|---|---|---|")
    for claim, taken, _ in claims:
        if taken.get("setup") or taken["reason"] not in ("as published", "every check as published"):
            print(f"| {claim} | {cell(taken.get('setup') or '')} | {cell(taken['reason'])} |")
    print()


def print_fit(fit):
    ids = fit["claims"]
    print("## What can hold together\n")
    print(f"`xpusim claims --fit {','.join(ids)}`: {fit['points']} points, {fit['cpu_s']:.0f} s of processor "
          f"time. The largest set with a witness: **{len(fit['profile']['holds'])} of {len(ids)}** "
          f"({', '.join(fit['profile']['holds'])}), judged on fresh traces. Compatible claims are not counted. It is a "
          "lower bound, since a longer search (`--budget`) may find more. What is ruled out is an inference of the "
          "emulators. Nothing found by this search is a reproduction: it shows that results *can* hold together.\n")
    shipped = read(os.path.join(HERE, "paper-125h.json"))
    if shipped["set"] != fit["profile"]["set"]:
        same = sorted(shipped["holds"]) == sorted(fit["profile"]["holds"])
        print("The witness below is this search's. The profile that is shipped and judged above (`paper-125h`) is "
              f"another point, of a longer search; there {'the same' if same else ', '.join(shipped['holds'])} hold.\n")
    print("| parameter | range | witness | left, given the set | what one measurement would say |\n|---|---|---|---|---|")
    left = fit["ranges"]["together"]
    for name, p in fit["parameters"].items():
        ends = left.get(name)
        share = "-" if ends is None else f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} % of it"
        print(f"| `{name}` | {p['low']} to {p['high']} {'' if p['unit'] == '1' else p['unit']} | {p['witness']} | {share} | {cell(p['measure'])} |")
    print("\nSmallest sets that the emulators rule out: "
          + ("; ".join("{" + ", ".join(s) + "}" for s in fit["conflicts"]) or "none of up to three claims") + ".\n")
    print("Share of the ranges' space in which two claims may hold together, in percent:\n")
    print("| |" + "|".join(ids) + "|\n|---|" + "---|" * len(ids))
    for a in ids:
        print(f"| {a} |" + "|".join(f"{100 * fit['together'][a][b]:.1f}" for b in ids) + "|")
    total = {k: sum(fit["settles"][c][k] for c in ids) for k in fit["parameters"]}
    best = sorted(total, key=total.get, reverse=True)
    print("\n![Pairs of claims that may hold together](claims-pairs.svg)\n")
    print("![What is left of the ranges](claims-ranges.svg)")
    print("\nOne measurement would settle so much: the doubt of claims that knowing a number removes, summed over claims. "
          f"The first would be {fit['parameters'][best[0]]['measure']}.\n")
    print("| number | doubt removed |\n|---|---:|")
    for k in best:
        print(f"| `{k}` | {total[k]:.2f} |")
    print()


def figures(fit, folder):
    """Two pictures of a fit, by gnuplot."""
    ids = fit["claims"]
    style = os.path.join(HERE, "..", "..", "plots", "style.gp")
    left = fit["ranges"]["together"]
    names = list(fit["parameters"])
    pairs = [f"{i}\t{j}\t{100 * fit['together'][a][b]:.3f}" for i, a in enumerate(ids) for j, b in enumerate(ids)]
    ranges = [f"{i}\t{left.get(k, [0, 0])[0]:.4f}\t{left.get(k, [0, 0])[1]:.4f}\t{fit['parameters'][k]['witness_at']:.4f}"
              for i, k in enumerate(names)]
    for name, rows, words in (("pairs", pairs, f"ids='{' '.join(ids)}'"), ("ranges", ranges, f"names='{' '.join(names)}'")):
        data = os.path.join(folder, f"claims-{name}.tsv")
        out = os.path.join(folder, f"claims-{name}.svg")
        with open(data, "w", encoding="utf-8") as f:
            f.write("\n".join(rows) + "\n")
        subprocess.run(["gnuplot", "-e", f"data='{data}'; out='{out}'; style='{style}'; {words}",
                        os.path.join(HERE, f"fit-{name}.gp")], check=True)
        os.remove(data)


def main():
    neutral = read(sys.argv[1])
    profile = read(sys.argv[2]) if len(sys.argv) > 2 else None
    fit = read(sys.argv[3]) if len(sys.argv) > 3 else None
    if fit:
        figures(fit, os.environ.get("FIGURES", "docs"))
    wrong = [w for results in (neutral, profile or []) for w in verdicts.contradictions(results)]
    if wrong:
        sys.exit("report.py: verdicts that their numbers contradict: " + repr(wrong))
    print("# The papers' results: what holds here, and what does not\n")
    print("`build/xpusim claims ID` evaluates one claim again; `make claims-report` makes this page, from judged results "
          "and the notes in `experiments/claims/notes`. The exact rules are in `experiments/claims/claims.h`, and "
          "`experiments/claims/verdicts.py` derives each word again from the numbers. A row is one claim, by the "
          "reading of its set-up that its file takes.\n")
    print_summary(neutral)
    print(notes("reading"))
    for paper, title in PAPERS:
        print_paper(paper, title, neutral, profile)
    if fit:
        print_fit(fit)
    print(notes("changed"))
    print(notes("beyond"))


if __name__ == "__main__":
    main()

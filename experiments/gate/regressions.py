#!/usr/bin/env python3
"""What the gate says of changes: regressions that it should refuse, harmless ones that it should let
pass. Puts each change of changes/*.txt into the program, one at a time, and runs the gate.

    regressions.py [NAME ...]          changes whose name (FILE:NUMBER) begins so; all of them
    regressions.py --table [NAME ...]  and writes the tables of experiments/gate/README.md: rows of
                                       other changes stay; what was tried with this library before
                                       (also beside it) is not again

A change is a record as of tests/mutants: `file:`, `why:`, lines `- ` (found exactly once in the
file) and `+ ` (what stands there instead); `blind: ROUND, refused` (or passed) says what the gate
said when the change, written after the groups of that round, was tried once. Nothing is written into the tree: a changed copy is
compiled, and linked before the library, whose own object is then not taken. A changed header
compiles every file that includes it. Exit 1 unless 95 % of the regressions are refused and every
harmless change passes."""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("BUILD", "build"))
HERE = os.path.join(TOP, "experiments/gate")


def records(path):
    kind = os.path.splitext(os.path.basename(path))[0]
    for n, text in enumerate(open(path).read().strip().split("\n\n"), 1):
        r = {"name": f"{kind}:{n}", "kind": kind, "old": "", "new": ""}
        for line in text.split("\n"):
            if line.startswith(("- ", "+ ")):
                r["old" if line[0] == "-" else "new"] += line[2:] + "\n"
            else:
                key, value = line.split(": ", 1)
                r[key] = value
        yield r


def changed(r):
    """The changed file's text; its `- ` lines must stand there exactly once."""
    text = open(os.path.join(TOP, r["file"])).read()
    if text.count(r["old"]) != 1:
        sys.exit(f"{r['name']}: its lines are found {text.count(r['old'])} times in {r['file']}")
    return text.replace(r["old"], r["new"])


def sources(file):
    """What is compiled anew: the file itself, or all that includes it."""
    if file.endswith(".c"):
        return [file]
    deps = subprocess.run(["grep", "-rlF", file, BUILD, "--include=*.d"], capture_output=True,
                          text=True).stdout.split()
    found = {os.path.relpath(d, BUILD)[:-2] + ".c" for d in deps}
    if not found:
        sys.exit(f"{file}: no file in {BUILD} includes it: build there first")
    return sorted(f for f in found if f.split("/")[0] in ("sim", "policies", "hwmodels", "experiments"))


def build(r, folder):
    """The program with the change. The folder comes first among those searched for headers."""
    os.makedirs(os.path.join(folder, os.path.dirname(r["file"])), exist_ok=True)
    copy = os.path.join(folder, r["file"])
    open(copy, "w").write(changed(r))
    flags = open(os.path.join(BUILD, "flags")).read().split()
    libs = re.search(r"^LDLIBS *= *(.*)$", open(os.path.join(TOP, "Makefile")).read(), re.M).group(1)
    libs = subprocess.run("echo " + libs.replace("$$", "$"), shell=True, check=True,
                          capture_output=True, text=True).stdout.split()
    objects = []
    for i, c in enumerate(sources(r["file"])):
        source = copy if c == r["file"] else os.path.join(TOP, c)
        objects.append(os.path.join(folder, f"{i}.o"))
        subprocess.run(flags[:1] + ["-I" + folder, "-I" + TOP, "-D_POSIX_C_SOURCE=200809L"] + flags[1:] +
                       ["-Wno-error", "-w", "-c", "-o", objects[-1], source], cwd=TOP, check=True)
    program = os.path.join(folder, "xpusim")
    subprocess.run(flags[:1] + ["-rdynamic", "-o", program,
                                os.path.join(BUILD, "experiments/commands/main.o")] + objects +
                   [os.path.join(BUILD, "libxpusim.a")] + libs, cwd=TOP, check=True)
    return program


def gate(r):
    """(refused, groups with alarms, summary)"""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, XPUSIM_DATA_DIR=TOP)
        p = subprocess.run([build(r, folder), "gate", "--baseline", os.path.join(HERE, "policies.json")],
                           cwd=TOP, env=env, capture_output=True, text=True)
    if p.returncode not in (0, 1):
        sys.exit(f"{r['name']}: the gate does not run: {p.stderr[:300]}")
    rows = [line.split() for line in p.stdout.split("\n")]
    groups = []
    for row in rows:
        if row and row[0] in ("REGRESSION", "REMOVED", "STATUS") and row[1] not in groups:
            groups.append(row[1])
    summary = [line for line in p.stdout.strip().split("\n")][-1]
    return p.returncode == 1, groups, re.sub(r"^\d+ rows: ", "", summary)


def kept(r):
    """Where the answer to a change of this library stands."""
    h = hashlib.sha256((r["file"] + r["old"] + r["new"]).encode())
    h.update(open(os.path.join(BUILD, "libxpusim.a"), "rb").read())
    h.update(open(os.path.join(HERE, "policies.json"), "rb").read())
    key = h.hexdigest()[:16]
    return os.path.join(BUILD, "gate-changes", key + ".json")


def answer(r, again):
    """(refused, what it said), kept unless asked again."""
    path = kept(r)
    if os.path.exists(path) and not again:
        return json.load(open(path))
    refused, groups, summary = gate(r)
    said = ", ".join(groups[:4]) + (f" and {len(groups) - 4} more" if len(groups) > 4 else "")
    said = summary if r["kind"] == "harmless" or not refused else said
    os.makedirs(os.path.dirname(path), exist_ok=True)
    json.dump([refused, said], open(path, "w"))
    return [refused, said]


def main():
    write = "--table" in sys.argv
    wanted = [a for a in sys.argv[1:] if a != "--table"]
    lines, right, tried, blind = {}, {}, {}, {}
    path = os.path.join(HERE, "README.md")
    text = open(path).read()
    before = dict(re.findall(r"^(\| .* \| `.*` \|) (.*) \|$", text, re.M)) if write else {}
    for kind in ("regressions", "harmless"):
        lines[kind] = ["| change | file | groups that refuse it |" if kind == "regressions" else
                       "| change | file | the gate |", "|---|---|---|"]
        right[kind] = tried[kind] = 0
        for r in records(os.path.join(HERE, f"changes/{kind}.txt")):
            head = f"| {r['why']}{' (blind)' if 'blind' in r else ''} | `{r['file']}` |"
            if not wanted or any(r["name"].startswith(w) for w in wanted):
                refused, said = answer(r, not write)
                good = refused == (kind == "regressions")
                said = said if good else f"**{said}**"
                print(f"{r['name']:16} {'ok ' if good else 'NOT'} {r['why']}: {said}", flush=True)
            elif head in before:
                said = before[head]
                good = not said.startswith("**")
            else:
                continue
            tried[kind] += 1
            right[kind] += good
            if "blind" in r:
                refused_first = blind.setdefault(r["blind"].split(",")[0], {}).setdefault(kind, [])
                refused_first.append(r["blind"].endswith("refused"))
            lines[kind].append(f"{head} {said} |")
    unseen = "Rows marked *blind* were written after the groups. At their first try the gate refused: " + "; ".join(
        f"round {n}, " + " and ".join(f"{sum(v)} of {len(v)} {'harmless changes' if k == 'harmless' else k}"
                                      for k, v in of.items()) for n, of in blind.items()) + "."
    print(unseen)
    print(f"{right['regressions']} of {tried['regressions']} regressions refused, "
          f"{tried['harmless'] - right['harmless']} of {tried['harmless']} harmless changes refused")
    if write:
        head = text.split("<!-- regressions.py -->")[0]
        table = (f"<!-- regressions.py -->\n\n{right['regressions']} of {tried['regressions']} "
                 f"regressions are refused, and {tried['harmless'] - right['harmless']} of "
                 f"{tried['harmless']} harmless changes. {unseen}\n\n" + "\n".join(lines["regressions"]) +
                 "\n\n" + "\n".join(lines["harmless"]) + "\n")
        open(path, "w").write(head + table)
    enough = {"regressions": 0.95, "harmless": 1.0}
    return 0 if all(right[k] >= enough[k] * tried[k] for k in right) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""One result in four forms: Markdown has the words of the text in the same order, and every cell of a CSV is a leaf of the JSON
document. The command lines are those of statuses_check.py that print a result, so a new command takes part by its rows there."""
import bisect
import concurrent.futures
import csv
import io
import itertools
import json
import os
import re
import sys

import statuses_check as statuses

# A text of these has pictures, --markdown is the name of a file, or they print as compare and take longer; Markdown of a figure is for a page that has
# the picture, and a list of claims is a table in all forms but the text.
LEFT_OUT = ("graphs", "view", "report", "gate", "falsify", "ablate")
NO_MARKDOWN = re.compile("figure|claims --list")
MORE = {"explain": ["--policy agent-xpu-v2 --interference --workload mixed:reactive_per_min=20,proactive_per_min=20,duration_s=40,output_scale=0.3"],
        "compare": ["--policy mlfq --policy edf --replications 2 --workload w1:n=3 --tune 2", "--policy fcfs --policy edf --replications 2 --workload w1:n=3 --load 0.3,0.9",
                    "--policy fcfs --policy edf --replications 2 --workload w1:n=3 --regret"],
        "validate": ["--energy {powers.csv} --rows", "--points {points.csv} --rows"], "claims": ["A8 --replications 2"],
        "list": ["kernels", "llm", "metric", "soc core-ultra-5-125h"], "characterize": ["corun"]}


def words(text, markdown):
    """The words of a text, or of Markdown without what lays it out."""
    lines = []
    for line in text.split("\n"):
        if markdown:
            line = re.sub(r"^#+ ", "", line.strip())
            if re.fullmatch(r"\|[-:| ]+\|", line):
                continue
            if line.startswith("|"):
                line = line[1:-1].replace("\\|", "\0").replace("|", " ").replace("\0", "|")
        lines.append(re.sub(r"^\s*==== ?", "", line))
    return " ".join(lines).split()


def latex_words(text):
    """The words of LaTeX, without what lays it out and headings within tables. Tables are rows that end with two backslashes, and all else is a comment."""
    lines = []
    for line in text.split("\n"):
        if re.fullmatch(r"\\begin\{tabular\}\{[lr]+\}|\\end\{tabular\}|\\hline|\\multicolumn.*", line):
            continue
        if line.endswith(r" \\"):
            line = re.sub(r"(^|(?<!\\))&", " ", line[:-3])
            for command, letter in (("textasciitilde", "~"), ("textasciicircum", "^"), ("textless", "<"), ("textgreater", ">"), ("textbar", "|")):
                line = line.replace("\\" + command + "{}", letter)
            line = re.sub(r"(?<!\\)\{\}", "", line)
            line = re.sub(r"\\([&%$#_{}])", r"\1", line).replace("\\textbackslash{}", "\\")
        elif line.startswith("% "):
            line = line[2:]
        else:
            line = "neither a row nor a comment:" if line else ""
        lines.append(re.sub(r"^\s*==== ?", "", line))
    return " ".join(lines).split()


def leaves(x):
    """Every text and number of a document, and every key: tables have their first columns as keys."""
    if isinstance(x, dict):
        for k, v in x.items():
            yield k
            if k == "settings":  # one cell
                yield json.dumps(v, separators=(",", ":"))
            yield from leaves(v)
    elif isinstance(x, list):
        for v in x:
            yield from leaves(v)
    else:
        yield x


def as_number(x):
    try:
        return None if isinstance(x, bool) else float(x)
    except (TypeError, ValueError):
        return None


class Leaves:
    """What a document holds. JSON ends a digit before CSV."""

    def __init__(self, tree):
        found = list(leaves(tree))
        self.texts = {{True: "true", False: "false", None: ""}.get(v, v) if not isinstance(v, float) else v for v in found} | {"", "nan"}
        self.numbers = sorted(n for n in map(as_number, found) if n is not None and n == n)

    def have(self, cell):
        x = as_number(cell)
        if x is None or cell in self.texts:
            return cell in self.texts
        at = bisect.bisect_left(self.numbers, x)
        return any(abs(n - x) <= 1e-13 * abs(x) for n in self.numbers[max(0, at - 1):at + 1])


def try_line(number, command, row):
    line = statuses.words_of(command, row, f"form-{number}")
    name, bad = " ".join(line), []
    forms = statuses.start(["help", *command.split()])[1]
    said = {form: statuses.start(line + ([f"--{form}"] if form != "text" else [])) for form in ("text", "markdown", "latex", "csv", "json") if form == "text" or f"--{form}\n" in forms or f"--{form} " in forms}
    if len({s[0] for s in said.values()}) != 1:
        return 0, [f"{name}: exit by form {[(f, s[0]) for f, s in said.items()]}"]
    a = words(said["text"][1], False)
    for form, b in ("Markdown", words(said["markdown"][1], True)), ("LaTeX", latex_words(said["latex"][1])):
        if not NO_MARKDOWN.match(f"{command} {row}") and a != b:
            at = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            bad.append(f"{name}: {form} differs from the text: {' '.join(a[at:at + 12])} / {' '.join(b[at:at + 12])}")
    for x, y in itertools.pairwise(said["markdown"][1].split("\n")):  # a table begins and ends at an empty line
        if x and y and x.startswith("|") != y.startswith("|") and not NO_MARKDOWN.match(f"{command} {row}"):
            bad.append(f"{name}: Markdown has {x[:40]!r} right before {y[:40]!r}")
    checked = len(said["text"][1].split())
    if "csv" in said and "json" in said and said["csv"][1].strip() and said["json"][1].strip():
        rows = list(csv.reader(l for l in io.StringIO(said["csv"][1]) if not l.startswith("#")))
        try:
            document = Leaves(json.loads(said["json"][1]))
        except ValueError:
            return checked, [f"{name}: --json is no document: {said['json'][1][:80]!r}"]
        if any(len(r) != len(rows[0]) for r in rows):
            bad.append(f"{name}: rows of the CSV have {sorted({len(r) for r in rows})} cells")
        for r in rows[1:]:
            for column, cell in zip(rows[0], r):
                checked += 1
                parts = cell.split(".")  # of a tree each leaf has its way as a name, and keys may have dots
                named = parts[-1].isdigit() or any(document.have(".".join(parts[k:])) for k in range(1, len(parts)))
                if not document.have(cell) and not (column == "name" and named):
                    bad.append(f"{name}: {column} {cell!r} of the CSV is not in the document")
    return checked, bad[:6]


def main():
    statuses.make()
    tasks = []
    for command, by in statuses.ROWS.items():
        rows = [r.replace(" --json", "") for r in by.get(0, []) + by.get(1, [])[:1]] + MORE.get(command, [])
        if command not in LEFT_OUT and "--markdown" in statuses.start(["help", *command.split()])[1]:
            tasks += [(command, r) for r in dict.fromkeys(rows) if not re.search("{NEW}|--csv|--max-|--run |--points {points.csv}$|--energy {powers.csv}$", r)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda t: try_line(t[0], *t[1]), enumerate(tasks)))
    bad = [b for _, found in results for b in found]
    print("\n".join(f"FAILED: {b}" for b in bad[:40]))
    checked = sum(n for n, _ in results)
    print(f"{len(tasks)} command lines, {checked} words and cells in several forms")
    return 1 if bad or checked < 10000 else 0


if __name__ == "__main__":
    sys.exit(main())

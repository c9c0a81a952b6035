"""Numbers of hand-written pages, computed again by the commands that the pages name.

    python3 tests/helpers/quotes_check.py PAGE...

A page names a command in a comment, which no reader of the built page sees:

    <!-- $ xpusim list policy | wc -l -->
    <!-- WHOLE $ xpusim falsify --policy edf --baseline fcfs -q | sed -n 4p -->

Every line that the command prints must be in the text between the comment and the next comment or heading, one behind the
other. `...` in a printed line is anything within a line or a cell, such as what the command leaves out. A command
that takes long has WHOLE, and runs with WHOLE=yes only. Commands run in an empty folder, with the program and this folder
(`cells`) in PATH; XPUSIM is the root of the sources. Where a command prints rows of a table, that table has no others,
unless the command also prints a line `...`. Exit status 1 if a page says something else."""
import os
import re
import subprocess
import sys
import tempfile

COMMENT = re.compile(r"^<!-- (WHOLE )?\$ (.*?) -->$", re.M | re.S)
TABLE = re.compile(r"^\|.*\n\|[-:| ]+\n(?:\|.*\n?)*", re.M)
END = re.compile(r"^(?:#+ |<!-- )", re.M)
whole = bool(os.environ.get("WHOLE"))
bad = ran = 0
for page in sys.argv[1:]:
    with open(page) as h:
        text = h.read()
    for comment in COMMENT.finditer(text):
        if comment.group(1) and not whole:
            continue
        ran += 1
        end = END.search(text, comment.end())
        block = text[comment.end():end.start() if end else len(text)]
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(["bash", "-euo", "pipefail", "-c", comment.group(2)], cwd=folder, capture_output=True, text=True)
        where = f"{page}:{text.count(chr(10), 0, comment.start()) + 1}"
        lines = [line for line in made.stdout.split("\n") if line.strip()]
        if made.returncode or not lines:
            print(f"FAILED: {where}: exit status {made.returncode}, {len(lines)} lines: {made.stderr.strip()}")
            bad += 1
        at = 0
        rows = set()  # of tables that are printed: where they begin
        for line in lines:
            # no digit before or behind: 3 is not in 13 or 3.5
            sought = r"[^|\n]*?".join(re.escape(part) for part in line.strip().split("..."))
            found = re.compile(r"(?<![\d.])" + sought + r"(?!\.?\d)").search(block, at)
            if found:
                at = found.end()
                rows.update([found.start()] if line.startswith("|") else [])
            else:
                print(f"FAILED: {where}: the page does not say, or not in this place:\n    {line}")
                bad += 1
        for table in TABLE.finditer(block):
            begins = [row.start() for row in re.finditer(r"^\|", table.group(), re.M)]
            extra = [b for b in begins[2:] if table.start() + b not in rows]  # behind its head
            if len(extra) < len(begins[2:]) and "..." not in lines:
                for b in extra:
                    print(f"FAILED: {where}: the command does not print:\n    {table.group()[b:].splitlines()[0]}")
                    bad += 1
print(f"{ran} commands, {bad} failures")
sys.exit(bad > 0)

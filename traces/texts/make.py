#!/usr/bin/env python3
"""Makes the shipped token texts from this repository's own history (README.md here).

    python3 traces/texts/make.py REVISION

code_edits.jsonl: a function before a change and the change's subject give the function after it.
change_texts.jsonl: the change of a function gives what the commit says of it.
"""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
BYTES = 140_000  # of each file
FOLDERS = ["sim", "policies", "hwmodels", "traces", "experiments"]


def git(*args):
    done = subprocess.run(["git", *args], cwd=HERE.parents[1], check=True, capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def hunks(revision):
    """(path, before, after, change) of each function that a commit changed."""
    path = None
    for part in re.split(r"^(?=diff --git |@@ )", git("show", "-W", "--format=", revision, "--", *FOLDERS), flags=re.M):
        head, _, body = part.partition("\n")
        if head.startswith("diff --git "):
            path = head.split(" b/")[-1]
        elif head.startswith("@@ ") and path.endswith((".c", ".h")):
            lines = [line for line in body.split("\n") if line[:1] in (" ", "+", "-")]
            before = [line[1:] for line in lines if line[0] != "+"]
            after = [line[1:] for line in lines if line[0] != "-"]
            yield path, before, after, lines


def texts(revision):
    """The first function of a commit that is neither short nor long, and changed in part: both tasks."""
    subject, _, message = git("show", "-s", "--format=%s%n%b", revision).partition("\n")
    message = message.strip()
    for path, before, after, lines in hunks(revision):
        changed = sum(line[0] != " " for line in lines)
        if not (15 <= len(before) <= 70 and 15 <= len(after) <= 70 and 2 <= changed <= len(lines) // 2):
            continue
        edit = {"context": f"{subject}\n\n{path}:\n" + "\n".join(before) + "\n\nAfter the change:\n",
                "output": "\n".join(after) + "\n"}
        told = {"context": f"{path}:\n" + "\n".join(lines) + "\n\nWhat the change does:\n",
                "output": f"{subject}\n\n{message}\n"}
        return edit, told if len(message.split()) >= 30 else None
    return None, None


def write(name, rows):
    """Rows spread evenly over the history, as many as fit."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    lines = [line for line in lines if not re.search(r"/(home|root|work|tmp)/|session|helper", line)]
    step = max(1, -(-sum(map(len, lines)) // BYTES))
    (HERE / name).write_text("".join(lines[::step]), encoding="utf-8")


def main():
    revisions = git("log", "--no-merges", "--format=%H", sys.argv[1], "--", *FOLDERS).split()
    pairs = [texts(revision) for revision in revisions]
    write("code_edits.jsonl", [edit for edit, _ in pairs if edit])
    write("change_texts.jsonl", [told for _, told in pairs if told])


if __name__ == "__main__":
    main()

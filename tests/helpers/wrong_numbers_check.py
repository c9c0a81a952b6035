#!/usr/bin/env python3
"""A number of a log that is none of its kind: 0, a negative one, a fraction, one beyond any machine, a text. `trace import` refuses
it with the file's name, or writes a trace that `trace stats` takes: whatever the reader of a format lets through, that of traces
refuses what no request has. Each number of the corpus' files is tried, a part of them in turn."""
import os
import pathlib
import random
import re
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
EACH = 1000 if os.environ.get("WHOLE") else 12  # numbers of a file
VALUES = ["0", "-1", "0.5", "1e18", '"x"']
CORPUS = pathlib.Path("tests/fuzz/corpus")
FORMATS = [(n, "sample") for n in ("agentic-mooncake", "aiperf", "bailian", "claude-code", "codex", "copilot", "dynamo", "genai-perf", "guidellm", "inference-perf",
                                   "openai", "otel", "tracelab", "vllm", "weka")]
FORMATS += [(n, "three") for n in ("azure", "mooncake", "plain")] + [(n, "two") for n in ("burstgpt", "splitwise", "vidur")]
# In JSON what follows a colon; in CSV a field.
NUMBERS = {True: re.compile(r'(?<=:)\s*(?:-?\d[\d.eE+-]*|"\d+")(?=\s*[,\]}\n])'), False: re.compile(r"(?<=[,\n])\d[\d.]*(?=[,\n])")}


def run(*words):
    return subprocess.run([XPUSIM, "trace", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def tried(name, text, options):
    """What is wrong about the answer to such a file; and whether it was refused."""
    path, out = FOLDER / name, FOLDER / "out.csv"
    path.write_text(text)
    out.unlink(missing_ok=True)
    r = run("import", str(path), "--format", name, *options, "-o", str(out))
    if r.returncode == 2 and str(path) in r.stderr and not out.exists():
        return None, True
    if r.returncode != 0:
        return f"exit {r.returncode}, {r.stderr.strip()[-200:]}", True
    r = run("stats", str(out))
    return (f"a trace that is none: {r.stderr.strip()[-200:]}" if r.returncode != 0 else None), False


def main():
    rnd, bad, refused, taken = random.Random(11), [], 0, 0
    for name, sample in FORMATS:
        text = (CORPUS / name / sample).read_text()
        options = ["--rate-per-min", "6"] + (["--link"] if name in ("bailian", "mooncake") else [])
        assert tried(name, text, options) == (None, False), name
        found = list(NUMBERS[text.lstrip()[0] in "{["].finditer(text))
        assert found, name
        for m in rnd.sample(found, min(EACH, len(found))):
            for value in VALUES:
                why, was_refused = tried(name, text[:m.start()] + value + text[m.end():], options)
                refused, taken = refused + was_refused, taken + (not was_refused)
                if why:
                    bad.append(f"{name}: {m.group()} at {m.start()} as {value}: {why}")
    print("\n".join(f"FAILED: {b}" for b in bad[:20]))
    print(f"wrong numbers: {refused} refused, {taken} taken")
    return 1 if bad or refused < 300 or taken < 100 else 0


if __name__ == "__main__":
    sys.exit(main())

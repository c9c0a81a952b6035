#!/usr/bin/env python3
"""Every warning, note and refusal of the source has a case that rings it and one that does not: rows of tests/messages.txt,
which are run here, or the text of another test. What neither has is counted, and the count may only fall (UNTESTED)."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

XPUSIM, FOLDER, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2]), ("sim", "policies", "hwmodels", "traces", "plots", "experiments")
UNTESTED = 110  # at most so many messages are in no row and no test
LITERAL = r'"(?:\\.|[^"\\])*"'
CALL = re.compile(r"\b(?:err_add|warnings_add|say_and_free)\(|\bfprintf\(stderr,\s*(?=\"xpusim: (?:warning|note))")
LOAD = "--workload mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60"
HEAD = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"


def files():
    """What the commands of the table name in braces."""
    def trace(rows, more=""):
        return f"# xpusim-trace v1\n{HEAD}{more}\n{rows}\n"

    def spec(**more):
        base = {"name": "t", "base": {"policy": "fcfs", "workload": "w1:n=2"}, "replications": 1, "metrics": ["all.e2e_s.mean"]}
        base.update(more)
        return json.dumps({k: v for k, v in base.items() if v is not None})
    made = {
        "plain.csv": trace("0,0,0,reactive,0,,20,20,0"),
        "models.csv": trace("0,0,0,reactive,0,,20,20,0,other", ",model").replace("v1", "v2"),
        "cancel.csv": trace("0,0,0,reactive,0,,20,200,0,0.5", ",cancel_s"),
        "late.csv": trace("0,0,0,reactive,0,,20,20,0,500", ",cancel_s"),
        "nul.csv": trace("0,0,0,reactive,0,,20,20,0\0"),
        "head.csv": "a,b\n",
        "battery.json": '{"machine": [{"at_s": 0, "source": "battery", "battery_j": 200, "battery_full_j": 200000}]}',
        "full.json": '{"machine": [{"at_s": 0, "source": "battery", "battery_j": 200000, "battery_full_j": 200000}]}',
        "once.json": spec(),
        "until.json": spec(replications=2, max_replications=3, until={"all.e2e_s.mean": {"half_width": 1e-9}}, base={"policy": "fcfs", "workload": LOAD[11:]}),
        "nountil.json": spec(until={}),
        "stray.json": spec(policy="edf"),
        "axis.json": spec(axes={"seed": 3}),
        "twice.json": spec(axes={"policy": ["edf"]}, zip=[{"policy": ["edf"]}]),
        "untilother.json": spec(max_replications=3, until={"all.ttft_s.mean": {"half_width": 1}}),
        "zip.json": spec(zip=3),
        "emptypolicy.json": spec(base={"policy": "", "workload": "w1:n=2"}),
        "nopolicy.json": spec(base={"workload": "w1:n=2"}),
        "empty.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,9,0\n2023-11-16 18:15:47.6805900,9,5\n",
        "some.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,9,3\n2023-11-16 18:15:47.6805900,9,5\n",
        "runs.json": '{"runs": []}',
    }
    for name, text in made.items():
        (FOLDER / name).write_text(text)
    for name in ("vllm.json",):
        (FOLDER / name).write_bytes(pathlib.Path("tests/fuzz/corpus/" + name[:-5] + "/sample").read_bytes())


def run(command, tag):
    words = command.replace("{load}", LOAD)
    words = re.sub(r"\{(\d+) slos\}", lambda m: " ".join(f"--slo all.e2e_s.mean<={k + 1}" for k in range(int(m.group(1)))), words)
    words = words.replace("{NEW}", str(FOLDER / f"new-{tag}"))
    words = re.sub(r"\{([\w.]+)\}", lambda m: str(FOLDER / m.group(1)), words)
    args = ["" if w == "''" else w for w in words.split()]
    r = subprocess.run([XPUSIM, *args], capture_output=True, text=True, errors="replace", timeout=900, stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout + r.stderr


def try_row(number, kind, message, rings, quiet):
    status, said = run(rings, f"{number}a")
    if message not in said or (kind == "refusals" and status != 2) or (kind != "refusals" and status not in (0, 1)):
        return f"{message}: does not ring (exit {status}): {rings}\n{said[:400]}"
    status, said = run(quiet, f"{number}b")
    if message in said or status not in (0, 1):
        return f"{message}: rings or fails (exit {status}): {quiet}\n{said[:400]}"
    return None


def parts(text):
    """The literal parts of a format."""
    found = re.split(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j)*[a-zA-Z%]?", text)
    return [p.strip(" :;,.()'`") for p in found if len(p.strip(" :;,.()'`")) > 0]


def said_by_source():
    """(file, line, format) of every message."""
    for path in sorted(p for d in SOURCES for p in pathlib.Path(d).rglob("*.c")):
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(), flags=re.S)
        for call in CALL.finditer(text):
            m = re.match(rf"[^;\"]*?({LITERAL}(?:(?:\s|PRI\w+)+{LITERAL})*)", text[call.end():])
            if m:
                whole = "".join(w[1:-1] for w in re.findall(LITERAL, m.group(1)))
                yield str(path), text.count("\n", 0, call.start()) + 1, whole.replace('\\"', '"').replace("\\n", "")


def has_case(message, messages, tests):
    """A row, or a test with a telling part of it: two words or more with eleven letters. What only joins other texts has none."""
    if not any(len(p) > 7 for p in parts(message)) or any(m in message for m in messages):
        return True
    for part in parts(message):
        if len(part) > 10 and part in tests:
            return True
        words = re.sub(r"[;:,]( |$)", " ", part).split()
        if any(len(t) > 10 and t in tests for n in range(2, len(words) + 1)
               for t in (" ".join(words[i:i + n]) for i in range(len(words) - n + 1))):
            return True
    return False


def main():
    files()
    kind, rows = "", []
    for line in pathlib.Path("tests/messages.txt").read_text().split("\n"):
        kind = line[3:] if line.startswith("## ") else kind
        if line.strip() and not line.startswith("#"):
            rows.append((len(rows), kind, *(f.strip() for f in line.split(" | "))))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [b for b in pool.map(lambda r: try_row(*r), rows) if b]
    source = list(said_by_source())
    texts = "\n".join(s for _, _, s in source)
    bad += [f"{r[2]}: in no message of the source" for r in rows if r[2] not in texts]
    tests = "".join(p.read_text(errors="replace") for d in ("unit", "oracle", "conformance", "golden") for p in sorted(pathlib.Path("tests", d).iterdir())
                    if p.suffix in (".c", ".sh"))
    untested = [s for s in source if not has_case(s[2], [r[2] for r in rows], tests)]
    for path, line, text in untested if len(untested) > UNTESTED or "--untested" in sys.argv else []:
        print(f"in no test: {path}:{line}: {text}")
    if len(untested) > UNTESTED:
        bad.append(f"{len(untested)} messages are in no test, at most {UNTESTED} may be: add a row to tests/messages.txt")
    if len(source) < 600:
        bad.append(f"only {len(source)} messages are found in the source")
    print("\n".join(f"FAILED: {b}" for b in bad))
    print(f"{len(rows)} messages rung and not rung, {len(source)} in the source, {len(untested)} in no test")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

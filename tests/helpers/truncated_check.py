#!/usr/bin/env python3
"""A file that is cut short: every reader of a format says so (exit 2, with the file's name and nothing on standard output),
or, where a shorter file is one too, its answer is another than that of the whole file. Each file is cut behind some of its
lines and at bytes drawn from a fixed seed. What a cut leaves must not be read as if it were all of it."""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
WHOLE = os.environ.get("WHOLE")
LINES, BYTES = (6, 8) if WHOLE else (4, 4)  # cuts of each file
CORPUS = "tests/fuzz/corpus/"
SMALL = "--workload w1:n=2"
RUN = f"run --policy agent-xpu-v2 {SMALL} --json"


def head(path, lines):
    """The first lines of a shipped file, without what is longer than a test needs."""
    return "".join(pathlib.Path(path).read_text().splitlines(keepends=True)[:lines])


def said(command):
    """What a command prints: a file to be read again."""
    words = [w.replace("{}", str(FOLDER / "made")) for w in command.split()]
    subprocess.run([XPUSIM, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (FOLDER / "made").read_bytes()


def printed(command):
    return subprocess.run([XPUSIM, *command.split()], check=True, capture_output=True).stdout


def importer(name, sample="sample", lines=None):
    return (f"{name} of trace import", "in", head(CORPUS + f"{name}/{sample}", lines).encode(),
            f"trace import {{}} --format {name} --rate-per-min 6" + (" --link" if name in ("bailian", "mooncake") else ""))


def cases():
    """(name, ending, contents, command), with {} for the file."""
    found = [importer(n) for n in ("agentic-mooncake", "bailian", "claude-code", "codex", "copilot", "dynamo", "genai-perf", "guidellm", "inference-perf", "otel",
                                   "sharegpt", "vllm", "weka")]
    found += [importer("aiperf", lines=2), importer("tracelab", lines=3), importer("openai", lines=3)]  # what follows is of no request
    found += [importer(n, "three") for n in ("azure", "mooncake", "plain")]
    found += [importer(n, "two") for n in ("burstgpt", "splitwise", "vidur")]
    for name, workload in (("sessions", "mixed:sessions=1,reactive=mtrag,burst=2,active_share=0.3,duration_s=300"), ("w1", "w1:n=9"), ("texts", "texts:n=2"), ("agents", "traces/workloads/flows.json")):
        found.append((f"trace, {name}", "csv", said(f"trace gen --workload {workload} -o {{}}"), "trace stats {} --json"))
    found.append(("trace, its run", "csv", said("trace gen --workload w1:n=6 -o {}"), "run --policy fcfs --trace {} --json"))
    found += [
        ("SoC", "json", pathlib.Path("hwmodels/soc/w1-reference.json").read_bytes(), RUN.replace("agent-xpu-v2", "fcfs") + " --soc {}"),
        ("LLM", "json", pathlib.Path("hwmodels/llm/llama-3.2-3b.json").read_bytes(), RUN + " --llm {}"),
        ("config.json of a model", "json", pathlib.Path(CORPUS + "hugging-face/sample").read_bytes(), RUN + " --llm {}"),
        ("workload", "json", pathlib.Path(CORPUS + "agents/all").read_bytes(), "trace gen --workload {}"),
        ("machine", "json", b'{"machine": [{"at_s": 0, "power_w": 15},\n{"at_s": 1, "power_w": 9}]}\n', RUN + " --machine {}"),
        ("experiment", "json", json.dumps({"name": "t", "base": {"policy": "fcfs", "workload": "w1:n=2"}, "axes": {"seed": [1, 2]},
                                           "metrics": ["all.e2e_s.mean"]}, indent=1).encode(), "sweep {} --dry-run -o {NEW}.db"),
        ("suite", "json", pathlib.Path("experiments/suites/laptop-2026.1.json").read_bytes(), "sweep {} --policy fcfs --dry-run -o {NEW}.db"),
        ("claims", "json", pathlib.Path(CORPUS + "claims/one").read_bytes(), "claims --file {} --list"),
        ("baseline of a gate", "json", baseline(), "gate --baseline {} --all --json"),
        ("points", "csv", head("hwmodels/points/reference.csv", 9).encode(), "validate --points {} --rows --json"),
        ("co-runs", "csv", head("hwmodels/points/corun.csv", 40).encode(), "validate --corun {} --json"),
        ("powers", "csv", pathlib.Path("hwmodels/points/energy.csv").read_bytes(), "validate --energy {} --json"),
        ("measured run", "csv", pathlib.Path(CORPUS + "measured-run/vllm").read_bytes(),
         "validate --run {} --soc rtx-pro-6000 --llm llama-3.1-8b-bf16 --policy vllm-v1 --uncertainty 0 --json"),
        ("decisions, replayed", "log", said(f"run --policy edf {SMALL} --decisions {{}}"), f"run --replay {{}} {SMALL} --json"),
        ("result, in a report", "json", printed(f"compare --policy fcfs --policy edf {SMALL} --replications 2 --json"), "report {} -o {OUT}.html"),
        ("result of view", "json", printed(f"view --policy fcfs {SMALL} --json"), "view {} -o {OUT}.html"),
        ("figure's specification", "json", pathlib.Path("experiments/figures/agent-xpu-v1-2.json").read_bytes(),
         "figure {} --no-picture --replications 1 --json"),
        ("store", "db", store(), "sweep -o {} --export csv"),
        ("store, compared", "db", store(), "compare --store {} --json"),
        ("kernels of a machine", "csv", pathlib.Path("hwmodels/measured/two-core-xeon-vm.csv").read_bytes(), "measure --fit {} --json"),
    ]
    for name, data in (("chunk", head(CORPUS + "figure/chunk", 4).split("\n", 1)[1].encode()), ("corun", pathlib.Path(CORPUS + "figure/corun").read_bytes().split(b"\n", 1)[1]),
                       ("cdf", said("run --policy fcfs --workload w1:n=5 --requests {}")), ("lengths", said("trace gen --workload w1:n=5 -o {}")),
                       ("gantt", said(f"run --policy agent-xpu-v2 {SMALL} --timeline {{}}")), ("queue", said(f"run --policy edf {SMALL} --timeline {{}}"))):
        found.append((f"figure {name}", "in", data, f"plot {name} {{}} -o {{OUT}} --format svg"))
    return found


def baseline():
    group = {"name": "g", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "workload": "w1:n=2", "test": "exact", "seed": 1, "replications": 1,
             "policies": ["fcfs"], "metrics": [{"name": "reactive.e2e_s.p90", "better": "lower", "tolerance_frac": 0.02}]}
    (FOLDER / "gate.json").write_text(json.dumps({"format": 1, "groups": [group]}))
    subprocess.run([XPUSIM, "gate", "--baseline", str(FOLDER / "gate.json"), "--update", "-q"], check=True, stdout=subprocess.DEVNULL)
    return (FOLDER / "gate.json").read_bytes()


def store():
    (FOLDER / "made.db").unlink(missing_ok=True)
    (FOLDER / "spec.json").write_text('{"name": "t", "base": {"policy": "fcfs", "workload": "w1:n=2"}, "axes": {"seed": [1, 2]}, "metrics": ["reactive.e2e_s.mean", "all.e2e_s.mean"]}')
    subprocess.run([XPUSIM, "sweep", str(FOLDER / "spec.json"), "-o", str(FOLDER / "made.db"), "-q"], check=True, stdout=subprocess.DEVNULL)
    return (FOLDER / "made.db").read_bytes()


def answer(command, path, tag):
    """Status, what it printed and what it wrote, and its errors."""
    out = FOLDER / f"out-{tag}"
    words = [w.replace("{}", str(path)).replace("{OUT}", str(out)).replace("{NEW}", str(FOLDER / f"new-{tag}")) for w in command.split()]
    r = subprocess.run([XPUSIM, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    wrote = b""
    for p in sorted(FOLDER.glob(f"out-{tag}*")):
        for f in sorted(p.glob("*")) if p.is_dir() else [p]:
            wrote += f.read_bytes() if f.suffix in (".tsv", ".html") else b""
            f.unlink()
        if p.is_dir():
            p.rmdir()
    hide = lambda text: text.replace(str(path).encode(), b"FILE").replace(path.name.encode(), b"FILE").replace(str(out).encode(), b"OUT")
    return r.returncode, hide(r.stdout + wrote), r.stderr.decode(errors="replace")


# Their last column is a remark, or of no use to that figure.
REMARK_LAST = ("burstgpt of trace import", "points", "figure chunk", "figure cdf", "figure lengths")


def places(data, chance, remark_last):
    """Where to cut: behind lines, and at random; never where only white space, or a part of a remark, is lost."""
    ends = [m.end() for m in re.finditer(rb"\n", data)][:-1]
    chosen = set(chance.sample(ends, min(LINES, len(ends))))
    chosen |= {chance.randrange(1, len(data)) for _ in range(BYTES)} | {len(data.rstrip()) - 1}
    return sorted(at for at in chosen if data[at:].strip() and not (remark_last and b"," not in data[at:]))


def try_case(number, name, ending, data, command):
    if isinstance(data, str):
        data = data.encode()
    path = FOLDER / f"file-{number}.{ending}"
    path.write_bytes(data)
    whole = answer(command, path, number)
    if whole[0] not in (0, 1) or whole[1] == b"":
        return [f"{name}: the whole file is not read (exit {whole[0]}): {command}\n{whole[2][:300]}"], 0
    bad, refused, cuts = [], 0, places(data, random.Random(name), name in REMARK_LAST)
    for at in cuts:
        path.write_bytes(data[:at])
        status, text, said_ = answer(command, path, number)
        where = f"{name}: cut at byte {at} of {len(data)}, which ends {data[max(0, at - 30):at]!r}"
        if status == 2:
            refused += 1
            if path.name not in said_:
                bad.append(f"{where}: the message does not name the file: {said_[:200]}")
            elif text:
                bad.append(f"{where}: something is printed before the refusal: {text[:100]!r}")
        elif status not in (0, 1):
            bad.append(f"{where}: exit {status}: {said_[:200]}")
        elif text == whole[1]:
            bad.append(f"{where}: it is read as if it were whole")
    return bad, len(cuts)


def main():
    all_cases = cases()
    only = sys.argv[3:]
    chosen = [(k, *c) for k, c in enumerate(all_cases) if not only or c[0] in only]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda c: try_case(*c), chosen))
    bad = [b for r, _ in results for b in r]
    print("\n".join(f"FAILED: {b}" for b in bad))
    print(f"{len(chosen)} formats, {sum(n for _, n in results)} cuts")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

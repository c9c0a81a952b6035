#!/usr/bin/env python3
"""Every warning, note and refusal of the source has a case that rings it and one that does not: rows of tests/messages.txt,
which are run here, or the text of another test. A row's fourth column is the whole of what is said, with its numbers and names. What neither has is counted, and the count may only fall (UNTESTED)."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

XPUSIM, FOLDER, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2]), ("sim", "policies", "hwmodels", "traces", "plots", "experiments")
UNTESTED = 9  # at most so many messages are in no row and no test
LITERAL = r'"(?:\\.|[^"\\])*"'
CALL = re.compile(r"\b(?:err_add|err_null|warnings_add|say_and_free)\(|\bjson_refuse\([^,;]*,\s*(?:\"(\w+)\"|[^,;]*),|\bfprintf\(stderr,\s*(?=\"xpusim: (?:warning|note))")
# Of these the text comes behind a column's name or a key; a core's refusals of actions have tests of their own.
REFUSE = re.compile(r"\b(?:csvfile_|import_)?refuse\(")
LOAD = "--workload mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60"
HEAD = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"


def files():
    """What the commands of the table name in braces."""
    def trace(rows, more=""):
        return f"# xpusim-trace v1\n{HEAD}{more}\n{rows}\n"

    def stepped(**more):
        soc = json.loads(pathlib.Path("hwmodels/soc/core-ultra-7-258v.json").read_text())
        def number(value, unit="1"):
            return {"value": value, "unit": unit, "kind": "assumed", "source": "t"}

        steps = [{"speed": number(0.5), "power": number(0.3)}, {"speed": number(1), "power": number(1)}]
        soc["devices"][0]["dvfs"] = {"steps": steps, "governor": "utilisation", **more}
        return json.dumps(soc)

    def spec(**more):
        base = {"name": "t", "base": {"policy": "fcfs", "workload": "w1:n=2"}, "replications": 1, "metrics": ["all.e2e_s.mean"]}
        base.update(more)
        return json.dumps({k: v for k, v in base.items() if v is not None})
    def claims(quantities=None, check=None, **more):
        check = check or {"name": "a", "value": "1", "published": 1}
        claim = {"id": "X", "where": "1", "statement": "t", "checks": [check]}
        claim.update(more)
        return json.dumps({"paper": "p", "source": "s", "quantities": quantities or {"m": {"machine": {"field": "idle_watts"}}},
                           "claims": [{k: v for k, v in claim.items() if v is not None}]})

    def client(**more):
        step = {"prompt_tokens": 5, "answer_tokens": 1, "name": "s"}
        return json.dumps({"duration_s": 9, "clients": [{**step, "think_s": 1, "same_session": True, "subagents": [{**step, **more}]}]})

    def paper(**more):
        tree = json.loads(pathlib.Path("experiments/figures/agent-xpu-v1-2.json").read_text())
        tree.update(more)
        return json.dumps(tree)

    def model(**more):
        return json.dumps({**json.loads(pathlib.Path("tests/fuzz/corpus/hugging-face/sample").read_text()), **more})

    def gate(sets):
        return json.dumps({"format": 1, "groups": [{"name": "g", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "workload": "w1:n=2", "set": sets,
                                                    "test": "exact", "seed": 1, "replications": 1, "policies": ["fcfs"],
                                                    "metrics": [{"name": "reactive.e2e_s.p90", "better": "lower", "tolerance_frac": 0.02}]}]})
    def header(table):
        """Its remarks and its first line."""
        lines = pathlib.Path(f"hwmodels/points/{table}.csv").read_text().splitlines(keepends=True)
        return "".join(lines[:next(k for k, l in enumerate(lines) if not l.startswith("#")) + 1])
    machine = {"m": {"machine": {"field": "idle_watts"}}}
    compared = json.loads(subprocess.run([XPUSIM, *"compare --policy fcfs --policy edf --workload w1:n=2 --replications 2 --json".split()],
                                         capture_output=True, check=True).stdout)
    llama = "| model | backend | test | t/s |\n| --- | --- | --- | --- |\n"
    made = {
        "everytrace.json": claims(check={"name": "a", "value": "1", "published": 1, "every_trace": True}),
        "above.json": claims(check={"name": "a", "value": "1", "above": 1, "every_trace": True}),
        "neither.json": claims(checks=None),
        "both.json": claims(not_modellable="t"),
        "setnumber.json": claims({"r": {"run": {"policy": "fcfs", "workload": "w1:n=2", "set": [3]}}}),
        "setwords.json": claims({"r": {"run": {"policy": "fcfs", "workload": "w1:n=2", "set": ["sim.horizon_s=9"]}}}),
        "512.json": claims({f"m{k}": machine["m"] for k in range(512)}),
        "513.json": claims({f"m{k}": machine["m"] for k in range(513)}),
        "nofield.json": claims({"m": {"machine": {"field": "npu.idle"}}}, {"name": "a", "value": "m", "published": 1}),
        "request63.csv": trace("63,0,0,reactive,0,,20,20,0"),
        "request64.csv": trace("64,0,0,reactive,0,,20,20,0"),
        "2claims.json": paper(claims=["A10", "A10"]),
        "same.json": client(),
        "samebefore.json": client(before=True),
        "noquantity.json": paper(quantities={}),
        "9quantities.json": paper(quantities={f"m{k}": machine["m"] for k in range(9)}),
        "gateset.json": gate(["sim.horizon_s"]),
        "gate.json": gate(["sim.horizon_s=9"]),
        "empty-range.json": spec(axes={"seed": {"from": 5, "to": 3}}),
        "long-range.json": spec(axes={"seed": {"from": 0, "to": 1000000}}),
        "range.json": spec(axes={"seed": {"from": 5, "to": 6}}),
        "17until.json": spec(max_replications=3, metrics=["all.*"], until={f"all.e2e_s.p{k + 30}": {"half_width": 1} for k in range(17)}),
        "33axes.json": spec(axes={f"params.p{k}": [1] for k in range(33)}),
        "nopowers.csv": header("energy"),
        "nopoints.csv": header("reference"),
        "nocoruns.csv": header("corun"),
        "encoder.json": model(is_encoder_decoder=True),
        "latent.json": model(kv_lora_rank=512),
        "zero.model.json": model(kv_lora_rank=0, is_encoder_decoder=False),
        "rates.csv": "policy,load,reactive.e2e_s.mean,proactive.e2e_s.mean,reactive.e2e_s.p90,proactive.e2e_s.p90\nfcfs,1,2,3,4,5\nfcfs,2,3,3,4,5\n",
        "rate.csv": "policy,load,reactive.e2e_s.mean,proactive.e2e_s.mean,reactive.e2e_s.p90,proactive.e2e_s.p90\nfcfs,1,2,3,4,5\n",
        "norate.md": llama + "| llama 3B Q4_0 | CUDA | pp512 | fast |\n",
        "notest.md": llama + "| llama 3B Q4_0 | CUDA | pp512+tg128 | 9.5 |\n",
        "nocolumn.md": llama.replace("t/s", "rate") + "| llama 3B Q4_0 | CUDA | pp512 | 9.5 |\n",
        "linear.json": model(layer_types=["full_attention", "linear_attention"]),
        "full.model.json": model(layer_types=["full_attention", "full_attention"]),
        "broken.timeline": '{"displayTimeUnit":"ns","traceEvents":[\n{"ph":"B","pid":1,"tid":\n]}\n',
        "short.timeline": '{"displayTimeUnit":"ns","traceEvents":[\n{"ph":"B","pid":1,"tid":1,"ts":5.0,"name":"x"}\n',
        "4097.csv": ",".join(["a"] * 4097) + "\n",
        "4096.csv": ",".join(["a"] * 4096) + "\n",
        "no-such-column.csv": "a,b\n1,2\n",
        "notexts.jsonl": "\n",
        "all-failed.csv": "policy,load,status,reactive.e2e_s.mean\nfcfs,1,failed,\nfcfs,2,failed,\n",
        "plain.csv": trace("0,0,0,reactive,0,,20,20,0"),
        "models.csv": trace("0,0,0,reactive,0,,20,20,0,other", ",model").replace("v1", "v2"),
        "cancel.csv": trace("0,0,0,reactive,0,,20,200,0,0.5", ",cancel_s"),
        "late.csv": trace("0,0,0,reactive,0,,20,20,0,500", ",cancel_s"),
        "nul.csv": trace("0,0,0,reactive,0,,20,20,0\0"),
        "head.csv": "a,b\n",
        "battery.json": '{"machine": [{"at_s": 0, "source": "battery", "battery_j": 200, "battery_full_j": 200000}]}',
        "full.json": '{"machine": [{"at_s": 0, "source": "battery", "battery_j": 200000, "battery_full_j": 200000}]}',
        "noperiod.json": stepped(),
        "period.json": stepped(period={"value": 20, "unit": "ms", "kind": "assumed", "source": "t"}),
        "once.json": spec(),
        "unmeasured.json": json.dumps({**compared, "policies": {k: {} for k in compared["policies"]}}),
        "compared.json": json.dumps(compared),
        "shed.csv": "request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n" + "".join(f"{k},0,2000,200,1,9\n" for k in range(9)),
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
    made.update(at_limits(trace, spec, claims, gate, header))
    for name, text in made.items():
        (FOLDER / name).write_text(text)
    for name in ("vllm.json",):
        (FOLDER / name).write_bytes(pathlib.Path("tests/fuzz/corpus/" + name[:-5] + "/sample").read_bytes())


def at_limits(trace, spec, claims, gate, header):
    """Files on both sides of a limit, one step from it: NAME.in is accepted, NAME.out is not."""
    def agents(**client):
        return json.dumps({"description": "d", "duration_s": 1, "clients": [{"name": "a", "description": "d", "class": "reactive", "prompt_tokens": 5,
                                                                          "turns": 1, "growth_tokens": 1, "answer_tokens": 1, "gap_s": 0, **client}]})

    def levels(n):
        sub = {}
        for k in range(n):
            sub = {"subagents": [{"name": f"s{k}", "on_turns": [1], "prompt_tokens": 5, "turns": 1, "growth_tokens": 1, "answer_tokens": 1, "gap_s": 0, **sub}]}
        return agents(**sub)

    def batch(context):
        return claims({"r": {"kernels": {"llm": "llama-3.2-3b", "device": "npu", "prefill_tokens": 100, "context_tokens": context}}})

    def machine(**more):
        return json.dumps({"machine": [{"at_s": 1, "power_w": 9, **more}]})

    def measured(e2e):
        return f"request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n0,0,20,2,0.5,{e2e}\n1,9,20,2,0.5,0.9\n"

    def energy(idle):
        return header("energy") + f"ryzen-ai-xdna2,npu,fastflowlm,llama-3.2-1b,4,1024,decode,rail,{idle},1.64,36.7,t\n"

    def point(value):
        return header("reference") + f"core-ultra-7-155h,igpu,openvino-2025.0,bloomz-560m,4,16,32,1,ttft_ms,{value},t\n"

    def events(*times):
        return "session_id,arrival_s\n" + "".join(f"1,{t}\n" for t in times)

    def agentic(version):
        lines = pathlib.Path("tests/fuzz/corpus/agentic-mooncake/sample").read_text()
        return lines.replace('"version":2', f'"version":{version}', 1)

    def group(tokens):
        rows = f"0,0,0,reactive,0,,20,5,0,,,\n1,1,0,reactive,9,,{tokens},5,{tokens},,,0"
        return f"# xpusim-trace v3\n{HEAD},parents,prefix_group,prefix_of\n{rows}\n".replace("v3", "v2")
    corun = header("corun") + "{}x,64,npu,30,60,gpu,30,1.1,measured,t\n"
    figure = json.loads(pathlib.Path("experiments/figures/agent-xpu-v1-2.json").read_text())
    value = {"name": "a", "value": "r:all.e2e_s.mean", "published": 1}
    run = {"policy": "fcfs", "workload": "w1:n=2"}
    study = "study,device,what,x_name,x,metric,value,unit\n"

    def table(*rows):
        """A machine whose runtime has a table with these rows."""
        tree = json.loads(pathlib.Path("hwmodels/soc/core-ultra-5-125h.json").read_text())
        tree["devices"][1]["runtimes"][0]["table"] = [{"rows": r, "factor": 1.0} for r in rows]
        return json.dumps(tree)

    def crossing(**more):
        mark = {"series": "GEMM on the NPU", "x": 16, "row": "TFLOP/s", "value": 1, "from": "text", "where": "t", "crossing": 1}
        return json.dumps({**figure, "published": [{**mark, **more}]})

    def suite(n):
        return spec(suite={"about": "t", "references": ["fcfs"]}, base=None, axes=None, metrics=["all.e2e_s.mean"],
                    rows=[{"point": f"p{k}", "workload": "w1:n=1", "seed": k} for k in range(n)])
    pairs = {
        "version": (agentic(2), agentic(3)),
        "bare": (claims({"r": {"run": {**run, "set": ["sim.kv_block_tokens=16"]}}}, value), claims({"r": {"run": {**run, "set": ["sim.kv_block_tokens"]}}}, value)),
        "rates_rise": tuple(claims({"r": {"sustained": {"policy": "fcfs", "workload": "mixed:reactive_per_min={rate}", "metric": "all.e2e_s.mean", "at_most": 9,
                                                        "rates": rates}}}, value) for rates in ([1, 1.001], [1, 1])),
        "value": (json.dumps(figure), json.dumps({**figure, "value": "nonesuch"})),
        "crossing": (crossing(of="GEMM on the iGPU"), crossing()),
        "table": (table(1, 2), table(2, 2)),
        "unit": tuple(table(1).replace('"unit": "GB/s"', f'"unit": "{unit}"', 1) for unit in ("GB/s", "MB/s")),
        "repeated": (gate([]), gate([]).replace('["fcfs"]', '["fcfs", "fcfs"]')),
        "points": (suite(32), suite(33)),
        "pair": (study + "corun,npu,GEMM beside GEMV,d,1,slowdown,1.1,x\ncorun,igpu,GEMV beside GEMM,d,1,slowdown,1.2,x\n", study + "corun,npu,GEMM,d,1,slowdown,1.1,x\n"),
        "talk": tuple("session_id,input_tokens,output_tokens\n" + "1,9,1\n" * n for n in (65535, 65536)),
        "stamp": tuple(f"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 {t},9,3\n" for t in ("18:15:46.68", "18:15")),
        "waits": tuple(agents(subagents=[{"name": "s", "on_turns": [1], "prompt_tokens": 5, "turns": 1, "growth_tokens": 1, "answer_tokens": 1, "gap_s": 0,
                                          "before": before}], same_session=True, think_s=1, jobs=2) for before in (False, True)),
        "looked": (json.dumps({"about": {"kind": "json"}, "runs": []}), json.dumps({"about": {"kind": "view"}, "runs": []})),
        "priority": tuple(json.dumps({"timestamp": 0, "input_length": 512, "output_length": 3, **more}) for more in ({}, {"priority": 1})),
        "blocks": tuple(json.dumps({"timestamp": 0, "input_length": n, "output_length": 3, "hash_ids": [1, 2]}) for n in (513, 512)),
        "prefix": (trace("0,0,0,reactive,0,,20,20,0\n1,0,1,reactive,,1,30,5,30"), trace("0,0,0,reactive,0,,20,20,0\n1,0,1,reactive,,1,30,5,31")),
        "most": (trace("0,0,0,reactive,0,,20,7,0,7", ",max_output_tokens"), trace("0,0,0,reactive,0,,20,7,0,6", ",max_output_tokens")),
        "e2e": (measured(0.5), measured(0.499)),
        "idle": (energy(1.639), energy(1.64)),
        "point": (point(1e-9), point(0)),
        "events": (events(1, 2, 2, 3), events(1, 2, 1.999, 3)),
        "still": (events(2, 2.001), events(2, 2)),
        "until": (machine(every_s=1, until_s=1), machine(every_s=1, until_s=0.999)),
        "full": (machine(battery_j=9, battery_full_j=9), machine(battery_j=9, battery_full_j=8.999)),
        "empty": (machine(battery_j=1e-3), machine(battery_j=0)),
        "turns": (agents(subagents=[{"name": "s", "on_turns": [1], "prompt_tokens": 5, "turns": 1, "growth_tokens": 1, "answer_tokens": 1, "gap_s": 0}]),
                  agents(subagents=[{"name": "s", "on_turns": [0], "prompt_tokens": 5, "turns": 1, "growth_tokens": 1, "answer_tokens": 1, "gap_s": 0}])),
        "deep": (levels(8), levels(9)),
        "whole": (agents(turns={"distribution": "uniform", "min": 2, "max": 3}), agents(turns={"distribution": "uniform", "min": 1.5, "max": 3})),
        "draw": (agents(turns={"distribution": "uniform", "min": 2, "max": 2}), agents(turns={"distribution": "uniform", "min": 3, "max": 2})),
        "horizon": (spec(warmup_s=5, horizon_s=5.001), spec(warmup_s=5, horizon_s=5)),
        "rate": (spec(axes={"rate": [1e-6, 1e6]}), spec(axes={"rate": [0.99e-6]})),
        "rates": (spec(axes={"rate": [1]}), spec(axes={"rate": [1.01e6]})),
        "seed": (spec(axes={"seed": [0, 2 ** 53]}), spec(axes={"seed": [2 ** 53 + 2]})),
        "yes": (spec(replications=100000), spec(replications=100001)),
        "machines": (corun.format("a,") + corun.format("b,").split("\n")[-2] + "\n", corun.format("a,")),
        "gateset": (gate(["sim.kv_block_tokens=16"]), gate(["=16"])),
        "gatetwice": (gate(["sim.kv_block_tokens=16", "sim.horizon_s=9"]), gate(["sim.horizon_s=8", "sim.horizon_s=9"])),
    }
    return {f"{name}.{side}{'.csv' if text[0] not in '{' else '.json'}": text for name, both in pairs.items() for side, text in zip(("in", "out"), both)}


QUIET = {}  # what commands without a file of their own said: several rows have the same one


def once(command, tag):
    if "{NEW}" in command:
        return run(command, tag)
    if command not in QUIET:
        QUIET[command] = run(command, tag)
    return QUIET[command]


def run(command, tag):
    words = command.replace("{load}", LOAD)
    words = re.sub(r"\{(\d+) slos\}", lambda m: " ".join(f"--slo all.e2e_s.mean<={k + 1}" for k in range(int(m.group(1)))), words)
    words = re.sub(r"\{(\d+)\*([^{}]*)\}", lambda m: "".join(m.group(2).replace("#", str(k + 1)) for k in range(int(m.group(1)))), words)
    words = words.replace("{NEW}", str(FOLDER / f"new-{tag}"))
    words = re.sub(r"\{([\w.-]+)\}", lambda m: str(FOLDER / m.group(1)), words)
    args = ["" if w == "''" else w for w in words.split()]
    r = subprocess.run([XPUSIM, *args], capture_output=True, text=True, errors="replace", timeout=900, stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout + r.stderr


def try_row(number, kind, message, rings, quiet, whole=None):
    """`quiet` with ! before it may be refused for something else."""
    status, said = run(rings, f"{number}a")
    if whole is not None:
        whole = re.sub(r"\{([\w.-]+)\}", lambda m: str(FOLDER / m.group(1)), whole)
        if f"{whole}\n" not in said:
            return f"{message}: what is said is another text than {whole!r}: {rings}\n{said[:600]}"
    if message not in said or status not in ((2,) if kind.startswith("refusals") else (0, 1)):
        return f"{message}: does not ring (exit {status}): {rings}\n{said[:400]}"
    status, said = once(quiet.lstrip("!"), f"{number}b")
    if message in said or status not in ((0, 1, 2) if quiet.startswith("!") else (0, 1)):
        return f"{message}: rings or fails (exit {status}): {quiet}\n{said[:400]}"
    return None


def parts(text):
    """The literal parts of a format."""
    found = re.split(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j)*[a-zA-Z%]?", text)
    return [p.strip(" :;,.()'`") for p in found if len(p.strip(" :;,.()'`")) > 0]


def said_by_source():
    """(file, line, format) of every message."""
    literals = rf"{LITERAL}(?:(?:\s|PRI\w+)+{LITERAL})*"
    for path in sorted(p for d in SOURCES for p in pathlib.Path(d).rglob("*.c")):
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(), flags=re.S)
        found = [(c, re.findall(literals, re.match(rf"[^;\"]*?{literals}", text[c.end():]).group())[:1])
                 for c in CALL.finditer(text) if re.match(rf"[^;\"]*?{literals}", text[c.end():])]
        if path.parts[0] in ("traces", "experiments", "plots"):
            found += [(c, re.findall(literals, re.match(rf"(?:[^;\"]|{LITERAL})*", text[c.end():]).group())) for c in REFUSE.finditer(text)]
        for call, texts in found:
            if texts:
                whole = "".join(w[1:-1] for w in re.findall(LITERAL, max(texts, key=len)))
                key = call.group(1) if call.re is CALL else None
                whole = f"{key}: {whole}" if key else whole
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
            rows.append((len(rows), kind, *(f.strip() for f in line.split(" | ", 4))))
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

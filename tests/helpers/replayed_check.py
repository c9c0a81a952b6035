"""Random runs of random machines and models, replayed from their decisions by a second engine with its own kernel times (replayed.py,
priced.py). Every kernel must begin and end at the same ns; energy, DDR traffic and memory must be equal.

    replayed_check.py XPUSIM FOLDER N [SEED]    N runs; exit 1 with what differs
"""
import csv
import json
import math
import random
import subprocess
import sys
from pathlib import Path

from replayed import Engine

XPUSIM, FOLDER, N = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
DATA = Path(__file__).resolve().parents[2] / "hwmodels"
POLICIES = {"any": ["fcfs", "openvino-cb", "vllm-v1", "edf"],
            "npu": ["agent-xpu-v1", "agent-xpu-v2", "pd-static", "sarathi-hetero", "hetero-split",
                    "hetero-split:decode=columns", "hhpf", "llm-npu",
                    "agent-xpu-v2:speculate=igpu,draft_ms=0", "agent-xpu-v2:speculate=npu,draft_ms=0"]}
RUNTIME = {  # keys of runtime entries, their units and values
    "enqueue": ("us", [0, 40, 200]), "prompt_enqueue": ("us", [10, 400]), "row_fill": ("rows", [0, 100]), "batch_fill": ("1", [0, 0.3]),
    "expert_fill": ("columns", [0, 3000]), "expert_rows": ("rows", [0, 100]), "width_fill": ("columns", [0, 4000]), "attention": ("1", [0.05, 2]),
    "decode_attention": ("1", [0.01, 0.2]), "special_attention": ("1", [0.02, 0.5]), "few_rows": (None, [8, 200]),
    "recurrence": ("1", [0.005, 0.5]), "kv_columns": (None, [2, 8, 12]), "decode_window": (None, [True]), "further_launches": ("1", [3, 10]),
    "decode_batch_inefficiency": ("1", [0.1, 1]), "decode_batch_stretch": ("1", [0.1, 0.5]), "attention_launches": ("1", [0, 2]),
    "kv_gather": ("1", [0.1, 0.3]), "fused_launches": ("1", [0.2, 1]), "min_rows": (None, [32, 128]), "micro_batch": (None, [16, 100]),
    "pad_attention": (None, [True, False]), "sliding_window": (None, [True]), "window": (None, [256, 1024]), "chunk_rows": (None, [0, 50]),
    "knee": ("1", [0.8, 2])}

KINDS = ("recurrent_layers", "recurrent_in", "recurrent_out", "recurrent_state", "gated_attention", "latent_kv", "latent_query",
         "rotary_dim", "value_dim", "global_kv_heads", "global_head_dim", "keys_as_values", "sliding_window", "sliding_layers",
         "shared_kv_layers", "layer_embedding", "laurel_rank", "altup_inputs")


def quantity(x, unit):
    return {"value": x, "unit": unit, "low": x, "high": x, "source": "drawn", "kind": "assumed"} if unit else x


def machine(r):
    soc = json.loads(r.choice(sorted((DATA / "soc").glob("*.json"))).read_text())
    soc["memory"] = {"capacity": quantity(2000, "GB"), "usable": quantity(1, "1")}
    soc["ddr"].update(together=quantity(r.choice([0.5, 0.9, 1]), "1"), queueing=quantity(r.choice([0, 0.3, 3]), "1"))
    soc["idle_power"] = quantity(4, "W")
    keys = r.sample(sorted(RUNTIME), 4)
    for d in soc["devices"]:
        d["idle_power"], d["inflight_depth"] = quantity(r.choice([0, 1.5]), "W"), r.choice([1, 1, 3])
        d["beside"], d["ddr_weight"] = quantity(r.choice([0, 0.5]), "1"), quantity(r.choice([1, 3]), "1")
        if r.random() < 0.2:
            d["compute_only"] = quantity(round(r.random(), 2), "1")
        if r.random() < 0.1:
            d["exchange"] = {"cards": r.choice([2, 4]), "latency": quantity(5, "us"), "link": quantity(30, "GB/s")}
        for entry in d["runtimes"]:
            for key in ("fit", "valid", "measured"):
                entry.pop(key, None)
            for key in keys:
                if r.random() < 0.7:
                    entry[key] = quantity(r.choice(RUNTIME[key][1]), RUNTIME[key][0])
            if r.random() < 0.2:
                b = min(30, entry["bandwidth"]["value"])
                entry["one_row"] = {"rate": quantity(r.choice([0.1, 10]), "TFLOP/s"), "bandwidth": quantity(b, "GB/s"),
                                    "launch": quantity(50, "us")}
            if r.random() < 0.2:
                entry["table"] = [{"rows": n, "factor": f} for n, f in ((1, 2), (16, 1.5), (256, 0.8))]
    return soc


def model(r):
    llm = json.loads(r.choice(sorted((DATA / "llm").glob("*.json"))).read_text())
    if r.random() < 0.3:
        for key in ("effective_experts", "dense_bytes_per_weight", "shared_ffn", "dense_layers", "dense_ffn"):
            llm.pop(key, None)
        n = r.choice([4, 64])
        llm.update(experts=n, experts_per_token=r.choice([1, 3]), ffn_hidden=max(16, llm["ffn_hidden"] // n))
        if r.random() < 0.5:
            llm["effective_experts"] = quantity(round(r.uniform(3.2, n), 2), "experts")
        if r.random() < 0.5:
            llm["shared_ffn"] = 500
        if r.random() < 0.5:
            llm.update(dense_layers=r.randint(1, llm["layers"] - 1), dense_ffn=3000)
        if r.random() < 0.5:
            llm["dense_bytes_per_weight"] = quantity(2, "B")
    if r.random() < 0.4:
        kinds(r, llm)
    if "latent_kv" not in llm and r.random() < 0.3:
        last = "global_head_dim" in llm
        llm.update(sliding_window=r.choice([16, 300]), sliding_layers=r.randint(1, llm["layers"] - llm.get("recurrent_layers", 0) - last))
    if r.random() < 0.3:
        llm["special_attention"] = True
    return llm


def kinds(r, llm):
    """Gives a model other layers (hwmodels/README.md, "Layers of other kinds")."""
    for key in KINDS:
        llm.pop(key, None)
    llm.update(layers=r.randint(2, 9), hidden=r.choice([96, 1024]), heads=r.choice([4, 12]), head_dim=r.choice([48, 128]),
               vocab=r.choice([999, 50000]))
    llm["kv_heads"] = r.choice([1, 2, 4])
    if "dense_layers" in llm:
        llm["dense_layers"] = r.randint(1, llm["layers"] - 1)
    if r.random() < 0.4:
        llm.update(recurrent_layers=r.randint(1, llm["layers"] - 1), recurrent_in=r.choice([100, 6000]),
                   recurrent_out=r.choice([64, 3000]), recurrent_state=r.choice([1, 4096, 400000]))
    kind, keyed = r.choice(["usual", "latent", "global"]), llm["layers"] - llm.get("recurrent_layers", 0)
    if kind != "latent" and r.random() < 0.4:
        llm["gated_attention"] = True
    if kind == "latent":
        llm.update(kv_heads=llm["heads"], latent_kv=r.choice([32, 500]), rotary_dim=r.choice([16, 32]), value_dim=r.choice([40, 128]))
        if r.random() < 0.5:
            llm["latent_query"] = r.choice([70, 700])
    elif kind == "global" and keyed > 1:
        llm.update(global_kv_heads=r.choice([1, 2]), global_head_dim=r.choice([32, 256]), keys_as_values=r.random() < 0.5)
        llm.update(sliding_window=r.choice([16, 300]), sliding_layers=r.randint(1, keyed - 1))
    if kind != "latent" and keyed > 1 and r.random() < 0.4:
        llm["shared_kv_layers"] = r.randint(1, keyed - 1)
    if r.random() < 0.4:
        llm["layer_embedding"] = r.choice([16, 300])
        if r.random() < 0.5:
            llm["layer_embedding_bytes_per_weight"] = quantity(r.choice([0.5, 2]), "B")
    if r.random() < 0.3:
        llm.update(r.choice([{"laurel_rank": 64}, {"altup_inputs": 4}, {"laurel_rank": 9, "altup_inputs": 2}]))
    if "experts" not in llm and r.random() < 0.3:
        llm.update(dense_layers=r.randint(1, llm["layers"] - 1), dense_ffn=r.choice([500, 9000]))


def trace(r):
    rows, at = [], 0.0
    for i in range(1, r.randint(2, 9)):
        at += 0 if r.random() < 0.3 else r.expovariate(0.5)
        prompt = r.choice([1, 17, r.randint(2, 700)])
        rows.append((i, i, 0, r.choice(["reactive", "proactive"]), f"{at:.3f}", "", prompt, r.randint(1, 8), 0))
    head = "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n"
    return head + "".join(",".join(map(str, row)) + "\n" for row in rows), {row[0]: (row[6], row[7], row[3] == "reactive") for row in rows}


def drafts(r):
    """Options of speculation, of which only some policies take note."""
    values = {"method": ["pld", "sam", "eagle"], "length": ["fixed", "prop", "empirical"], "dataset": ["summary", "ui"],
              "history": ["full", "turn", "trace"], "proactive": ["true", "false"], "max_draft_tokens": [0, 0, 5]}
    values.update(r.choice([{"ours": ["true"]}, {"reuse_frac": [0, 0.3]}]))
    options = {f"speculation.{name}": r.choice(of) for name, of in values.items()}
    options.update(contention_minor=r.choice([0, 0.2]), contention_balance_frac=r.choice([0.3, 1]))
    return [word for name, x in options.items() for word in ("--set", f"sim.{name}={x}")]


def decisions():
    for line in (FOLDER / "decisions").read_text().splitlines()[1:]:
        words = line.split()
        if words[-2:] == ["=", "0"]:
            yield int(words[1]), words[2], words[3:-2]


def kernels():
    """Returns name, begin and end of the kernels of each launch."""
    tree = json.loads((FOLDER / "timeline.json").read_text())
    events, launch, out = tree["traceEvents"] if isinstance(tree, dict) else tree, {}, {}
    for e in events:
        if e["ph"] == "B" and "launch" in e.get("args", {}):
            launch[e["tid"]] = e["args"]["launch"]
        elif e["ph"] == "X" and e.get("cat") == "kernel":
            begin = round(e["ts"] * 1000)
            out.setdefault(launch[e["tid"]], []).append((e["name"].upper(), begin, begin + round(e["dur"] * 1000)))
    return out


def check(seed):
    """Returns the differences in the run of that seed; None where the machine refuses it, or rounding is open."""
    r = random.Random(seed)
    soc, llm, (text, requests) = machine(r), model(r), trace(r)
    for name, content in (("soc.json", json.dumps(soc)), ("llm.json", json.dumps(llm)), ("trace.csv", text)):
        (FOLDER / name).write_text(content)
    npu = any(d["kind"] == "npu" and d["chunk_rows"] > 0 for d in soc["devices"])
    form = r.choice(["extended", "extended", "p-norm", "table", "roofline"])
    contention = r.choice(["latency", "latency", "max-min", "none", "proportional", "weighted", "beside", "pccs"])
    nonlinear = r.choice(["fused", "fused", "split", "offload"])
    policy = r.choice(POLICIES["npu" if npu else "any"])
    width = r.choice(["", ":bits=4", ":bits=8", ":bits=16"])
    words = ["run", "--policy", policy, "--soc", FOLDER / "soc.json", "--llm", f"{FOLDER}/llm.json{width}", "--trace", FOLDER / "trace.csv",
             "--set", f"sim.hwmodel={form}", "--set", f"sim.contention={contention}", "--set", f"sim.nonlinear={nonlinear}",
             "--json", "-q", "--trouble", "", *drafts(r),
             "--decisions", FOLDER / "decisions", "--timeline", FOLDER / "timeline.json", "--timeline-detail", "kernels"]
    run = subprocess.run([XPUSIM, *words], capture_output=True, text=True)
    if run.returncode != 0:
        return None if run.returncode == 2 else [f"seed {seed}: exit {run.returncode}: {run.stderr}"]
    result = json.loads(run.stdout)
    engine = Engine(result["config"], decisions(), requests)
    engine.run()
    if engine.machine.halves > 0:
        return None
    seen, bad = kernels(), []
    for number in sorted(set(seen) | set(engine.seen)):
        got, want = seen.get(number, []), engine.seen.get(number, [])
        if got != want:
            first = next((pair for pair in zip(got, want) if pair[0] != pair[1]), (len(got), len(want)))
            bad.append(f"launch {number}: {first[0]}, worked out {first[1]}")
    metrics, peak = result["metrics"], engine.soc["ddr"]["peak"] * engine.now  # GB/s x ns: bytes
    block = engine.machine.sim["kv_block_tokens"] * engine.machine.model.kv_bytes
    wanted = {"duration_s": engine.now / 1e9, "energy_j": sum(engine.joules.values()), "peak_power_watts": engine.peak_watts,
              "ddr.util_frac": engine.moved / peak, "ddr.demand_frac": engine.asked / peak,
              "memory_peak_bytes": engine.machine.model.stored_bytes() + engine.kv_blocks * block}
    wanted.update({f"{name}.energy_j": j for name, j in engine.joules.items() if name != "platform"})
    for name, want in wanted.items():
        whole = engine.intervals / peak if name.startswith("ddr") else 0  # an interval's bytes are whole
        if not math.isclose(metrics[name], want, rel_tol=1e-9, abs_tol=whole + 1e-12):
            bad.append(f"{name}: {metrics[name]}, worked out {want}")
    return [f"seed {seed}, {policy}, {form}, {contention}, {nonlinear}: {b}" for b in bad[:3]]


def main():
    seed, done, bad = SEED * 1000, 0, []
    while done < N and len(bad) < 5:
        seed += 1
        found = check(seed)
        done += found is not None
        bad += found or []
    print("\n".join(bad) if bad else f"{done} runs replayed, 0 differ")
    sys.exit(1 if bad else 0)


main()

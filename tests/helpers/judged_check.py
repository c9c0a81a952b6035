"""Random workloads through policies and through their second implementations (judges*.py): equal decisions at equal instants.
More arguments: these policies alone."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "policies/python"))
from judges_sd_npu import SYSTEMS  # noqa: E402

X, DIR, N = sys.argv[1], sys.argv[2], int(sys.argv[3])
HERE = pathlib.Path(__file__).resolve().parent
ENV = dict(os.environ, PYTHONPATH=str(HERE.parents[1] / "policies/python"), PYTHONDONTWRITEBYTECODE="1")
FILES = {name: f.name for f in HERE.glob("judges*.py") for name in re.findall(r"^class (\w+)", f.read_text(), re.M)}
SMALL = ["--llm", "small=llama-3.2-1b"]
COLUMNS = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"


def turns(r, path, sessions):
    """Requests with targets or without, some at one instant; or conversations."""
    rows, n, span, gives_up = [], r.randrange(4, 26), r.choice([1, 1, 5, 20]), r.choice([0, 0, 0.3])
    priorities, clients, models = r.random() < 0.5, r.choice([3, 1000]), r.choice([("",), ("",), ("", "small")])
    urgent = lambda: r.choice([0, 0, 1, 2, -3]) if priorities else ""

    def row(session, turn, cls, at, gap, prompt, answer, prefix):
        cancel = round(r.uniform(0, 10), 2) if r.random() < gives_up else ""
        targets = r.choice(["", r.randrange(50, 3000)]), r.choice(["", r.randrange(40, 400)]), r.choice(
            ["", "", round(r.uniform(0.2, 10), 2)]), cancel, session % clients, models[session % len(models)], urgent()
        rows.append((len(rows), session, turn, cls, at, gap, prompt, answer, prefix) + targets + ("tool" if turn and session % 4 else "",))

    for _ in range(n):
        session, cls = len(rows), r.choice(["reactive", "proactive"])
        prompt = r.choice([r.randrange(1, 60), r.randrange(1, 600), r.randrange(400, 1800)])
        answer = r.choice([1, 2, r.randrange(1, 40), r.randrange(1, 120)])
        row(session, 0, cls, round(r.uniform(0, span), r.choice([0, 1, 3, 6])), "", prompt, answer, 0)
        turn = 1
        while sessions and turn < 4 and prompt + answer < 1900 and r.random() < 0.5:
            before = prompt + answer
            prompt, answer = before + r.randrange(1, 300), r.randrange(1, 40)
            row(session, turn, cls, "", round(r.uniform(0, 5), 2), prompt, answer, r.choice([0, before, before // 2]))
            turn += 1
    write(path, "# xpusim-trace v2\n" + COLUMNS + ",ttft_slo_ms,tbt_slo_ms,deadline_s,cancel_s,client_id,model,priority,gap_kind", rows)
    return SMALL if len(models) > 1 else []


def shared(r, path):
    """Prompts with common beginnings."""
    span, rows = r.choice([1, 5, 20]), []
    text = [0] + [r.choice([64, 200, 600]) for _ in range(3)]
    for i in range(r.randrange(6, 26)):
        group = r.choice([0, 0, 1, 2, 3])
        rows.append((i, i, 0, r.choice(["reactive", "proactive", "proactive"]), round(r.uniform(0, span), 3), "",
                     text[group] + r.randrange(1, 900), r.randrange(1, 60), text[group], group or ""))
    models = r.random() < 0.3
    rows = [row + (r.choice(["", "small"]),) for row in rows] if models else rows
    write(path, "# xpusim-trace v2\n" + COLUMNS + ",prefix_group" + ",model" * models, rows)
    return SMALL if models else []


def crowd(r, path):
    """Equal requests at one instant or two, with long answers: full batches whose members tie, and less memory than they need."""
    n = r.choice([6, 12, 20])  # at most so many tokens in all, that it does not take long
    few = lambda values: [r.choice(values) for _ in range(r.choice([1, 2]))]
    prompts, answers, instants, clients = few([16, 60, 200, 500]), few(range(60, (1500 if N < 10 else 4000) // n)), few([0, 0.5, 2]), few(range(9))
    classes = r.choice([["reactive"], ["proactive"], ["reactive", "proactive"], ["reactive", "proactive"]])
    rows = [(i, i, 0, r.choice(classes), r.choice(instants), "", r.choice(prompts), r.choice(answers), 0, r.choice(clients)) for i in range(n)]
    write(path, "# xpusim-trace v2\n" + COLUMNS + ",client_id", rows)
    largest = max(row[6] + row[7] for row in rows)
    return ["--set", f"sim.kv_capacity_tokens={int(largest * r.choice([1.3, 2.5, n / 3, n / 2])) + 64}"] if r.random() < 0.8 else []


def write(path, head, rows):
    path.write_text("\n".join([head] + [",".join(map(str, row)) for row in rows]) + "\n")


def gaps(r):
    return {"gap_kv": r.choice(["cache"] * 4 + ["preserve", "discard", "swap", "ttl", "reactive"] + ["infercept"] * 2), "gap_s": r.choice([0, 0, 0.5, 3])}


def orders(r):
    return {**gaps(r), "device": r.choice(["auto", "igpu", "cpu", "npu"]), "max_batch": r.choice([1, 2, 2, 4, 16]), "token_budget": r.choice([64, 200, 512, 2048]),
            "class": r.choice(["rt_first", "blind", "blind", "rt_alone", "window"]),
            "preempt": r.choice(["iteration", "layer", "kernel", "kernel", "reset"]), "kv": r.choice(["checkpoint", "checkpoint", "recompute", "swap"]),
            "inflight": r.choice([1, 1, 2, 9]), "level": r.choice(["device", "1", "2", "3"])}


def slos(r):
    return {**orders(r), "ttft_slo_s": r.choice([0.5, 2]), "tbt_slo_s": r.choice([0.05, 0.2]), "proactive_s": r.choice([2, 600])}


def mlfq(r):
    return {**orders(r), "q0_ms": r.choice([5, 50, 200]), "skip_join": r.choice(["true", "false"]), "starve_s": r.choice([0.2, 1, 3]),
            "promote_every": r.choice([1, 7, 50]), "to_front": r.choice(["true", "true", "false"])}


def coserving(r):
    return {"device": r.choice(["auto", "igpu", "cpu", "npu"]), "max_num_seqs": r.choice([1, 4, 16, 16]),
            "max_num_batched_tokens": r.choice([64, 512, 2048]), "offline": r.choice(["budget"] * 6 + ["always", "alone"])}


def priorities(r):
    return {"max_batch": r.choice([1, 2, 16]), "inflight": r.choice([1, 2, 8]), "level": r.choice(["device", "1", "2", "3"])}


def paged(r):
    return {"device": r.choice(["auto", "igpu", "cpu", "npu"]), "max_num_seqs": r.choice([1, 2, 4, 16, 16]),
            "max_num_batched_tokens": r.choice([16, 64, 200, 512, 2048]), "requeue": r.choice(["front", "front", "back"])}


def vllm_v1(r):
    return {**paged(r), "long_prefill_token_threshold": r.choice([0, 0, 30, 200]), "chunked_prefill": r.choice(["true", "true", "false"]),
            "reserve_full_isl": r.choice(["true", "false"]), **r.choice([{}, {"admit_after_preemption": "true"}, {"async_scheduling": "true"}])}


def vllm_priority(r):
    return {**paged(r), "mode": r.choice(["v0", "v1"]), "force_preempt": r.choice(["true", "true", "false"]), "by_priority": r.choice(["true", "true", "false"]),
            "chunked_prefill": r.choice(["true", "true", "false"]), "watermark_frac": r.choice([0, 0.01, 0.3]),
            "interrupt": r.choice(["true", "false"]), "reserve_full_isl": r.choice(["true", "false"])}


def sarathi(r):
    return {**paged(r), "watermark_frac": r.choice([0, 0.01, 0.05, 0.3]), "stall_free": r.choice(["true", "true", "false"]),
            "dynamic_chunk": r.choice(["true", "false"]), "high_chunk": r.choice([200, 512, 1024]), "low_chunk": r.choice([20, 64, 128, 200]),
            "chunk_stages": r.choice([2, 4, 7]), "chunk_span": r.choice([300, 1000, 2048])}


def disaggregated(r):
    return {"margin": r.choice(["npu", "igpu"]), "max_batch": r.choice([1, 2, 4, 1000000, 1000000]), "yield": r.choice(["kernel", "kernel", "iteration"])}


def sd_npu(r):
    strategies = ["progressive", "late-start"] * 5 + ["sync", "naive-async", "naive-async", "keep-both", "unified-g1", "unified-g2"]
    how = {"strategy": r.choice(strategies), "blocks": r.choice([2, 6, 6]), "g1": r.choice([64, 256, 256, 512]), "g2": r.choice([8, 32]),
           "decode": r.choice(["npu"] * 5 + ["cpu"]), "speculate": r.choice(["true", "true", "false"]),
           "drafter": r.choice(["sam", "pld", "ours", "none", "run", "eagle", "model", "lookup", "suffix"]),
           "length": r.choice(["offered", "pass", "adaptive"]), "draft_ms": r.choice([0, 3, 20]), "calibrate_ms": r.choice([0, 0.2]),
           "overlap": r.choice(["true", "false"]), "keep_old": r.choice(["true", "false", "false"]), "calibrate_mb": r.choice([0, 55]),
           "eagle_forwards": r.choice([1, 6]), "draft_on": r.choice(["npu", "cpu"])}
    if r.random() < 0.7:
        return how
    return {"system": r.choice(list(SYSTEMS)), **{k: how[k] for k in r.sample(list(how), r.choice([0, 1, 3]))}}


def mostly(r):
    """A value that is usual, or one of others; the same of a flag."""
    rare = lambda usual, *others: usual if r.random() < 0.7 else r.choice(others)
    return rare, lambda usual: rare(usual, "false" if usual == "true" else "true")


def agent_xpu_v1(r):
    rare, flag = mostly(r)
    usual = {k: flag("true") for k in ("preempt", "elastic", "intra_backfill", "inter_backfill", "duration", "energy_order", "reorder", "ageing",
                                       "balance")}
    pressure = rare("text", "intensity", "off")
    return {**usual, "yield": rare("kernel", "iteration"), "resume": rare("etc", "fifo"), "affinity": rare("boundary", "strict"),
            "pressure": pressure, "idle_guard": "true" if pressure == "text" else flag("true"), "tie": rare("etc", "longest"), "t_starve_s": r.choice([0.5, 5, 30]),
            "contexts": rare(8, 1, 2), "ctx_switch_us": rare(0, 500), "epsilon": r.choice([0, 0.1, 0.5]), "batch_cap": r.choice([2, 8]),
            "max_batch": rare(32, 2), "gap_ms": rare(100, 5), "tau_low": rare(0.4, 0.1), "tau_high": r.choice([0.5, 0.7, 0.9]),
            "t_age_s": r.choice([0.5, 3, 60]), "balance_gain": rare(0.1, 0, 0.5), "igpu_cap": rare(1, 0.3, 0.7), "igpu_cap_s": rare(5, 0.5),
            "shed": flag("false"), "shed_queue": r.choice([1, 5]), "shed_wait_s": r.choice([2, 10]),
            **gaps(r), "flash": r.choice(["off", "cheaper", "always"]), "hang_s": r.choice([1, 0.05, 0.05, 0]), "hang_factor": r.choice([3, 10])}


def agent_xpu_v2(r):
    rare, flag = mostly(r)
    return {"prefill_first": rare("true", "true", "false"), "yield": rare("kernel", "iteration"), "guard": flag("false"),
            "shortest": rare("none", "reactive", "all"), "elastic": rare("on", "off", "static", "class"), "split": rare("makespan", "balance"),
            "beta": rare(0.25, 0, 0.5, 1), "warmup": rare("true", "true", "false"), "warm_reactive": flag("false"), "cache_entries": r.choice([1, 2, 8]),
            "cache_ttl_s": r.choice([0, 1, 60]), "memory_rule": r.choice(["igpu", "off", "defer"]), "b_rf": r.choice([0, 1, 3, 3, 5]),
            "max_batch": r.choice([2, 4, 32, 32]), "length_bucket": r.choice([1, 64, 256]), "piggyback": rare("short", "long"),
            "preempt": rare("kernel", "layer", "none"), "suspended": r.choice([0, 1, 1, 1, 2]), "ageing": rare("true", "false"),
            "t_age_s": r.choice([0.5, 3, 10, 900]), "aged_max": r.choice([0, 1, 1, 2]), "aged_chunks": flag("true"),
            "cap": rare("fixed", "slo", "marginal", "open"), "tbt_slo_ms": r.choice([80, 120, 200]), "epsilon": r.choice([0, 0.1, 0.5]),
            "warm_s": rare(0, 0.01, 2), "margin": rare("igpu", "choose"), **gaps(r), "flash": r.choice(["off", "cheaper", "always"]),
            **r.choice([{}, {"speculate": r.choice(["igpu", "npu"]), "drafter": r.choice(["run", "run", "model", "lookup", "suffix"]),
                             "verify_rows": r.choice([4, 32, 32]), "draft_ms": r.choice([0, 3, 3, 40])}])}


def planned(r):
    return {"prefill": r.choice(["npu", "npu", "igpu", "cpu"]), "decode": r.choice(["igpu", "igpu", "cpu"]), "max_batch": r.choice([1, 3, 1000]),
            "reactive_first": r.choice(["true", "false"]), "listed": r.choice([0, 0, 6, 20]), "order": r.randrange(100)}


JUDGED = {  # the judge, of judges_*.py, and random parameters
    "andes": ("Andes", lambda r: {**orders(r), "ttft_s": r.choice([0, 0.3, 1, 5]), "read_tokens_per_s": r.choice([1, 4.8, 12, 40]),
                                  "horizon_s": r.choice([0.3, 1, 4, 20]), "per_token": r.choice(["true", "true", "false"])}),
    "pantheon": ("Pantheon", lambda r: {**orders(r), "max_batch": r.choice([1, 1, 4]), "deadline_s": r.choice([2, 30])}),
    "critical-path": ("CriticalPath", lambda r: {**orders(r), "expected_output": r.choice([1, 20, 100, 1000]),
                                                 **{k: r.choice(["true", "true", "false"]) for k in ("waits", "jobs", "slack")}}),
    "llf": ("Llf", slos),
    "edf": ("Edf", slos),
    "sjf-input": ("Sjf", orders),
    "srpt": ("Srpt", lambda r: {**orders(r), "limit": r.choice([1, 0.5, 0.5]), "sigma": r.choice([0, 0, 0.3, 1.5]), "draw": r.choice([0, 7])}),
    "mlfq": ("Mlfq", mlfq),
    "prema": ("Prema", lambda r: {**orders(r), "reactive_priority": r.choice([9, 3, 0.5]), "proactive_priority": r.choice([1, 3, 0]),
                                  "expected_output": r.choice([1, 20, 100])}),
    "autellix-like": ("Autellix", lambda r: {**orders(r), "mode": r.choice(["plas", "atlas"]), "t0_s": r.choice([0.005, 0.02, 0.02, 1]),
                                             "beta": r.choice([0.5, 2, 8])}),
    "vtc": ("Vtc", lambda r: {**orders(r), "w_in": r.choice([0, 1]), "w_out": r.choice([1, 2]), "reactive_weight": r.choice([1, 4]),
                              "lift": r.choice(["true", "true", "false"])}),
    "program-fcfs": ("ProgramFcfs", orders),
    "llm-npu": ("LlmNpu", lambda r: {"in_progress": r.choice([1, 2, 4]), "order": r.choice(["chunks", "chunks", "together"]),
                                   "outlier_frac": r.choice([0, 0.01, 0.01, 0.2])}),
    "conserve-like": ("Conserve", lambda r: {**coserving(r), "ttft_slo_s": r.choice([0.5, 2, 8]), "safepoint": r.choice(["true", "true", "false"]),
                                             "tbt_slo_s": r.choice([0.05, 0.1, 0.2, 0.5])}),
    "orca": ("Orca", lambda r: {"device": r.choice(["igpu", "cpu", "npu"]), "max_num_seqs": r.choice([1, 3, 16]), "reserve": r.choice(["true", "false"])}),
    "openvino-cb": ("OpenvinoCb", lambda r: {
        "device": r.choice(["igpu", "cpu", "npu"]), "variant": r.choice(["sf256", "sf256", "whole", "vllm"]), "max_num_seqs": r.choice([1, 3, 256]),
        **r.choice([{}, {"max_num_batched_tokens": r.choice([1, 17, 64, 512])}])}),
    "sarathi": ("Sarathi", sarathi),
    "vllm-v0": ("VllmV0", lambda r: {**paged(r), "watermark_frac": r.choice([0, 0.01, 0.3]), "mixed_steps": r.choice(["true", "false", "false"])}),
    "vllm-v1": ("VllmV1", vllm_v1),
    "vllm-priority": ("VllmPriority", vllm_priority),
    "fcfs": ("Fcfs", lambda r: {"device": r.choice(["igpu", "cpu", "npu"])}),
    "recompute-preempt": ("RecomputePreempt", lambda r: {
        "device": r.choice(["igpu", "cpu", "npu"]), "kill": r.choice(["kernel", "immediate", "never"]), "keep_context": r.choice(["true", "false"]),
        "max_batch": r.choice([1, 1, 2, 8])}),
    "time-share": ("TimeShare", lambda r: {"device": r.choice(["igpu", "cpu", "npu"]), "max_requests": r.choice([1, 2, 4, 16]),
                                           "efficiency": r.choice([0.95, 1, 0.5]), "quantum_ms": r.choice([0, 5, 5, 100, 10000])}),
    "llama-cpp": ("LlamaPs", lambda r: {"form": "ps", "device": r.choice(["cpu", "igpu", "npu"]), "slots": r.choice([1, 2, 4, 16]),
                                        "quantum_ms": r.choice([0, 5, 5, 100, 10000])}),
    "hetero-split": ("HeteroSplit", lambda r: {"decode": r.choice(["igpu", "solver", "rows", "columns"]), "max_batch": r.choice([1, 2, 16]),
                                               "split": r.choice(["true", "true", "false"])}),
    "sarathi-hetero": ("SarathiHetero", lambda r: {
        "max_num_seqs": r.choice([1, 2, 4, 16, 16]), "max_num_batched_tokens": r.choice([40, 200, 512, 2048]),
        "parallel": r.choice(["true", "true", "false"]), "watermark_frac": r.choice([0, 0.01, 0.05, 0.3])}),
    "sd-npu": ("SdNpu", sd_npu),
    "pd-static": ("PdStatic", disaggregated),
    "pd-mixed": ("PdMixed", lambda r: {**disaggregated(r), "limit_tokens": r.choice([0, 200, 1000]), "mixed_tokens": r.choice([16, 100, 512, 512])}),
    "npu-serial": ("NpuSerial", lambda r: {"margin": r.choice(["npu", "igpu"])}),
    "hpf": ("Hpf", priorities),
    "hhpf": ("Hhpf", priorities),
    "agent-xpu-v1": ("AgentXpuV1", agent_xpu_v1),
    "agent-xpu-v2": ("AgentXpuV2", agent_xpu_v2),
    "clairvoyant": ("Planned", planned),
    "hygen-like": ("Hygen", lambda r: {**coserving(r), "latency_budget_ms": r.choice([20, 80, 200, 600]),
                                       "context_tokens": r.choice([1, 512]), "utility": r.choice([0, 0.3, 0.5, 1])}),
}


PLUGINS = {"clairvoyant": str(pathlib.Path(DIR) / "planned.so")}  # no registered policy: tests/golden/planned.c
SPECULATE = ("sd-npu", "agent-xpu-v2")


def spelled_out(given):
    """A system of a paper is values of parameters; what else is given changes it."""
    system = SYSTEMS.get(given.get("system"), {})
    return {**system, **{k: v for k, v in given.items() if k != "system"}}


SOCS = ["core-ultra-5-125h", "core-ultra-7-258v"] * 2 + ["snapdragon-8gen3", "snapdragon-x-elite", "ryzen-ai-xdna2"]
SETTINGS = {  # of the machine and of what policies know of it
    "sim.contention": ["pccs", "none", "weighted"], "sim.hwmodel": ["roofline"], "sim.kv_block_tokens": [1, 7, 64, 256], "sim.prefix_reuse": ["false"],
    "sim.nonlinear": ["split", "offload"], "sim.chunk_auto": ["true"], "sim.collapse": ["false"], "sim.truth_sigma": [0.1, 0.5],
    "sim.annotation.sigma_prefill": [0, 0.5], "sim.annotation.sigma_decode": [0, 0.5], "sim.annotation.bias_frac.qkv": [-0.5, 2],
    "sim.annotation.bias_frac.mha": [-0.5, 2], "sim.annotation.bias_frac.layer": [-0.5, 2], "sim.graphics.reserve_time_frac": [0.3],
    "sim.graphics.reserve_rate_frac": [0.3], "sim.graphics.frames_per_s": [30, 60], "sim.power.limit": ["package", "thermal"], "sim.weight_copies": [2],
    "sim.hang_frac": [0.002, 0.02], "sim.hang_factor": [30],
    "soc.loader.swap_bandwidth.value": [1, 4]}


def settings(r, soc):
    names = r.sample([x for x in SETTINGS if x != "sim.power.limit" or "core" in soc], r.choice([0, 1, 2]))  # others state no power
    return [x for name in names for x in ("--set", f"{name}={r.choice(SETTINGS[name])}")]


def load(r, policy, seed):
    path = pathlib.Path(DIR) / f"{policy}.csv"
    if seed % 4 == 3:
        return ["--trace", str(path)] + crowd(r, path)
    if policy == "critical-path" or seed % 7 == 5:  # jobs of agents
        jobs = r.choice(["coding-agent", "leader-subagents", "desktop-assistant", "rag-pipeline", "copilot-sessions", "coding-sessions"])
        memory = r.choice([[], [], ["--set", "sim.kv_capacity_tokens=32000"]])
        return ["--workload", jobs, "--seed", str(seed), "--set", f"sim.horizon_s={r.choice([60, 120])}"] + memory
    memory = r.choice(["", "2400", "3000", "5000", "9000"])
    models = shared(r, path) if r.random() < 0.3 else turns(r, path, r.random() < 0.4)
    return ["--trace", str(path)] + (["--set", f"sim.kv_capacity_tokens={memory}"] if memory and not models else []) + models


def able(how):
    """What the policy asks of the machine: what its device can do, and a window that opens and closes."""
    can = {"preempt=reset": "reset", "kill=immediate": "reset", "level=2": "withdraw", "level=3": "suspend", "hang_s=0.05": "reset"}
    on = re.search(r"device=(\w+)", how)
    on = [on[1].replace("auto", "igpu")] if on else ["npu", "igpu"]
    static = ["--set", "soc.devices.npu.static_attention=false"] if "device=npu" in how else []  # else no decode can run there
    opens = [{"at_s": i * 3 + 0.5, "window": w} for i, w in enumerate(("closed", "open") * 3)]
    machine = pathlib.Path(DIR) / "window.json"
    machine.write_text(json.dumps({"machine": opens}))
    window = ["--machine", str(machine)] if "class=window" in how else []
    return static + window + [x for word, what in can.items() if word in how for d in on for x in ("--set", f"soc.devices.{d}.can_{what}=true")]


def more(r, policy, given, options):
    """Rare companions: weights that load on demand, recurrent states, a power limit that comes and goes, and other programs' memory, but
    not where the judge needs the share of all KV, which outside policies know of the start only."""
    if SMALL[1] in options and r.random() < 0.5:
        options = options + ["--set", "models.at_start=false"]
    if policy not in SPECULATE and r.random() < 0.2:  # states take as much as 3,300 tokens
        options = [{"llama-3.2-3b": "qwen3.5-0.8b"}.get(x, x) for x in options]
        options = [re.sub(r"(kv_capacity_tokens=)(\d+)", lambda m: m[1] + str(int(m[2]) + 3300), x) for x in options]
    if "--machine" in options or r.random() < 0.7:
        return options
    share = {"watermark_frac", "reserve"} & set(given) or given.get("gap_kv") == "infercept" or policy in ("sarathi-hetero", "vllm-v0")
    events = [{"at_s": round(r.uniform(0, 8), 1), **r.choice([{"power_w": 12}, {"power_w": 25}, {} if share else {"memory_mib": r.choice([9000, 30000])}])}
              for _ in range(3)]
    machine = pathlib.Path(DIR) / "events.json"
    machine.write_text(json.dumps({"machine": [e for e in events if len(e) > 1] + [{"at_s": 20, "memory_mib": 0, "power_w": 0}]}))
    return options + ["--machine", str(machine)]


def lacked(policy, seed):
    """What shipped machines lack: in one load of five a time-shared CPU, or an NPU's own attention. That sd-npu always needs."""
    attention = ["--set", "soc.devices.npu.static_attention=false"]
    if policy == "sd-npu":
        return attention + (["--set", "soc.loader.bandwidth.value=6", "--set", "soc.loader.fixed.value=0.05"] if seed % 2 else [])
    shared = ["--set", "soc.devices.cpu.sharing=time_shared"]
    some = {"time-share": shared, "llama-cpp": shared, "sarathi-hetero": attention}
    return some.get(policy, []) if seed % 5 == 2 else []


def drafts(r, policy, how, loaded):
    """The load with a drafter: on token texts, a model of the run, or by frequencies."""
    some = {"method": ["none", "sam", "sam", "pld", "eagle"], "dataset": ["summary", "rag"], "length": ["fixed", "prop", "empirical"],
            "max_draft_tokens": [0, 0, 4, 60], "reuse_frac": [0, 0, 0.5], "proactive": ["true", "true", "false"]}
    if "drafter" not in how:
        return loaded
    options = [x for k, v in some.items() for x in ("--set", f"sim.speculation.{k}={r.choice(v)}")]
    if how["drafter"] in ("lookup", "suffix"):
        texts = f"texts:file={r.choice(['code_edits', 'change_texts'])},n=4,concurrent={r.choice([1, 3])},history={r.choice([0, 1])}"
        return ["--workload", texts, "--seed", str(r.randrange(1000))] + options
    if how["drafter"] == "model":
        path = pathlib.Path(DIR) / f"{policy}.csv"
        loaded = loaded if "--trace" in loaded else ["--trace", str(path)] + turns(r, path, True)  # agents name models
        options += ["--llm", "draft=llama-3.2-1b"]
    return loaded + options


def decisions(policy, name, options):
    log = pathlib.Path(DIR) / name
    p = subprocess.run([X, "run", "--policy", policy, "--decisions", str(log), "-q"] + options, capture_output=True, text=True, env=ENV)
    if p.returncode != 0:
        sys.exit(f"{policy} {' '.join(options)}: {p.stderr[:400]}")
    steps = (line.split()[1:] for line in log.read_text().split("\n")[1:] if line)  # without the head, and the number of the call
    # when to be asked decides nothing, nor does what finds no memory until it does, or is asked back while it is in use
    vain = (("form", "-12"), ("kv", "-12"), ("load", "-12"), ("cancel", "-22"), ("drop", "-16"))
    return [step for step in steps if step[1] not in ("timer", "note") and (step[1], step[-1]) not in vain]


def main():
    bad = steps = runs = 0
    for policy, (judge, params) in JUDGED.items():
        if len(sys.argv) > 4 and policy not in sys.argv[4:]:
            continue
        for seed in range(N):
            r = random.Random(f"{policy} {seed}")
            options = ["--soc", r.choice(SOCS), "--llm", "llama-3.2-3b"]
            loaded, given = load(r, policy, seed), params(r)
            how, meant = (",".join(f"{k}={v}" for k, v in x.items()) for x in (given, spelled_out(given)))
            loaded = drafts(r, policy, spelled_out(given), loaded) if policy in SPECULATE else loaded
            options += loaded + able(how) + settings(r, options[1]) + lacked(policy, seed)
            options = more(random.Random(f"more {policy} {seed}"), policy, given, options)
            ours = decisions(f"{PLUGINS.get(policy, policy)}:{how}", "ours", options)
            meant += f",run_seed={options[options.index('--seed') + 1]}" if policy == "srpt" and "--seed" in options else ""
            theirs = decisions(f"python:{HERE / FILES[judge]}:{judge}:{meant}", "theirs", options)
            steps += len(ours)
            runs += 1
            if ours != theirs:
                at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
                print(f"FAILED: {seed} {policy}:{how} {' '.join(options)}: decision {at} of {len(ours)}: {ours[at:at + 1]}, not {theirs[at:at + 1]}")
                bad += 1
    print(f"{steps} decisions of {runs} workloads, {bad} of these decided otherwise")
    return bad > 0 or steps < 1000 * N


sys.exit(main())

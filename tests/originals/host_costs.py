"""Measures the host time of openvino.genai's stepped pipeline against the sequences of a step.

usage: host_costs.py FOLDER [REPEATS]. The host time is a step() of decodes less its inference, which the
pipeline times itself per request. The model weighs next to nothing. So the rest is scheduling, preparing
inputs, sampling, and handing out tokens. It prints CSV on standard output."""

import statistics
import sys
import time

import numpy as np
import openvino as ov
import openvino_genai as genai

import tiny_openvino

PROMPT, OUTPUT, SKIP = 16, 48, 8  # tokens; steps at either end that are not counted


def decode_steps(folder, sequences):
    """Returns the microseconds of each step in which so many sequences decode: whole, and inference."""
    c = genai.SchedulerConfig()
    c.num_kv_blocks, c.max_num_batched_tokens, c.max_num_seqs = 4 * sequences + 8, 16384, 1024
    pipe = genai.ContinuousBatchingPipeline(folder, c, "CPU", {"INFERENCE_NUM_THREADS": 1})
    g = genai.GenerationConfig()
    g.max_new_tokens = g.min_new_tokens = OUTPUT
    g.ignore_eos = True
    draw = np.random.default_rng(0)
    handles = [pipe.add_request(i, ov.Tensor(draw.integers(5, 290, (1, PROMPT))), g) for i in range(sequences)]
    whole = []
    while pipe.has_non_finished_requests():
        start = time.perf_counter()
        pipe.step()
        whole.append((time.perf_counter() - start) * 1e6)
    raw = handles[0].get_perf_metrics().raw_metrics
    inference = list(raw.token_infer_durations)
    return whole[SKIP:-SKIP], inference[SKIP:-SKIP]


def main():
    folder, repeats = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    tiny_openvino.write(folder)
    print("# openvino-genai %s, CPU plug-in; host time of a decode step, us" % genai.get_version())
    print("sequences,step_us,inference_us,host_us,host_us_p90,steps")
    for sequences in (1, 2, 4, 8, 16, 32, 64):
        host, steps, infer = [], [], []
        for _ in range(repeats):
            whole, inference = decode_steps(folder, sequences)
            host += [a - b for a, b in zip(whole, inference)]
            steps += whole
            infer += inference
        print("%d,%.0f,%.0f,%.0f,%.0f,%d" % (sequences, statistics.median(steps), statistics.median(infer),
                                             statistics.median(host), sorted(host)[int(0.9 * len(host))], len(host)))


if __name__ == "__main__":
    main()

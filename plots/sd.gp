# Latency, energy and peak memory of speculative decoding systems, 95 % intervals.
load bars_gp

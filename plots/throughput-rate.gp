# Throughput and latency per token against arrival rate, 95 % intervals over replications.
load lines

# Latency of each class by policy, 95 % intervals over replications.
load bars_gp

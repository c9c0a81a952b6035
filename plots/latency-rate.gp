# Latency against arrival rate: mean and P90 of each class, 95 % intervals over replications.
load lines

# Distributions of time to first token, time per output token and latency.
width = wide(1100)
n_panels = 3
array panel[3] = ['time to first token (s)', 'time per output token (s)', 'latency (s)']
load distributions

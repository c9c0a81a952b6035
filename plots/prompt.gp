# Prefill time and rate against the length of the prompt, per device.
load lines

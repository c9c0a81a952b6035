# Latency of a step against its batch, per device.
load lines

# Latency of a step against its batch, per device.
xlabel_text = 'batch (sequences)'
title1 = 'latency of a step (ms)'
load lines

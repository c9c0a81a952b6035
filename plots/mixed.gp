# Decode batches with a prefill chunk in them: time and what it costs the decodes, per device.
load lines

# Mean latency cut into waiting, suspension, prefill and decode; the interval is of the whole.
n_parts = 5
array part[5] = ['waits for prefill', 'prefill suspended', 'prefill', 'waits in decode', 'decode']
array shade[5] = ['#D55E00', '#A078F0', '#0072B2', '#CC79A7', '#0014C8']
key_rows = rows_of_key(5, 17, wide(1000))
load stacked

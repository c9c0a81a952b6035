# Where a request's time goes, by cause: means by class, inputs as rows.
n_parts = 9
array part[9] = ['its passes compute', 'host', 'other work on the DDR or device', 'done again', 'compile, graph load', \
                 'rest of a kernel', 'own class before it', 'other class before it', 'held, evicted']
array shade[9] = ['#56B4E9', '#999999', '#009E73', '#000000', '#7F6A00', '#CC79A7', '#0072B2', '#D55E00', '#E69F00']
key_rows = rows_of_key(9, strlen(part[3]), 1000)
load stacked

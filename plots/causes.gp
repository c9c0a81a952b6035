# Where a request's time goes, by cause: means by class, inputs as rows.
n_parts = 10
array part[10] = ['its own compute', 'its passes compute for others', 'host', 'other work on the DDR or device', 'done again', 'compile, graph load', \
                 'rest of a kernel', 'own class before it', 'other class before it', 'held, evicted']
array shade[10] = ['#A078F0', '#0014C8', '#8C8C8C', '#009E73', '#000000', '#7F6A00', '#CC79A7', '#0072B2', '#D55E00', '#502800']
key_rows = rows_of_key(10, strlen(part[4]), wide(1000))
load stacked

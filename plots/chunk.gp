# First tokens of reactive requests and throughput against the chunk size.
load lines

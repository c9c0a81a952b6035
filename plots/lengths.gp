# Distributions of input and output tokens.
width = wide(900)
n_panels = 2
array panel[2] = ['input tokens', 'output tokens']
load distributions

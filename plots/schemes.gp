# The four co-scheduling schemes of the Agent.xpu papers over load.
load lines

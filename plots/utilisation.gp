# iGPU utilisation and energy by policy, 95 % intervals over replications.
load bars_gp

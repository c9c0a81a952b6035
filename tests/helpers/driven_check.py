#!/usr/bin/env python3
"""What `drive --compare --json` says of policies is worked out again from its requests: means, errors and the order."""
import itertools
import json
import statistics
import sys

BAD = []
METRICS = ("ttft_s", "tpot_s", "e2e_s")


def same(what, got, want, within=1e-9):
    if (got is None) != (want is None) or got is not None and abs(got - want) > within * max(abs(want), 1e-12):
        BAD.append(f"{what}: {got}, worked out {want}")


def times(requests, side, metric, repeat=None):
    return [r[f"{side}_{metric}"] for r in requests if repeat is None or r["repeat"] == repeat]


def mape(a, b):
    return statistics.fmean(abs(x / y - 1) for x, y in zip(a, b) if x is not None and y)


def main():
    d = json.load(open(sys.argv[1]))
    n, means = 0, {}
    for p in d["drive"]:
        requests, repeats = p["requests"], range(d["repeats"])
        e = next(e for e in d["errors"] if e["policy"] == p["policy"])
        for m in METRICS:
            real = [times(requests, "real", m, k) for k in repeats]
            sim = times(requests, "sim", m, 0)
            same(f"{p['policy']} mape {m}", e["mape"][m], statistics.fmean(mape(sim, r) for r in real))
            same(f"{p['policy']} mape_of_means {m}", e["mape_of_means"][m], mape(sim, [statistics.fmean(v) for v in zip(*real)]))
            both = [mape(a, b) for a, b in itertools.permutations(real, 2)]
            if e["real_mape"].get(m) is not None and not min(both) - 1e-12 <= e["real_mape"][m] <= max(both) + 1e-12:
                BAD.append(f"{p['policy']} real_mape {m}: {e['real_mape'][m]} is not within {both}")
            for cls in ("reactive", "proactive"):
                own = [r for r in requests if r["class"] == cls]
                got = next(x for x in d["means"] if x["class"] == cls and x["policy"] == p["policy"])[m]
                for side, key in (("real", "real"), ("sim", "simulated")):
                    means[cls, m, side, p["policy"]] = statistics.fmean(v for v in times(own, side, m) if v is not None)
                    same(f"{p['policy']} {cls} {m} {key}", got[key], means[cls, m, side, p["policy"]])
                n += 1
        if not e["low"]["e2e_s"] <= e["mape"]["e2e_s"] <= e["high"]["e2e_s"]:
            BAD.append(f"{p['policy']}: the error {e['mape']['e2e_s']} is not within {e['low']['e2e_s']} to {e['high']['e2e_s']}")
    policies = [p["policy"] for p in d["drive"]]
    for cls, m in itertools.product(("reactive", "proactive"), METRICS):
        o = next(x for x in d["order"] if x["class"] == cls and x["metric"] == m)
        pairs = list(itertools.combinations(policies, 2))
        same(f"order of {cls} {m}: pairs", o["pairs"], len(pairs))
        if o["tied"] == 0:
            signs = [(means[cls, m, "real", a] - means[cls, m, "real", b]) * (means[cls, m, "sim", a] - means[cls, m, "sim", b]) > 0 for a, b in pairs]
            same(f"order of {cls} {m}: tau", o["tau"], statistics.fmean(1 if s else -1 for s in signs))
    print("\n".join(f"FAILED: {b}" for b in BAD))
    return 1 if BAD or n < 12 else 0


if __name__ == "__main__":
    sys.exit(main())

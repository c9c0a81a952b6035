#!/usr/bin/env python3
"""Writes a `metered` section to stdout: what a meter reads, from the fits of `xpusim validate`.

usage: xpusim validate --energy energy --json | python3 hwmodels/metered.py [METER [SOC]]
The default is the package's numbers for any machine, hwmodels/metered.json. With a machine that has readings of
its own they are for that machine's file.
"""
import json
import sys

meter = sys.argv[1] if len(sys.argv) > 1 else "package"
soc = sys.argv[2] if len(sys.argv) > 2 else None
tables = json.load(sys.stdin)
FIT = "fit to %d published powers read at the %s (points/energy.csv); without one source %.3g to %.3g %s"


def digits(x):
    return float("%.4g" % x)


def quantity(value, unit, low, high, source, kind="fitted"):
    return {"value": value, "unit": unit, "low": low, "high": high, "source": source, "kind": kind}


# Laptops and small computers, as those that were read.
MACHINES = "core-ultra apple-m ryzen-ai snapdragon-x"

own = next((f for f in tables["factors"] if (f["meter"], f["soc"]) == (meter, soc)), None)
section = {"meter": meter} if own else {"meter": meter, "machines": MACHINES}
for n in tables["numbers"]:
    # All that is uncertain about the numbers is in `spread`.
    if n["meter"] == meter and (own is None or n["number"] == own["device"]):
        value, unit = digits(n["value"]), n["unit"]
        source = FIT % (n["rows"], meter, n["low"], n["high"], unit)
        section[n["number"]] = quantity(value, unit, value, value, source)
left = "model" if own else "source"
spread = next(e for e in tables["errors"] if (e["quantity"][0], e["left_out"], e["meter"]) == ("W", left, meter))
spread = digits(spread["factor"])
if own:
    source = "geometric mean of measured over fitted of %d powers, to the power n / (n + 1)" % own["rows"]
    value = digits(own["factor"])
    section["factor"] = quantity(value, "1", digits(value / spread), digits(value * spread), source)
source = "median factor of the 95 %% intervals of powers, each predicted without its %s" % left
section["spread"] = quantity(spread, "1", spread, spread, source)
print(json.dumps(section, indent=1))

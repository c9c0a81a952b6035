#!/usr/bin/env python3
"""Draws the rows of samsum.csv and lmsys_chat.csv from log-normal fits, puts them into the mixes, and
draws those of tweet_reply.csv from an assumed law.

The licences of SAMSum (CC BY-NC-ND 4.0) and LMSYS-Chat-1M (gated) do not clearly allow passing their
rows on, so these two files hold draws from a bivariate log-normal law with the moments of the real
token counts (README.md). Running this from any folder rewrites the five files and changes nothing:
the random module's Mersenne twister, gauss and shuffle give the same values in every Python since 3.2.
"""
import math
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent

# mean and standard deviation of ln input and ln output, correlation of the two logs, rows, seed,
# largest input and output kept (LMSYS: the largest of the source; SAMSum: far above the source's 99th
# percentiles, 504 and 66). Inputs start at 11: the chat form alone has 10 tokens.
FITS = {
    "samsum": (4.93, 0.60, 3.09, 0.53, 0.61, 819, 20250624, 1000, 200),
    "lmsys_chat": (3.59, 0.99, 4.47, 1.35, 0.07, 1024, 20250625, 1037, 761),
    # Assumed, not fitted to anything: no counts of such data are public.
    "tweet_reply": (6.20, 0.50, 3.30, 0.40, 0.20, 400, 20250627, 3000, 120),
}
MIXES = {"proactive_mixed": ("2", "samsum"), "reactive_mixed": ("4", "lmsys_chat")}


def draw(mu_in, sd_in, mu_out, sd_out, rho, n, seed, max_in, max_out):
    rng = random.Random(seed)
    rows = []
    while len(rows) < n:
        z_in = rng.gauss(0, 1)
        z_out = rho * z_in + math.sqrt(1 - rho * rho) * rng.gauss(0, 1)
        row = round(math.exp(mu_in + sd_in * z_in)), round(math.exp(mu_out + sd_out * z_out))
        if 11 <= row[0] <= max_in and 1 <= row[1] <= max_out:
            rows.append(row)
    return rows


def split(path):
    """Comment and header lines, data lines."""
    lines = path.read_text().splitlines()
    n = next(i for i, line in enumerate(lines) if not line.startswith("#")) + 1
    return lines[:n], lines[n:]


drawn = {name: draw(*fit) for name, fit in FITS.items()}
for name, rows in drawn.items():
    path = HERE / f"{name}.csv"
    head, _ = split(path)
    path.write_text("\n".join(head + [f"{i},{o}" for i, o in rows]) + "\n")

for name, (dataset_id, source) in MIXES.items():
    path = HERE / f"{name}.csv"
    head, rows = split(path)
    pool = drawn[source][:]
    random.Random(20250626).shuffle(pool)
    fresh = iter(pool)
    rows = ["{},{},{}".format(dataset_id, *next(fresh)) if row.split(",")[0] == dataset_id else row
            for row in rows]
    path.write_text("\n".join(head + rows) + "\n")

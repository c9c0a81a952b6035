#!/usr/bin/env python3
"""Every statistic against scipy and numpy on random samples: statistics_check.py LIBRARY [SEED]. The library is made of sim/stats and
the files of sim/base that it needs (make statistics). Samples are normal, skewed, heavy-tailed and tied, of 1 to 40 values."""
import ctypes as c
import math
import sys
import warnings

import numpy as np
from scipy import stats

warnings.simplefilter("ignore")  # scipy of values that are nearly equal
L = c.CDLL(sys.argv[1])
D, P, N = c.c_double, np.ctypeslib.ndpointer(np.float64), c.c_size_t


class Interval(c.Structure):
    _fields_ = [("mean", D), ("low", D), ("high", D), ("sd", D), ("n", c.c_uint32)]


class Paired(c.Structure):
    _fields_ = [("diff", Interval), ("base_mean", D), ("relevance_frac", D)]


class Shift(c.Structure):
    _fields_ = [("shift", D), ("se", D), ("df", D), ("base_mean", D), ("n_base", c.c_uint32), ("n_now", c.c_uint32)]


class Sample(c.Structure):
    _fields_ = [("values", c.c_void_p), ("covariates", c.c_void_p), ("n", N)]


for name, result, arguments in (
        ("stats_mean", Interval, (P, N, D)), ("stats_paired", Paired, (P, P, N, D)), ("stats_p", D, (c.POINTER(Paired),)),
        ("stats_ratio", Interval, (P, P, N, D)), ("stats_bootstrap", Interval, (P, N, D)), ("stats_shift", Shift, (Sample, Sample, N)),
        ("stats_shift_p_above", D, (c.POINTER(Shift), D)), ("stats_shift_p_below", D, (c.POINTER(Shift), D)),
        ("stats_holm", None, (P, N, P)), ("sample_quantile_of", D, (P, N, D)), ("portable_student_above", D, (D, D)),
        ("portable_student_quantile", D, (D, D))):
    getattr(L, name).restype, getattr(L, name).argtypes = result, arguments

rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
checked, bad = 0, []


def same(name, got, want, tolerance=1e-7):
    global checked
    checked += 1
    both_nan = math.isnan(got) and math.isnan(want)
    if not both_nan and not abs(got - want) <= tolerance * max(abs(want), 1e-9):
        bad.append(f"{name}: {got}, scipy has {want}")


def draw(n):
    kind = rng.integers(4)
    scale = 10.0 ** rng.integers(-6, 7)
    x = (rng.normal(3, 1, n), rng.lognormal(0, 1, n), rng.standard_t(3, n) + 5, rng.integers(1, 5, n).astype(float))[kind]
    return np.ascontiguousarray(x * scale)


def means(x, level):
    s = L.stats_mean(x, len(x), level)
    same("mean", s.mean, x.mean())
    if len(x) > 1 and x.std() > 0:
        same("sd", s.sd, x.std(ddof=1))
        low, high = stats.t.interval(level, len(x) - 1, x.mean(), stats.sem(x))
        same("low", s.low, low)
        same("high", s.high, high)


def pairs(x, y):
    n = len(x)
    p = L.stats_paired(x, y, n, 0.95)
    if n > 1 and (x - y).std() > 0:
        t = stats.ttest_rel(x, y)
        same("paired p", L.stats_p(c.byref(p)), t.pvalue, 1e-6)
        low, high = t.confidence_interval(0.95)
        same("paired low", p.diff.low, low, 1e-6)
        same("paired high", p.diff.high, high, 1e-6)
        ratio = L.stats_ratio(x, y, n, 0.95)
        same("ratio", ratio.mean, x.mean() / y.mean())
        for end in (ratio.low, ratio.high):  # where a one-sample test of x - r y just has p = 0.05
            if not math.isnan(end):
                same("Fieller", stats.ttest_1samp(x - end * y, 0).pvalue, 0.05, 1e-5)
        if math.isnan(ratio.low) and stats.ttest_1samp(y, 0).pvalue < 0.0499:
            bad.append("Fieller: no interval, but the base is not 0")


def shifts(x, y, k):
    """y - x with k covariates: least squares of numpy and Student's t."""
    a, b = (np.ascontiguousarray(rng.normal(0, 1, (len(v), k))) for v in (x, y))
    s = L.stats_shift(*(Sample(v.ctypes.data, m.ctypes.data if k else None, len(v)) for v, m in ((x, a), (y, b))), k)
    both = np.concatenate([x, y])
    design = np.column_stack([np.ones(len(both)), np.r_[np.zeros(len(x)), np.ones(len(y))], np.concatenate([a, b])])
    df = len(both) - design.shape[1]
    if df < 1 or both.std() == 0:
        return
    fit, rest, _, _ = np.linalg.lstsq(design, both, rcond=None)
    se = math.sqrt(np.linalg.inv(design.T @ design)[1, 1] * rest[0] / df) if len(rest) and rest[0] > 0 else math.nan
    if not se > 1e-9 * abs(both).max():
        return
    same("shift", s.shift, fit[1], 1e-6)
    same("shift's error", s.se, se, 1e-6)
    same("shift's p", L.stats_shift_p_above(c.byref(s), 0), stats.t.sf(fit[1] / se, df), 1e-5)
    same("shift's other p", L.stats_shift_p_below(c.byref(s), 0), stats.t.cdf(fit[1] / se, df), 1e-5)
    if k == 0:
        same("pooled t", 2 * min(L.stats_shift_p_above(c.byref(s), 0), L.stats_shift_p_below(c.byref(s), 0)), stats.ttest_ind(x, y).pvalue, 1e-5)


def boot(x):
    """Bootstrap-t by draws of numpy: equal within the noise of the draws."""
    s = L.stats_bootstrap(x, len(x), 0.9)
    y = rng.choice(x, (4000, len(x)))
    se = y.std(axis=1, ddof=1) / math.sqrt(len(x))
    t = np.sort(((y.mean(axis=1) - x.mean())[se > 0] / se[se > 0]))
    for got, q in ((s.low, 0.95), (s.high, 0.05)):
        want = x.mean() - np.quantile(t, q) * stats.sem(x)
        near = [x.mean() - np.quantile(t, min(1, max(0, q + e))) * stats.sem(x) for e in (0.025, -0.025)]
        same("bootstrap-t", got, want, 1e9 if min(near) <= got <= max(near) else 1e-9)


for _ in range(2000):
    n = int(rng.integers(1, 41))
    x, y = draw(n), draw(n)
    means(x, float(rng.choice([0.8, 0.9, 0.95, 0.99])))
    pairs(x, y)
    shifts(x, draw(int(rng.integers(1, 41))), int(rng.integers(0, 4)))
    q = float(rng.choice([0.05, 0.5, 0.9, 0.95, 0.99, rng.uniform(0.01, 0.99)]))
    same("quantile", L.sample_quantile_of(x.copy(), n, q), np.quantile(x, q, method="inverted_cdf"))
    t, df = abs(float(rng.normal(0, 3))), float(rng.integers(1, 200))
    same("student", L.portable_student_above(t, df), stats.t.sf(t, df))
    same("student's quantile", L.portable_student_quantile(0.5 + q / 2, df), stats.t.ppf(0.5 + q / 2, df))
    p, out = np.ascontiguousarray(rng.uniform(0, 0.3, n)), np.zeros(n)
    L.stats_holm(p, n, out)
    order = np.argsort(p)
    want = np.minimum(1, np.maximum.accumulate((n - np.arange(n)) * p[order]))
    for got, w in zip(out[order], want):
        same("Holm", got, w)
for _ in range(60):
    x = draw(int(rng.integers(8, 20)))
    if len(set(x)) > 5:
        boot(x)
print("\n".join(f"FAILED: {b}" for b in bad[:20]))
print(f"{checked} statistics against scipy, {len(bad)} differ")
sys.exit(1 if bad or checked < 20000 else 0)

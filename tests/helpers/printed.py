"""What texts of results are worked out again with: the printed forms of numbers, statistics of samples, and the comparison
of a printed text with the one that an independent script makes."""
import csv
import difflib
import functools
import json
import math
import random
import re
import subprocess


# ---- texts

def alike(printed, wanted):
    """A line as it was printed and as it is wanted, blanks aside. In the wanted one `…` is any text without digits, `‥` any."""
    free = {"…": "[^0-9]*", "‥": ".*"}
    pattern = "".join(free.get(part, re.escape(part)) for part in re.split("([…‥])", " ".join(wanted.split())))
    return re.fullmatch(pattern, " ".join(printed.split())) is not None


def differences(printed, wanted):
    """None, or both texts where they differ. Empty lines aside."""
    said = [line for line in printed.split("\n") if line.strip()]
    want = [line for block in wanted for line in block.split("\n") if line.strip()]
    if len(said) == len(want) and all(map(alike, said, want)):
        return None
    want = [next((s for s in said if alike(s, w)), " ".join(w.split())) for w in want]
    return "\n".join(difflib.unified_diff([" ".join(w.split()) for w in want], [" ".join(s.split()) for s in said],
                                          "worked out again", "printed", n=0, lineterm=""))


def decimals_of(x):
    """Decimals that show two digits."""
    return max(0, min(9, 1 - math.floor(math.log10(x) + 1e-12))) if x > 0 else 0


def interval_text(mean, low, high):
    """12.35 [11.95, 12.75]: as many decimals as two digits of the half-width need."""
    half = (high - low) / 2 if low is not None and high is not None else 0
    if mean is None:
        return "-"
    if not half > 1e-12 * abs(mean):  # less is the rounding of a sum of equal values
        whole = mean == math.floor(mean) and abs(mean) < 1e6
        return f"{mean:.{0 if whole else min(9, decimals_of(abs(mean)) + 2)}f}"
    d = decimals_of(half)
    return f"{mean:.{d}f} [{low:.{d}f}, {high:.{d}f}]"


def short(x):
    """Four significant digits, without an exponent below ten millions."""
    text = f"{x:.4g}"
    return f"{float(text):.0f}" if "e+" in text and abs(float(text)) < 1e7 else text


def number(x):
    """Four digits, counts as they are, - for nothing."""
    if x is None:
        return "-"
    return f"{x:.0f}" if x == math.floor(x) and abs(x) < 1e9 else short(x)


# ---- statistics

def student_above(t, df):
    """P(T > t) for t >= 0: half the regularized incomplete beta function at df / (df + t^2), by its continued fraction."""
    a, b, x = df / 2, 0.5, df / (df + t * t)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) if x < 1 else 0
    if x == 1:
        return 0.5
    flip = x > (a + 1) / (a + b + 2)
    p, q, z = (b, a, 1 - x) if flip else (a, b, x)
    c, d = 1.0, 1 / (1 - (p + q) * z / (p + 1))
    f = d
    for m in range(1, 200):
        for term in (m * (q - m) * z / ((p + 2 * m - 1) * (p + 2 * m)),
                     -(p + m) * (p + q + m) * z / ((p + 2 * m) * (p + 2 * m + 1))):
            d, c = 1 / (1 + term * d), 1 + term / c
            f *= c * d
    value = front * f / p
    return (1 - value if flip else value) / 2


@functools.lru_cache(None)
def student_quantile(p, df):
    low, high = 0.0, 1e4
    for _ in range(70):
        mid = (low + high) / 2
        low, high = (mid, high) if student_above(mid, df) > 1 - p else (low, mid)
    return low


def moments(x):
    n, mean = len(x), math.fsum(x) / len(x)
    return n, mean, math.sqrt(math.fsum((v - mean) ** 2 for v in x) / (n - 1)) if n > 1 else 0.0


def student_interval(x, level=0.95):
    n, mean, sd = moments(x)
    if n < 2:
        return mean, None, None
    half = student_quantile(0.5 + level / 2, n - 1) * sd / math.sqrt(n)
    return mean, mean - half, mean + half


def skewness(x):
    n, mean, _ = moments(x)
    squares = math.fsum((v - mean) ** 2 for v in x) / n
    return abs(math.fsum((v - mean) ** 3 for v in x) / n) / squares ** 1.5 if squares > 0 else 0.0


def method_of(x):
    """How the interval of a mean is found: docs/concepts/comparison.md."""
    n = len(x)
    if not 3 <= n < 20 or skewness(x) <= (1.0 if n < 8 else 0.3 if n < 12 else 0.5):
        return "student"
    return "student-skewed" if n < 8 else "bootstrap-t"


@functools.lru_cache(None)
def bootstrap_interval(x, level):
    """Bootstrap-t by draws of its own: like the program's but for the noise of the draws."""
    n, mean, sd = moments(x)
    draw, t = random.Random(1), []
    for _ in range(2000):
        y = draw.choices(x, k=n)
        m = sum(y) / n
        s = math.sqrt(sum((v - m) ** 2 for v in y) / (n - 1))
        if s > 1e-9 * sd:
            t.append((m - mean) / (s / math.sqrt(n)))
    t.sort()
    k = int(len(t) * (1 - level) / 2)
    return mean, mean - t[-1 - k] * sd / math.sqrt(n), mean - t[k] * sd / math.sqrt(n)


def p_of(difference):
    n, mean, sd = moments(difference)
    if n < 2:
        return None
    if sd == 0:
        return 1.0 if mean == 0 else 0.0
    return 2 * student_above(abs(mean) / (sd / math.sqrt(n)), n - 1)


def fieller(x, y, level=0.95):
    """All r for which 0 is within the interval of the mean of x - r y, by search."""
    n, mx, _ = moments(x)
    my = moments(y)[1]
    r = mx / my
    if n < 2:
        return r, None, None
    t = student_quantile(0.5 + level / 2, n - 1)

    def inside(r):
        _, m, s = moments([a - r * b for a, b in zip(x, y)])
        return abs(m) <= t * s / math.sqrt(n)
    _, _, sy = moments(y)
    if not abs(my) > t * sy / math.sqrt(n):
        return r, None, None
    ends = []
    for sign in (-1, 1):
        near, far = r, r + sign * 1e-9 * abs(r)
        while inside(far):
            far = r + 2 * (far - r)
        for _ in range(60):
            mid = (near + far) / 2
            near, far = (mid, far) if inside(mid) else (near, mid)
        ends.append(near)
    return r, ends[0], ends[1]


def holm(p):
    """Holm's adjusted p; None stays."""
    order = sorted((i for i in range(len(p)) if p[i] is not None), key=lambda i: p[i])
    out, most = [None] * len(p), 0.0
    for k, i in enumerate(order):
        most = max(most, min(1.0, (len(order) - k) * p[i]))
        out[i] = most
    return out


def nearest_rank(values, percent):
    v = sorted(values)
    return v[math.ceil(percent / 100 * len(v) - 1e-9) - 1]


# ---- commands

class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.bad, self.checked, self.known = path, folder, [], 0, {}

    def run(self, *args, status=(0,)):
        if args not in self.known:
            r = subprocess.run([self.path, *args], capture_output=True, text=True, timeout=300)
            if r.returncode not in status:
                raise SystemExit(f"FAILED: exit {r.returncode}: {' '.join(args)}\n{r.stderr[:500]}")
            self.known[args] = r
        return self.known[args]

    def text(self, *args, **more):
        return self.run(*args, **more).stdout

    def document(self, *args, **more):
        return json.loads(self.text(*args, "--json", **more))

    def fail(self, *words):
        self.bad.append(" ".join(str(w) for w in words))

    def same(self, name, got, want, tolerance=1e-9):
        """A number of a document against one that was worked out again."""
        self.checked += 1
        if (got is None) != (want is None) or (got is not None and abs(got - want) > tolerance * max(1e-9, abs(want))):
            self.fail(f"{name}: {got} in the document, {want} worked out again")

    def printed(self, name, text, wanted):
        self.checked += len(re.findall(r"\d+", text))
        found = differences(text, wanted)
        if found is not None:
            self.fail(f"{name}:\n{found}")


def rows_of(path):
    with open(path) as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))

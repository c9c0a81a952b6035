#!/bin/sh
# tests/mutants/draw.py must make exactly the faults of each operator. Comments and texts stay
# whole, and the seed decides which faults are drawn. A diff's lines and the interval of a rate are
# those by hand. Every recorded fault, and every change of the gate's, is still found in the
# sources.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export PYTHONDONTWRITEBYTECODE=1
bad=0
same() { # name, wanted, got
    [ "$2" = "$3" ] || { printf 'FAILED: %s: wanted\n%s\ngot\n%s\n' "$1" "$2" "$3"; bad=1; }
}
# Each line has an operator and its faults. Standard input has the body of a function, which begins
# in line 3 of the file.
faults() {
    { printf 'void f(void)\n{\n'; cat; printf '}\n'; } >"$dir/body.c"
    same "$1" "$2" "$(python3 tests/mutants/draw.py "$1" "$dir/body.c")"
}
faults sign '3: x = a - b; /* a + b */
4: x += 1;
5: puts("a + b"), g(a + 1);' <<'END2'
    x = a + b; /* a + b */
    x -= 1;
    puts("a + b"), g(a - 1);
    x = -a;
END2
faults arguments '3: x = g(b, a, c);
3: x = g(a, c, b);
4: h(b, g(a, 0, 1));
4: h(g(0, a, 1), b);
4: h(g(a, 1, 0), b);
8: x = strcmp(a, b) == 0 ? strcmp(b, a) : 0;' <<'END2'
    x = g(a, b, c);
    h(g(a, 0, 1), b);
    printf("%d", a);
    if (a) g(b, b);
    x = fmax(a, xcalloc(1, b));
    x = strcmp(a, b) == 0 ? strcmp(a, b) : 0;
END2
faults neighbour '3: rec->first_ns = last_ns;
4: rec->end_ns = last_ns;
5: j = j;
5: i = i;' <<'END2'
    rec->end_ns = last_ns;
    rec->first_ns = last_ns;
    i = j;
    other = g(rec);
END2
faults one '3: for (i = 0; i <= n; i++)
3: for (i = 1; i < n; i++)
4: x[i] = n;
4: x[i + 1] = n - 1;
5: if (a > b)
10: x = a <= b ? a : 0;' <<'END2'
    for (i = 0; i < n; i++)
        x[i] = n - 1;
    if (a >= b)
        x += 10;
    char name[32];
    double v[8] = {0.0};
    x = a->b < c ? c : a->b;
    x = a < b ? a : 0;
END2
faults stale '3: {}
6-7: {}' <<'END2'
    x->a = b;
    int c = d;
    x->a = 0;
    x->b += g(a,
              b);
    for (i = a; i < b; i++)
        g(a == b);
END2
faults reset '3: {}
4: {}
5: {}
7: {}' <<'END2'
    x = 0;
    *p = NULL;
    memset(x, 0, sizeof *x);
    x = 10;
    x->b = (struct b){0};
    int y = 0;
END2
faults unit '3: printf("%g s\n", x / 1e6);
3: printf("%g ms\n", x);
5: "%g ms of one",
6: units_ms_from_ns(x));' <<'END2'
    printf("%g ms\n", x / 1e6);
    fprintf(f,
            "%g s of one",
            units_s_from_ns(x));
    y = x / 1e6;
    h("%g ms");
END2
faults condition '3: if (!(a && g(b)))
4: return !(a > b) ? a : b;
5: while (!(a))
7: a = !(b == c) ? d : e;' <<'END2'
    if (a && g(b))
        return a > b ? a : b;
    while (a)
        for (; a < b;)
            a = b == c ? d : e;
    h(a,
      b == c ? d : e);
END2
faults logic '3: return a || b || c;
3: return a && b && c;' <<'END2'
    return a && b || c;
    puts("a && b");
END2
faults minmax '3: a = fmax(b, u64_max(c, d));
3: a = fmin(b, u64_min(c, d));
4: x->max_ns = INT_MAX;
4: x->min_ns = INT_MIN;' <<'END2'
    a = fmin(b, u64_max(c, d));
    x->min_ns = INT_MAX;
    terminal = minute;
END2
faults comparison '3: if (a > b && c == d)
3: if (a < b && c != d)
4: x = a <= b ? a : b;' <<'END2'
    if (a < b && c == d)
        x = a >= b ? a : b;
    x = a << 2;
END2
faults call '3: {}
5-6: {}
8: {}' <<'END2'
    g(a);
    x = g(a);
    (void)h(a,
            b);
    if (a) { g(b); } else
    g(a) ? h(b) : 0;
    free(a);
    x_fini(a);
    if (a) {}
END2
faults factor '3: x = y * 1e6 + 21e3 + 1e30;
4: z = y / NS_PER_MS * 1e-6;
4: z = y / NS_PER_S * 1e-9;' <<'END2'
    x = y * 1e9 + 21e3 + 1e30;
    z = y / NS_PER_S * 1e-6;
    puts("1e6");
END2
cat >"$dir/body.c" <<'END2'
static const struct row rows[] = {
    {"a", 1},
    OPTION_TEXT(OPTIONS, soc,
                "a {"),
    {0},
};
void f(void)
{
    g((int[]){
    {"a", 1},
    });
}
END2
same row '2: 
3-4: ' "$(python3 tests/mutants/draw.py row "$dir/body.c")"

cat >"$dir/rest.py" <<'END2'
import sys
sys.path.insert(0, "tests/mutants")
import blind, draw, mutants
text = "int x = 1 + 1;\nvoid f(void)\n{\n    /* a + b */\n    a = b + c;\n    d = e - g;\n    h = i + k;\n}\n"
places = [("a.c", n) for n in range(1, 9)]
drawn = [[(r["at"], r["after"]) for r in draw.draw({"a.c": text}, p, s)] for p, s in
         ((places, 1), (places[::-1], 1), (places, 2))]
assert drawn[0] == drawn[1], "the order of the places decides"
assert drawn[0] != drawn[2], "the seed does not decide the faults"
orders = {tuple(r["at"] for r in draw.draw({"a.c": text}, places, s)) for s in range(9)}
assert len(orders) > 1, "the seed does not decide the lines"
assert sorted(at for at, _ in drawn[0]) == [5, 6, 7], drawn[0]
diff = "--- a/x.c\n+++ b/x.c\n@@ -1,2 +3,2 @@ f\n@@ -9 +10 @@\n@@ -12,2 +13,0 @@\n--- a/y.c\n+++ /dev/null\n@@ -1 +0,0 @@\n"
assert draw.changed_lines(diff) == [("x.c", 3), ("x.c", 4), ("x.c", 10)], draw.changed_lines(diff)
# 8 of 10: (0.8 + 0.19207 -+ 1.96 sqrt(0.016 + 0.0096036)) / 1.38415, with z^2 = 3.84146.
assert ["%.4f" % x for x in blind.wilson(8, 10)] == ["0.4902", "0.9433"], blind.wilson(8, 10)
faults = [{"file": "a.c", "at": 2, "before": ["b"], "after": ["x"]}, {"file": "a.c", "at": 3, "before": ["c"], "after": ["y"]}]
blind.text_of = lambda path: "a\nb\nc\n"
assert blind.joined(faults) == {"a.c": "a\nx\ny\n"} and blind.joined(faults + faults[:1]) is None
assert mutants.spans({5, 1, 2, 9, 6}) == [1, 2, 5, 6, 9, 9]
entry = {"lines": {"a.c": [1, 2, 9, 9]}}
assert [n for n in range(20) if mutants.runs(entry, "a.c", range(n, n + 1))] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
assert not mutants.stale(), mutants.stale()
# No recorded test runs kv_b.c. The test that runs most of kv.c, which begins equally, is taken, and
# not the test that runs a line of it.
known = {t: {"ok": t != "u", "s": 1, "lines": l} for t, l in {
    "t": {"a/kv.c": [1, 8], "b/kv.c": [1, 99]}, "u": {"a/kv.c": [1, 40]}, "v": {"a/kv.c": [2, 2]}, "w": {"a/x.c": [1, 5]}}.items()}
mutants.tests, mutants.source_of = lambda: sorted(known), lambda test: test
assert mutants.order(known, {"file": "a/kv_b.c"}, [3]) == ["t"]
assert mutants.order(known, {"file": "a/other.c"}, [3]) == ["t", "v", "w"]
assert mutants.order(known, {"file": "a/x.c", "operator": "row"}, [3]) == ["w"]
# Lines 5 to 20 and 40 on were run. Line 30 is reached from one of both, 21 is within three, and a
# line behind the last is the last.
far = {t: {"ok": True, "s": 1, "source": t, "digests": {"a/y.c": "d"}, "lines": {"a/y.c": l}} for t, l in {
    "t": [1, 2, 5, 20], "u": [40, 44], "v": [1, 2]}.items()}
mutants.digest = lambda path: "d"
assert [list(mutants.widened(far, "a/y.c", [n]))[::len(range(20, 41)) - 1] for n in (21, 30)] == [[21], [20, 40]]
assert list(mutants.widened(far, "a/y.c", [50])) == [44, 45, 46, 47, 48, 49, 50]
known.clear(), known.update(far)
assert [mutants.order(far, {"file": "a/y.c"}, [n]) for n in (22, 30, 50)] == [["t"], ["t", "u"], ["u"]]
sys.path.insert(0, "experiments/gate")
import regressions
for kind in ("harmless", "regressions"):
    for r in regressions.records("experiments/gate/changes/%s.txt" % kind):
        regressions.changed(r)  # ends with a message where it is not found
assert blind.near("tests/unit/check_kv", "", "sim/core/kv.c") == 0
assert blind.near("tests/unit/check_a", '#include "sim/core/pass.h"', "sim/core/kv.c") == 2
assert blind.near("tests/unit/check_drive_fit", "", "experiments/drive/fit_soc.c") == 1
assert blind.near("tests/golden/tune.sh", "", "experiments/commands/cmd_tune.c") == 0
assert blind.near("tests/golden/a.sh", "xpusim compare", "sim/core/kv.c") is None
END2
python3 "$dir/rest.py" || bad=1
exit $bad

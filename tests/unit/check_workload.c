/* Workload generators: laws of the arrivals, token lengths that come from the tables, and streams
 * that do not disturb each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/datadir.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/helpers/madetrace.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

static struct err err;
static const char *path;
static struct trace t;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make(".json");
    t = (struct trace){0};
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
    tempfile_remove();
}

/* First turns of one class, in order of arrival; caller frees. */
static const struct trace_row **firsts(const struct trace *x, int cls, size_t *n)
{
    const struct trace_row **rows = calloc(x->n_first + 1, sizeof *rows);
    *n = 0;
    for (size_t i = 0; i < x->n_first; i++) {
        if (x->rows[i].cls == cls) {
            rows[(*n)++] = &x->rows[i];
        }
    }
    return rows;
}

/* ---- laws ---- */

/* The mean gap of n arrivals has relative standard error CV / sqrt n. A gamma law of shape k =
 * 1/CV^2 has the moments (for mean 1) variance 1/k, third 2/k^2, fourth 3/k^2 + 6/k^3. By the delta
 * method its sample CV has relative variance [(m4 - v^2) / 4v^2 + v - m3 / v] / n = (1/2 + 1/(2k))
 * / n. Poisson is k = 1. */
struct law {
    const char *spec;
    int cls;
    double mean_s, cv;
};

static const struct law LAWS[] = {
    {"mixed:reactive_per_min=60,proactive_per_min=0,duration_s=40000", 0, 1.0, 1.0},
    {"mixed:reactive_per_min=0,proactive_per_min=600,duration_s=4000", 1, 0.1, 1.0},
    {"mixed:reactive_per_min=600,proactive_per_min=6,duration_s=4000", 0, 0.1, 1.0},
    {"mixed:arrival=gamma,reactive_per_min=60,proactive_per_min=0,duration_s=40000", 0, 1, 2.0},
    {"mixed:arrival=gamma,cv=0.5,reactive_per_min=0,proactive_per_min=60,duration_s=40000", 1, 1,
     0.5},
    {"mixed:arrival=gamma,cv=1,reactive_per_min=60,proactive_per_min=0,duration_s=40000", 0, 1, 1},
    {"w1:n=40000", 0, 0.5, 1.0},
};

START_TEST(gaps_have_the_stated_mean_and_variation)
{
    const struct law *law = &LAWS[_i];
    madetrace(law->spec, 11, &t);
    size_t n;
    const struct trace_row **r = firsts(&t, law->cls, &n);
    ck_assert_uint_gt(n, 35000);
    double sum = 0.0, sum2 = 0.0;
    for (size_t i = 0; i < n; i++) {
        double gap = units_s_from_ns(r[i]->arrival_ns - (i == 0 ? 0 : r[i - 1]->arrival_ns));
        ck_assert_double_ge(gap, 0.0);
        sum += gap;
        sum2 += gap * gap;
    }
    double mean = sum / (double)n;
    double cv = sqrt(sum2 / (double)n - mean * mean) / mean;
    double root = sqrt((double)n);
    ck_assert_double_eq_tol(mean, law->mean_s, 4.0 * law->mean_s * law->cv / root);
    ck_assert_double_eq_tol(cv, law->cv,
                            4.0 * law->cv * sqrt(0.5 + 0.5 * law->cv * law->cv) / root);
    free(r);
}
END_TEST

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

START_TEST(poisson_gaps_are_exponential_by_kolmogorov_and_smirnov)
{
    /* sqrt n D exceeds 1.95 in one of 1000 samples of the law itself. */
    madetrace("mixed:reactive_per_min=60,proactive_per_min=60,duration_s=20000", 3, &t);
    for (int cls = 0; cls < 2; cls++) {
        size_t n;
        const struct trace_row **r = firsts(&t, cls, &n);
        double *gap = calloc(n, sizeof *gap), worst = 0.0;
        for (size_t i = 0; i < n; i++) {
            gap[i] = units_s_from_ns(r[i]->arrival_ns - (i == 0 ? 0 : r[i - 1]->arrival_ns));
        }
        qsort(gap, n, sizeof *gap, by_value);
        for (size_t i = 0; i < n; i++) {
            double p = -expm1(-gap[i]);
            worst = fmax(worst, fmax(p - (double)i / (double)n, (double)(i + 1) / (double)n - p));
        }
        ck_assert_double_lt(worst * sqrt((double)n), 1.95);
        free(gap);
        free(r);
    }
}
END_TEST

START_TEST(the_two_classes_arrive_independently)
{
    /* Rates are equal, and gaps have mean and standard deviation 1 s. So the mean product of
     * deviations has a standard deviation of 1/sqrt n. */
    madetrace("mixed:reactive_per_min=60,proactive_per_min=60,duration_s=20000", 3, &t);
    size_t n[2], k = 1;
    const struct trace_row **r[2] = {firsts(&t, 0, &n[0]), firsts(&t, 1, &n[1])};
    double sum = 0.0;
    for (; k < n[0] && k < n[1]; k++) {
        sum += (units_s_from_ns(r[0][k]->arrival_ns - r[0][k - 1]->arrival_ns) - 1.0) *
               (units_s_from_ns(r[1][k]->arrival_ns - r[1][k - 1]->arrival_ns) - 1.0);
    }
    ck_assert_uint_gt(k, 19000);
    ck_assert_double_eq_tol(sum / (double)k, 0.0, 4.0 / sqrt((double)k));
    free(r[0]);
    free(r[1]);
}
END_TEST

START_TEST(two_classes_on_one_table_draw_their_own_rows)
{
    /* There are 110 conversations. The n-th of both classes is the same one about once in 110. A
     * binomial of 2000 draws has mean 18 and standard deviation 4.3. */
    madetrace("mixed:reactive=mtrag,proactive=mtrag,sessions=1,reactive_per_min=60,"
              "proactive_per_min=60,duration_s=2300",
              3, &t);
    size_t n[2];
    const struct trace_row **r[2] = {firsts(&t, 0, &n[0]), firsts(&t, 1, &n[1])};
    int n_same = 0, n_same_gap = 0;
    for (size_t k = 0; k < 2000; k++) {
        const struct trace_row *x = r[0][k], *y = r[1][k];
        n_same += x->input_tokens == y->input_tokens && x->output_tokens == y->output_tokens;
        n_same_gap += x->next != TRACE_NO_ROW && y->next != TRACE_NO_ROW &&
                      t.rows[x->next].arrival_ns == t.rows[y->next].arrival_ns;
    }
    ck_assert_int_lt(n_same, 18 + 4 * 5);
    ck_assert_int_lt(n_same_gap, 2);
    free(r[0]);
    free(r[1]);
}
END_TEST

START_TEST(all_arrivals_fall_into_the_duration)
{
    madetrace("mixed:reactive_per_min=600,proactive_per_min=600,duration_s=100", 1, &t);
    ck_assert_uint_eq(t.n, t.n_first);
    for (size_t i = 0; i < t.n; i++) {
        ck_assert_int_ge(t.rows[i].arrival_ns, i == 0 ? 0 : t.rows[i - 1].arrival_ns);
        ck_assert_int_lt(t.rows[i].arrival_ns, 100 * NS_PER_S);
        ck_assert_uint_eq(t.rows[i].request_id, i);
    }
    /* 2000 expected: the last one is within 2 s of the end but for a chance of exp(-40). */
    ck_assert_int_gt(t.rows[t.n - 1].arrival_ns, 98 * NS_PER_S);
}
END_TEST

/* A packed trace is the same one: the same hash, the same rows, before and after it gets them; with
 * targets of latency its clients are its sessions. */
START_TEST(a_packed_trace_is_the_same_trace)
{
    struct trace packed = {0};
    madetrace("w1:n=300", 1, &t);
    ck_assert_int_eq(trace_generate_packed("w1:n=300", 1, 1.0, &packed, &err), 0);
    ck_assert_ptr_null(packed.rows);
    ck_assert_uint_eq(packed.hash, t.hash);
    ck_assert_uint_eq(trace_hash(&packed), trace_hash(&t));
    trace_set_slos(&packed, NS_PER_S, NS_PER_S);
    for (uint32_t i = 0; i < 300; i++) {
        ck_assert_int_eq(trace_row_at(&packed, i).arrival_ns, t.rows[i].arrival_ns);
        ck_assert_uint_eq(trace_row_at(&packed, i).request_id, t.rows[i].request_id);
        ck_assert_uint_eq(packed.extras[i].client_id, t.rows[i].session_id);
    }
    trace_unpack(&packed);
    ck_assert_ptr_nonnull(packed.rows);
    trace_set_slos(&t, NS_PER_S, NS_PER_S);
    ck_assert_uint_eq(trace_hash(&packed), trace_hash(&t));
    trace_fini(&packed);
}
END_TEST

START_TEST(w1_is_the_published_load)
{
    /* splitmix64 from 42: 13679457532755275413, 2949826092126892291, 5139283748462763858; over
     * 2^64: u = 0.7415648788, 0.1599103929, 0.2786011303; gaps -ln(1-u)/2: 0.676555299,
     * 0.087123359, 0.163281539 s (computed with 50 digits); sums as below. */
    static const int64_t at_ns[] = {676555299, 763678658, 926960197};
    madetrace("w1:n=3", 99, &t);
    ck_assert_uint_eq(t.n, 3);
    ck_assert_uint_eq(t.n_first, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct trace_row *r = &t.rows[i];
        ck_assert_int_eq(r->arrival_ns, at_ns[i]);
        ck_assert_uint_eq(r->input_tokens, 512);
        ck_assert_uint_eq(r->output_tokens, 64);
        ck_assert_uint_eq(r->cls, 0);
        ck_assert_uint_eq(r->request_id, i);
        ck_assert_uint_eq(r->session_id, i);
        ck_assert_uint_eq(r->next, TRACE_NO_ROW);
    }
}
END_TEST

/* ---- lengths ---- */

/* Draws are uniform over the rows of the table, whole rows. Each of 40,000 draws is counted at its
 * (input, output) pair, and no pair is outside the table. The mean input is within 4 standard
 * errors of the table's. The chi-square of the counts stays within 4 standard deviations. */
static void expect_table_draws(const char *name, int cls)
{
    struct table d = table_read(name, "%*u,%u,%u", 2);
    madetrace("mixed:reactive_per_min=300,proactive_per_min=300,duration_s=8000", 17, &t);
    size_t n;
    const struct trace_row **r = firsts(&t, cls, &n);
    double *count = calloc(d.n, sizeof *count), *weight = calloc(d.n, sizeof *weight);
    double mean = 0.0, square = 0.0, got = 0.0;
    for (size_t k = 0; k < d.n; k++) { /* equal rows share the first one's cell */
        size_t j = 0;
        while (d.v[j][0] != d.v[k][0] || d.v[j][1] != d.v[k][1]) {
            j++;
        }
        weight[j] += 1.0;
        mean += d.v[k][0] / (double)d.n;
        square += (double)d.v[k][0] * d.v[k][0] / (double)d.n;
    }
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < d.n && (d.v[j][0] != r[i]->input_tokens || d.v[j][1] != r[i]->output_tokens)) {
            j++;
        }
        ck_assert_msg(j < d.n, "%u in, %u out is no row of %s", r[i]->input_tokens,
                      r[i]->output_tokens, name);
        ck_assert_uint_eq(r[i]->max_output_tokens, trace_default_limit(r[i]->output_tokens));
        ck_assert_uint_eq(r[i]->prefix_tokens, 0);
        count[j] += 1.0;
        got += r[i]->input_tokens / (double)n;
    }
    ck_assert_double_eq_tol(got, mean, 4.0 * sqrt((square - mean * mean) / (double)n));
    double chi = 0.0, cells = 0.0;
    for (size_t j = 0; j < d.n; j++) {
        double want = weight[j] * (double)n / (double)d.n;
        chi += want > 0.0 ? (count[j] - want) * (count[j] - want) / want : 0.0;
        cells += want > 0.0;
        ck_assert(want == 0.0 || count[j] > 0.0); /* at least 16 expected of each: exp(-16) */
    }
    ck_assert_double_eq_tol(chi, cells - 1.0, 4.0 * sqrt(2.0 * (cells - 1.0)));
    free(count);
    free(weight);
    free(d.v);
    free(r);
}

START_TEST(reactive_lengths_are_rows_of_the_table)
{
    expect_table_draws("reactive_mixed", 0);
}
END_TEST

START_TEST(proactive_lengths_are_rows_of_the_table)
{
    expect_table_draws("proactive_mixed", 1);
}
END_TEST

START_TEST(output_scale_multiplies_and_rounds_outputs_only)
{
    struct trace half;
    madetrace("mixed:duration_s=20000", 2, &t);
    madetrace("mixed:duration_s=20000,output_scale=0.25", 2, &half);
    ck_assert_uint_eq(t.n, half.n);
    size_t n_floor = 0;
    for (size_t i = 0; i < t.n; i++) {
        ck_assert_int_eq(half.rows[i].arrival_ns, t.rows[i].arrival_ns);
        ck_assert_uint_eq(half.rows[i].input_tokens, t.rows[i].input_tokens);
        uint32_t want = (t.rows[i].output_tokens + 2) / 4; /* x/4 to nearest, halves up */
        n_floor += want == 0;
        ck_assert_uint_eq(half.rows[i].output_tokens, want == 0 ? 1 : want);
    }
    ck_assert_uint_gt(n_floor, 0); /* some would have rounded to none */
    trace_fini(&half);
}
END_TEST

/* ---- streams ---- */

/* The requests of a class in two traces: same instants and lengths, as far as both reach. */
static void expect_same_class(const struct trace *a, const struct trace *b, int cls, bool instants,
                              bool same_number)
{
    size_t n, m;
    const struct trace_row **x = firsts(a, cls, &n), **y = firsts(b, cls, &m);
    ck_assert_uint_gt(n, 100);
    ck_assert(!same_number || n == m);
    for (size_t i = 0; i < n && i < m; i++) {
        ck_assert(!instants || x[i]->arrival_ns == y[i]->arrival_ns);
        ck_assert_uint_eq(x[i]->input_tokens, y[i]->input_tokens);
        ck_assert_uint_eq(x[i]->output_tokens, y[i]->output_tokens);
    }
    free(x);
    free(y);
}

/* Half of reactive prompts (at least a token), three halves of proactive outputs, no prompt above
 * 500: the other lengths and all instants stay. */
START_TEST(each_class_has_its_own_scales_and_prompts_may_be_cut)
{
    struct trace other;
    madetrace("mixed:duration_s=6000", 4, &t);
    madetrace(
        "mixed:duration_s=6000,reactive_input_scale=0.5,proactive_output_scale=1.5,input_cap=500",
        4, &other);
    ck_assert_uint_eq(t.n, other.n);
    size_t cut = 0;
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_row *x = &t.rows[i];
        bool reactive = x->cls == REQUEST_CLASS_REACTIVE;
        uint32_t in = reactive ? (x->input_tokens + 1) / 2 : x->input_tokens;
        uint32_t out = reactive ? x->output_tokens : (3 * x->output_tokens + 1) / 2;
        cut += in > 500;
        ck_assert_uint_eq(other.rows[i].input_tokens, in > 500 ? 500 : in);
        ck_assert_uint_eq(other.rows[i].output_tokens, out);
        ck_assert_int_eq(other.rows[i].arrival_ns, x->arrival_ns);
    }
    ck_assert_uint_gt(cut, 10);
    trace_fini(&other);
}
END_TEST

START_TEST(a_class_does_not_move_when_the_other_changes)
{
    struct trace other;
    madetrace("mixed:duration_s=6000", 4, &t);
    static const char *const changes[][2] = {
        {"mixed:duration_s=6000,proactive_per_min=17", "0"},
        {"mixed:duration_s=6000,proactive_per_min=0", "0"},
        {"mixed:duration_s=6000,proactive=samsum", "0"},
        {"mixed:duration_s=6000,reactive_per_min=0.5", "1"},
        {"mixed:duration_s=6000,reactive=mtrag,sessions=1", "1"},
        {"mixed:duration_s=6000,arrival=closed,users=3", "1"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        madetrace(changes[i][0], 4, &other);
        expect_same_class(&t, &other, changes[i][1][0] - '0', true, true);
        trace_fini(&other);
    }
    /* A longer trace begins with the shorter one; another rate keeps the sequence of lengths. */
    madetrace("mixed:duration_s=9000", 4, &other);
    expect_same_class(&t, &other, 0, true, false);
    expect_same_class(&t, &other, 1, true, false);
    ck_assert_uint_gt(other.n, t.n);
    trace_fini(&other);
    madetrace("mixed:duration_s=6000,reactive_per_min=30", 4, &other);
    expect_same_class(&t, &other, 0, false, false);
    trace_fini(&other);
}
END_TEST

START_TEST(the_seed_and_nothing_else_decides)
{
    struct trace other;
    madetrace("mixed", 1, &t);
    madetrace("mixed:", 1, &other);
    ck_assert_uint_eq(t.hash, other.hash);
    trace_fini(&other);
    madetrace("mixed", 2, &other);
    ck_assert_uint_ne(t.hash, other.hash);
    ck_assert_int_ne(t.rows[0].arrival_ns, other.rows[0].arrival_ns);
    trace_fini(&other);
    /* The defaults are written out, and rate_scale gives twice the rates. */
    madetrace("mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900,arrival=poisson,"
              "reactive=reactive_mixed,proactive=proactive_mixed,output_scale=1,burst=1",
              1, &other);
    ck_assert_uint_eq(t.hash, other.hash);
    trace_fini(&other);
    trace_fini(&t);
    madetrace("mixed:reactive_per_min=6,proactive_per_min=12", 1, &t);
    ck_assert_int_eq(trace_generate("mixed", 1, 2.0, &other, &err), 0);
    ck_assert_uint_eq(t.hash, other.hash);
    trace_fini(&other);
}
END_TEST

/* ---- replay and activity ---- */

START_TEST(replay_repeats_the_recorded_gaps_at_the_stated_rate)
{
    /* Two recordings: gaps 1 and 3, then 2 and 6 (none between the recordings): mean 3. At 60 per
     * minute they become 1/3, 1, 2/3, 2 s in a circle, beginning anywhere in it. */
    tempfile_put("session_id,arrival_s\n1,10\n1,11\n1,14\n2,5\n2,7\n2,13\n");
    char spec[300];
    (void)snprintf(spec, sizeof spec,
                   "mixed:arrival=replay,events=%s,reactive_per_min=60,proactive_per_min=0,"
                   "duration_s=400",
                   path);
    static const double gaps_s[] = {1.0 / 3, 1.0, 2.0 / 3, 2.0};
    double starts[4] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        madetrace(spec, seed, &t);
        double first = units_s_from_ns(t.rows[0].arrival_ns);
        double second = units_s_from_ns(t.rows[1].arrival_ns) - first;
        int at = 0;
        while (at < 3 && fabs(second - gaps_s[(at + 1) % 4]) > 1e-6) {
            at++;
        }
        ck_assert_double_le(first, gaps_s[at] + 1e-9); /* what is left of that gap */
        starts[at]++;
        double want = first;
        for (size_t i = 1; i < t.n; i++) {
            want += gaps_s[(at + (int)i) % 4];
            ck_assert_double_eq_tol(units_s_from_ns(t.rows[i].arrival_ns), want, 1e-6);
        }
        ck_assert_double_lt(want, 400.0); /* and the next one would be past the end */
        ck_assert_double_ge(want + gaps_s[(at + (int)t.n) % 4], 400.0 - 1e-6);
        trace_fini(&t);
    }
    /* In a gap as often as it is long. Chi-square of 3 degrees of freedom exceeds 16.3 in one of
     * 1000. */
    double chi2 = 0.0;
    for (int k = 0; k < 4; k++) {
        double expected = 400.0 * gaps_s[k] / 4.0;
        chi2 += (starts[k] - expected) * (starts[k] - expected) / expected;
    }
    ck_assert_double_lt(chi2, 16.3);
}
END_TEST

/* A workload has the stated rate for any length and any variation of gaps: 20 requests in 20 s. If
 * it began with a whole gap, gaps of CV 4 would give up to 7.5 more, and gaps of CV 0.2 half a
 * request less. The replay has 99 gaps of 1 s and one of 901 s. So it has 10 gaps of 0.1 s each
 * second except in the long one. It would begin in that in one of 100 instead of nine of ten. The
 * bounds are five standard errors of the counts themselves. */
START_TEST(the_rate_holds_from_the_start_on)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("arrival_s\n0\n", f);
    for (int i = 1; i <= 99; i++) {
        (void)fprintf(f, "%d\n", i);
    }
    fputs("1000\n", f);
    ck_assert_int_eq(fclose(f), 0);
    char replay[200];
    (void)snprintf(replay, sizeof replay, "replay,events=%s", path);
    const char *arrival[] = {"poisson", "gamma,cv=4", "gamma,cv=0.2", replay};
    for (int k = 0; k < 4; k++) {
        char spec[400];
        (void)snprintf(spec, sizeof spec,
                       "mixed:arrival=%s,reactive_per_min=60,proactive_per_min=0,duration_s=20",
                       arrival[k]);
        double sum = 0.0;
        double sum2 = 0.0;
        for (uint64_t seed = 0; seed < 2000; seed++) {
            /* One of no requests is refused, and counts as 0 here. */
            size_t n = trace_generate(spec, seed, 1.0, &t, &err) == 0 ? t.n : 0;
            sum += (double)n;
            sum2 += (double)(n * n);
            trace_fini(&t);
            err_fini(&err);
            err = (struct err)ERR_INIT;
        }
        double mean = sum / 2000.0;
        double error = sqrt((sum2 / 2000.0 - mean * mean) / 2000.0);
        ck_assert_msg(fabs(mean - 20.0) < 5.0 * error, "%s: %.3f +- %.3f", arrival[k], mean, error);
    }
}
END_TEST

START_TEST(shipped_recordings_replay_at_the_stated_rate)
{
    static const char *const events[] = {"proactivebench_events", "azure_conv_2023",
                                         "azure_code_2023"};
    char spec[300];
    (void)snprintf(spec, sizeof spec,
                   "mixed:arrival=replay,events=%s,proactive_per_min=600,reactive_per_min=0,"
                   "duration_s=20000",
                   events[_i]);
    madetrace(spec, 8, &t);
    /* Gaps of whole rounds have mean 0.1 s exactly; only a part of a round, at most 10,110 of
     * about 200,000 events, can deviate. Its share is bounded here by 10 %. */
    ck_assert_double_eq_tol((double)t.n, 200000.0, 20000.0);
}
END_TEST

START_TEST(both_classes_are_idle_together_and_keep_their_mean_rate)
{
    /* Users are active a tenth of the time at ten times the rate, so not at all while idle, with
     * 1000 s periods on average over 10^6 s. Mean rates of 10/s would give 10^7, which are many, so
     * rates are 0.5/s, 5/s while active. The active time has mean D/10 and variance 2 a^2 b^2 D /
     * (a + b)^3 with a = 100, b = 900 (alternating renewal): 1.62e7, standard deviation 4025 s.
     * Arrivals have variance 25 * 1.62e7 + 5e5, standard deviation 20,137. */
    madetrace("mixed:burst=10,active_share=0.1,activity_period_s=1000,duration_s=1000000,"
              "reactive_per_min=30,proactive_per_min=30",
              21, &t);
    size_t n[2];
    const struct trace_row **r[2] = {firsts(&t, 0, &n[0]), firsts(&t, 1, &n[1])};
    for (int cls = 0; cls < 2; cls++) {
        ck_assert_double_eq_tol((double)n[cls], 500000.0, 4.0 * 20137.0);
    }
    /* A gap over 6 s inside an active phase has chance exp(-30). So a gap over 30 s is an idle
     * phase, or two with an active one of less than 6 s between (this class has an arrival in all
     * others). So arrivals of the other class in it, 6 s from its ends, must lie within 6 s. */
    size_t n_idle = 0, k = 0;
    for (size_t i = 1; i < n[0]; i++) {
        int64_t from = r[0][i - 1]->arrival_ns + 6 * NS_PER_S;
        int64_t to = r[0][i]->arrival_ns - 6 * NS_PER_S, first = TIME_NEVER_NS;
        if (to - from > 18 * NS_PER_S) {
            n_idle++;
            for (; k < n[1] && r[1][k]->arrival_ns < to; k++) {
                int64_t at = r[1][k]->arrival_ns;
                first = at > from && first == TIME_NEVER_NS ? at : first;
                ck_assert(at <= from || at - first < 6 * NS_PER_S);
            }
        }
    }
    /* There are about 1000 idle phases, and exp(-30/900) = 0.967 of them are that long. The
     * standard deviation of their number over D is sqrt(D (a^2 + b^2) / (a + b)^3) = 29. */
    ck_assert_double_eq_tol((double)n_idle, 967.0, 4.0 * 30.0);
    free(r[0]);
    free(r[1]);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("workload", .setup = setup, .teardown = teardown),
    LOOP(gaps_have_the_stated_mean_and_variation, (sizeof LAWS / sizeof LAWS[0])),
    TEST(poisson_gaps_are_exponential_by_kolmogorov_and_smirnov),
    TEST(the_two_classes_arrive_independently),
    TEST(two_classes_on_one_table_draw_their_own_rows),
    TEST(all_arrivals_fall_into_the_duration),
    TEST(w1_is_the_published_load),
    TEST(a_packed_trace_is_the_same_trace),
    TEST(reactive_lengths_are_rows_of_the_table),
    TEST(proactive_lengths_are_rows_of_the_table),
    TEST(output_scale_multiplies_and_rounds_outputs_only),
    TEST(each_class_has_its_own_scales_and_prompts_may_be_cut),
    TEST(a_class_does_not_move_when_the_other_changes),
    TEST(the_seed_and_nothing_else_decides),
    TEST(replay_repeats_the_recorded_gaps_at_the_stated_rate),
    TEST(the_rate_holds_from_the_start_on),
    LOOP(shipped_recordings_replay_at_the_stated_rate, 3),
    TEST(both_classes_are_idle_together_and_keep_their_mean_rate),
};
SUITE_MAIN("workload", suite)

/* A real run's report of its kernels against an observer of its launches. Each row of each op
 * must be there once, with the right tokens. Devices must have worked as long, and in the same
 * phases. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/drive/drive_impl.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"

enum { MOST_SEEN = 20000, MOST_PARTS = 64 };

/* A kernel that was not stopped, and the rows of its pass that belong to each sequence. */
struct seen {
    uint32_t launch, pass, n_parts, op_rows;
    uint8_t device, op;
    uint32_t layer;
    int64_t begin_ns, ns;
    struct {
        uint32_t rows, first_token;
        bool prefill;
    } parts[MOST_PARTS];
};

static struct seen *seen;
static size_t n_seen;
static enum power_phase phase[MACHINE_MAX_DEVICES];
static uint32_t n_phases[8];

static void on_kernel(void *self, const struct kernel_record *k)
{
    (void)self;
    const struct pass *p = k->launch->pass;
    ck_assert_uint_lt(n_seen, MOST_SEEN);
    struct seen *s = &seen[n_seen++];
    *s = (struct seen){.launch = k->launch->id,
                       .pass = p->id,
                       .op_rows = k->op == OP_HEAD ? p->shape.logit_rows : p->shape.rows,
                       .device = k->launch->device,
                       .op = (uint8_t)k->op,
                       .layer = k->layer,
                       .begin_ns = k->begin_ns,
                       .ns = k->end_ns - k->begin_ns};
    ck_assert_int_eq(k->isolated_ns, s->ns);
    ck_assert_uint_le(p->n_segments, MOST_PARTS);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        s->parts[s->n_parts].rows = p->segments[i].n_tokens;
        s->parts[s->n_parts].first_token = p->segments[i].first_token;
        s->parts[s->n_parts++].prefill = p->segments[i].role == SEGMENT_PREFILL;
    }
}

static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase to, double watts)
{
    (void)self, (void)now_ns;
    ck_assert(watts == 0.0); /* they are not known */
    if (domain < MACHINE_MAX_DEVICES) {
        phase[domain] = to;
        n_phases[to]++;
    }
}

/* A launch that did something had its device until now, since devices take one after the other. */
static void on_launch_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                            int64_t lost_ns)
{
    (void)self, (void)now_ns, (void)lost_ns;
    enum power_phase want =
        l->pass->shape.prefill_rows > 0 ? POWER_PHASE_PREFILL : POWER_PHASE_DECODE;
    ck_assert(isolated_ns == 0 || phase[l->device] == want);
}

static bool same_op(const struct seen *a, const struct seen *b)
{
    return a->pass == b->pass && a->layer == b->layer && a->op == b->op;
}

/* The rows of every op of a pass must not overlap, and must be all rows. */
static void every_row_once(const struct drive_kernel *kernels)
{
    for (size_t i = 0; i < n_seen; i++) {
        uint32_t rows = 0;
        bool first = true;
        for (size_t k = 0; k < n_seen; k++) {
            if (!same_op(&seen[i], &seen[k])) {
                continue;
            }
            first = first && k >= i;
            rows += kernels[k].rows;
            bool apart = kernels[k].row0 >= kernels[i].row0 + kernels[i].rows ||
                         kernels[i].row0 >= kernels[k].row0 + kernels[k].rows;
            ck_assert(i == k || apart);
        }
        ck_assert(!first || rows == seen[i].op_rows);
    }
}

/* Each sequence whose rows the kernel has must have its tokens, and the position up to which they
 * see keys. */
static void segments_hold(const struct seen *s, const struct drive_kernel *k)
{
    const struct drive_segment *v = &real_report.segments[k->segment0];
    uint32_t row = 0;
    uint32_t n = 0;
    if (s->op != OP_MHA && s->op != OP_LAYER) {
        ck_assert_uint_eq(k->n_segments, 0);
        return;
    }
    for (uint32_t i = 0; i < s->n_parts; i++) {
        uint32_t mine = 0;
        uint32_t last = 0;
        for (uint32_t t = 0; t < s->parts[i].rows; t++, row++) {
            bool in = row >= k->row0 && row < k->row0 + k->rows;
            mine += in;
            last = in ? s->parts[i].first_token + t + 1 : last;
        }
        if (mine > 0) {
            ck_assert_uint_lt(n, k->n_segments);
            ck_assert(v[n].rows == mine && v[n].keys == last &&
                      v[n].prefill == s->parts[i].prefill);
            n++;
        }
    }
    ck_assert_uint_eq(k->n_segments, n);
}

START_TEST(kernels_are_those_of_the_launches)
{
    static const char *const policies[] = {"agent-xpu-v2", "hetero-split", "sarathi",
                                           "agent-xpu-v1"};
    struct tokens t;
    struct observer o = {.kernel = on_kernel, .power = on_power, .launch_ended = on_launch_ended};
    const char *policy = policies[_i / 2];
    seen = xcalloc(MOST_SEEN, sizeof *seen);
    realrun_requests_make(60);
    realrun_machine_make(&plain_engine, _i % 2 == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    realrun_small_model();
    real_n = 12;
    real.setup.observers[real.setup.n_observers++] = &o;
    int rc = realrun_run(policy_find(policy), realrun_parameters_of(policy), &t);
    ck_assert_msg(rc == 0, "%s: %s", policy, real.result.message);
    int64_t busy_ns[MACHINE_MAX_DEVICES] = {0};
    struct drive_kernel *kept = xcalloc(real_report.n_kernels + 1, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < real_report.n_kernels; i++) {
        const struct drive_kernel *k = &real_report.kernels[i];
        busy_ns[k->device] += k->ns;
        ck_assert_int_gt(k->ns, 0);
        ck_assert_uint_ge(k->padded_rows, k->rows);
        if (k->stopped) {
            continue;
        }
        ck_assert_uint_lt(n, n_seen);
        const struct seen *s = &seen[n];
        ck_assert(k->launch == s->launch && k->device == s->device && k->op == s->op &&
                  k->layer == s->layer && k->begin_ns == s->begin_ns && k->ns == s->ns);
        ck_assert_uint_le(k->row0 + k->rows, s->op_rows);
        segments_hold(s, k);
        kept[n++] = *k;
    }
    ck_assert_uint_eq(n, n_seen);
    ck_assert_uint_eq(real.result.kernels, real_report.n_kernels);
    ck_assert_uint_gt(n, 100);
    every_row_once(kept);
    for (uint32_t d = 0; d < MACHINE_MAX_DEVICES; d++) {
        ck_assert_int_eq(busy_ns[d], real_report.busy_ns[d]);
        ck_assert_int_eq(phase[d], POWER_PHASE_IDLE);
    }
    ck_assert(n_phases[POWER_PHASE_PREFILL] > 0 && n_phases[POWER_PHASE_DECODE] > 0);
    free(kept);
    free(seen);
}
END_TEST

/* Octave i has 2^i to 2^(i+1) ns. Less than 1 ns is in the first octave, and more than 2^40 in the
 * last. */
START_TEST(durations_are_summed_by_octaves)
{
    static const int64_t ns[] = {0, 1, 2, 3, 4, 1023, 1024, (int64_t)1 << 45};
    static const int octave[] = {0, 0, 1, 1, 2, 9, 10, 39};
    struct drive_times t = {0};
    double sum = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        struct drive_times before = t;
        drive_times_add(&t, ns[i]);
        sum += (double)ns[i];
        squares += (double)ns[i] * (double)ns[i];
        for (int o = 0; o < DRIVE_OCTAVES; o++) {
            bool mine = o == octave[i];
            ck_assert_uint_eq(t.octave[o].n, before.octave[o].n + mine);
            ck_assert(t.octave[o].sum_ns == before.octave[o].sum_ns + (mine ? (double)ns[i] : 0.0));
            ck_assert(t.octave[o].sum_sq ==
                      before.octave[o].sum_sq + (mine ? (double)ns[i] * (double)ns[i] : 0.0));
        }
    }
    ck_assert_uint_eq(t.n, 8);
    ck_assert(t.sum_ns == sum && t.sum_sq == squares && t.max_ns == (double)ns[7]);
    ck_assert_double_eq(drive_mean_ns(&t), sum / 8.0);
}
END_TEST

/* Values up to three octaves above the middle one are kept. There are 5 in octave 3, 3 in octave 6
 * and 1 in octave 7, so the last one is left out. */
START_TEST(what_is_far_above_the_middle_is_left_out)
{
    struct drive_times t = {0};
    for (int i = 0; i < 9; i++) {
        drive_times_add(&t, i < 5 ? 8 : i < 8 ? 100 : 200);
    }
    struct drive_times kept = drive_times_screened(&t);
    ck_assert_uint_eq(kept.n, 8);
    ck_assert(kept.sum_ns == 340.0 && kept.sum_sq == 5 * 64.0 + 3 * 10000.0);
    drive_times_add(&t, 200); /* exactly half is below: the middle is octave 6 */
    kept = drive_times_screened(&t);
    ck_assert_uint_eq(kept.n, 10);
    ck_assert(kept.sum_ns == 740.0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("report", .timeout_s = 120),
    LOOP(kernels_are_those_of_the_launches, 8),
    TEST(durations_are_summed_by_octaves),
    TEST(what_is_far_above_the_middle_is_left_out),
};
SUITE_MAIN("drive report", suite)

/* Traces that shrink: of random ones, and of random needs, what is left shows the same, nothing can
 * be left out of it, it is a trace, and no more was tried than was allowed. */
#include <string.h>

#include "experiments/diff/shrink_trace.h"
#include "sim/base/rng.h"
#include "tests/helpers/randomgraph.h"
#include "tests/helpers/randomtrace.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define NEEDS 3

/* Requests that must be there, with so many tokens at least. */
struct needs {
    uint32_t n, id[NEEDS], input[NEEDS], output[NEEDS];
    uint32_t tests;
};

static bool meets(const struct needs *w, const struct trace *t)
{
    uint32_t met = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        for (size_t i = 0; i < t->n; i++) {
            const struct trace_row *r = &t->rows[i];
            met += r->request_id == w->id[k] && r->input_tokens >= w->input[k] &&
                   r->output_tokens >= w->output[k];
        }
    }
    return met == w->n;
}

static bool shows(void *ctx, const struct trace *t)
{
    struct needs *w = ctx;
    w->tests++;
    return meets(w, t);
}

static struct needs drawn(struct rng *r, const struct trace *t)
{
    struct needs w = {.n = 1 + rng_below(r, NEEDS)};
    for (uint32_t k = 0; k < w.n; k++) {
        const struct trace_row *row = &t->rows[rng_below(r, (uint32_t)t->n)];
        w.id[k] = row->request_id;
        w.input[k] = rng_below(r, row->input_tokens + 1);
        w.output[k] = rng_below(r, row->output_tokens + 1);
    }
    return w;
}

/* ---- what can still be left out ---- */

static bool without(const struct needs *w, const struct trace *t, const bool *keep)
{
    SCOPED(trace_fini) struct trace less = {0};
    return trace_subset(t, keep, &less) == 0 && less.n > 0 && meets(w, &less);
}

static bool is_source(const struct trace *t, size_t row)
{
    bool found = false;
    for (size_t i = 0; t->graph != NULL && t->graph->source != NULL && i < t->n; i++) {
        found = found || t->graph->source[i] == row;
    }
    return found;
}

/* Without one session; without one last turn. A job may fall into two when its last request goes,
 * of which one is not needed. */
static void nothing_goes(const struct needs *w, const struct trace *t, uint64_t seed)
{
    OWNED bool *keep = xmalloc((t->n + 1) * sizeof *keep);
    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < t->n; k++) {
            keep[k] = t->rows[k].session_id != t->rows[i].session_id;
        }
        bool session = t->graph == NULL && without(w, t, keep);
        ck_assert_msg(!session, "%llu: a session too much", (unsigned long long)seed);
        memset(keep, true, t->n * sizeof *keep);
        keep[i] = false;
        bool last = i >= t->n_first && t->rows[i].next == TRACE_NO_ROW;
        ck_assert_msg(!last || !without(w, t, keep), "%llu: a turn too much",
                      (unsigned long long)seed);
    }
}

/* A row whose length no prompt repeats has its least power of halves. */
static void no_length_halves(const struct needs *w, const struct trace *t, uint64_t seed)
{
    for (size_t i = 0; i < t->n; i++) {
        struct trace_row *r = &t->rows[i];
        uint32_t *const lengths[] = {&r->input_tokens, &r->output_tokens};
        for (int k = 0; k < 2 && !is_source(t, i); k++) {
            uint32_t old = *lengths[k];
            *lengths[k] /= 2;
            ck_assert_msg(old < 2 || !meets(w, t), "%llu: request %u is too long",
                          (unsigned long long)seed, r->request_id);
            *lengths[k] = old;
        }
    }
}

/* It is written, and read again. */
static void is_a_trace(const struct trace *t)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace again = {0};
    const char *path = tempfile_make("");
    ck_assert_int_eq(trace_write(path, t, &e), 0);
    ck_assert_msg(trace_read(path, &again, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_uint_eq(again.hash, t->hash);
    ck_assert_uint_eq(again.n, t->n);
    tempfile_remove();
}

START_TEST(what_is_left_is_the_least)
{
    for (uint64_t seed = (uint64_t)_i * 100; seed < (uint64_t)_i * 100 + 40; seed++) {
        struct trace t = {0};
        struct rng r;
        rng_init(&r, seed);
        (seed % 2 == 0 ? randomtrace_make(&t, seed) : randomgraph_make(seed, &t));
        struct needs w = drawn(&r, &t);
        uint32_t most = rng_below(&r, 3) == 0 ? 1 + rng_below(&r, 30) : 100000;
        struct shrink_trace s = {.ctx = &w, .shows = shows, .max_tests = most};
        uint32_t tests = shrink_trace_run(&s, &t);
        ck_assert_uint_eq(tests, w.tests);
        ck_assert_msg(tests <= most, "%llu: %u tests of %u", (unsigned long long)seed, tests, most);
        ck_assert_msg(meets(&w, &t), "%llu: it is gone", (unsigned long long)seed);
        if (most == 100000) {
            nothing_goes(&w, &t, seed);
            no_length_halves(&w, &t, seed);
        }
        is_a_trace(&t);
        trace_fini(&t);
    }
}
END_TEST

static bool always(void *ctx, const struct trace *t)
{
    (void)ctx;
    return t->n == 2;
}

/* A prompt begins with 33 to 96 tokens of a request with 32 tokens and an answer of 64. The answer
 * and then the prompt are halved as long as there are so many, and just as many will do. */
START_TEST(a_source_is_halved_down_to_what_begins_with_it)
{
    static const uint32_t prefixes[] = {33, 40, 48, 63, 64, 65, 96};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        SCOPED(err_fini) struct err e = ERR_INIT;
        struct trace t = {0};
        OWNED char *text =
            xformat("# xpusim-trace v2\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                    "input_tokens,output_tokens,prefix_tokens,prefix_of,parent_ids\n"
                    "0,0,0,reactive,0,,32,64,0,,\n1,1,0,reactive,,0,100,8,%u,0,0\n",
                    prefixes[i]);
        const char *path = tempfile_make("");
        tempfile_put(text);
        ck_assert_msg(trace_read(path, &t, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
        tempfile_remove();
        const struct shrink_trace s = {.shows = always, .max_tests = 1000};
        (void)shrink_trace_run(&s, &t);
        uint32_t output = 64;
        uint32_t input = 32;
        while (output >= 2 && input + output / 2 >= prefixes[i]) {
            output /= 2;
        }
        while (input >= 2 && input / 2 + output >= prefixes[i]) {
            input /= 2;
        }
        ck_assert_uint_eq(t.rows[0].output_tokens, output);
        ck_assert_uint_eq(t.rows[0].input_tokens, input);
        ck_assert(t.rows[1].input_tokens == 1 && t.rows[1].prefix_tokens <= 1);
        trace_fini(&t);
    }
}
END_TEST

static const struct suite_row rows[] = {
    LOOP(what_is_left_is_the_least, 4),
    TEST(a_source_is_halved_down_to_what_begins_with_it),
};
SUITE_MAIN("shrink anew", rows)

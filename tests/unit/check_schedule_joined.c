/* Launches that follow each other on a device become one row where there are many: made-up launches
 * whose rows are known. */
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/scenario.h"
#include "experiments/report/schedule.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct schedule *schedule;
static struct request requests[3];
static struct segment segments[4];
/* A prompt of request 1, decodes of 2, mixed of 0 and 1, decodes of 0, a prompt of 2. */
static struct pass passes[5];
static uint32_t launches;

static void setup(void)
{
    struct schedule_options o = {0};
    scenario_init(&sc);
    memset(passes, 0, sizeof passes);
    for (uint32_t i = 0; i < 3; i++) {
        requests[i] = (struct request){.id = i};
    }
    segments[0].request = &requests[1];
    segments[1].request = &requests[2];
    segments[2].request = &requests[0];
    segments[3].request = &requests[1];
    for (int i = 0; i < 3; i++) {
        passes[i].segments = &segments[i];
        passes[i].n_segments = i < 2 ? 1 : 2;
    }
    passes[3] = (struct pass){.segments = &segments[2], .n_segments = 1};
    passes[4] = (struct pass){.segments = &segments[1], .n_segments = 1};
    passes[0].shape = (struct work_shape){.rows = 8, .prefill_rows = 8};
    passes[1].shape = (struct work_shape){.rows = 4, .prefill_rows = 0};
    passes[2].shape = (struct work_shape){.rows = 4, .prefill_rows = 3};
    passes[3].shape = passes[1].shape;
    passes[4].shape = passes[0].shape;
    schedule = schedule_new(&sc.machine, &sc.trace, &o);
    launches = 0;
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static struct launch begin(uint8_t device, int pass, int64_t submit_ns, int64_t start_ns)
{
    struct observer *o = schedule_observer(schedule);
    struct launch l = {.id = ++launches,
                       .pass = &passes[pass],
                       .device = device,
                       .rows = 10 + (uint32_t)pass,
                       .submit_ns = submit_ns};
    o->launch_started(o->self, start_ns, &l, 0);
    return l;
}

static void end(struct launch *l, int64_t end_ns, enum launch_outcome outcome)
{
    struct observer *o = schedule_observer(schedule);
    l->outcome = outcome;
    o->launch_ended(o->self, end_ns, l, 1, 0);
}

static void run(uint8_t device, int pass, int64_t submit_ns, int64_t start_ns, int64_t end_ns)
{
    struct launch l = begin(device, pass, submit_ns, start_ns);
    end(&l, end_ns, LAUNCH_OUTCOME_DONE);
}

/* The rows of `launches`, each as "device lane gap wait busy idle launches kind outcome rows set
 * outside"; the caller frees. */
static char *written(int64_t end_ns, bool *joined)
{
    struct observer *o = schedule_observer(schedule);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    struct err e = ERR_INIT;
    o->run_ended(o->self, end_ns);
    schedule_write(schedule, f);
    (void)fclose(f);
    cJSON *tree = cJSON_Parse(text);
    ck_assert_ptr_nonnull(tree);
    free(text);
    err_fini(&e);
    *joined = cJSON_IsTrue(cJSON_GetObjectItem(tree, "joined"));
    const cJSON *t = cJSON_GetObjectItem(tree, "launches");
    int n = cJSON_GetObjectItem(t, "rows")->valueint;
    int width = cJSON_GetArraySize(cJSON_GetObjectItem(t, "columns"));
    OWNED long long *v = xcalloc((size_t)n * (size_t)width + 1, sizeof *v);
    const char *at = cJSON_GetObjectItem(t, "delta")->valuestring;
    for (int c = 0; c < width; c++) {
        long long last = 0;
        for (int i = 0; i < n; i++) {
            char *next;
            last += strtoll(at, &next, 10);
            v[i * width + c] = last;
            at = *next == ',' ? next + 1 : next;
        }
    }
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < n && i < 40; i++) {
        for (int c = 0; c < width; c++) {
            (void)fprintf(out, "%lld%c", v[i * width + c], c + 1 < width ? ' ' : '\n');
        }
    }
    (void)fprintf(out, "%d rows\n", n);
    (void)fclose(out);
    cJSON_Delete(tree);
    return text;
}

/* Few launches are rows of their own. Two at once on a device have lanes, and a lane that is free
 * is taken again. */
START_TEST(few_launches_have_a_row_each)
{
    bool joined;
    run(1, 0, 90, 100, 150);
    struct launch a = begin(1, 1, 150, 160);
    struct launch b = begin(1, 2, 170, 180);
    end(&a, 200, LAUNCH_OUTCOME_DONE);
    struct launch c = begin(1, 0, 205, 210);
    end(&b, 260, LAUNCH_OUTCOME_DONE);
    end(&c, 300, LAUNCH_OUTCOME_DONE);
    run(0, 2, 300, 340, 400);
    OWNED char *text = written(500, &joined);
    ck_assert(!joined);
    ck_assert_str_eq(text, "1 0 100 10 50 0 1 0 0 10 0 0\n"
                           "1 0 10 10 40 0 1 1 0 11 1 0\n"
                           "1 1 180 10 80 0 1 2 0 12 2 0\n"
                           "1 0 10 5 90 0 1 0 0 10 0 0\n"
                           "0 0 340 40 60 0 1 2 0 12 2 0\n"
                           "5 rows\n");
}
END_TEST

/* 30,000 times a prompt for 600 ns and a batch for 400 ns, in turn: two rows, which begin at 0 and
 * 600, and are idle while the other runs. A launch 200 ms behind the row still belongs to it, one
 * that is a nanosecond later begins another. */
START_TEST(many_launches_of_the_same_requests_are_one_row)
{
    bool joined;
    int64_t t = 0;
    for (int i = 0; i < 30000; i++, t += 1000) {
        run(1, 0, t, t, t + 600);
        run(1, 1, t + 600, t + 600, t + 1000);
    }
    /* At t = 30 ms the prompt's row had ended 400 ns before. */
    int64_t at = t - 400 + SCHEDULE_JOIN_NS;
    run(1, 0, at, at, at + 100);             /* joins */
    int64_t late = t + SCHEDULE_JOIN_NS + 1; /* the batch's row ended at t */
    run(1, 1, late - 7, late, late + 50);
    OWNED char *text = written(late + 100, &joined);
    ck_assert(joined);
    /* All are closed at the end, and the one that was opened last comes first. A gap is from the
     * end of the row before. */
    OWNED char *want = xformat("1 0 %lld 7 50 0 1 1 0 11 1 0\n"
                               "1 0 %lld 0 %d %lld 30000 1 0 11 1 0\n"
                               "1 0 %lld 0 %d %lld 30001 0 0 10 0 0\n"
                               "3 rows\n",
                               (long long)late, (long long)(600 - (late + 50)), 30000 * 400,
                               (long long)(t - 600 - 30000 * 400), (long long)-t, 30000 * 600 + 100,
                               (long long)(at + 100 - (30000 * 600 + 100)));
    ck_assert_str_eq(text, want);
}
END_TEST

/* Up to 60,000 launches are shown one by one, and one more is too many. */
START_TEST(the_limit_of_launches_is_exact)
{
    for (int more = 0; more < 2; more++) {
        bool joined;
        for (int i = 0; i < SCHEDULE_MAX_LAUNCHES + more; i++) {
            run(2, 0, i, i, i + 1);
        }
        OWNED char *text = written(SCHEDULE_MAX_LAUNCHES + 10, &joined);
        ck_assert_int_eq(joined, more);
        ck_assert_ptr_nonnull(strstr(text, more ? "\n1 rows\n" : "\n60000 rows\n"));
        teardown();
        setup();
    }
}
END_TEST

/* Decodes of another request begin a row of their own, and so does a prompt of the same one. */
START_TEST(a_row_is_of_one_set_and_one_kind)
{
    bool joined;
    run(1, 1, 0, 0, 10);
    run(1, 3, 10, 10, 20);
    run(1, 4, 20, 20, 30);
    run(1, 1, 30, 30, 40);
    for (int i = 0; i <= SCHEDULE_MAX_LAUNCHES; i++) { /* so many that rows are joined */
        run(2, 0, i, i, i + 1);
    }
    OWNED char *text = written(SCHEDULE_MAX_LAUNCHES + 10, &joined);
    ck_assert_str_eq(text, "1 0 20 0 10 0 1 0 0 14 0 0\n"
                           "1 0 -20 0 10 0 1 1 0 13 1 0\n"
                           "1 0 -20 0 20 20 2 1 0 11 0 0\n"
                           "2 0 0 0 60001 0 60001 0 0 10 2 0\n"
                           "4 rows\n");
}
END_TEST

/* Three launches of 10, 30 and 60 ns are one row, and each may have more rows than was measured.
 * The row's share outside is theirs by time. */
START_TEST(a_row_is_outside_for_the_time_of_its_launches)
{
    static const int64_t ends[] = {10, 40, 100};
    struct schedule_options o = {0};
    o.range[0][1].rows_max = 11;
    for (int mask = 0; mask < 8; mask++) {
        schedule = schedule_new(&sc.machine, &sc.trace, &o);
        int64_t outside = 0;
        for (int i = 0; i < 3; i++) {
            int64_t from = i > 0 ? ends[i - 1] : 0;
            struct launch l = begin(1, 1, from, from);
            l.rows += (uint32_t)(mask >> i & 1);
            end(&l, ends[i], LAUNCH_OUTCOME_DONE);
            outside += (mask >> i & 1) != 0 ? ends[i] - from : 0;
        }
        for (int i = 0; i <= SCHEDULE_MAX_LAUNCHES; i++) { /* so many that rows are joined */
            run(2, 0, i, i, i + 1);
        }
        bool joined;
        OWNED char *text = written(SCHEDULE_MAX_LAUNCHES + 10, &joined);
        OWNED char *want = xformat("1 0 0 0 100 0 3 1 0 11 0 %d\n", (int)(10 * outside));
        ck_assert_msg(strstr(text, want) != NULL, "%s, not %s", text, want);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("schedule", .setup = setup, .teardown = teardown), TEST(few_launches_have_a_row_each),
    TEST(many_launches_of_the_same_requests_are_one_row),   TEST(a_row_is_of_one_set_and_one_kind),
    TEST(a_row_is_outside_for_the_time_of_its_launches),    TEST(the_limit_of_launches_is_exact),
};
SUITE_MAIN("schedule", suite)

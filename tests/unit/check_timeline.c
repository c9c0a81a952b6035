/* The timeline is read back with another parser and held against the run it shows. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/registry.h"
#include "sim/base/input.h"
#include "sim/metrics/metrics.h"
#include "sim/metrics/timeline.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

enum { MAX_TRACKS = 128, MAX_DEPTH = 8, N_REQUESTS = 10 };

static struct scenario sc;
static struct err err = ERR_INIT;
static char path[] = "/tmp/timeline-check-XXXXXX";
static cJSON *events;
static struct metric_list metrics;
static struct timeline_options options;

static const struct scenario_request load[N_REQUESTS] = {
    {REQUEST_CLASS_PROACTIVE, 0.0, 900, 20, 0, 0},  {REQUEST_CLASS_REACTIVE, 0.05, 60, 9, 0, 0},
    {REQUEST_CLASS_PROACTIVE, 0.05, 300, 12, 0, 0}, {REQUEST_CLASS_REACTIVE, 0.11, 400, 5, 7, 0},
    {REQUEST_CLASS_REACTIVE, 0.02, 450, 3, 7, 400}, {REQUEST_CLASS_PROACTIVE, 0.2, 10, 30, 0, 0},
    {REQUEST_CLASS_PROACTIVE, 0.3, 700, 4, 0, 0},   {REQUEST_CLASS_REACTIVE, 0.31, 1, 1, 0, 0},
    {REQUEST_CLASS_PROACTIVE, 4.9, 10, 60, 0, 0},   {REQUEST_CLASS_REACTIVE, 5.0, 256, 2, 0, 0},
};

static void prepare(const char *policy)
{
    scenario_init(&sc);
    sc.llm.n_layers = 3;
    sc.llm.weight_bytes = 1e8;
    sc.setup.contention = contention_find("max-min");
    sc.setup.kv_capacity_tokens = 1600; /* tight: KV of some is lost where the policy evicts */
    struct machine *m = &sc.machine;
    m->devices[NPU].static_attention = strcmp(policy, "sd-npu") != 0;
    sc.llm.n_layers = strcmp(policy, "sd-npu") == 0 ? 6 : 3;
    m->compile_fixed_ns = units_ns_from_ms(3);
    m->schedule_ns = units_ns_from_us(2);
    m->sync_ns = units_ns_from_us(50);
    m->sample_ns_per_token = units_ns_from_us(100);
    for (int d = 0; d < 3; d++) {
        m->devices[d].submit_ns = units_ns_from_us(10);
        m->devices[d].reset_ns = units_ns_from_us(70);
        m->devices[d].can_reset = true;
        scenario_cost(&sc, d, OP_QKV, 0.5, 0.01, 30);
        scenario_cost(&sc, d, OP_MHA, 0.3, 0.002, 60);
        scenario_cost(&sc, d, OP_FFN, 0.8, 0.02, 40);
        scenario_cost(&sc, d, OP_HEAD, 0.4, 0, 80);
        scenario_cost(&sc, d, OP_LAYER, 1.6, 0, 80);
    }
}

static char *slurp(const char *name)
{
    FILE *f = fopen(name, "r");
    ck_assert_ptr_nonnull(f);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int c; (c = fgetc(f)) != EOF;) {
        (void)fputc(c, out);
    }
    (void)fclose(out);
    (void)fclose(f);
    return text;
}

/* Runs with metrics and, unless name is NULL, a timeline there. Leaves records in sc. */
static void simulate(const char *policy, const char *params, const char *name)
{
    prepare(policy);
    scenario_policy(&sc, policy_find(policy), params);
    struct metrics_options mo = metrics_options_default();
    struct metrics *m = metrics_new(&mo, &sc.machine);
    sc.setup.observers[sc.setup.n_observers++] = metrics_observer(m);
    struct timeline *t = NULL;
    if (name != NULL) {
        t = timeline_open(name, &sc.machine, &options, &err);
        ck_assert_ptr_nonnull(t);
        sc.setup.observers[sc.setup.n_observers++] = timeline_observer(t);
    }
    int rc = scenario_run(&sc, load, N_REQUESTS, false);
    ck_assert_msg(rc == 0, "%s: %s", policy, sc.result.message);
    metric_list_fini(&metrics);
    metrics = (struct metric_list){0};
    metrics_collect(m, &metrics);
    metrics_free(m);
    ck_assert_int_eq(timeline_close(t, true, &err), 0);
}

static void setup(void)
{
    strcpy(path, "/tmp/timeline-check-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    events = NULL;
    options = (struct timeline_options){0};
}

static void teardown(void)
{
    cJSON_Delete(events);
    metric_list_fini(&metrics);
    scenario_fini(&sc);
    err_fini(&err);
    (void)remove(path);
}

static void read_back(void)
{
    char *text = slurp(path);
    cJSON *root = cJSON_Parse(text);
    ck_assert_msg(root != NULL, "not JSON near %.60s", cJSON_GetErrorPtr());
    events = cJSON_DetachItemFromObject(root, "traceEvents");
    cJSON_Delete(root);
    free(text);
}

static double number(const cJSON *e, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(e, key);
    ck_assert_msg(cJSON_IsNumber(v), "no %s", key);
    return v->valuedouble;
}

/* Instants are microseconds with three decimals: below 2^53 ns a double gives them back exactly. */
static int64_t ns(const cJSON *e, const char *key)
{
    return llround(number(e, key) * 1e3);
}

static const char *text_of(const cJSON *e, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(e, key);
    return v == NULL ? "" : v->valuestring;
}

static char phase_of(const cJSON *e)
{
    return text_of(e, "ph")[0];
}

static bool is_kernel(const cJSON *e)
{
    return phase_of(e) == 'X' && strcmp(text_of(e, "cat"), "kernel") == 0;
}

/* ---- tracks ---- */

struct track {
    int pid, tid;
    char counter[32]; /* a counter's name, else "" */
    int64_t last_ns;
    int64_t x_end_ns;           /* end of the last complete event at this depth */
    int64_t open_ns[MAX_DEPTH]; /* begins of open slices */
    int depth;
    int64_t slices;
};

static struct track tracks[MAX_TRACKS];
static int n_tracks;

static struct track *track_of(const cJSON *e)
{
    int pid = (int)number(e, "pid");
    int tid = (int)number(e, "tid");
    const char *counter = phase_of(e) == 'C' ? text_of(e, "name") : "";
    for (int i = 0; i < n_tracks; i++) {
        if (tracks[i].pid == pid && tracks[i].tid == tid &&
            strcmp(tracks[i].counter, counter) == 0) {
            return &tracks[i];
        }
    }
    ck_assert_int_lt(n_tracks, MAX_TRACKS);
    struct track *t = &tracks[n_tracks++];
    *t = (struct track){.pid = pid, .tid = tid};
    (void)snprintf(t->counter, sizeof t->counter, "%s", counter);
    return t;
}

/* In file order: time never goes back; a complete event starts after the one before it ended and
 * inside the open slice; nothing begins or ends under a complete event. */
static void walk_tracks(void)
{
    n_tracks = 0;
    const cJSON *e;
    cJSON_ArrayForEach (e, events) {
        if (phase_of(e) == 'M') {
            continue;
        }
        struct track *t = track_of(e);
        int64_t at = ns(e, "ts");
        ck_assert_int_ge(at, t->last_ns);
        t->last_ns = at;
        switch (phase_of(e)) {
        case 'B':
            ck_assert_int_ge(at, t->x_end_ns);
            ck_assert_int_lt(t->depth, MAX_DEPTH);
            t->open_ns[t->depth++] = at;
            t->slices++;
            break;
        case 'E':
            ck_assert_int_ge(at, t->x_end_ns);
            ck_assert_int_gt(t->depth, 0);
            t->depth--;
            break;
        case 'X':
            ck_assert_int_ge(at, t->x_end_ns);
            ck_assert_int_ge(ns(e, "dur"), 0);
            t->x_end_ns = at + ns(e, "dur");
            t->slices++;
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < n_tracks; i++) {
        ck_assert_msg(tracks[i].depth == 0, "pid %d tid %d stays open", tracks[i].pid,
                      tracks[i].tid);
    }
}

static double metric_of(const char *name)
{
    const struct metric *m = metric_list_find(&metrics, name);
    ck_assert_msg(m != NULL, "%s", name);
    return m->value;
}

static int count(char phase, const char *name)
{
    int n = 0;
    const cJSON *e;
    cJSON_ArrayForEach (e, events) {
        /* launches of the machine are called like phases of requests */
        bool other = phase == 'B' && number(e, "pid") == TIMELINE_PID_MACHINE;
        n += phase_of(e) == phase && strcmp(text_of(e, "name"), name) == 0 && !other;
    }
    return n;
}

/* On a device that runs one launch at a time, kernels and what resets killed fill exactly the time
 * in which it is not idle: the metric's busy share. */
static void kernels_fill_the_busy_time(void)
{
    for (uint32_t d = 0; d < 3; d++) {
        int64_t sum = 0;
        const cJSON *e;
        cJSON_ArrayForEach (e, events) {
            bool killed = phase_of(e) == 'X' && strcmp(text_of(e, "name"), "killed") == 0;
            if ((is_kernel(e) || killed) && number(e, "pid") == TIMELINE_PID_MACHINE &&
                (uint32_t)number(e, "tid") == TIMELINE_TID_DEVICE(d)) {
                sum += ns(e, "dur");
            }
        }
        char name[32];
        (void)snprintf(name, sizeof name, "%s.busy_frac", sc.machine.devices[d].name);
        int64_t busy = llround(metric_of(name) * (double)sc.result.end_ns);
        ck_assert_msg(sum == busy, "%s: kernels %lld ns, busy %lld ns", name, (long long)sum,
                      (long long)busy);
    }
}

static int n_kernels(void)
{
    int n = 0;
    const cJSON *e;
    cJSON_ArrayForEach (e, events) {
        n += is_kernel(e);
    }
    return n;
}

START_TEST(tracks_are_in_order_and_whole_under_every_policy)
{
    size_t n;
    const struct policy_ops *ops = policy_list(&n)[_i];
    simulate(ops->name, "", path);
    read_back();
    walk_tracks();
    ck_assert_uint_eq((uint64_t)n_kernels(), sc.result.kernels);
    ck_assert_int_eq(count('s', "first kernel"), N_REQUESTS);
    ck_assert_int_eq(count('f', "first kernel"), N_REQUESTS);
    ck_assert_int_eq(count('B', "queued"), N_REQUESTS);
    ck_assert_int_eq(count('B', "prefill"), N_REQUESTS);
    ck_assert_int_ge(count('B', "decode"), N_REQUESTS);
    if (strcmp(ops->name, "time-share") != 0) {
        kernels_fill_the_busy_time();
    }
}
END_TEST

START_TEST(the_run_is_the_same_without_it)
{
    size_t n;
    const struct policy_ops *ops = policy_list(&n)[_i];
    static struct scenario_record with[SCENARIO_MAX_REQUESTS];
    simulate(ops->name, "", path);
    memcpy(with, sc.records, sizeof with);
    struct metric_list of_with = metrics;
    metrics = (struct metric_list){0};
    struct sim_result result = sc.result;
    scenario_fini(&sc);
    simulate(ops->name, "", NULL);
    ck_assert_mem_eq(with, sc.records, sizeof with);
    ck_assert_int_eq(result.end_ns, sc.result.end_ns);
    ck_assert_uint_eq(result.kernels, sc.result.kernels);
    ck_assert_uint_eq(of_with.n, metrics.n);
    for (size_t i = 0; i < metrics.n; i++) {
        bool same = of_with.v[i].value == metrics.v[i].value ||
                    (isnan(of_with.v[i].value) && isnan(metrics.v[i].value));
        ck_assert_msg(same, "%s", metrics.v[i].name);
    }
    metric_list_fini(&of_with);
}
END_TEST

/* The slices of a request meet at the instants of its record. */
START_TEST(requests_are_drawn_where_they_were)
{
    simulate("fcfs", "", path);
    read_back();
    int begun = 0;
    double reused = 0.0;
    const cJSON *e;
    cJSON_ArrayForEach (e, events) {
        if (phase_of(e) != 'B' || number(e, "pid") != TIMELINE_PID_REQUESTS) {
            continue;
        }
        const struct scenario_record *r = &sc.records[(int)number(e, "tid")];
        const char *name = text_of(e, "name");
        int64_t at = ns(e, "ts");
        begun++;
        if (strcmp(name, "prefill") == 0) {
            ck_assert_int_eq(at, r->start_ns);
        } else if (strcmp(name, "decode") == 0) {
            ck_assert_int_eq(at, r->first_token_ns);
        } else {
            ck_assert_int_eq(at, r->arrival_ns);
        }
        const cJSON *args = cJSON_GetObjectItem(e, "args");
        if (args != NULL) {
            const struct scenario_request *asked = &load[(int)number(args, "request")];
            reused += number(args, "reused_tokens");
            ck_assert_double_eq(number(args, "input_tokens"), asked->input_tokens);
            ck_assert((number(args, "session") == 7) == (asked->session_id == 7));
        }
    }
    ck_assert_double_eq(reused, 400);
    ck_assert_int_eq(begun, 4 * N_REQUESTS);
}
END_TEST

/* Under a policy that stops launches at kernels and one that drops KV, it shows. */
START_TEST(what_was_stopped_is_marked)
{
    simulate("agent-xpu-v2", "", path);
    read_back();
    ck_assert_int_eq(count('i', "yield"), (int)sc.result.counters[COUNTER_LAUNCH_YIELDED]);
    ck_assert_int_eq(count('i', "reset"), (int)sc.result.counters[COUNTER_LAUNCH_RESET]);
    ck_assert_int_gt(count('i', "preempt asked"), 0);
    cJSON_Delete(events);
    scenario_fini(&sc);
    simulate("recompute-preempt", "", path);
    read_back();
    int evicted = (int)sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS];
    ck_assert_int_gt(evicted, 0);
    ck_assert_int_eq(count('i', "evicted"), evicted);
    ck_assert_int_eq(count('B', "recompute"), evicted); /* all of them decoded */
    cJSON_Delete(events);
    scenario_fini(&sc);
    simulate("recompute-preempt", "kill=immediate", path);
    read_back();
    walk_tracks();
    ck_assert_int_gt(count('i', "reset"), 0);
    kernels_fill_the_busy_time();
}
END_TEST

/* Counters end where they began: nobody live, no traffic; the area under the carried GB/s is the
 * bytes of the metric, within the rounding of the file (1 MB/s over the run's length). */
START_TEST(counters_tell_what_the_metrics_tell)
{
    simulate("openvino-cb", "", path);
    read_back();
    double bytes = 0.0;
    double carried = 0.0;
    int64_t since = 0;
    double live = -1.0;
    const cJSON *e;
    cJSON_ArrayForEach (e, events) {
        const cJSON *args = cJSON_GetObjectItem(e, "args");
        if (phase_of(e) == 'C' && strcmp(text_of(e, "name"), "DDR GB/s") == 0) {
            bytes += carried * (double)(ns(e, "ts") - since);
            since = ns(e, "ts");
            carried = number(args, "carried");
        } else if (phase_of(e) == 'C' && strcmp(text_of(e, "name"), "live requests") == 0) {
            live = number(args, "reactive") + number(args, "proactive");
        }
    }
    ck_assert(carried == 0.0);
    ck_assert(live == 0.0);
    double length = (double)sc.result.end_ns;
    double expected = metric_of("ddr.util_frac") * sc.machine.ddr_peak_bytes_per_s * length / 1e9;
    ck_assert_double_eq_tol(bytes, expected, 0.001 * length);
}
END_TEST

/* The graph switches of sd-npu go through the loader, static attention through the compiler. */
START_TEST(channels_have_tracks)
{
    static const struct {
        const char *policy;
        uint32_t tid;
    } cases[] = {{"sd-npu", TIMELINE_TID_LOADER}, {"agent-xpu-v2", TIMELINE_TID_COMPILER}};
    for (int i = 0; i < 2; i++) {
        simulate(cases[i].policy, "", path);
        read_back();
        int n = 0;
        const cJSON *e;
        cJSON_ArrayForEach (e, events) {
            n += phase_of(e) == 'X' && number(e, "pid") == TIMELINE_PID_MACHINE &&
                 (uint32_t)number(e, "tid") == cases[i].tid;
        }
        ck_assert_msg(n > 0, "%s", cases[i].policy);
        cJSON_Delete(events);
        events = NULL;
        scenario_fini(&sc);
    }
}
END_TEST

/* A window shows its part of the whole: kernels that lie in it are the same, those that reach over
 * an end are cut; slices that were open at its begin are there, named. */
START_TEST(a_window_is_a_part_of_the_whole)
{
    int64_t from_ns = units_ns_from_ms(60);
    int64_t to_ns = units_ns_from_ms(200);
    simulate("agent-xpu-v2", "", path);
    read_back();
    int inside = 0;
    int64_t covered = 0;
    const cJSON *e;
    cJSON_ArrayForEach (e, events) {
        int64_t begin = is_kernel(e) ? ns(e, "ts") : 0;
        int64_t end = is_kernel(e) ? begin + ns(e, "dur") : 0;
        inside += is_kernel(e) && begin >= from_ns && end <= to_ns;
        begin = begin > from_ns ? begin : from_ns;
        end = end < to_ns ? end : to_ns;
        covered += end > begin ? end - begin : 0;
    }
    cJSON_Delete(events);
    scenario_fini(&sc);
    options = (struct timeline_options){.from_ns = from_ns, .to_ns = to_ns};
    simulate("agent-xpu-v2", "", path);
    read_back();
    walk_tracks();
    int same = 0;
    int names = 0;
    cJSON_ArrayForEach (e, events) {
        bool drawn = is_kernel(e) || strcmp(text_of(e, "name"), "goes on") == 0;
        if (phase_of(e) != 'M') {
            ck_assert_int_ge(ns(e, "ts"), from_ns);
            ck_assert_int_le(ns(e, "ts"), to_ns);
        }
        same += is_kernel(e) && ns(e, "ts") + ns(e, "dur") <= to_ns;
        covered -= drawn ? ns(e, "dur") : 0;
        names += strstr(text_of(cJSON_GetObjectItem(e, "args"), "name"), "tive, ") != NULL;
    }
    ck_assert_int_gt(inside, 10);
    ck_assert_int_ge(same, inside);
    ck_assert_int_le(same, inside + 3); /* one cut at the begin per device */
    ck_assert_int_eq(covered, 0);
    ck_assert_int_gt(names, 0);
}
END_TEST

/* Without kernels every launch is there still, and the area under the counters is the same: means
 * over cells, so that what is carried in the last, begun one is all that may be missing. */
START_TEST(launches_alone_keep_the_launches_and_the_traffic)
{
    double bytes[2];
    int launches[2];
    for (int k = 0; k < 2; k++) {
        options.only_launches = k == 1;
        simulate("agent-xpu-v2", "", path);
        read_back();
        walk_tracks();
        double carried = 0.0;
        int64_t since = 0;
        bytes[k] = 0.0;
        const cJSON *e;
        launches[k] = 0;
        cJSON_ArrayForEach (e, events) {
            launches[k] += phase_of(e) == 'B' && number(e, "pid") == TIMELINE_PID_MACHINE;
            if (phase_of(e) == 'C' && strcmp(text_of(e, "name"), "DDR GB/s") == 0) {
                bytes[k] += carried * (double)(ns(e, "ts") - since);
                since = ns(e, "ts");
                carried = number(cJSON_GetObjectItem(e, "args"), "carried");
            }
        }
        ck_assert_int_eq(n_kernels() == 0, k == 1);
        ck_assert(carried == 0.0);
        cJSON_Delete(events);
        events = NULL;
        scenario_fini(&sc);
    }
    ck_assert_int_eq(launches[0], launches[1]);
    ck_assert_double_eq_tol(bytes[0], bytes[1], 0.002 * (double)sc.result.end_ns);
}
END_TEST

/* 16 launches run at the same time. Each has a track, whose slices all end, and none is
 * withdrawn. */
START_TEST(a_device_shared_by_most_has_a_track_for_each)
{
    struct scenario_request q[MACHINE_MAX_SHARED];
    for (int i = 0; i < MACHINE_MAX_SHARED; q[i++] = load[7]) { /* one token in and out */
    }
    prepare("time-share");
    sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
    sc.machine.devices[IGPU].max_shared = MACHINE_MAX_SHARED;
    scenario_policy(&sc, policy_find("time-share"), "max_requests=16");
    struct timeline *t = timeline_open(path, &sc.machine, &options, &err);
    sc.setup.observers[sc.setup.n_observers++] = timeline_observer(t);
    (void)scenario_run(&sc, q, MACHINE_MAX_SHARED, false);
    (void)timeline_close(t, true, &err);
    read_back();
    walk_tracks();
    int lanes = 0;
    for (int i = 0; i < n_tracks; i++) {
        int lane = tracks[i].pid == TIMELINE_PID_MACHINE
                       ? tracks[i].tid - (int)TIMELINE_TID_DEVICE(IGPU)
                       : -1;
        lanes += tracks[i].counter[0] == '\0' && lane >= 0 && lane < MACHINE_MAX_SHARED;
    }
    ck_assert(lanes == MACHINE_MAX_SHARED && count('i', "withdrawn") == 0);
}
END_TEST

/* The caller's facts of the run are in the file, and a name in .gz packs it. */
START_TEST(it_says_what_it_is_and_may_be_packed)
{
    char packed[64];
    (void)snprintf(packed, sizeof packed, "%s.gz", path);
    options.about = "{\"policy\":\"fcfs\"}";
    simulate("fcfs", "", packed);
    FILE *f = input_open_any(packed, NULL, &err);
    ck_assert_ptr_nonnull(f);
    char *text = input_text_of(f, packed, (size_t)1 << 24, &err);
    (void)fclose(f);
    FILE *raw = fopen(packed, "rb");
    ck_assert_int_eq(fgetc(raw), 0x1f); /* gzip's first byte */
    (void)fclose(raw);
    (void)remove(packed);
    cJSON *root = cJSON_Parse(text);
    free(text);
    ck_assert_ptr_nonnull(root);
    ck_assert_str_eq(text_of(cJSON_GetObjectItem(root, "otherData"), "policy"), "fcfs");
    cJSON_Delete(root);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_refused_and_nothing_is_left)
{
    scenario_init(&sc);
    ck_assert_ptr_null(timeline_open("no/such/folder/t.json", &sc.machine, &options, &err));
    ck_assert_uint_eq(err.n, 1);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "no/such/folder/t.json"));
    (void)remove(path);
    struct timeline *t = timeline_open(path, &sc.machine, &options, &err);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(timeline_close(t, false, &err), 0); /* a run that failed */
    ck_assert_int_ne(access(path, F_OK), 0);
    char temporary[64];
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    ck_assert_int_ne(access(temporary, F_OK), 0);
}
END_TEST
static const struct suite_row suite[] = {
    CASE("timeline", .setup = setup, .teardown = teardown),
    LOOP_OVER(tracks_are_in_order_and_whole_under_every_policy, suite_policies),
    LOOP_OVER(the_run_is_the_same_without_it, suite_policies),
    TEST(requests_are_drawn_where_they_were),
    TEST(what_was_stopped_is_marked),
    TEST(counters_tell_what_the_metrics_tell),
    TEST(channels_have_tracks),
    TEST(a_window_is_a_part_of_the_whole),
    TEST(launches_alone_keep_the_launches_and_the_traffic),
    TEST(a_device_shared_by_most_has_a_track_for_each),
    TEST(it_says_what_it_is_and_may_be_packed),
    TEST(a_file_that_cannot_be_written_is_refused_and_nothing_is_left),
};
SUITE_MAIN("timeline", suite)

/* The timeline by a second implementation. An observer keeps the events of random runs in lists.
 * Plain loops apply the rules at the head of sim/metrics/timeline.h to them, for the whole run and
 * for a window of it. The file must have each event as often as it is drawn here, with every
 * argument, and no other. */
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/input.h"
#include "sim/metrics/timeline.h"
#include "tests/helpers/kept.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

enum { LOADS = 5, LINE = 400 };

static const struct {
    const char *policy, *params;
} runs[] = {{"agent-xpu-v2", ""},
            {"sd-npu", ""},
            {"time-share", "max_requests=4"},
            {"recompute-preempt", "kill=immediate"},
            {"program-fcfs", "preempt=kernel,kv=swap"},
            {"hhpf", "inflight=3"},
            {"pd-mixed", ""},
            {"sarathi", ""}};

static int64_t from, to; /* the window */
static struct scenario sc;
static struct scenario_request q[KEPT_REQUESTS];
static char *want[KEPT_CHANGES], *got[KEPT_CHANGES];
static uint32_t n_want, n_got;

/* ---- drawing ---- */

__attribute__((format(printf, 1, 2))) static void draw(const char *fmt, ...)
{
    char line[LINE];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ck_assert(n_want < KEPT_CHANGES);
    want[n_want++] = xstrdup(line);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Draws a span of time on a track, if a part of it lies in the window. */
static void span(uint32_t tid, int64_t begin, int64_t end, const char *more)
{
    begin = later(begin, from);
    bool loads = tid == 1 + 16u * MACHINE_MAX_DEVICES || tid == 2 + 16u * MACHINE_MAX_DEVICES;
    if (end >= begin + !loads && end <= to) { /* a load that is there at once is drawn too */
        draw("X 1 %u ts=%lld dur=%lld name=%s", tid, (long long)begin, (long long)(end - begin),
             more);
    }
}

static void name_of(uint32_t pid, uint32_t tid, const char *name)
{
    draw("M %u %u ts=0 name=thread_name name=%s", pid, tid, name);
    draw("M %u %u ts=0 name=thread_sort_index sort_index=%u", pid, tid, tid);
}

/* Draws the names of tracks: those that the machine has at an instant. A lane gets a name with its
 * first launch. */
static void machine_names(int64_t at, bool all)
{
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        for (uint32_t lane = 0; lane < 16; lane++) {
            bool used = lane == 0 && all;
            for (uint32_t i = 0; i < kept.n_ran; i++) {
                bool before = all ? kept.ran[i].begin < at
                                  : kept.ran[i].begin >= at && kept.ran[i].begin <= to;
                used = used ||
                       (lane > 0 && kept.ran[i].device == d && kept.ran[i].lane == lane && before);
            }
            for (uint32_t i = 0; i < kept.n_ran && !all; i++) { /* it has its name */
                used = used && !(kept.ran[i].device == d && kept.ran[i].lane == lane &&
                                 kept.ran[i].begin < at);
            }
            char name[64];
            (void)snprintf(name, sizeof name, lane == 0 ? "%s" : "%s, beside %u",
                           sc.machine.devices[d].name, lane);
            if (used) {
                name_of(1, 1 + 16 * d + lane, name);
            }
        }
    }
    if (all) {
        name_of(1, 1 + 16u * MACHINE_MAX_DEVICES, "loader");
        name_of(1, 2 + 16u * MACHINE_MAX_DEVICES, "compiler");
    }
}

static void draw_names(void)
{
    draw("M 1 0 ts=0 name=process_name name=machine");
    draw("M 2 0 ts=0 name=process_name name=requests");
    draw("M 1 0 ts=0 name=machine ddr_peak_gb_per_s=%.10g", sc.machine.ddr_peak_bytes_per_s / 1e9);
    machine_names(-1, true);
    if (from > 0) {
        machine_names(from, true);
    }
    machine_names(from, false);
}

static void draw_launches(void)
{
    static const char *const ops[] = {"qkv", "mha", "ffn", "head", "layer"};
    uint32_t first = 0; /* first kernel that may belong to the launch, in order of ends */
    for (uint32_t i = 0; i < kept.n_ran; i++) {
        const struct ran *r = &kept.ran[i];
        if (r->end < from || r->begin > to) {
            continue;
        }
        while (first < kept.n_computed && kept.computed[first].end < r->begin) {
            first++;
        }
        uint32_t tid = kept_track(r);
        draw("B 1 %u ts=%lld name=%s launch=%u pass=%u request=%u sequences=%u rows=%u class=%s "
             "lead_us=%.10g",
             tid, (long long)later(r->begin, from), r->name, r->id, r->pass, r->request,
             r->sequences, r->rows, r->reactive ? "reactive" : "proactive", (double)r->lead / 1e3);
        draw("E 1 %u ts=%lld", tid, (long long)sooner(r->end, to));
        int64_t last = sooner(r->begin + r->lead, sooner(r->end, to));
        span(tid, r->begin, last, "lead");
        for (uint32_t k = first; k < kept.n_computed && kept.computed[k].end <= r->end; k++) {
            const struct computed *c = &kept.computed[k];
            if (c->launch != i || c->end < from || c->end > to) {
                continue;
            }
            char index[32] = "";
            char isolated[48] = "";
            if (c->index > 0) {
                (void)snprintf(index, sizeof index, " index=%u", c->index);
            }
            if (c->isolated != c->end - c->begin) {
                (void)snprintf(isolated, sizeof isolated, " isolated_us=%.10g",
                               (double)c->isolated / 1e3);
            }
            draw("X 1 %u ts=%lld dur=%lld name=%s cat=kernel layer=%u%s%s", tid,
                 (long long)later(c->begin, from), (long long)(c->end - later(c->begin, from)),
                 ops[c->op], c->layer, index, isolated);
            last = later(last, c->end);
        }
        if (r->end > to) {
            span(tid, last, to, "goes on");
        } else if (r->outcome == LAUNCH_OUTCOME_RESET) {
            span(tid, last, r->end, "killed");
        }
    }
    for (uint32_t i = 0; i < kept.spans.n; i++) {
        const struct changed *c = &kept.spans.v[i];
        if (c->text[0] == 'X') {
            span(c->of, c->at, (int64_t)c->b, c->text + 1);
        } else if (c->at <= to && (int64_t)c->a >= from) { /* a: the instant at which it is drawn */
            draw("i 1 %u ts=%lld name=%s s=t", c->of, (long long)later(c->at, from), c->text + 1);
        }
    }
}

static void draw_requests(void)
{
    for (uint32_t id = 0; id < KEPT_REQUESTS; id++) {
        const struct came *c = &kept.came[id];
        if (!c->here || c->end < from || c->begin > to) {
            continue;
        }
        char name[96];
        const char *cls = c->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive";
        (void)snprintf(name, sizeof name, "request %u, %s, %u tokens", id, cls, c->input);
        name_of(2, id, name);
        draw("B 2 %u ts=%lld name=%s request=%u session=%u turn=%u input_tokens=%u "
             "reused_tokens=%u",
             id, (long long)later(c->begin, from), cls, id, c->session, c->turn, c->input,
             c->reused);
        draw("E 2 %u ts=%lld", id, (long long)sooner(c->end, to));
        int64_t begin = -1;
        const char *phase = "";
        for (uint32_t i = 0; i <= kept.phases.n; i++) {
            const struct changed *next = i < kept.phases.n ? &kept.phases.v[i] : NULL;
            if (next != NULL && next->of != id) {
                continue;
            }
            int64_t end = next != NULL ? next->at : c->end;
            if (begin >= 0 && end >= from && begin <= to) {
                draw("B 2 %u ts=%lld name=%s", id, (long long)later(begin, from), phase);
                draw("E 2 %u ts=%lld", id, (long long)sooner(end, to));
            }
            begin = end;
            phase = next != NULL ? next->text : "";
        }
        if (c->begin >= from) {
            draw("s 2 %u ts=%lld name=first kernel cat=request id=%u", id, (long long)c->begin, id);
            if (c->first >= 0 && c->first <= to) {
                draw("f 1 %u ts=%lld name=first kernel cat=request id=%u bp=e", c->first_track,
                     (long long)c->first_begin, id);
            }
        }
    }
    for (uint32_t i = 0; i < kept.marks.n; i++) {
        const struct changed *c = &kept.marks.v[i];
        char tokens[32] = "";
        if (c->a >= 0) {
            (void)snprintf(tokens, sizeof tokens, " tokens=%.0f", c->a);
        }
        if (c->at >= from && c->at <= to) {
            draw("i 2 %u ts=%lld name=%s s=t%s", c->of, (long long)c->at, c->text, tokens);
        }
    }
}

static double rounded(double x)
{
    return (double)llround(x * 1e3) / 1e3;
}

/* A counter has its last value of an instant, where that differs from the value before. A window
 * begins with the value that holds there. */
static void draw_counter(const struct list *l, uint32_t of, const char *name, const char *a,
                         const char *b)
{
    const struct changed *held = NULL; /* the last that is drawn */
    for (uint32_t i = 0; i < l->n; i++) {
        const struct changed *c = &l->v[i];
        const struct changed *next = NULL;
        for (uint32_t k = i + 1; k < l->n && next == NULL; k++) {
            next = l->v[k].of == of ? &l->v[k] : NULL;
        }
        bool passes = next != NULL && (next->at == c->at || next->at <= from);
        if (c->of != of || c->at > to || passes ||
            (held != NULL && held->a == c->a && held->b == c->b)) {
            continue;
        }
        char second[64] = "";
        if (b != NULL) {
            (void)snprintf(second, sizeof second, " %s=%.10g", b, rounded(c->b));
        }
        draw("C 1 0 ts=%lld name=%s %s=%.10g%s", (long long)later(c->at, from), name, a,
             rounded(c->a), second);
        held = c;
    }
}

static void draw_counters(void)
{
    static struct list steps;
    steps.v = steps.v != NULL ? steps.v : xcalloc(KEPT_CHANGES, sizeof *steps.v);
    steps.n = 0;
    int64_t end = 0;
    (void)kept_add(&steps, 0, 0, 0, 0);
    for (uint32_t i = 0; i < kept.ddr.n && kept.ddr.v[i].at <= to; i++) { /* of: its length */
        int64_t begin = kept.ddr.v[i].at - kept.ddr.v[i].of;
        if (begin > end) {
            (void)kept_add(&steps, 0, end, 0, 0);
        }
        (void)kept_add(&steps, 0, begin, kept.ddr.v[i].a, kept.ddr.v[i].b);
        end = kept.ddr.v[i].at;
    }
    (void)kept_add(&steps, 0, end, 0, 0);
    draw_counter(&steps, 0, "DDR GB/s", "demand", "carried");
    draw_counter(&kept.live, 0, "live requests", "reactive", "proactive");
    for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
        char name[64];
        bool device = d < sc.machine.n_devices;
        const char *of = device                          ? sc.machine.devices[d].name
                         : d == OBSERVER_DOMAIN_COMPILER ? "compiler"
                                                         : "host";
        (void)snprintf(name, sizeof name, "watts %s", of);
        if (device || d >= OBSERVER_DOMAIN_COMPILER) {
            draw_counter(&kept.powers, d, name, "watts", NULL);
        }
    }
}

static void draw_machine(void)
{
    uint32_t tid = 1 + 16u * MACHINE_MAX_DEVICES + 2;
    bool named = false;
    for (uint32_t i = 0; i < kept.spans.n && !named; i++) {
        const struct changed *c = &kept.spans.v[i];
        double at = c->text[0] == 'X' ? c->b : c->a;
        if (c->of == tid && at >= (double)from && at <= (double)to) {
            char name[64];
            (void)snprintf(name, sizeof name, "frames on %s", sc.machine.devices[IGPU].name);
            name_of(1, tid, name);
            named = true;
        }
    }
    named = false;
    for (uint32_t i = 0; i < kept.conditions.n; i++) {
        int64_t begin = later(kept.conditions.v[i].at, from);
        int64_t end =
            sooner(i + 1 < kept.conditions.n ? kept.conditions.v[i + 1].at : kept.run_end, to);
        if (end > begin && !named) {
            name_of(1, tid + 1, "conditions");
            named = true;
        }
        span(tid + 1, kept.conditions.v[i].at, end, kept.conditions.v[i].text);
    }
}

/* ---- events in the file ---- */

static size_t put(char *out, size_t n, const cJSON *members)
{
    const cJSON *m;
    cJSON_ArrayForEach (m, members) {
        bool instant = strcmp(m->string, "ts") == 0 || strcmp(m->string, "dur") == 0;
        const char *gap = n > 0 ? " " : "";
        if (cJSON_IsObject(m)) {
            n = put(out, n, m);
        } else if (strcmp(m->string, "ph") == 0) {
            n += (size_t)snprintf(out + n, LINE - n, "%s%s", gap, m->valuestring);
        } else if (strcmp(m->string, "pid") == 0 || strcmp(m->string, "tid") == 0) {
            n += (size_t)snprintf(out + n, LINE - n, "%s%.0f", gap, m->valuedouble);
        } else if (instant) {
            n += (size_t)snprintf(out + n, LINE - n, "%s%s=%lld", gap, m->string,
                                  llround(m->valuedouble * 1e3));
        } else if (cJSON_IsNumber(m)) {
            n += (size_t)snprintf(out + n, LINE - n, "%s%s=%.10g", gap, m->string, m->valuedouble);
        } else {
            n += (size_t)snprintf(out + n, LINE - n, "%s%s=%s", gap, m->string, m->valuestring);
        }
        ck_assert_uint_lt(n, LINE);
    }
    return n;
}

static void read_back(const char *path)
{
    struct err err = ERR_INIT;
    FILE *f = input_open_any(path, NULL, &err);
    ck_assert_ptr_nonnull(f);
    char *text = input_text_of(f, path, (size_t)1 << 26, &err);
    (void)fclose(f);
    cJSON *root = cJSON_Parse(text);
    ck_assert_msg(root != NULL, "not JSON near %.60s", cJSON_GetErrorPtr());
    const cJSON *e;
    cJSON_ArrayForEach (e, cJSON_GetObjectItem(root, "traceEvents")) {
        char line[LINE];
        (void)put(line, 0, e);
        ck_assert(n_got < KEPT_CHANGES);
        got[n_got++] = xstrdup(line);
    }
    cJSON_Delete(root);
    free(text);
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static void compare(const char *what)
{
    qsort(want, n_want, sizeof *want, by_text);
    qsort(got, n_got, sizeof *got, by_text);
    for (uint32_t i = 0; i < n_want && i < n_got; i++) {
        ck_assert_msg(strcmp(want[i], got[i]) == 0, "%s: drawn anew\n%s\nin the file\n%s", what,
                      want[i], got[i]);
    }
    ck_assert_msg(n_want == n_got, "%s: %u events, %u in the file, the next one\n%s", what, n_want,
                  n_got, n_want > n_got ? want[n_got] : got[n_want]);
    while (n_want > 0) {
        free(want[--n_want]);
    }
    while (n_got > 0) {
        free(got[--n_got]);
    }
}

/* Returns an instant near this one at which nothing happens. */
static int64_t quiet(int64_t at)
{
    for (uint32_t i = 0; i < kept.n_instants; i++) {
        at += kept.instants[i] == at;
    }
    return at;
}

/* Returns an instant from `at` on at which a launch that was asked to stop still runs a kernel, or
 * any where there is none. */
static int64_t cuts_a_stop(int64_t at)
{
    for (uint32_t i = 0; i < kept.spans.n; i++) {
        const struct changed *c = &kept.spans.v[i];
        if (c->at >= at && (int64_t)c->a > c->at + 1 && strcmp(c->text, "ipreempt asked") == 0) {
            return quiet(c->at + 1);
        }
    }
    return quiet(at);
}

/* Runs with a timeline of the window. */
static void simulate(int which, uint64_t load, const char *path)
{
    uint32_t n = randomload_make(&sc, q, KEPT_REQUESTS, load);
    sc.machine.devices[IGPU].idle_watts = 1.5;
    if (strcmp(runs[which].policy, "sd-npu") == 0) {
        sc.machine.devices[NPU].static_attention = false;
        sc.llm.n_layers = 6;
    }
    sc.machine.devices[IGPU].can_reset = true;
    if (strcmp(runs[which].policy, "time-share") == 0) {
        sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
        sc.machine.devices[IGPU].max_shared = 4;
    }
    if (load == 3 &&
        strcmp(runs[which].policy, "time-share") != 0) { /* frames take serial devices */
        sc.setup.frames =
            (struct sim_frames){.per_s = 90, .device = IGPU, .device_ns = MS(2), .bytes = 1e6};
    }
    for (int i = 0; i < 3 && load % 2 == 0; i++) {
        sc.events[sc.n_events++] = (struct machine_event){
            .at_ns = MS(20 + 60 * i),
            .until_ns = TRACE_LAST_NS,
            .sets = i == 0   ? MACHINE_SETS_WINDOW
                    : i == 1 ? MACHINE_SETS_BATTERY | MACHINE_SETS_SOURCE
                             : MACHINE_SETS_WINDOW | MACHINE_SETS_SOURCE |
                                   MACHINE_SETS_POWER_LIMIT | MACHINE_SETS_MEMORY,
            .power_limit_watts = 25.5,
            .memory_bytes = 1.5e9,
            .battery_j = 1e6,
            .battery_full_j = 4e6,
            .on_battery = i == 1,
            .background_window = i == 2};
    }
    scenario_policy(&sc, policy_find(runs[which].policy), runs[which].params);
    kept_forget(&sc.machine);
    sc.setup.observers[sc.setup.n_observers++] = kept_observer();
    struct timeline_options options = {.from_ns = from, .to_ns = to == INT64_MAX ? 0 : to};
    struct err err = ERR_INIT;
    struct timeline *t = timeline_open(path, &sc.machine, &options, &err);
    ck_assert_ptr_nonnull(t);
    sc.setup.observers[sc.setup.n_observers++] = timeline_observer(t);
    int rc = scenario_run(&sc, q, n, false);
    ck_assert_msg(rc == 0, "%s, load %llu: %s", runs[which].policy, (unsigned long long)load,
                  sc.result.message);
    ck_assert_int_eq(timeline_close(t, true, &err), 0);
}

START_TEST(each_event_is_drawn_as_the_head_says)
{
    const char *path = tempfile_make(".json");
    for (uint64_t load = 1; load <= LOADS; load++) {
        for (int part = 0; part < 2; part++) {
            from = part == 0 ? 0 : cuts_a_stop(kept.run_end * 3 / 10);
            to = part == 0 ? INT64_MAX : cuts_a_stop(later(from + 1, kept.run_end * 6 / 10));
            simulate(_i, load, path);
            draw_names();
            draw_launches();
            draw_requests();
            draw_machine();
            draw_counters();
            read_back(path);
            char what[80];
            (void)snprintf(what, sizeof what, "%s, load %llu, %s", runs[_i].policy,
                           (unsigned long long)load, part == 0 ? "whole" : "window");
            compare(what);
            scenario_fini(&sc);
        }
    }
    tempfile_remove();
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(each_event_is_drawn_as_the_head_says, sizeof runs / sizeof runs[0]),
};
SUITE_MAIN("timeline_anew", suite)

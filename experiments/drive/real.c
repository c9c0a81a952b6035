#include "experiments/drive/real.h"

#include <unistd.h>

#include "hwmodels/backends/host.h"
#include "hwmodels/engines/engines.h"
#include "sim/base/clock.h"
#include "sim/base/input.h"
#include "sim/core/core.h"

#define TELL_EVERY_S 2.0

/* ---- times of requests ---- */

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    struct request_times *t = self;
    uint32_t row = core_request(r)->row;
    double first = seconds(r->first_token_ns - r->arrival_ns);
    double all = seconds(now_ns - r->arrival_ns);
    SIM_ASSERT(row < t->n && !t->v[row].finished && r->generated_tokens > 0);
    SIM_ASSERT(first >= 0.0 && all >= first && now_ns == r->last_token_ns);
    t->v[row] = (struct request_time){
        .finished = true,
        .cls = r->cls,
        .ttft_s = first,
        .tpot_s = r->generated_tokens > 1 ? (all - first) / (r->generated_tokens - 1) : (double)NAN,
        .e2e_s = all,
    };
}

void request_times_init(struct request_times *t, size_t n_rows)
{
    *t = (struct request_times){.v = xcalloc(n_rows, sizeof *t->v), .n = n_rows};
    t->observer = (struct observer){.self = t, .request_finished = on_finished};
}

void request_times_fini(struct request_times *t)
{
    free(t->v);
    *t = (struct request_times){0};
}

/* ---- engines ---- */

/* Item i of a comma-separated list, which the caller frees. NULL: it is empty, or the list has
 * fewer. */
static char *list_item(const char *list, uint32_t i)
{
    const char *at = list != NULL ? list : "";
    for (; i > 0 && *at != '\0'; i--) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    size_t n = strcspn(at, ",");
    SIM_ASSERT(i == 0 || *at == '\0'); /* at is item i, or the list's end */
    return n > 0 ? xformat("%.*s", (int)n, at) : NULL;
}

static int core_of_list(const char *list, uint32_t i, struct err *e)
{
    OWNED char *item = list_item(list, i);
    while (item == NULL && list != NULL && i > 0) { /* further devices get the last one */
        item = list_item(list, --i);
    }
    if (item == NULL) {
        /* Each device gets its own core as long as there are enough, because engines on one core
         * would slow each other down. */
        return (int)(i % (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    }
    char *end;
    long core = strtol(item, &end, 10);
    if (*end != '\0' || core < 0 || core >= sysconf(_SC_NPROCESSORS_ONLN)) {
        (void)err_add(e, "--cores %s: there are processors 0 to %ld", list,
                      sysconf(_SC_NPROCESSORS_ONLN) - 1);
    }
    return (int)core;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Only these names imply a kind of device. Any other name, such as CPU, fits every device. */
static bool has_kind(const char *name)
{
    return begins(name, "NPU") || begins(name, "GPU");
}

static bool is_of(const char *name, enum device_kind kind)
{
    SIM_ASSERT(has_kind(name)); /* other names fit every device */
    return begins(name, "NPU") ? kind == DEVICE_KIND_NPU
                               : kind == DEVICE_KIND_IGPU || kind == DEVICE_KIND_GPU;
}

/* Gives the name to the first unnamed device of its kind. */
static void name_by_kind(const char *name, const char *list, const struct machine *m,
                         struct drive_options *out, struct err *e)
{
    SCOPED(text_fini) struct text has = {0};
    SIM_ASSERT(has_kind(name) && strlen(name) < sizeof out->devices[0].name);
    for (uint32_t i = 0; i < m->n_devices; i++) {
        if (out->devices[i].name[0] == '\0' && is_of(name, m->devices[i].kind)) {
            (void)snprintf(out->devices[i].name, sizeof out->devices[i].name, "%s", name);
            return;
        }
        text_item(&has, ", ", m->devices[i].name);
    }
    (void)err_add(e, "--devices %s: %s is for no device of %s, which has %s", list, name, m->name,
                  text_end(&has));
}

/* The k-th name without a kind, or the last one if the list has fewer. The caller frees it. NULL:
 * the list has none. */
static char *other_name(const char *list, uint32_t k)
{
    char *found = NULL;
    char *item;
    for (uint32_t i = 0; (item = list_item(list, i)) != NULL; i++) {
        if (has_kind(item) || (found != NULL && k == 0)) {
            free(item);
            continue;
        }
        k -= found != NULL;
        free(found);
        found = item;
    }
    return found;
}

/* NPU and GPU names go to devices of that kind, regardless of their place in the list. The other
 * names go to the remaining devices in order. */
static void name_devices(const char *list, const struct machine *m, struct drive_options *out,
                         struct err *e)
{
    char *item;
    for (uint32_t i = 0; (item = list_item(list, i)) != NULL; i++) {
        if (strlen(item) >= sizeof out->devices[0].name) {
            (void)err_add(e, "--devices %s: no engine has a device of that name", list);
        } else if (has_kind(item)) {
            name_by_kind(item, list, m, out, e);
        }
        free(item);
    }
    for (uint32_t i = 0, k = 0; i < m->n_devices; i++) {
        struct drive_device *d = &out->devices[i];
        if (d->name[0] != '\0') {
            continue;
        }
        OWNED char *other = other_name(list, k++);
        /* OpenVINO's CPU replaces an NPU or GPU only if the user names it for that device. */
        if (other == NULL && list != NULL && m->devices[i].kind != DEVICE_KIND_CPU &&
            strcmp(d->engine->name, "openvino") == 0) {
            (void)err_add(e,
                          "--devices %s: names nothing for %s of %s; CPU is every device that "
                          "is not named",
                          list, m->devices[i].name, m->name);
        }
        SIM_ASSERT(d->engine != NULL && (other == NULL || !has_kind(other)));
        (void)snprintf(d->name, sizeof d->name, "%.15s", other != NULL ? other : "CPU");
    }
}

/* Reports progress, because some devices compile for minutes. */
static void tell_compiled(const char *device, uint32_t done, uint32_t n)
{
    static double last_s;
    double now_s = clock_now_s();
    SIM_ASSERT(now_s >= last_s && done <= n);
    if (done > 0 && now_s - last_s < TELL_EVERY_S) {
        return;
    }
    last_s = now_s;
    if (done > 0) {
        (void)fprintf(stderr, "xpusim: %s: %u of %u kernel%s compiled\n", device, done, n,
                      text_plural(n));
    }
}

int real_devices(const struct real_options *o, const struct machine *m, struct drive_options *out,
                 struct err *e)
{
    size_t before = e->n;
    *out = (struct drive_options){
        .clock = strcmp(o->clock, "cpu") == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL,
        .realtime = o->realtime,
        .limit_s = o->limit_s,
        .hang_s = o->hang_s,
        .compile_s = o->compile_s,
        .compiled = tell_compiled,
    };
    char *cache = engine_cache();
    out->cache = cache == NULL ? NULL : xkeep(cache);
    bool mixed = strcmp(o->engine, "mixed") == 0;
    for (uint32_t i = 0; i < m->n_devices && e->n == before; i++) {
        bool npu = m->devices[i].kind == DEVICE_KIND_NPU;
        struct drive_device *d = &out->devices[i];
        d->engine = engine_find(!mixed ? o->engine : npu ? "openvino" : "ggml", e);
        d->core = core_of_list(o->cores, i, e);
    }
    if (e->n == before) {
        name_devices(o->devices, m, out, e);
    }
    for (uint32_t i = 0; i < m->n_devices && e->n == before; i++) {
        SIM_ASSERT(out->devices[i].engine != NULL && out->devices[i].name[0] != '\0' &&
                   out->devices[i].core >= 0);
    }
    return e->n == before ? 0 : -EINVAL;
}

char *real_describe(const struct drive_options *o, const struct machine *m)
{
    struct text t = {0};
    for (uint32_t i = 0; i < m->n_devices; i++) {
        const struct drive_device *d = &o->devices[i];
        SIM_ASSERT(d->engine != NULL && d->name[0] != '\0'); /* real_devices resolved it */
        text_item(&t, "; ", m->devices[i].name);
        text_format(&t, " = %s %s, %s, core %d", d->engine->name, d->engine->version, d->name,
                    d->core);
    }
    return text_end(&t);
}

/* ---- running ---- */

struct execution {
    const struct drive_options *options;
    struct drive_report *report;
};

static int execute(void *self, const struct sim_setup *setup, struct sim_result *result)
{
    const struct execution *x = self;
    SIM_ASSERT(x->report->n_kernels == 0 && x->report->n_residents == 0); /* it runs once */
    return drive_run(x->options, setup, result, x->report);
}

/* A real run measures neither energy nor memory traffic, so these metrics are absent, not zero. */
static void drop_unmeasured(struct metric_list *l)
{
    static const char *const words[] = {"energy", "watts", "ddr.", "contention_loss"};
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        bool drop = false;
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            drop = drop || strstr(l->v[i].name, words[k]) != NULL;
        }
        l->v[kept] = l->v[i];
        kept += !drop;
    }
    l->n = kept;
}

static double load_average(void)
{
    double load = -1.0;
    SCOPED(input_drop) FILE *f = input_try(HOST_PROC_DIR "/loadavg");
    return f != NULL && fscanf(f, "%lf", &load) == 1 ? load : -1.0;
}

int real_execute(const struct drive_options *o, const struct config *c,
                 const struct config_policy *p, const struct trace *t, uint64_t seed,
                 struct runner_options *opt, struct runner_result *result, struct real_run *out,
                 struct err *e)
{
    *out = (struct real_run){.load_before = load_average()};
    SIM_ASSERT(opt->series == NULL && opt->execute == NULL); /* this function sets them */
    request_times_init(&out->times, t->n);
    struct execution x = {o, &out->report};
    opt->execute = execute;
    opt->execute_self = &x;
    opt->series = &out->times.observer;
    struct runner_result own;
    struct runner_result *r = result == NULL ? &own : result;
    /* The processor time of other processes in this span decides whether the run is disturbed. */
    struct host_energy meter;
    host_energy_init(&meter, host_rapl_dir());
    double begin_s = clock_now_s();
    struct host_times from = host_times_read(HOST_PROC_DIR);
    out->status = runner_run(c, p, t, seed, opt, r, e);
    out->package_joules = host_energy_joules(&meter);
    out->wall_s = clock_now_s() - begin_s;
    drop_unmeasured(&r->metrics);
    struct host_times to = host_times_read(HOST_PROC_DIR);
    struct backend_host shares = host_times_shares(&from, &to);
    out->foreign_frac = shares.foreign_frac;
    out->steal_frac = shares.steal_frac;
    SIM_ASSERT(out->wall_s >= 0.0 && out->foreign_frac <= 1.0 && out->steal_frac <= 1.0);
    SIM_ASSERT(out->status != 0 || out->report.interrupted || r->sim.end_ns >= 0);
    out->sim = r->sim;
    out->end_s = seconds(r->sim.end_ns);
    if (o->realtime && o->clock == DRIVE_CLOCK_WALL && !out->report.realtime) {
        (void)fprintf(stderr, "xpusim: note: real-time priority was not permitted; this run was at "
                              "the usual one\n");
    }
    (void)snprintf(out->message, sizeof out->message, "%s", r->sim.message);
    opt->series = NULL;
    if (result == NULL) {
        runner_result_fini(&own);
    }
    SIM_ASSERT(out->times.n == t->n && (out->status == 0) == (out->sim.status == 0));
    return out->status;
}

void real_run_fini(struct real_run *r)
{
    request_times_fini(&r->times);
    drive_report_fini(&r->report);
}

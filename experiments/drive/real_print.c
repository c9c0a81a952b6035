/* Prints a real run as text and as JSON, and writes its kernels as CSV. */
#include "experiments/drive/real.h"
#include "hwmodels/backends/host.h"
#include "sim/base/output.h"
#include "sim/base/words.h"

const struct real_work real_works[DRIVE_WORKS] = {
    [DRIVE_COMPILE] = {"compile", "tokens"},
    [DRIVE_SWAP_OUT] = {"swap out", "bytes"},
    [DRIVE_SWAP_IN] = {"swap in", "bytes"},
    [DRIVE_LOAD] = {"load", "bytes"},
    [DRIVE_EVICT] = {"evict", "bytes"},
    [DRIVE_EVICT_ATTENTION] = {"evict attention", "tokens"},
};

void real_print_times(FILE *out, const char *what, const struct drive_times *t)
{
    if (t->n > 0) {
        struct drive_times most = drive_times_screened(t);
        SIM_ASSERT(most.n > 0 && drive_mean_ns(&most) <= drive_mean_ns(t) * (1.0 + 1e-9));
        SIM_ASSERT(drive_mean_ns(t) <= t->max_ns * (1.0 + 1e-9));
        (void)fprintf(out, "  %-34s %9.1f us mean, %9.1f us worst of %llu", what,
                      drive_mean_ns(t) / 1e3, t->max_ns / 1e3, (unsigned long long)t->n);
        if (most.n < t->n) {
            (void)fprintf(out, "; %9.1f us without %llu that waited", drive_mean_ns(&most) / 1e3,
                          (unsigned long long)(t->n - most.n));
        }
        (void)fputc('\n', out);
    }
}

/* Durations of a run: title in text, name in JSON, and offset in the report. */
#define AT(member) offsetof(struct drive_report, member)
static const struct {
    const char *said, *name;
    size_t at;
} times[] = {
    {"schedule, per instant", "schedule", AT(schedule)},
    {"launch to first kernel", "submit", AT(submit)},
    {"last kernel to host", "completion", AT(completion)},
    {"sampling, per pass", "sampling", AT(tail)},
    {"stop at the next kernel", "stop_kernel", AT(stop[0])},
    {"stop at the next op", "stop_op", AT(stop[1])},
    {"stop at the next layer", "stop_layer", AT(stop[2])},
    {"stop at the end", "stop_pass", AT(stop[3])},
    {"reset", "reset", AT(reset)},
};
#define N_TIMES (sizeof times / sizeof times[0])
_Static_assert(DRIVE_YIELDS == 4, "a row for every way to stop");

static const struct drive_times *times_of(const struct drive_report *r, size_t i)
{
    SIM_ASSERT(i < N_TIMES && times[i].at + sizeof(struct drive_times) <= sizeof *r);
    return (const struct drive_times *)(const void *)((const char *)r + times[i].at);
}

void real_print(const struct real_run *r, const struct machine *m, FILE *out)
{
    /* On the processor-time clock, a run's duration differs from wall time. */
    (void)fprintf(out,
                  "ran %.2f s, in %.2f s on the wall; others had %.1f %% of the processors%s, "
                  "load %.1f, %s\n",
                  r->end_s, r->wall_s, 100.0 * (r->foreign_frac + r->steal_frac),
                  real_disturbed(r) ? " (disturbed)" : "", r->load_before,
                  r->report.realtime ? "SCHED_FIFO" : "usual priority");
    for (uint32_t i = 0; i < m->n_devices; i++) {
        SIM_ASSERT(r->report.busy_ns[i] >= 0);
        (void)fprintf(out, "  %s busy %.1f %%\n", m->devices[i].name,
                      r->end_s > 0.0 ? (double)r->report.busy_ns[i] / 1e7 / r->end_s : 0.0);
    }
    for (size_t i = 0; i < N_TIMES; i++) {
        real_print_times(out, times[i].said, times_of(&r->report, i));
    }
    for (size_t i = 0; i < r->report.n_residents && i < 8; i++) {
        const struct drive_resident_time *t = &r->report.residents[i];
        SIM_ASSERT(t->work < DRIVE_WORKS && t->ns >= 0);
        (void)fprintf(out, "  %s of %.0f %s: %.2f ms\n", real_works[t->work].name, t->size,
                      real_works[t->work].unit, (double)t->ns / 1e6);
    }
    OWNED char *energy = host_energy_text(r->package_joules, r->wall_s);
    (void)fprintf(out, "  %s\n", energy);
    (void)fprintf(out, "  tokens %016llx\n", (unsigned long long)r->report.token_hash);
}

static cJSON *times_to_json(const struct drive_times *t)
{
    cJSON *o = cJSON_CreateObject();
    SIM_ASSERT(t->n > 0 || (t->sum_ns == 0.0 && t->max_ns == 0.0));
    cJSON_AddNumberToObject(o, "n", (double)t->n);
    cJSON_AddNumberToObject(o, "mean_us", drive_mean_ns(t) / 1e3);
    cJSON_AddNumberToObject(o, "max_us", t->max_ns / 1e3);
    return o;
}

cJSON *real_to_json(const struct drive_options *d, const struct machine *m,
                    const struct real_run *r)
{
    OWNED char *engines = real_describe(d, m);
    OWNED char *tokens = xformat("%016llx", (unsigned long long)r->report.token_hash);
    cJSON *x = cJSON_CreateObject();
    cJSON_AddStringToObject(x, "clock", d->clock == DRIVE_CLOCK_CPU ? "cpu" : "wall");
    cJSON_AddStringToObject(x, "engines", engines);
    cJSON_AddBoolToObject(x, "realtime", r->report.realtime);
    cJSON_AddBoolToObject(x, "interrupted", r->report.interrupted);
    cJSON_AddNumberToObject(x, "foreign_frac", r->foreign_frac);
    cJSON_AddNumberToObject(x, "steal_frac", r->steal_frac);
    cJSON_AddNumberToObject(x, "load_before", r->load_before);
    cJSON_AddBoolToObject(x, "disturbed", real_disturbed(r));
    cJSON_AddItemToObject(x, "package_j",
                          r->package_joules < 0.0 ? cJSON_CreateNull()
                                                  : cJSON_CreateNumber(r->package_joules));
    for (size_t i = 0; i < N_TIMES; i++) {
        cJSON_AddItemToObject(x, times[i].name, times_to_json(times_of(&r->report, i)));
    }
    cJSON_AddStringToObject(x, "tokens", tokens);
    return x;
}

/* Writes rows and keys of each sequence: "p64:264 d1:345" are a prompt's and a decode's. */
static void write_segments(FILE *f, const struct drive_report *r, const struct drive_kernel *k)
{
    for (uint32_t i = 0; i < k->n_segments; i++) {
        const struct drive_segment *s = &r->segments[k->segment0 + i];
        SIM_ASSERT(k->segment0 + i < r->n_segments && s->keys >= s->rows);
        (void)fprintf(f, "%s%c%u:%u", i > 0 ? " " : "", s->prefill ? 'p' : 'd', s->rows, s->keys);
    }
}

int real_write_kernels(const char *path, const struct drive_report *r, const struct machine *m,
                       struct err *e)
{
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    FILE *f = output_stream(out);
    (void)fprintf(f, "launch,device,op,layer,rows,padded_rows,sequences,pass_rows,prefill_rows,"
                     "pairs,keys,begin_s,us,stopped,segments\n");
    for (size_t i = 0; i < r->n_kernels; i++) {
        const struct drive_kernel *k = &r->kernels[i];
        SIM_ASSERT(k->device < m->n_devices && k->op < OP_KIND_COUNT && k->ns > 0);
        (void)fprintf(f, "%u,%s,%s,%u,%u,%u,%u,%u,%u,%llu,%llu,%.9f,%.3f,%d,", k->launch,
                      m->devices[k->device].name, words_ops[k->op], k->layer, k->rows,
                      k->padded_rows, k->sequences, k->shape_rows, k->prefill_rows,
                      (unsigned long long)k->pairs, (unsigned long long)k->keys,
                      (double)k->begin_ns / 1e9, (double)k->ns / 1e3, k->stopped);
        write_segments(f, r, k);
        (void)fputc('\n', f);
    }
    return output_close(out, true, e);
}

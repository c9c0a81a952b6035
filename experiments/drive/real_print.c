/* What a real run says of itself: as text, as JSON, and its kernels as CSV. */
#include <errno.h>

#include "experiments/drive/real.h"
#include "sim/base/output.h"

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
        (void)fprintf(out, "  %-34s %9.1f us mean, %9.1f us worst of %llu", what,
                      drive_mean_ns(t) / 1e3, t->max_ns / 1e3, (unsigned long long)t->n);
        if (most.n < t->n) {
            (void)fprintf(out, "; %9.1f us without %llu that waited", drive_mean_ns(&most) / 1e3,
                          (unsigned long long)(t->n - most.n));
        }
        (void)fputc('\n', out);
    }
}

void real_print(const struct real_run *r, const struct machine *m, FILE *out)
{
    static const char *const stops[DRIVE_YIELDS] = {"stop at the next kernel",
                                                    "stop at the next op", "stop at the next layer",
                                                    "stop at the end"};
    (void)fprintf(out, "ran %.2f s, others had %.1f %% of the processors%s, load %.1f, %s\n",
                  r->end_s, 100.0 * (r->foreign_frac + r->steal_frac),
                  real_disturbed(r) ? " (disturbed)" : "", r->load_before,
                  r->report.realtime ? "SCHED_FIFO" : "usual priority");
    for (uint32_t i = 0; i < m->n_devices; i++) {
        (void)fprintf(out, "  %s busy %.1f %%\n", m->devices[i].name,
                      r->end_s > 0.0 ? (double)r->report.busy_ns[i] / 1e7 / r->end_s : 0.0);
    }
    real_print_times(out, "schedule, per instant", &r->report.schedule);
    real_print_times(out, "launch to first kernel", &r->report.submit);
    real_print_times(out, "last kernel to host", &r->report.completion);
    real_print_times(out, "sampling, per pass", &r->report.tail);
    for (int y = 0; y < DRIVE_YIELDS; y++) {
        real_print_times(out, stops[y], &r->report.stop[y]);
    }
    real_print_times(out, "reset", &r->report.reset);
    for (size_t i = 0; i < r->report.n_residents && i < 8; i++) {
        const struct drive_resident_time *t = &r->report.residents[i];
        (void)fprintf(out, "  %s of %.0f %s: %.2f ms\n", real_works[t->work].name, t->size,
                      real_works[t->work].unit, (double)t->ns / 1e6);
    }
    (void)fprintf(out, "  tokens %016llx\n", (unsigned long long)r->report.token_hash);
}

static cJSON *times_to_json(const struct drive_times *t)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "n", (double)t->n);
    cJSON_AddNumberToObject(o, "mean_us", drive_mean_ns(t) / 1e3);
    cJSON_AddNumberToObject(o, "max_us", t->max_ns / 1e3);
    return o;
}

cJSON *real_to_json(const struct drive_options *d, const struct machine *m,
                    const struct real_run *r)
{
    char text[512];
    cJSON *x = cJSON_CreateObject();
    cJSON_AddStringToObject(x, "clock", d->clock == DRIVE_CLOCK_CPU ? "cpu" : "wall");
    cJSON_AddStringToObject(x, "engines", real_describe(d, m, text, sizeof text));
    cJSON_AddBoolToObject(x, "realtime", r->report.realtime);
    cJSON_AddNumberToObject(x, "foreign_frac", r->foreign_frac);
    cJSON_AddNumberToObject(x, "steal_frac", r->steal_frac);
    cJSON_AddNumberToObject(x, "load_before", r->load_before);
    cJSON_AddBoolToObject(x, "disturbed", real_disturbed(r));
    cJSON_AddItemToObject(x, "schedule", times_to_json(&r->report.schedule));
    cJSON_AddItemToObject(x, "submit", times_to_json(&r->report.submit));
    cJSON_AddItemToObject(x, "completion", times_to_json(&r->report.completion));
    cJSON_AddItemToObject(x, "sampling", times_to_json(&r->report.tail));
    static const char *const stops[DRIVE_YIELDS] = {"stop_kernel", "stop_op", "stop_layer",
                                                    "stop_pass"};
    for (int y = 0; y < DRIVE_YIELDS; y++) {
        cJSON_AddItemToObject(x, stops[y], times_to_json(&r->report.stop[y]));
    }
    cJSON_AddItemToObject(x, "reset", times_to_json(&r->report.reset));
    (void)snprintf(text, sizeof text, "%016llx", (unsigned long long)r->report.token_hash);
    cJSON_AddStringToObject(x, "tokens", text);
    return x;
}

int real_write_kernels(const char *path, const struct drive_report *r, const struct machine *m,
                       struct err *e)
{
    static const char *const ops[OP_KIND_COUNT] = {"qkv", "mha", "ffn", "head", "layer"};
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    FILE *f = output_stream(out);
    (void)fprintf(f, "launch,device,op,layer,rows,padded_rows,sequences,pass_rows,prefill_rows,"
                     "pairs,keys,begin_s,us,stopped\n");
    for (size_t i = 0; i < r->n_kernels; i++) {
        const struct drive_kernel *k = &r->kernels[i];
        (void)fprintf(f, "%u,%s,%s,%u,%u,%u,%u,%u,%u,%llu,%llu,%.9f,%.3f,%d\n", k->launch,
                      m->devices[k->device].name, ops[k->op], k->layer, k->rows, k->padded_rows,
                      k->sequences, k->shape_rows, k->prefill_rows, (unsigned long long)k->pairs,
                      (unsigned long long)k->keys, (double)k->begin_ns / 1e9, (double)k->ns / 1e3,
                      k->stopped);
    }
    return output_close(out, true, e);
}

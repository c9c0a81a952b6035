#include "experiments/drive/calibration.h"

#include <time.h>

#include "experiments/drive/bench.h"
#include "experiments/drive/pairs_here.h"
#include "experiments/machine/pairs_soc.h"
#include "experiments/shell/cli.h"
#include "sim/base/json.h"

/* ---- runs ---- */

static double output_tokens(const struct trace *t)
{
    double n = 0.0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->rows[i].output_tokens;
    }
    SIM_ASSERT(n >= (double)t->n); /* each request has an output token */
    return n;
}

/* For assertions: checks what a fit relies on. Times are positive, rows are within the launch's,
 * and rows of attention are those of its segments, each once. */
static bool kernels_ok(const struct drive_report *r)
{
    for (size_t i = 0; i < r->n_kernels; i++) {
        const struct drive_kernel *k = &r->kernels[i];
        uint32_t rows = 0;
        uint64_t keys = 0;
        SIM_ASSERT(k->ns > 0 && k->rows > 0 && k->rows <= k->padded_rows);
        SIM_ASSERT(k->rows <= k->shape_rows && k->prefill_rows <= k->shape_rows);
        SIM_ASSERT(k->sequences > 0 && k->sequences <= k->shape_rows && k->keys <= k->pairs);
        for (uint32_t s = 0; s < k->n_segments; s++) {
            const struct drive_segment *x = &r->segments[k->segment0 + s];
            SIM_ASSERT(k->segment0 + s < r->n_segments && x->rows > 0 && x->keys >= x->rows);
            rows += x->rows;
            keys += x->keys;
        }
        bool attention = k->op == OP_MHA || k->op == OP_LAYER;
        SIM_ASSERT(attention ? rows == k->rows && keys <= k->keys : k->n_segments == 0);
    }
    return true;
}

/* Adds a run's kernels to the input, and frees the run. Returns an exit status. */
static int take(struct calibration *c, const char *policy, const char *on, double tokens,
                struct real_run *r)
{
    int status = r->status == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
    SIM_ASSERT(kernels_ok(&r->report) && tokens > 0.0);
    if (r->status != 0) {
        (void)fprintf(stderr, "xpusim: error: %s\n", r->message);
    } else if (!r->report.interrupted) {
        fit_input_add(&c->in, &r->report, tokens, real_disturbed(r));
        (void)fprintf(stderr, "%s on %s: %zu kernel%s in %.1f s, others had %.1f %%\n", policy, on,
                      r->report.n_kernels, text_plural(r->report.n_kernels), r->wall_s,
                      100.0 * (r->foreign_frac + r->steal_frac));
    }
    real_run_fini(r);
    return status;
}

static int run_one(struct calibration *c, const char *policy, const char *name,
                   const struct trace *t, struct err *e)
{
    struct config_policy p;
    struct real_run r;
    struct runner_options opt = {0};
    if (config_policy_parse(&p, policy, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    (void)real_execute(c->drive, c->config, &p, t, c->options->seed, &opt, NULL, &r, e);
    uint32_t before = c->in.fit.n_runs;
    int status = take(c, policy, name, output_tokens(t), &r);
    c->n_whole += c->in.fit.n_runs - before;
    SIM_ASSERT(c->n_whole <= c->in.fit.n_runs && c->in.fit.n_runs - before <= 1);
    return status;
}

static bool is_interrupted(const struct calibration *c)
{
    return c->drive->interrupt != NULL && *c->drive->interrupt != 0;
}

static uint32_t benches_of(const struct machine *m)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < m->n_devices; d++) {
        n += bench_suits(m, (uint8_t)d);
    }
    return n;
}

static int run_benches(struct calibration *c, struct err *e)
{
    const struct machine *m = &c->config->soc.machine;
    uint32_t before = c->in.fit.n_runs;
    int status = EXIT_OK;
    for (uint32_t d = 0; d < m->n_devices && status == EXIT_OK && !is_interrupted(c); d++) {
        struct real_run r;
        if (bench_suits(m, (uint8_t)d)) {
            (void)bench_execute(c->drive, c->config, (uint8_t)d, &r, e);
            status = take(c, "bench", m->devices[d].name, bench_tokens(), &r);
        }
    }
    SIM_ASSERT(status != EXIT_BAD_INPUT); /* the bench has no input of the user */
    SIM_ASSERT(status != EXIT_OK || is_interrupted(c) ||
               c->in.fit.n_runs - before == benches_of(m));
    return status;
}

int calibration_round(struct calibration *c, struct err *e)
{
    static const char *usual[] = {"openvino-cb", "agent-xpu-v2"};
    const struct option_texts some = {usual, 2};
    const struct option_texts *policies = c->policies.n > 0 ? &c->policies : &some;
    SIM_ASSERT(c->in.one_by_one == (c->drive->clock == DRIVE_CLOCK_CPU));
    int status = c->trace_only ? EXIT_OK : run_benches(c, e);
    for (uint32_t i = 0; i < c->traces.n && status == EXIT_OK && !is_interrupted(c); i++) {
        struct config_options with = *c->options;
        SCOPED(trace_fini) struct trace t = {0};
        with.trace = c->traces.v[i];
        with.workload = NULL;
        status = config_trace(&with, with.seed, CONFIG_AS_WRITTEN, &t, e) == 0 ? EXIT_OK
                                                                               : EXIT_BAD_INPUT;
        for (uint32_t k = 0; k < policies->n && status == EXIT_OK && !is_interrupted(c); k++) {
            status = run_one(c, policies->v[k], c->traces.v[i], &t, e);
        }
    }
    return status;
}

void calibration_pairs(struct calibration *c)
{
    SCOPED(err_fini) struct err why = ERR_INIT;
    SIM_ASSERT(c->said == NULL && c->pairs.n == 0); /* called once */
    c->said = document_new();
    if (pairs_here(c->drive, &c->config->soc.machine, &c->pairs, &why) != 0) {
        document_note(c->said, "pairs of kernels were not measured: %s",
                      why.n > 0 ? why.lines[0] : "there are none");
    }
}

/* ---- output ---- */

int calibration_write(struct calibration *c, struct fit *fit, struct err *e)
{
    const struct machine *m = &c->config->soc.machine;
    SIM_ASSERT(c->n_whole <= c->in.fit.n_runs && (c->pairs.n == 0 || c->said != NULL));
    if (fit_make(&c->in, m, fit, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    transfer_fit(&c->in, fit, &c->config->soc, &c->config->llm, &c->transfer);
    char date[32];
    time_t now = time(NULL);
    struct tm day;
    (void)gmtime_r(&now, &day);
    (void)strftime(date, sizeof date, "%Y-%m-%d", &day);
    OWNED char *name = xformat("%s-real", m->name);
    OWNED char *engines = real_describe(c->drive, m);
    OWNED char *source =
        xformat("%s: xpusim drive --calibrate, clock %s, %u run%s (%u disturbed), %s", date,
                c->drive->clock == DRIVE_CLOCK_CPU ? "cpu" : "wall", fit->n_runs,
                text_plural(fit->n_runs), fit->n_disturbed, engines);
    SCOPED(json_drop)
    cJSON *root = fit_to_soc(fit, &c->transfer, cJSON_GetObjectItem(c->config->tree, "soc"),
                             &c->config->llm, name, source);
    if (c->pairs.n > 0) {
        pairs_soc_put(&c->pairs, root, c->said);
    }
    int rc = json_write_file(c->out, root, e);
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* Numbers that this clock cannot measure keep their earlier values in the file. */
static void print_unseen(const struct calibration *c, FILE *out)
{
    if (c->drive->clock == DRIVE_CLOCK_CPU) {
        (void)fprintf(out,
                      "  not measured: contention and the host's part of a launch. On --clock cpu "
                      "kernels run one after another, and the host between them; --clock wall "
                      "measures both\n");
    }
}

void calibration_print(const struct calibration *c, const struct fit *f, FILE *out)
{
    const struct machine *m = &c->config->soc.machine;
    /* The fit is of these runs. */
    SIM_ASSERT(f->n_devices == m->n_devices && f->n_runs == c->in.fit.n_runs);
    (void)fprintf(out, "%u run%s, %u of them disturbed\n", f->n_runs, text_plural(f->n_runs),
                  f->n_disturbed);
    for (uint32_t i = 0; i < f->n_parts; i++) {
        const struct fit_part *p = &f->parts[i];
        (void)fprintf(out,
                      "  %-5s %-12s %6u kernels, |error| %5.1f %% median %5.1f %% P90, lack of "
                      "fit p = %.2g%s",
                      m->devices[p->device].name, p->name, p->n, 100.0 * p->median_frac,
                      100.0 * p->p90_frac, p->lack_of_fit_p,
                      p->borrowed        ? ", from another device"
                      : p->borrowed_form ? ", form of all devices"
                                         : "");
        if (p->lost > 0) {
            (void)fprintf(out, ", %u lost their core", p->lost);
        }
        (void)fputc('\n', out);
    }
    transfer_print(&c->transfer, m, out);
    for (uint32_t d = 0; d < f->n_devices; d++) {
        const struct fit_number *b = &f->devices[d].beside;
        if (f->devices[d].n_beside > 0) {
            (void)fprintf(out,
                          "  %-5s one-row kernels next to another device take %.2f [%.2f, %.2f] "
                          "times as long (%u kernel%s)\n",
                          m->devices[d].name, 1.0 + b->value, 1.0 + b->low, 1.0 + b->high,
                          f->devices[d].n_beside, text_plural(f->devices[d].n_beside));
        }
    }
    real_print_times(out, "schedule, per instant", &f->schedule);
    real_print_times(out, "launch to first kernel", &f->submit);
    real_print_times(out, "last kernel to host", &f->completion);
    real_print_times(out, "sampling, per pass", &f->tail);
    real_print_times(out, "reset", &f->reset);
    for (int w = 0; w < DRIVE_WORKS; w++) {
        const struct fit_line *l = &f->residents[w];
        if (l->n > 0.0) {
            bool bytes = strcmp(real_works[w].unit, "bytes") == 0;
            (void)fprintf(out,
                          "  %-15s %4.0f times, mean %.2f ms, worst %.2f; fitted %.2f ms + %.3f ms "
                          "%s\n",
                          real_works[w].name, l->n, 1e3 * l->y / l->n, 1e3 * l->max_s,
                          1e3 * l->fixed_s, 1e3 * l->slope_s * (bytes ? 1e6 : 1.0),
                          bytes ? "a MB" : "a token");
        }
    }
    print_unseen(c, out);
    if (c->said != NULL && c->drive->clock == DRIVE_CLOCK_WALL) {
        document_put(c->said, "text", out);
    }
}

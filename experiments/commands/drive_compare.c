/* `xpusim drive --compare`: compares real runs of every policy with simulated ones. */
#include "experiments/commands/commands.h"
#include "experiments/commands/drive.h"
#include "experiments/drive/against.h"
#include "experiments/run/about.h"

/* Loads the machine file for simulation, which states the models it was calibrated with. With clock
 * "cpu", kernels run one after another, so the simulation has no contention by default. */
static int load_model(const struct drive_values *o, const char *soc, struct config *c,
                      struct err *e)
{
    struct config_options with = o->config;
    with.soc = soc;
    if (strcmp(o->real.clock, "cpu") == 0 && with.n_sets < CONFIG_MAX_SETS) {
        memmove(&with.sets[1], &with.sets[0], with.n_sets * sizeof with.sets[0]);
        with.sets[0] = "sim.contention=none";
        with.n_sets++;
    }
    return config_load(c, &with, e);
}

/* If the machine file has measured tables of this model, adds the machine with the model of times
 * that other models get (transfer.h). Its error is that of predictions of other models. */
static int add_transferable(const struct drive_values *o, const char *soc, struct config *models,
                            struct against *a, struct err *e)
{
    if (strcmp(models[0].sim.hwmodel, "per-op") != 0 || o->config.n_sets == CONFIG_MAX_SETS) {
        return 0;
    }
    const struct soc_ops *ops = &models[0].truth.runtime[0]->ops;
    if (strcmp(ops->model, models[0].llm.name) != 0) { /* the first machine already has it */
        a->labels[0] = xformat("%s, transferable", models[0].soc.machine.name);
        return 0;
    }
    struct drive_values with = *o;
    with.config.sets[with.config.n_sets++] = "sim.hwmodel=p-norm";
    with.config.no_notes = true;
    struct config *c = &models[a->n_models];
    if (load_model(&with, soc, c, e) != 0) {
        config_fini(c);
        return -EINVAL;
    }
    a->labels[a->n_models] = xformat("%s, transferable", c->soc.machine.name);
    a->n_models++;
    return 0;
}

static int simulate(const struct config *c, const struct config_policy *p, const struct trace *t,
                    uint64_t seed, struct request_times *out, struct err *e)
{
    request_times_init(out, t->n);
    struct runner_options opt = {.series = &out->observer};
    SCOPED(runner_result_fini) struct runner_result r;
    int rc = runner_run(c, p, t, seed, &opt, &r, e);
    if (rc != 0) {
        (void)fprintf(stderr, "xpusim: error: %s\n", r.sim.message);
    }
    return rc;
}

static int run_policies(const struct drive_values *o, const struct drive_options *d,
                        const struct config *c, const struct trace *t, struct against *a,
                        struct err *e)
{
    for (uint32_t i = 0; i < a->n_policies; i++) {
        struct config_policy p;
        struct against_policy *to = &a->policies[i];
        struct runner_options opt = {0};
        if (config_policy_parse(&p, o->policies.v[i], e) != 0) {
            return EXIT_BAD_INPUT;
        }
        struct real_run *r = &to->real[to->n_real++];
        (void)snprintf(to->label, sizeof to->label, "%s", p.label);
        if (real_execute(d, c, &p, t, o->config.seed, &opt, NULL, r, e) != 0) {
            return drive_failed(r);
        }
        if (drive_interrupt != 0) {
            return EXIT_SIGNAL;
        }
        if (!o->output.quiet) {
            (void)fprintf(stderr, "%s, repeat %u: %.1f s, others had %.1f %%\n", to->label,
                          to->n_real, r->end_s, 100.0 * (r->foreign_frac + r->steal_frac));
        }
    }
    return EXIT_OK;
}

/* Simulates the first machine with the kernel speed of each repeat. The remaining error is not due
 * to a computer that was faster or slower than at its calibration. */
static int simulate_at_speed(const struct drive_values *o, const struct drive_options *d,
                             struct config *model, const struct config_policy *p,
                             const struct trace *t, struct against_policy *to, struct err *e)
{
    OWNED struct soc *kept = xcalloc(1, sizeof *kept);
    *kept = model->soc;
    int rc = 0;
    for (uint32_t k = 0; k < to->n_real && rc == 0; k++) {
        to->speed[k] = speed_of_run(&to->real[k].report, d->clock, model);
        if (!isnan(to->speed[k].all)) {
            speed_apply(model, &to->speed[k]);
            rc = simulate(model, p, t, o->config.seed, &to->at_speed[k], e);
            model->soc = *kept;
        }
    }
    return rc;
}

static int simulate_all(const struct drive_values *o, const struct drive_options *d,
                        struct config *models, const struct trace *t, struct against *a,
                        struct err *e)
{
    for (uint32_t i = 0; i < a->n_policies; i++) {
        struct config_policy p;
        if (config_policy_parse(&p, o->policies.v[i], e) != 0) {
            return EXIT_BAD_INPUT;
        }
        for (uint32_t m = 0; m < a->n_models; m++) {
            if (simulate(&models[m], &p, t, o->config.seed, &a->policies[i].simulated[m], e) != 0) {
                return EXIT_CHECK_FAILED;
            }
        }
        if (simulate_at_speed(o, d, &models[0], &p, t, &a->policies[i], e) != 0) {
            return EXIT_CHECK_FAILED;
        }
    }
    return EXIT_OK;
}

/* Drops the runs of an incomplete turn, which only some policies have. */
static void keep_turns(struct against *a, uint32_t whole)
{
    for (uint32_t i = 0; i < a->n_policies; i++) {
        while (a->policies[i].n_real > whole) {
            real_run_fini(&a->policies[i].real[--a->policies[i].n_real]);
        }
    }
    a->repeats = whole;
}

/* Runs a turn: the calibration if requested, then every policy. So drift affects all equally.
 * Policies get the calibration so far. */
static int run_turn(const struct drive_values *o, const struct drive_options *d,
                    struct calibration *cal, struct config *model, const struct trace *t,
                    struct against *a, struct err *e)
{
    struct fit fit;
    int status = EXIT_OK;
    if (cal->traces.n > 0) {
        status = calibration_round(cal, e);
        status = status == EXIT_OK && drive_interrupt != 0 ? EXIT_SIGNAL : status;
        status = status == EXIT_OK ? calibration_write(cal, &fit, e) : status;
        if (status != EXIT_OK) {
            return status; /* the model stays that of the earlier turns */
        }
        config_fini(model);
        memset(model, 0, sizeof *model);
        if (load_model(o, o->out, model, e) != 0) {
            return EXIT_BAD_INPUT;
        }
    }
    return run_policies(o, d, model, t, a, e);
}

int drive_compare(const struct drive_values *o, const struct drive_options *d,
                  struct calibration *cal, const struct trace *t, struct err *e)
{
    struct against *a = xkept(xcalloc(1, sizeof *a));
    OWNED struct config *models = xcalloc(AGAINST_MAX_MODELS, sizeof *models);
    a->n_policies = o->policies.n;
    a->n_models = o->datasheet == NULL ? 1 : 2;
    a->repeats = o->repeat;
    a->clock = o->real.clock;
    int status = EXIT_BAD_INPUT;
    (void)load_model(o, o->config.soc, &models[0], e);
    if (o->datasheet != NULL) {
        (void)load_model(o, o->datasheet, &models[1], e);
    }
    if (e->n == 0) {
        status = EXIT_OK;
        a->engines = real_describe(d, &models[0].soc.machine);
        uint32_t whole = 0;
        for (; whole < o->repeat && status == EXIT_OK; whole += status == EXIT_OK) {
            status = run_turn(o, d, cal, &models[0], t, a, e);
        }
        int end = EXIT_OK;
        if (drive_interrupt != 0 && (status == EXIT_OK || status == EXIT_SIGNAL)) {
            keep_turns(a, whole);
            end = drive_say_interrupted(whole, "turn");
            status = whole > 0 ? EXIT_OK : end;
        }
        a->trace = models[0].workload; /* only now, because a calibration loads the model again */
        const char *soc = cal->traces.n > 0 ? o->out : o->config.soc;
        if (status == EXIT_OK && add_transferable(o, soc, models, a, e) != 0) {
            status = EXIT_BAD_INPUT;
        }
        status = status == EXIT_OK ? simulate_all(o, d, models, t, a, e) : status;
        for (uint32_t m = 0; m < a->n_models; m++) {
            a->models[m] = a->labels[m] != NULL ? a->labels[m] : models[m].soc.machine.name;
        }
        if (status == EXIT_OK) {
            struct document *said = document_new();
            about_document(&(struct about){.kind = "drive", .config = &models[0], .workload = true},
                           said);
            against_document(a, said);
            document_show(said, &o->output);
            status = end;
        }
    }
    config_fini(&models[0]);
    for (uint32_t m = 1; m < a->n_models; m++) {
        config_fini(&models[m]);
    }
    return status;
}

#include "hwmodels/corun.h"

#include "sim/base/csv_record.h"

#define MAX_GBS 1e5
#define MAX_SLOWDOWN 100.0

static const char *const victims[] = {"npu", "gpu", "cpu", "both", NULL};

#define OF(member) CSV_MEMBER(struct corun_point, member)
#define GBS(member) CSV_NUMBER, OF(member), .min = 1e-3, .max = MAX_GBS
static const struct csv_field fields[] = {
    {"machine", CSV_TEXT, OF(machine), .min = 1},
    {"what", CSV_TEXT, OF(what), .min = 1},
    {"peak_gbs", GBS(peak_gbs)},
    {"victim", CSV_CHOICE, OF(victim), .choices = victims},
    {"victim_gbs", GBS(victim_gbs)},
    {"most_gbs", GBS(most_gbs)},
    {"culprit", CSV_CHOICE, OF(culprit), .choices = victims},
    {"culprit_gbs", GBS(culprit_gbs)},
    {"slowdown", CSV_NUMBER, OF(slowdown), .min = 1.0, .max = MAX_SLOWDOWN},
    {"demands", CSV_TEXT, OF(demands), .min = 1},
    {"source", CSV_TEXT, OF(source), .min = 1},
};

static void row_check(void *row, const struct csvfile *f, struct err *e)
{
    if (((const struct corun_point *)row)->culprit == CORUN_BOTH) {
        csvfile_refuse(f, csvfile_column(f, "culprit"), e, "must be one device");
    }
}

static void add_machine(struct corun_points *p, const char *name)
{
    for (size_t i = 0; i < p->n_machines; i++) {
        if (strcmp(p->machines[i], name) == 0) {
            return;
        }
    }
    KEPT_ADD(p->machines, p->n_machines, name);
}

int corun_read(const char *path, struct corun_points *out, struct err *e)
{
    static const struct csv_table table =
        CSV_TABLE(fields, sizeof *out->v, .check = row_check, .holds = "co-runs");
    *out = (struct corun_points){0};
    out->v = csv_table_read(&table, path, &out->n, e);
    for (size_t i = 0; i < out->n; i++) {
        add_machine(out, out->v[i].machine);
    }
    return out->v != NULL ? 0 : -EINVAL;
}

/* ---- predicting ---- */

double corun_slowdown(const struct contention_ops *model, const double knob[CORUN_KNOBS],
                      const struct corun_point *p)
{
    struct contention_params params = {
        .latency = knob[CORUN_LATENCY],
        .minor = knob[CORUN_MINOR],
        .balance_frac = knob[CORUN_BALANCE],
        .ceiling_bytes_per_s = {p->most_gbs, fmax(p->culprit_gbs, p->most_gbs)},
        .beside = {knob[CORUN_BESIDE], knob[CORUN_BESIDE]},
    };
    bool both = p->victim == CORUN_BOTH;
    bool gpu = both || p->victim == CORUN_GPU;
    bool other_gpu = p->culprit == CORUN_GPU;
    double w = knob[CORUN_WEIGHT];
    struct flow f[2] = {{p->victim_gbs, gpu ? 1.0 : w, 0, 0.0},
                        {p->culprit_gbs, other_gpu ? 1.0 : w, 1, 0.0}};
    /* As in a run, a single flow always gets its demand. */
    double most = fmax(p->victim_gbs, p->culprit_gbs);
    model->share(f, 2, fmax(knob[CORUN_TOGETHER] * p->peak_gbs, most), &params);
    double got = f[0].share_bytes_per_s + (both ? f[1].share_bytes_per_s : 0.0);
    return (p->victim_gbs + (both ? p->culprit_gbs : 0.0)) / got;
}

double corun_error(const struct contention_ops *model, const double knob[CORUN_KNOBS],
                   const struct corun_points *p, const char *machine, const char *without)
{
    double sum = 0.0;
    size_t n = 0;
    for (size_t m = 0; m < p->n_machines; m++) {
        if ((machine != NULL && strcmp(p->machines[m], machine) != 0) ||
            (without != NULL && strcmp(p->machines[m], without) == 0)) {
            continue;
        }
        double own = 0.0;
        size_t rows = 0;
        for (size_t i = 0; i < p->n; i++) {
            if (strcmp(p->v[i].machine, p->machines[m]) == 0) {
                own += fabs(log(corun_slowdown(model, knob, &p->v[i]) / p->v[i].slowdown));
                rows++;
            }
        }
        sum += own / (double)rows;
        n++;
    }
    return n > 0 ? sum / (double)n : 0.0;
}

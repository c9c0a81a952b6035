#include "experiments/arena/certificate.h"

#include <unistd.h>

#include "experiments/arena/judge.h"
#include "experiments/compare/regret.h"
#include "sim/base/json.h"
#include "sim/metrics/metric_table.h"

struct making {
    const struct suite *s;
    uint32_t replications;
    const struct study_how *how;
    struct certificate *out;
    double *best; /* owned; by pair and replication */
    double *x;    /* owned; values of one pair */
};

static double better(const char *metric, double a, double b)
{
    return metric_is_gain(metric) ? fmax(a, b) : fmin(a, b); /* these ignore a NaN */
}

static void take_values(struct making *m, uint32_t pair, const double *x)
{
    const char *metric = m->s->spec.patterns[pair % m->s->spec.n_patterns];
    for (uint32_t k = 0; k < m->replications; k++) {
        double *b = &m->best[(size_t)pair * m->replications + k];
        *b = better(metric, *b, x[k]);
    }
}

static double mean_of(const double *x, uint32_t n)
{
    return stats_mean(x, n, STATS_LEVEL_FRAC).mean;
}

/* Ignores runs that leave requests which the first reference serves, because less work is easier.
 */
static void take_reference(struct making *m, uint32_t reference, const struct judge_runs *runs,
                           const struct judge_runs *first)
{
    for (uint32_t pair = 0; pair < m->s->n_points * m->s->spec.n_patterns; pair++) {
        uint32_t point = pair / m->s->spec.n_patterns;
        judge_values(runs, point, m->s->spec.patterns[pair % m->s->spec.n_patterns], m->x);
        for (uint32_t k = 0; k < m->replications; k++) {
            m->x[k] = judge_lost(runs, first, point, k) ? (double)NAN : m->x[k];
        }
        m->out->rows[pair].reference[reference] = mean_of(m->x, m->replications);
        take_values(m, pair, m->x);
    }
}

static void run_references(struct making *m, struct config_policy *policies)
{
    SCOPED(judge_runs_fini) struct judge_runs first = {.replications = 0};
    for (uint32_t i = 0; i < m->s->n_references; i++) {
        struct judge_runs runs;
        judge_run(m->s, &policies[i], m->replications, m->how, &runs);
        first = i == 0 ? runs : first;
        take_reference(m, i, &runs, &first);
        if (i > 0) {
            judge_runs_fini(&runs);
        }
    }
}

/* Computes bound and hindsight of one point. NaN: it has none. */
static void run_hindsight(struct making *m, uint32_t point, const struct config_policy *policies)
{
    const struct suite_point *p = &m->s->points[point];
    struct compare_plan plan = {.config = &p->config,
                                .options = &p->settings.options,
                                .policies = policies,
                                .n_policies = m->s->n_references,
                                .replications = m->replications,
                                .how = *m->how,
                                .arrivals = p->settings.arrivals};
    SCOPED(err_fini) struct err e = ERR_INIT;
    bool known = regret_check(&plan, &e) == 0;
    struct regret g = {.replications = 0};
    if (known) {
        regret_run(&g, &plan);
    }
    for (uint32_t k = 0; k < m->s->spec.n_patterns; k++) {
        struct certificate_row *row = &m->out->rows[point * m->s->spec.n_patterns + k];
        row->hindsight = row->bound = (double)NAN;
        for (uint32_t c = 0; c < CLAIRVOYANT_METRICS && known; c++) {
            if (strcmp(clairvoyant_metrics[c], m->s->spec.patterns[k]) == 0) {
                row->hindsight = mean_of(&g.best[c * m->replications], m->replications);
                row->bound = mean_of(&g.bound[c * m->replications], m->replications);
                take_values(m, point * m->s->spec.n_patterns + k, &g.best[c * m->replications]);
            }
        }
    }
}

int certificate_make(const struct suite *s, uint32_t replications, const struct study_how *how,
                     struct certificate *out, struct err *e)
{
    struct config_policy policies[SUITE_MAX_REFERENCES];
    for (uint32_t i = 0; i < s->n_references; i++) {
        if (config_policy_parse(&policies[i], s->references[i], e) != 0) {
            return -EINVAL;
        }
    }
    const size_t n = (size_t)s->n_points * s->spec.n_patterns * replications;
    struct making m = {s,
                       replications,
                       how,
                       out,
                       xmalloc((n + 1) * sizeof *m.best),
                       xmalloc((replications + 1) * sizeof *m.x)};
    *out = (struct certificate){.replications = replications};
    for (size_t i = 0; i < n; i++) {
        m.best[i] = (double)NAN;
    }
    run_references(&m, policies);
    for (uint32_t p = 0; p < s->n_points; p++) {
        run_hindsight(&m, p, policies);
    }
    for (uint32_t i = 0; i < s->n_points * s->spec.n_patterns; i++) {
        out->rows[i].best = mean_of(&m.best[(size_t)i * replications], replications);
    }
    free(m.best);
    free(m.x);
    return 0;
}

void certificate_document(const struct suite *s, const struct certificate *c, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "point", .kind = FRAME_TEXT, .heading = true},
        {.name = "metric", .kind = FRAME_TEXT},
        {.name = "reference", .format = "%.4g"},
        {.name = "hindsight", .format = "%.4g"},
        {.name = "best", .title = "best known", .format = "%.4g"},
        {.name = "bound", .format = "%.4g"},
        {.name = "headroom", .title = "reference / best", .format = "%.2f"},
        {.name = "best_by", .title = "best reference", .kind = FRAME_TEXT},
    };
    struct frame *f = DOCUMENT_FRAME(d, "certificate", 2, columns);
    for (uint32_t i = 0; i < s->n_points * s->spec.n_patterns; i++) {
        const struct certificate_row *row = &c->rows[i];
        const char *metric = s->spec.patterns[i % s->spec.n_patterns];
        uint32_t by = 0;
        for (uint32_t k = 1; k < s->n_references; k++) {
            bool ahead =
                better(metric, row->reference[by], row->reference[k]) != row->reference[by];
            by = ahead ? k : by;
        }
        double room = row->reference[0] / row->best;
        FRAME_ROW(f, s->points[i / s->spec.n_patterns].name, metric, row->reference[0],
                  row->hindsight, row->best, row->bound, metric_is_gain(metric) ? 1.0 / room : room,
                  s->references[by]);
    }
}

bool certificate_read(const struct suite *s, struct certificate *out)
{
    const char *dot = strrchr(s->spec.file, '.');
    OWNED char *path = xformat("%.*s.archive.json", (int)(dot - s->spec.file), s->spec.file);
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(json_drop) cJSON *root = access(path, R_OK) == 0 ? json_read_file(path, &e) : NULL;
    const cJSON *rows = json_member(root, "certificate");
    bool fits = strcmp(json_string(root, "hash"), s->hash) == 0;
    double replications = json_number(root, "replications");
    *out = (struct certificate){.replications = replications > 0.0 ? (uint32_t)replications : 0};
    for (uint32_t i = 0; i < s->n_points * s->spec.n_patterns && fits; i++) {
        const cJSON *point = json_member(rows, s->points[i / s->spec.n_patterns].name);
        const cJSON *row = json_member(point, s->spec.patterns[i % s->spec.n_patterns]);
        out->rows[i] = (struct certificate_row){.reference = {json_number(row, "reference")},
                                                .hindsight = json_number(row, "hindsight"),
                                                .best = json_number(row, "best"),
                                                .bound = json_number(row, "bound")};
    }
    return fits;
}

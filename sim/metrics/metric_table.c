/* The table of metrics (rows: metrics.def), and the parser of names. */
#include "sim/metrics/metric_table.h"

#include "sim/base/words.h"

const char *const metric_better_names[] = {"lower", "higher", "neither", NULL};

const char *const metric_usual[] = {
    "reactive.ttft_s.mean",    "reactive.e2e_s.mean",           "reactive.e2e_s.p90",
    "proactive.e2e_s.mean",    "all.norm_e2e_per_token_s.mean", "all.throughput_req_per_min",
    "igpu.weighted_util_frac", "energy_active_j_per_token",     NULL,
};

#define SCALED(part, title, unit, printed, scale, better, definition)                              \
    {part, title, unit, printed, scale, METRIC_BETTER_##better, definition},
#define NAMED(part, title, unit, better, definition)                                               \
    SCALED(part, title, unit, unit, 1.0, better, definition)
#define WITH_VALUE(part, title, unit, better, definition, value)                                   \
    NAMED(part, title, unit, better, definition)
#define SERIES(id, ...) NAMED(__VA_ARGS__)
#define REACTIVE_SERIES(id, ...) NAMED(__VA_ARGS__)
#define FINISHED(id, ...) WITH_VALUE(__VA_ARGS__)
#define WAITED(id, ...) WITH_VALUE(__VA_ARGS__)
#define TOTAL WITH_VALUE
#define ARRIVALS WITH_VALUE
#define RUN(part, suffix, ...) WITH_VALUE(part, __VA_ARGS__)
#define DEVICE WITH_VALUE
#define MACHINE(prefix, ...) WITH_VALUE(__VA_ARGS__)
#define GRAPHICS(part, suffix, ...) WITH_VALUE(part, __VA_ARGS__)
#define SLOWED WITH_VALUE
#define PRESSURE WITH_VALUE
#define ENERGY WITH_VALUE
#define METERED WITH_VALUE

static const struct metric_descriptor rows[] = {
#include "sim/metrics/metrics.def"
};

#define N_ROWS (sizeof rows / sizeof rows[0])

static const char *const statistics[] = {"mean", "max", "n", NULL};
static const char *const statistic_titles[] = {"mean", "maximum", ""};

/* The parts of a name, borrowed from it. */
struct parts {
    const char *who; /* group, device or part before the row's name; not NUL-terminated */
    size_t who_length;
    const struct metric_descriptor *row;
    int statistic;  /* index; -1: none */
    double percent; /* quantile in percent; 0: none */
    double limit;   /* limit of a share; NaN: none */
};

static const struct metric_descriptor *row_of(const char *part, size_t length)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].part) == length && memcmp(rows[i].part, part, length) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Begin of ".p97.5" at the end of a name, or NULL. */
static const char *quantile_at(const char *name, double *percent)
{
    const char *found = NULL;
    for (const char *at = strstr(name, ".p"); at != NULL; at = strstr(at + 1, ".p")) {
        char *end = NULL;
        double x = at[2] >= '0' && at[2] <= '9' ? strtod(at + 2, &end) : 0.0;
        if (end != NULL && *end == '\0' && strspn(at + 2, "0123456789.") == strlen(at + 2) &&
            x > 0.0 && x < 100.0) {
            found = at;
            *percent = x;
        }
    }
    return found;
}

double metric_quantile(const char *name)
{
    double percent = 0.0;
    (void)quantile_at(name, &percent);
    return percent;
}

/* Begin of ".below:2" at the end of a name, or NULL. */
static const char *limit_at(const char *name, double *limit)
{
    static const char below[] = ".below:";
    const char *at = strstr(name, below);
    const char *number = at != NULL ? at + sizeof below - 1 : "";
    char *end = NULL;
    double x = *number >= '0' && *number <= '9' ? strtod(number, &end) : -1.0;
    if (end == NULL || *end != '\0' || !isfinite(x) || strpbrk(number, "xX") != NULL) {
        return NULL;
    }
    *limit = x;
    return at;
}

double metric_limit(const char *name)
{
    double limit = (double)NAN;
    (void)limit_at(name, &limit);
    return limit;
}

/* Parses a name. The row is the longest one that equals it or its end after a dot. */
static void take_apart(const char *name, struct parts *p)
{
    static const char cut[] = "truncated.";
    *p = (struct parts){.statistic = -1, .limit = (double)NAN};
    name += strncmp(name, cut, sizeof cut - 1) == 0 ? sizeof cut - 1 : 0;
    size_t length = strlen(name);
    const char *last = strrchr(name, '.');
    const char *quantile = quantile_at(name, &p->percent);
    const char *share = limit_at(name, &p->limit);
    if (share != NULL) {
        length = (size_t)(share - name);
    } else if (quantile != NULL) {
        length = (size_t)(quantile - name);
    } else if (last != NULL && words_find(statistics, last + 1) >= 0) {
        p->statistic = words_find(statistics, last + 1);
        length = (size_t)(last - name);
    }
    for (const char *at = name; at != NULL && p->row == NULL;) {
        size_t before = (size_t)(at - name);
        p->row = before <= length ? row_of(at, length - before) : NULL;
        p->who = name;
        p->who_length = before > 0 ? before - 1 : 0;
        at = strchr(at, '.');
        at = at != NULL ? at + 1 : NULL;
    }
}

/* Whether it is a number of values, such as "ttft_s.n", with its own unit and direction. */
static bool is_number_of_values(const struct parts *p)
{
    return p->row != NULL && p->statistic >= 0 && strcmp(statistics[p->statistic], "n") == 0 &&
           strcmp(p->row->unit, "events") != 0;
}

const struct metric_descriptor *metric_table(size_t *n)
{
    *n = N_ROWS;
    return rows;
}

const struct metric_descriptor *metric_describe(const char *name)
{
    struct parts p;
    take_apart(name, &p);
    return p.row;
}

enum metric_better metric_better(const char *name)
{
    struct parts p;
    take_apart(name, &p);
    enum metric_better of_row = p.row != NULL ? p.row->better : METRIC_BETTER_NEITHER;
    if (is_number_of_values(&p) || of_row == METRIC_BETTER_NEITHER) {
        return METRIC_BETTER_NEITHER;
    }
    if (isnan(p.limit)) {
        return of_row;
    }
    return of_row == METRIC_BETTER_LOWER ? METRIC_BETTER_HIGHER : METRIC_BETTER_LOWER;
}

bool metric_is_gain(const char *name)
{
    return metric_better(name) == METRIC_BETTER_HIGHER;
}

double metric_scale(const char *name)
{
    struct parts p;
    take_apart(name, &p);
    return p.row != NULL && isnan(p.limit) && !is_number_of_values(&p) ? p.row->scale : 1.0;
}

/* The group or device for a title; "all" is left out. */
static const char *who_of(const struct parts *p)
{
    if (p->who_length == 0 || (p->who_length == 3 && memcmp(p->who, "all", 3) == 0)) {
        return "";
    }
    return p->who_length == 4 && memcmp(p->who, "igpu", 4) == 0
               ? "iGPU "
               : xkeep(xformat("%.*s ", (int)p->who_length, p->who));
}

const char *metric_title(const char *name)
{
    struct parts p;
    take_apart(name, &p);
    if (p.row == NULL) {
        return xkeep(xstrdup(name));
    }
    const char *who = who_of(&p);
    if (!isnan(p.limit)) {
        return xkeep(xformat("%s%s, share up to %g %s", who, p.row->title, p.limit, p.row->unit));
    }
    const char *quantile = p.percent == 50.0 ? "median"
                           : p.percent > 0.0 ? xkeep(xformat("P%g", p.percent))
                                             : "";
    const char *statistic = p.statistic >= 0 ? statistic_titles[p.statistic] : quantile;
    if (is_number_of_values(&p)) {
        return xkeep(xformat("%s%s, number of values", who, p.row->title));
    }
    bool share = strcmp(p.row->printed, "1") == 0;
    return xkeep(xformat("%s%s%s%s%s%s%s", statistic, statistic[0] != '\0' ? " " : "", who,
                         p.row->title, share ? "" : " (", share ? "" : p.row->printed,
                         share ? "" : ")"));
}

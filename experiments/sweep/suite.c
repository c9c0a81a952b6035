#include "experiments/sweep/suite.h"

#include <unistd.h>

#include "experiments/run/folder.h"
#include "experiments/run/runner.h"
#include "sim/base/datadir.h"
#include "sim/base/hash.h"
#include "sim/base/json.h"
#include "traces/traces.h"

/* ---- the object "suite" ---- */

static const char *sealed_path(const char *file, const char *sealed)
{
    const char *slash = strrchr(file, '/');
    bool relative = slash != NULL && sealed[0] != '/';
    return xkeep(relative ? xformat("%.*s%s", (int)(slash + 1 - file), file, sealed)
                          : xstrdup(sealed));
}

static void read_unscored(struct suite *s, struct json_obj *o, struct err *e)
{
    const char *names[SUITE_MAX_POINTS];
    uint32_t n =
        json_has(o, "unscored") ? json_get_strings(o, "unscored", 0, SUITE_MAX_POINTS, names) : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = 0;
        while (at < s->n_points && strcmp(s->points[at].name, names[i]) != 0) {
            at++;
        }
        if (at == s->n_points) {
            (void)err_add(e, "%s: suite.unscored: no point is called %s", s->spec.file, names[i]);
        } else {
            s->points[at].scored = false;
        }
    }
}

static void read_object(struct suite *s, struct err *e)
{
    struct json_obj o = json_root(s->spec.suite, s->spec.file, e);
    o.path = "suite";
    (void)json_get_string(&o, "about");
    s->n_references = json_get_strings(&o, "references", 1, SUITE_MAX_REFERENCES, s->references);
    read_unscored(s, &o, e);
    s->sealed =
        json_has(&o, "sealed") ? sealed_path(s->spec.file, json_get_string(&o, "sealed")) : NULL;
    s->recorded = json_string_or(&o, "hash", "");
    json_done(&o);
}

/* ---- points ---- */

static void load_point(struct suite *s, uint32_t i, struct err *e)
{
    struct suite_point *p = &s->points[i];
    SIM_ASSERT(i == s->n_points && i < s->spec.n_points); /* earlier points have their names */
    SCOPED(json_drop) cJSON *settings = spec_point_settings(&s->spec, i);
    p->scored = true;
    p->name = xkeep(xstrdup(json_string(settings, "point")));
    if (p->name[0] == '\0') {
        (void)err_add(e, "%s: rows[%" PRIu32 "]: a point of a suite needs a name, \"point\"",
                      s->spec.file, i);
    }
    for (uint32_t k = 0; k < i; k++) {
        if (strcmp(s->points[k].name, p->name) == 0) {
            (void)err_add(e, "%s: rows[%" PRIu32 "].point: %s is there already", s->spec.file, i,
                          p->name);
        }
    }
    if (spec_point(&s->spec, i, &p->settings, e) == 0) {
        p->settings.options.several = true;
        (void)config_load(&p->config, &p->settings.options, e);
    }
}

/* Hashes the inputs of the first replications: settings, and the present content of the files that
 * they name. */
static void take_hash(struct suite *s, struct err *e)
{
    SCOPED(text_fini) struct text t = {0};
    for (uint32_t i = 0; i < s->n_points; i++) {
        struct suite_point *p = &s->points[i];
        uint64_t trace = 0;
        (void)config_trace_check(&p->settings.options, p->settings.options.seed,
                                 p->settings.arrivals, &trace, e);
        text_format(&t, "%s %d %016" PRIx64 " %016" PRIx64 " %" PRIu64 "\n", p->name, p->scored,
                    p->config.hash, trace, p->settings.options.seed);
    }
    text_format(&t, "%" PRIu32 " %s %s", s->spec.replications, s->spec.kept,
                s->n_references > 0 ? s->references[0] : "");
    (void)snprintf(s->hash, sizeof s->hash, "%016" PRIx64, hash_string(HASH_INIT, text_end(&t)));
    SIM_ASSERT(strlen(s->hash) == 16); /* the width in files */
}

static void check_metrics(struct suite *s, struct err *e)
{
    SIM_ASSERT(s->n_points > 0); /* an experiment has at least one */
    if (s->spec.n_patterns == 0 || s->spec.n_patterns > SUITE_MAX_METRICS) {
        (void)err_add(e, "%s: metrics: a suite names 1 to %d metrics", s->spec.file,
                      SUITE_MAX_METRICS);
    }
    for (uint32_t k = 0; k < s->spec.n_patterns && e->n == 0; k++) {
        (void)runner_check_metric(&s->points[0].config, "metrics", s->spec.patterns[k], e);
    }
}

#define FOLDER "experiments/suites"

/* Skips archives and sealed points, which are no suites to choose. */
static void add_name(void *names, const char *path UNUSED, const char *name, struct err *e UNUSED)
{
    if (!text_ends(name, ".archive") && !text_ends(name, "-sealed")) {
        text_item(names, ", ", name);
    }
}

const char *suite_file(const char *name, struct err *e)
{
    const char *file = datadir_named(name, FOLDER, ".json");
    if (file == name || access(file, R_OK) == 0) {
        return file;
    }
    SCOPED(text_fini) struct text names = {0};
    SCOPED(err_fini) struct err none = ERR_INIT;
    (void)folder_each(datadir_path(FOLDER), add_name, &names, &none);
    return err_null(e, "%s: neither a file ending in .json nor a shipped suite; there are %s", name,
                    text_end(&names));
}

int suite_load(struct suite *s, const char *name, struct err *e)
{
    *s = (struct suite){.recorded = ""};
    size_t before = e->n;
    const char *file = suite_file(name, e);
    if (file == NULL || spec_load(&s->spec, file, false, e) != 0) {
        return -EINVAL;
    }
    if (s->spec.suite == NULL) {
        return err_add(e, "%s: no suite: it has no object \"suite\"", file);
    }
    if (s->spec.warmup_s > 0.0 || s->spec.n_until > 0) { /* `compare` and `judge` have neither */
        return err_add(e, "%s: %s: not in a suite", file,
                       s->spec.warmup_s > 0.0 ? "warmup_s" : "until");
    }
    if (s->spec.n_points > SUITE_MAX_POINTS) {
        return err_add(e, "%s: %" PRIu64 " points; at most %d", file, s->spec.n_points,
                       SUITE_MAX_POINTS);
    }
    s->points = xkept(xcalloc(s->spec.n_points + 1, sizeof *s->points));
    for (uint32_t i = 0; i < s->spec.n_points; i++, s->n_points++) {
        load_point(s, i, e);
    }
    read_object(s, e);
    SIM_ASSERT(s->n_points == s->spec.n_points);
    if (e->n == before) {
        check_metrics(s, e);
        take_hash(s, e);
    }
    return e->n > before ? -EINVAL : 0;
}

bool suite_is_frozen(const struct suite *s)
{
    SIM_ASSERT(s->hash[0] != '\0'); /* otherwise a file without a hash would seem frozen */
    return strcmp(s->recorded, s->hash) == 0;
}

struct study_cell suite_cell(const struct suite *s, uint32_t point, const struct config_policy *p,
                             uint32_t replication)
{
    SIM_ASSERT(point < s->n_points && replication < SPEC_MAX_REPLICATIONS);
    const struct suite_point *of = &s->points[point];
    return (struct study_cell){
        .config = &of->config,
        .options = &of->settings.options,
        .policy = p,
        .seed = config_seed(of->settings.options.seed, replication),
        .arrivals = of->settings.arrivals,
    };
}

int suite_refuse_options(const struct config_options *o, struct err *e)
{
    return config_options_say_run(o)
               ? err_add(e,
                         "--suite: its points say machine, model, workload, targets, settings and "
                         "seed; these options do not go with it")
               : 0;
}

struct config_options suite_options(const struct suite *s, uint32_t point,
                                    const struct config_options *given)
{
    struct config_options o = s->points[point].settings.options;
    o.asked = given->asked;
    return o;
}

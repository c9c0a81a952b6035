#include "tests/helpers/conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/diff/shrink_trace.h"
#include "sim/base/arena.h"
#include "traces/traces.h"

#define FOLDER "xpusim-trouble"
#define MAX_TESTS 500

bool conformance_failed(const struct scenario *sc)
{
    return sc->result.status != 0 || sc->result.audit.finished != sc->trace.n;
}

int conformance_run(struct scenario *sc, const struct trace *t)
{
    struct trace own = sc->trace;
    sc->trace = *t;
    int rc = (sc->run == NULL ? sim_run : sc->run)(&sc->setup, &sc->result);
    sc->trace = own;
    return rc;
}

struct showing {
    struct scenario *sc;
    int status;
    enum conformance_pair pair;
};

static bool shows(void *ctx, const struct trace *t)
{
    struct showing *s = ctx;
    if (s->pair != CONFORMANCE_ALONE) {
        return conformance_differ(s->sc, t, s->pair) != NULL;
    }
    int rc = conformance_run(s->sc, t);
    return rc == s->status && (rc != 0 || s->sc->result.audit.finished != t->n);
}

/* "PATH/my.so:a=b" as part of a file's name. */
static void file_name(const struct conformance_case *c, char *path, size_t size)
{
    const char *from = strrchr(c->policy, '/');
    (void)snprintf(path, size, FOLDER "/conformance-%s-%llu%s%s.csv",
                   from == NULL ? c->policy : from + 1, (unsigned long long)c->load,
                   c->pair != CONFORMANCE_ALONE ? "-" : "", conformance_pairs[c->pair]);
    for (char *p = path + strlen(FOLDER) + 1; (p = strpbrk(p, ":=,' ")) != NULL;) {
        *p = '-';
    }
}

void conformance_leave(struct scenario *sc, const struct conformance_case *c)
{
    struct err e = ERR_INIT;
    struct showing ctx = {sc, sc->result.status, c->pair};
    struct shrink_trace s = {&ctx, shows, MAX_TESTS};
    struct trace small = {0};
    char path[512];
    bool *all = xmalloc(sc->trace.n + 1);
    memset(all, true, sc->trace.n + 1);
    (void)trace_subset(&sc->trace, all, &small);
    free(all);
    if (shows(&ctx, &small)) {
        (void)shrink_trace_run(&s, &small);
    }
    file_name(c, path, sizeof path);
    if ((mkdir(FOLDER, 0777) == 0 || errno == EEXIST) && trace_write(path, &small, &e) == 0) {
        (void)fprintf(stderr, "%s, load %llu: enough to show it: %zu of %zu requests, %s\n",
                      c->policy, (unsigned long long)c->load, small.n, sc->trace.n, path);
        (void)fprintf(stderr, "  %s '%s' --load %llu%s%s%s%s%s --trace %s%s\n", c->program,
                      c->policy, (unsigned long long)c->load, c->capable ? " --capable" : "",
                      c->params[0] != '\0' ? " --params " : "", c->params,
                      c->pair != CONFORMANCE_ALONE ? " --pair " : "", conformance_pairs[c->pair],
                      path,
                      c->pair == CONFORMANCE_ALONE ? " --decisions " FOLDER "/decisions" : "");
    }
    err_print(&e, stderr);
    err_fini(&e);
    trace_fini(&small);
}

int conformance_tell(const struct scenario *sc, size_t n)
{
    const struct sim_result *r = &sc->result;
    bool failed = r->status != 0 || r->audit.finished != n;
    (void)printf("%llu of %zu requests finished\n", (unsigned long long)r->audit.finished, n);
    (void)printf("%s%s%s", r->message, failed ? "\n" : "", r->scene);
    return failed ? 1 : 0;
}

int conformance_show(struct scenario *sc, const char *trace, enum conformance_pair pair)
{
    struct err e = ERR_INIT;
    struct trace t = {0};
    int status = 2;
    if (trace_read(trace, &t, &e) == 0) {
        for (size_t i = 0; i < t.n; i++) {
            if (t.rows[i].request_id >= SCENARIO_MAX_REQUESTS) {
                (void)err_add(&e, "%s: request_id %u: these are from 0 to %d", trace,
                              t.rows[i].request_id, SCENARIO_MAX_REQUESTS - 1);
            }
        }
    }
    if (e.n == 0 && pair != CONFORMANCE_ALONE) {
        const char *differ = conformance_differ(sc, &t, pair);
        (void)printf("%s\n", differ != NULL ? differ : "both runs are alike");
        status = differ != NULL ? 1 : 0;
    } else if (e.n == 0) {
        (void)conformance_run(sc, &t);
        status = conformance_tell(sc, t.n);
    }
    err_print(&e, stderr);
    err_fini(&e);
    trace_fini(&t);
    return status;
}

/* Leaves a reproducer of a load that failed: a small trace, and the command that runs it again. */
#include <sys/stat.h>

#include "experiments/conformance/conformance.h"
#include "experiments/diff/shrink_trace.h"
#include "experiments/diff/trouble.h"
#include "experiments/shell/cli.h"
#include "policies/external/external.h"
#include "sim/base/hash.h"
#include "traces/traces.h"

#define FOLDER "xpusim-trouble"
#define MAX_TESTS 500

bool conformance_failed(const struct scenario *sc)
{
    return sc->result.status != 0 || sc->result.audit.finished != sc->trace.n;
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

/* Makes a file's name of a label such as "PATH/my.so:a=b". */
static char *file_name(const char *label, const struct conformance_case *how)
{
    OWNED char *of_params =
        how->params == NULL
            ? xformat("%s", "")
            : xformat("-%016llx", (unsigned long long)hash_string(HASH_INIT, how->params));
    char *path = xformat(FOLDER "/conformance-%s-%llu%s%s%s.csv", text_base(label),
                         (unsigned long long)how->load, of_params,
                         how->pair != CONFORMANCE_ALONE ? "-" : "", conformance_pairs[how->pair]);
    for (char *p = path + strlen(FOLDER) + 1; (p = strpbrk(p, ":=,' ")) != NULL;) {
        *p = '-';
    }
    return path;
}

char *conformance_command(const struct conformance *c, const struct conformance_case *how,
                          const char *path)
{
    OWNED char *word = xmalloc(4 * strlen(c->label) + 3);
    bool alone = how->pair == CONFORMANCE_ALONE;
    return xformat("xpusim check-policy %s --load %llu%s%s%s%s%s%s%s%s%s",
                   cli_word(c->label, true, word), (unsigned long long)how->load,
                   how->capable ? " --capable" : "", how->params != NULL ? " --params '" : "",
                   how->params != NULL ? how->params : "", how->params != NULL ? "'" : "",
                   alone ? "" : " --pair ", conformance_pairs[how->pair],
                   path != NULL ? " --trace " : "", path != NULL ? path : "",
                   alone && path != NULL ? " --decisions " FOLDER "/decisions" : "");
}

void conformance_leave(struct scenario *sc, const struct conformance *c,
                       const struct conformance_case *how)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct showing ctx = {sc, sc->result.status, how->pair};
    struct shrink_trace s = {.ctx = &ctx,
                             .shows = shows,
                             .max_tests = MAX_TESTS,
                             .limit_s = external_spec_length(c->label) > 0 ? TROUBLE_LIMIT_S : 0.0};
    (void)external_shorten(c->ops, &sc->params, sc->took_s);
    SCOPED(trace_fini) struct trace small = {0};
    struct sim_result result = sc->result;
    OWNED bool *all = xmalloc(sc->trace.n + 1);
    memset(all, true, sc->trace.n + 1);
    (void)trace_subset(&sc->trace, all, &small);
    if (shows(&ctx, &small)) {
        (void)shrink_trace_run(&s, &small);
    }
    OWNED char *path = file_name(c->label, how);
    if ((mkdir(FOLDER, 0777) == 0 || errno == EEXIST) && trace_write(path, &small, &e) == 0) {
        (void)fprintf(c->out, "%s, load %llu: enough to show it: %zu of %zu request%s, %s\n",
                      c->label, (unsigned long long)how->load, small.n, sc->trace.n,
                      text_plural(sc->trace.n), path);
        OWNED char *command = conformance_command(c, how, path);
        (void)fprintf(c->out, "  %s\n", command);
    }
    err_print(&e, c->out);
    sc->result = result;
}

#include "experiments/run/config_notes.h"

#include "traces/traces.h"

struct listener {
    void (*say)(void *to, const char *text);
    void *to;
};

static void say_and_free(const struct listener *l, char *text)
{
    l->say(l->to, text);
    free(text);
}

/* Measured kernels of the file: of the entry that this LLM uses (used), or any. */
static const struct soc_ops *measured(const struct config *c, bool used)
{
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        const struct soc_device *s = &c->soc.devices[d];
        for (uint32_t r = 0; r < s->n_runtimes; r++) {
            const struct soc_ops *ops = &s->runtimes[r].ops;
            bool mine =
                &s->runtimes[r] == c->truth.runtime[d] && strcmp(ops->model, c->llm.name) == 0;
            if (ops->given && (mine || !used)) {
                return ops;
            }
        }
    }
    return NULL;
}

static void other_model(const struct listener *l, const struct config *c, const char *key,
                        const char *fitted, const char *used)
{
    if (fitted[0] != '\0' && strcmp(fitted, used) != 0) {
        say_and_free(l, xformat("the numbers of %s were fitted with sim.%s=%s; this run uses %s",
                                c->soc.machine.name, key, fitted, used));
    }
}

void config_notes(const struct config *c, void (*say)(void *to, const char *text), void *to)
{
    const struct listener l = {say, to};
    const struct soc_ops *any = measured(c, false);
    /* Only one model reads measured kernels, so a file need not state it. */
    const char *fitted = any != NULL ? "per-op" : c->soc.hwmodel;
    other_model(&l, c, "hwmodel", fitted, c->sim.hwmodel);
    other_model(&l, c, "contention", c->soc.contention, c->sim.contention);
    if (any != NULL && strcmp(c->sim.hwmodel, "per-op") == 0 && measured(c, true) == NULL) {
        say_and_free(&l, xformat("%s has measured kernels of %s, none of %s: kernel times come "
                                 "from its rates, which may be those of a data sheet",
                                 c->soc.machine.name, any->model, c->llm.name));
    }
    OWNED char *unread = trace_workload_unread(c->workload);
    if (unread != NULL) {
        say_and_free(&l, xformat("workload \"%s\": keys without effect: %s", c->workload, unread));
    }
}

static void print_once(void *to UNUSED, const char *text)
{
    static char *said; /* a process loads a configuration many times */
    if (said == NULL || strstr(said, text) == NULL) {
        char *all = xformat("%s\n%s", said != NULL ? said : "", text);
        free(said);
        said = all;
        (void)fprintf(stderr, "xpusim: warning: %s\n", text);
    }
}

void config_notes_print(const struct config *c)
{
    config_notes(c, print_once, NULL);
}

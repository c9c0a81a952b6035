#include "experiments/commands/commands.h"
#include "experiments/commands/compare_asked.h"
#include "experiments/compare/stored.h"

/* Whether an option of runs was given, which stored runs would ignore. */
static bool asks_for_runs(const struct compare_options *o)
{
    const struct config_options *c = &o->config;
    bool measured = c->asked.n_percents > 0 || c->asked.n_limits > 0 ||
                    c->asked.reader.tokens_per_s > 0.0 || o->select.confidence_frac > 0.0;
    return config_options_say_run(c) || measured || o->replications_given || o->loads.n > 0 ||
           o->regret || o->tune.budget > 0 || o->uncertainty > 0 || o->suite != NULL ||
           o->resample != NULL;
}

int compare_stored(const struct compare_options *o, struct err *e)
{
    if (asks_for_runs(o)) {
        return err_add(e, "without --policy, compare shows what is in the store; options of runs "
                          "(--workload, --set, --load, ...) belong to --policy");
    }
    struct store *s = store_open(o->work.path, STORE_USE_READ, e);
    if (s == NULL) {
        return EXIT_BAD_INPUT;
    }
    struct stored_options how = {.metrics = &o->metrics,
                                 .baseline = o->baseline,
                                 .by = o->by,
                                 .relevance_frac = o->relevance_percent / 100.0,
                                 .every = output_is(&o->output, "json")};
    struct document *d = document_new();
    int n = stored_compare(s, &how, document_array(d, ""), e);
    if (n == 0) {
        (void)err_add(e,
                      "%s: holds no experiment (`compare --policy ... --store` and `sweep` keep "
                      "theirs)",
                      o->work.path);
    } else if (n > 0) {
        document_print(d, &o->output, stdout);
    }
    return store_close(s, e) == 0 && n > 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

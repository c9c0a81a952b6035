/* `xpusim merge`: merges the stores of shards. */

#include <stdio.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/store/store.h"

struct options {
    struct option_texts stores;
    struct option_output output;
    const char *out, *format;
    bool complete;
};

static int merge(const struct options *o, struct err *e)
{
    const char *const *paths = o->stores.v;
    uint32_t n = o->stores.n;
    struct store *inputs_ok = NULL;
    for (uint32_t i = 0; i < n; i++) { /* checks all before it writes */
        inputs_ok = store_open(paths[i], STORE_USE_READ, e);
        (void)store_close(inputs_ok, e);
    }
    bool made = access(o->out, F_OK) != 0;
    struct store *s = e->n == 0 ? store_open(o->out, STORE_USE_CREATE, e) : NULL;
    if (s == NULL) {
        return EXIT_BAD_INPUT;
    }
    int status = EXIT_OK;
    for (uint32_t i = 0; i < n && status == EXIT_OK; i++) {
        status = store_merge(s, paths[i], e) == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
    }
    if (status == EXIT_OK && o->complete && store_check_complete(s, e) != 0) {
        status = EXIT_CHECK_FAILED;
    }
    if (status == EXIT_OK) {
        store_export(s, 0, o->format, stdout);
    }
    if (store_close(s, e) != 0) {
        status = EXIT_BAD_INPUT;
    }
    if (status == EXIT_CHECK_FAILED && o->complete && made) {
        (void)remove(o->out); /* nobody must take an incomplete store for the whole */
    }
    if (status == EXIT_OK && !o->output.quiet) {
        (void)fprintf(stderr, "xpusim: %u store%s merged into %s\n", n, text_plural(n), o->out);
    }
    return status;
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    if (o->out == NULL) {
        return err_add(e, "usage: xpusim merge -o OUT.db A.db B.db ...");
    }
    return merge(o, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_OUTPUT(OPTIONS, out, "OUT.db", NULL, "store to add to"),
    OPTION_FLAG(OPTIONS, complete, "complete",
                "exit with 1, print nothing, and leave no new store, when a shard of an experiment "
                "is missing or not finished"),
    OPTION_CHOICE(OPTIONS, format, "export", "F", NULL, store_forms,
                  "print all results afterwards, as one of"),
};
const struct command cmd_merge = {
    .name = "merge",
    .summary = "combine the stores of shards",
    .usage = "-o OUT.db A.db B.db ...",
    .about = "Adds the results of several stores to one, which is created when missing. Runs that "
             "two stores share must be equal. If not, nothing of that store is added, and the exit "
             "status is 1.",
    .operands = {"STORE.db", 1, UINT32_MAX, offsetof(OPTIONS, stores)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_quiet_table, output)),
    .run = run,
};

/* `xpusim merge`: the stores of shards into one. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/sweep/store.h"
#include "sim/base/err.h"

static const char help[] =
    "usage: xpusim merge -o OUT.db A.db B.db ...\n"
    "\n"
    "Adds the results of several stores to one, which is made when it is not there. Runs that two\n"
    "stores share must be the same; if not, nothing of that store is added, and the exit status "
    "is\n"
    "1.\n"
    "\n"
    "  -o, --output OUT.db   the store to add to\n"
    "  --complete            exit with 1 when a shard of an experiment is missing or did not come\n"
    "                        to its end; nothing is printed then\n"
    "  --export csv|json     print all of it afterwards\n"
    "  --quiet               no messages but errors\n";

static void print_all(struct store *s, const char *format)
{
    if (format != NULL) {
        (strcmp(format, "csv") == 0 ? store_export_csv : store_export_json)(s, 0, stdout);
    }
}

struct options {
    const char *out, *format;
    bool complete, quiet;
};

static int merge(const struct options *o, char **paths, int n, struct err *e)
{
    struct store *inputs_ok = NULL;
    for (int i = 0; i < n; i++) { /* all are there, before anything is written */
        inputs_ok = store_open(paths[i], false, e);
        (void)store_close(inputs_ok, e);
    }
    struct store *s = e->n == 0 ? store_open(o->out, true, e) : NULL;
    if (s == NULL) {
        return EXIT_BAD_INPUT;
    }
    int status = EXIT_OK;
    for (int i = 0; i < n && status == EXIT_OK; i++) {
        status = store_merge(s, paths[i], e) == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
    }
    if (status == EXIT_OK && o->complete && store_check_complete(s, e) != 0) {
        status = EXIT_CHECK_FAILED;
    }
    if (status == EXIT_OK) {
        print_all(s, o->format);
    }
    if (store_close(s, e) != 0) {
        status = EXIT_CHECK_FAILED;
    }
    if (status == EXIT_OK && !o->quiet) {
        (void)fprintf(stderr, "xpusim: %d stores merged into %s\n", n, o->out);
    }
    return status;
}

int cmd_merge(int argc, char **argv)
{
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'}, {"export", required_argument, NULL, 'x'},
        {"complete", no_argument, NULL, 'c'},     {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    struct options o = {NULL, NULL, false, false};
    struct err e = ERR_INIT;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "o:hq", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            return EXIT_OK;
        }
        if (c == 'o') {
            o.out = optarg;
        } else if (c == 'x') {
            o.format = optarg;
        } else if (c == 'q') {
            o.quiet = true;
        } else if (c == 'c') {
            o.complete = true;
        } else {
            (void)err_add(&e, "`xpusim merge --help` shows the options");
        }
    }
    if (e.n == 0 && (o.out == NULL || optind == argc)) {
        (void)err_add(&e, "usage: xpusim merge -o OUT.db A.db B.db ...");
    }
    if (o.format != NULL && strcmp(o.format, "csv") != 0 && strcmp(o.format, "json") != 0) {
        (void)err_add(&e, "--export %s: must be csv or json", o.format);
    }
    int status = e.n > 0 ? EXIT_BAD_INPUT : merge(&o, argv + optind, argc - optind, &e);
    err_print(&e, stderr);
    err_fini(&e);
    return status;
}

/* Executes a command: finds the subcommand, reads options, runs, prints errors. */
#include "experiments/shell/cli.h"
#include "experiments/shell/options.h"

/* The subcommand that argv[1] names. NULL: help or an error was printed, and *status is set. */
static const struct command *subcommand(const struct command *c, int argc, char **argv, int *status)
{
    *status = EXIT_BAD_INPUT;
    if (argc < 2) {
        (void)fprintf(stderr, "xpusim: error: %s: what? `xpusim %s --help` shows it\n", c->name,
                      c->name);
        return NULL;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        options_help(c, stdout);
        *status = EXIT_OK;
        return NULL;
    }
    for (const struct command *const *s = c->subcommands; *s != NULL; s++) {
        if (strcmp(strrchr((*s)->name, ' ') + 1, argv[1]) == 0) {
            return *s;
        }
    }
    (void)fprintf(stderr, "xpusim: error: %s %s: no such command; `xpusim %s --help` lists them\n",
                  c->name, argv[1], c->name);
    return NULL;
}

int command_main(const struct command *c, int argc, char **argv)
{
    int status = EXIT_OK;
    if (c->subcommands != NULL) {
        c = subcommand(c, argc, argv, &status);
        if (c == NULL) {
            return status;
        }
        argc--;
        argv++;
        status = EXIT_OK;
    }
    SCOPED(err_fini) struct err e = ERR_INIT;
    void *values = xkept(xcalloc(1, c->bytes));
    int rc = options_parse(c, argc, argv, values, &e);
    if (rc == 0) {
        status = c->run(values, &e);
        status = status < 0 || (e.n > 0 && status == EXIT_OK) ? EXIT_BAD_INPUT : status;
    } else if (rc < 0) {
        status = EXIT_BAD_INPUT;
    }
    err_print(&e, stderr);
    return status;
}

/* `xpusim report`: comparisons as one page to look at. */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands.h"
#include "experiments/report.h"
#include "sim/base/json.h"

#define MAX_INPUTS 16
#define PATH_BYTES 4096

static const char help[] =
    "usage: xpusim report COMPARE.json... -o FILE.html\n"
    "\n"
    "Writes one self-contained HTML page of results of `xpusim compare --json`: which policy, by "
    "how\n"
    "much, how sure, at what energy, how far to trust the hardware model; figures, tables, every\n"
    "number of the model with its source, and how to get the results again. The page needs no\n"
    "network, and no JavaScript but for sorting.\n";

static int write_page(const char *path, const struct report_input *in, size_t n, struct err *e)
{
    char temporary[PATH_BYTES];
    (void)snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    FILE *f = fopen(temporary, "w");
    if (f == NULL) {
        return err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    report_write(in, n, f);
    bool ok = ferror(f) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(temporary, path) != 0) {
        int why = errno;
        (void)remove(temporary);
        return err_add(e, "%s: cannot write: %s", path, strerror(why));
    }
    return 0;
}

static int run(int argc, char **argv, struct err *e)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *path = NULL;
    opterr = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        switch (c) {
        case 'o':
            path = optarg;
            break;
        case 'q':
            break;
        case 'h':
            (void)fputs(help, stdout);
            return 0;
        default:
            return err_add(e, "report: bad option: %s", argv[optind - 1]);
        }
    }
    if (path == NULL || optind == argc || argc - optind > MAX_INPUTS) {
        return err_add(e, "report needs 1 to %d files and -o FILE.html", MAX_INPUTS);
    }
    struct report_input in[MAX_INPUTS];
    size_t n = 0;
    for (int i = optind; i < argc; i++) {
        cJSON *tree = json_read_file(argv[i], e);
        if (tree != NULL) {
            in[n] = (struct report_input){argv[i], tree};
            (void)report_check(&in[n++], e);
        }
    }
    int rc = e->n > 0 ? -EINVAL : write_page(path, in, n, e);
    for (size_t i = 0; i < n; i++) {
        cJSON_Delete((cJSON *)(uintptr_t)in[i].tree);
    }
    return rc;
}

int cmd_report(int argc, char **argv)
{
    struct err e = ERR_INIT;
    int rc = run(argc, argv, &e);
    err_print(&e, stderr);
    err_fini(&e);
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* xpusim trace: make, convert and describe traces. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "traces/traces.h"

static const char help[] =
    "usage: xpusim trace gen --workload SPEC [--seed N] [-o FILE.csv]\n"
    "       xpusim trace import --format FORMAT FILE -o OUT.csv\n"
    "       xpusim trace stats FILE.csv [--json]\n"
    "\n"
    "Makes a trace, converts another tool's, or describes one. Without -o a trace goes to the\n"
    "standard output.\n"
    "\n"
    "  --workload SPEC   what to generate, see below\n"
    "  --seed N          default 1\n"
    "  --format FORMAT   azure, burstgpt, mooncake (JSON lines), plain (arrival_s,input_tokens,\n"
    "                    output_tokens[,class]), splitwise, vidur\n"
    "  -o, --output FILE written whole or not at all\n"
    "  --json            statistics as JSON\n"
    "\n";

struct options {
    const char *workload, *format, *output, *file;
    uint64_t seed;
    bool json;
};

static int usage(const char *message, const char *detail)
{
    fprintf(stderr, "xpusim: error: trace: %s%s (see xpusim trace --help)\n", message, detail);
    return 2;
}

static int options_parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"workload", required_argument, NULL, 'w'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"format", required_argument, NULL, 'f'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){.seed = 1};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        char *end = NULL;
        switch (c) {
        case 'w':
            o->workload = optarg;
            break;
        case 's':
            errno = 0;
            o->seed = strtoull(optarg, &end, 10);
            if (end == optarg || *end != '\0' || errno != 0 || optarg[0] == '-') {
                return usage("--seed: not a whole number: ", optarg);
            }
            break;
        case 'f':
            o->format = optarg;
            break;
        case 'o':
            o->output = optarg;
            break;
        case 'j':
            o->json = true;
            break;
        case 'h':
            fputs(help, stdout);
            trace_generator_help(stdout);
            return -1;
        default:
            return 2;
        }
    }
    if (optind < argc) {
        o->file = argv[optind++];
    }
    return optind < argc ? usage("too many arguments: ", argv[optind]) : 0;
}

static int emit(const struct trace *t, const char *output, struct err *e)
{
    if (output == NULL) {
        trace_print(stdout, t);
        return ferror(stdout) != 0 ? err_add(e, "standard output: write failed") : 0;
    }
    return trace_write(output, t, e);
}

static int run(const char *verb, const struct options *o, struct err *e)
{
    struct trace t = {0};
    int rc;
    if (strcmp(verb, "gen") == 0) {
        if (o->workload == NULL || o->file != NULL) {
            return usage("gen needs --workload and no file", "");
        }
        rc = trace_generate(o->workload, o->seed, 1.0, &t, e);
        rc = rc == 0 ? emit(&t, o->output, e) : rc;
    } else if (strcmp(verb, "import") == 0) {
        if (o->format == NULL || o->file == NULL) {
            return usage("import needs --format and a file", "");
        }
        size_t n_failed = 0;
        rc = trace_import_counted(o->format, o->file, &t, &n_failed, e);
        if (n_failed > 0) {
            fprintf(stderr, "xpusim: note: trace: %zu requests without output tokens left out\n",
                    n_failed);
        }
        rc = rc == 0 ? emit(&t, o->output, e) : rc;
    } else if (strcmp(verb, "stats") == 0) {
        if (o->file == NULL) {
            return usage("stats needs a file", "");
        }
        rc = trace_read(o->file, &t, e);
        if (rc == 0) {
            struct trace_stats s;
            trace_stats(&t, &s);
            if (o->json) {
                cJSON *j = trace_stats_json(&s);
                char *text = cJSON_Print(j);
                puts(text);
                free(text);
                cJSON_Delete(j);
            } else {
                trace_stats_print(stdout, &s);
            }
        }
    } else {
        return usage("unknown verb ", verb);
    }
    trace_fini(&t);
    return rc == 0 ? 0 : 2;
}

int cmd_trace(int argc, char **argv)
{
    struct options o;
    if (argc < 2) {
        return usage("needs gen, import or stats", "");
    }
    bool only_help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    int rc = only_help ? options_parse(argc, argv, &o) : options_parse(argc - 1, argv + 1, &o);
    if (rc != 0) {
        return rc < 0 ? 0 : rc;
    }
    struct err e = ERR_INIT;
    rc = run(argv[1], &o, &e);
    err_print(&e, stderr);
    err_fini(&e);
    return rc;
}

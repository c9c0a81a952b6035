/* `xpusim characterize`: repeats the papers' analyses of kernels and devices, as data. */
#include "experiments/commands/commands.h"
#include "experiments/run/about.h"
#include "experiments/run/job_options.h"
#include "experiments/run/models.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "experiments/validation/characterize.h"

struct options {
    struct config_options config;
    struct job_options work;
    struct option_output output;
    struct option_texts studies;
    uint32_t replications;
};

/* Prints comment lines with the studies and the machine. */
static void put_about(const struct config *c, const struct frame *rows)
{
    SCOPED(text_fini) struct text kind = {0};
    text_string(&kind, "studies");
    for (uint32_t i = 0; i < frame_rows(rows); i++) {
        const char *study = frame_text(rows, i, "study");
        if (i == 0 || !frame_is(rows, i - 1, "study", study)) {
            text_item(&kind, " ", study);
        }
    }
    OWNED char *text = about_comment(&(struct about){.kind = text_end(&kind), .config = c});
    (void)fputs(text, stdout);
}

static int characterize(void *values, struct err *e)
{
    struct options *o = values;
    SCOPED(config_fini) struct config c;
    struct document *d = document_new();
    struct frame *rows = document_frame(d, "", 0);
    characterize_columns(rows);
    int rc = config_load(&c, &o->config, e);
    rc = rc == 0 ? models_refuse_several(&o->config, "characterize", e) : rc;
    for (uint32_t i = 0; rc == 0; i++) {
        const char *study = o->studies.n == 0  ? characterize_study(i)
                            : i < o->studies.n ? o->studies.v[i]
                                               : NULL;
        if (study == NULL) {
            break;
        }
        if (o->studies.n == 0 && strcmp(study, CHARACTERIZE_SCHEMES) == 0) {
            continue;
        }
        struct characterize k = {.study = study,
                                 .config = &c,
                                 .options = &o->config,
                                 .replications = o->replications,
                                 .how = o->work.how};
        characterize_run(&k, rows, e);
        rc = e->n > 0 ? -EINVAL : 0;
    }
    if (rc == 0) {
        if (output_is(&o->output, "csv")) {
            put_about(&c, rows);
        }
        document_print(d, &o->output, stdout);
    }
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    bool runs = false;
    for (uint32_t i = 0; i < o->studies.n; i++) {
        runs = runs || strcmp(o->studies.v[i], CHARACTERIZE_SCHEMES) == 0;
    }
    if (options_only(runs ? "characterize" : "characterize without schemes",
                     runs ? "soc llm set replications jobs time-limit store trace workload machine "
                            "seed"
                          : "soc llm set",
                     e) != 0) {
        return EXIT_BAD_INPUT;
    }
    return job_options_work(&o->work, o->output.quiet, characterize, o, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_COUNT(OPTIONS, replications, "replications", "N", "8", 2, 10000,
                 "replications of schemes"),
};
const struct command cmd_characterize = {
    .name = "characterize",
    .summary = "repeat the papers' analyses of kernels and devices, as data",
    .usage = "[STUDY...] [options]",
    .about = "Prints predictions of the hardware models for kernels and passes, one value per row. "
             "Studies (default: all but schemes):\n\n  affinity  rate and rate per watt of each op "
             "against its rows, per device\n  corun     co-running GEMM and GEMV on two devices\n  "
             "batch     prefill and decode time against the number of sequences\n  prompt    "
             "prefill time against its length\n  mixed     decode batches with a prefill chunk in "
             "them\n  chunk     static chunk rows: throughput, preemption bounds, footprint, and "
             "the knee\n  verify    drafts of one sequence verified at once, against their "
             "number\n  schemes   the four co-scheduling schemes over load (simulated: a minute)\n "
             " interval  intervals of predicted times, by length of the prompt or context",
    .operands = {"STUDY", 0, 64, offsetof(OPTIONS, studies)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(job_option_table, work),
                  OPTION_CHILD(option_output_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .run = run,
};

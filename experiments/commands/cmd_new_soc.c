/* `xpusim new-soc NAME`: makes a machine file. --like SOC: all of it is assumed from a similar
 * chip;
 * --from ARCHIVE: its owner measured it. */
#include "experiments/commands/commands.h"
#include "experiments/commands/new_file.h"
#include "experiments/machine/pairs_soc.h"
#include "experiments/machine/send.h"
#include "experiments/run/config_files.h"
#include "experiments/run/interval.h"
#include "experiments/shell/document.h"
#include "experiments/validation/measured_like.h"
#include "experiments/validation/measured_update.h"
#include "hwmodels/soc.h"
#include "hwmodels/soc_sibling.h"
#include "sim/base/json.h"

#define MAX_PEAKS MACHINE_MAX_DEVICES

#define MAX_MEASURED 64
#define USUAL_LIKE "core-ultra-7-155h"

struct options {
    struct option_texts names, peaks, measured;
    const char *like, *family, *output, *from, *pairs;
    double ddr_peak_gbs, memory_gb;
};

/* Parses "igpu=61.4:12". The caller frees the texts, which have the names. */
static void take_peaks(const struct options *o, struct soc_sibling_peak *out, char **texts,
                       struct err *e)
{
    for (uint32_t i = 0; i < o->peaks.n; i++) {
        texts[i] = xstrdup(o->peaks.v[i]);
        char *equals = strchr(texts[i], '=');
        if (equals == NULL) {
            (void)err_add(e, "--peak %s: must be DEVICE=TFLOP/s[:CORES]", o->peaks.v[i]);
            continue;
        }
        *equals = '\0';
        char *colon = strchr(equals + 1, ':');
        if (colon != NULL) {
            *colon = '\0';
            (void)cli_count("peak", colon + 1, 1, SOC_MAX_CORES, &out[i].cores, e);
        }
        out[i].device = texts[i];
        (void)cli_number("peak", equals + 1, 1e-3, 1e5, &out[i].tflop_per_s, e);
    }
}

/* Prints the expected error of such a file by device, as `list soc` and runs do. */
static void tell(const char *path, const char *like, bool named, const struct soc *soc,
                 const struct conformal *table)
{
    (void)printf("%s\n", path);
    bool all = true;
    for (uint32_t d = 0; d < soc->machine.n_devices; d++) {
        if (interval_is_transfer(soc, (uint8_t)d)) {
            OWNED char *text = interval_transfer_text(table, soc, (uint8_t)d);
            (void)printf("  %s\n", text);
        } else {
            all = false;
        }
    }
    if (soc->family[0] != '\0') {
        (void)printf("family %s%s\n", soc->family,
                     named ? "" : ", as the similar chip's; --family F says another");
    }
    SCOPED(text_fini) struct text powers = {0}; /* a rate does not determine a power */
    for (uint32_t d = 0; d < soc->machine.n_devices; d++) {
        const struct device *x = &soc->machine.devices[d];
        text_format(&powers, "%s%s %g W in prompts, %g in decodes", d > 0 ? "; " : "", x->name,
                    x->prefill_watts, x->decode_watts);
    }
    (void)printf("  powers are those of %s (%s): put in yours before you compare energy\n", like,
                 text_end(&powers));
    (void)printf("%snumber%s assumed; ranges of rates, bandwidths and launches hold 95 %% of such "
                 "transfers\n"
                 "next: xpusim list soc %s; xpusim run --soc %s; `xpusim measure` for numbers of "
                 "its own\n",
                 all ? "every " : "their ", all ? " is" : "s are", path, path);
}

/* The measured rows, and the catalogue that they are compared with; empty without --measured. */
struct known {
    struct measured rows;
    struct catalog catalog;
};

static int read_measured(const struct options *o, struct known *k, struct err *e)
{
    for (uint32_t i = 0; i < o->measured.n; i++) {
        (void)measured_read(o->measured.v[i], o->names.v[0], &k->rows, e);
    }
    int rc = e->n > 0 ? -EINVAL : o->measured.n > 0 ? catalog_open(&k->catalog, e) : 0;
    return rc == 0 ? catalog_add_models(&k->catalog, &k->rows.points, e) : rc;
}

/* Adds the measured pairs of co-running kernels if a file is given. */
static int take_pairs(const struct options *o, cJSON *tree, struct document *d, struct err *e)
{
    struct pairs p = {.n = 0};
    int rc = o->pairs != NULL ? pairs_soc_read(o->pairs, &p, e) : 0;
    if (p.n > 0) {
        pairs_soc_put(&p, tree, d);
    }
    return rc;
}

static int write_soc(const struct options *o, struct soc_sibling *s, struct err *e)
{
    const struct conformal *table = NULL;
    struct known k = {0};
    SCOPED(measured_like_fini) struct measured_like likely = {0};
    struct document *d = document_new();
    OWNED struct soc *soc = xcalloc(1, sizeof *soc);
    if (read_measured(o, &k, e) != 0) {
        return -EINVAL;
    }
    if (o->like == NULL && o->measured.n > 0) {
        measured_like(&k.catalog, s, &k.rows, d, &likely);
    }
    s->like = o->like != NULL ? o->like : likely.n > 0 ? likely.v[0].name : USUAL_LIKE;
    const char *like = soc_path(s->like);
    (void)config_file_known("like", "soc", s->like, like, e);
    SCOPED(json_drop) cJSON *sibling = e->n > 0 ? NULL : json_read_file(like, e);
    SCOPED(json_drop) cJSON *tree = NULL;
    if (sibling != NULL && soc_parse(sibling, like, soc, e) == 0 &&
        (table = interval_table(e)) != NULL) {
        tree = soc_sibling_tree(sibling, s, table, e);
    }
    int rc = tree == NULL        ? -EINVAL
             : o->measured.n > 0 ? measured_update(&k.catalog, tree, &k.rows, &likely, d, e)
                                 : 0;
    rc = rc == 0 ? take_pairs(o, tree, d, e) : rc;
    OWNED char *path = rc == 0 && soc_parse(tree, s->name, soc, e) == 0
                           ? new_file_write(o->output, s->name, tree, e)
                           : NULL;
    if (path != NULL) {
        document_put(d, "text", stdout);
        tell(path, s->like, o->family != NULL, soc, table);
    }
    return e->n == 0 ? EXIT_OK : -EINVAL;
}

/* Makes the file from an owner's archive, without options of a similar chip. */
static int from_archive(const struct options *o, struct err *e)
{
    struct document *d = document_new();
    int rc = new_file_name_check("new-soc", o->names.v[0], e) == 0
                 ? take_machine(o->from, o->names.v[0], o->output, d, e)
                 : -EINVAL;
    if (rc >= 0) {
        document_put(d, "text", stdout);
    }
    return rc > 0 ? EXIT_CHECK_FAILED : rc;
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    if (o->from != NULL) {
        return from_archive(o, e);
    }
    struct soc_sibling_peak peaks[MAX_PEAKS] = {{NULL, 0.0, 0}};
    char *texts[MAX_PEAKS] = {NULL};
    struct soc_sibling s = {.name = o->names.v[0],
                            .family = o->family,
                            .ddr_peak_gbs = o->ddr_peak_gbs,
                            .memory_gb = o->memory_gb,
                            .peaks = peaks,
                            .n_peaks = o->peaks.n};
    (void)new_file_name_check("new-soc", s.name, e);
    take_peaks(o, peaks, texts, e);
    int rc = e->n > 0 ? -EINVAL : write_soc(o, &s, e);
    for (uint32_t i = 0; i < o->peaks.n; i++) {
        free(texts[i]);
    }
    return rc;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, like, "like", "SOC", NULL,
                "similar chip: a shipped name or a file (default: if --measured states runtimes, "
                "all chips that explain the rows, averaged by their probabilities, else " USUAL_LIKE
                ")"),
    OPTION_TEXT(OPTIONS, family, "family", "F", NULL,
                "family of the new machine: those of one share silicon, and `calibrate` fits them "
                "together (default: the similar chip's)"),
    OPTION_NUMBER(
        OPTIONS, ddr_peak_gbs, "ddr-peak", "GB/s", NULL, 0.1, 1e5,
        "datasheet bandwidth of the memory; bandwidths follow it, but for NPUs (default: the "
        "similar chip's)"),
    OPTION_NUMBER(OPTIONS, memory_gb, "memory", "GB", NULL, 0.01, 1e6,
                  "memory (default: the similar chip's)"),
    OPTION_TEXTS(
        OPTIONS, peaks, "peak", "DEVICE=TFLOP/s[:CORES]", MAX_PEAKS,
        "datasheet rate of a device, at the precision of the similar chip's (`list soc SOC`; of "
        "Intel's FP16, half of the INT8 TOPS), and of its matrix units where it has them; behind "
        "the colon its cores. Rates follow the first, short prompts both; repeated (default: the "
        "similar chip's)"),
    OPTION_TEXTS(OPTIONS, measured, "measured", "ROWS", MAX_MEASURED,
                 "rows measured on it: 'model=M,bits=B,runtime=R,ttft_ms@1024=..,"
                 "tpot_ms@1024=..', a table of points, or a file of llm_bench or llama-bench; "
                 "repeated"),
    OPTION_TEXT(OPTIONS, pairs, "pairs", "FILE.csv", NULL,
                "rows of its co-running kernels (`measure --pairs -o FILE.csv`): they set the cap "
                "and strength of contention, and weights of devices, where they show them"),
    OPTION_TEXT(OPTIONS, from, "from", "FILE.tar.gz", NULL,
                "archive of `xpusim send-in` or of measure_windows.py: the machine as it was "
                "measured there, with the errors of its predictions; other options but -o are not "
                "used"),
    NEW_FILE_OUTPUT(OPTIONS),
};
const struct command cmd_new_soc = {
    .name = "new-soc",
    .summary = "write a machine file to start from, made from a similar chip's",
    .usage = "NAME [--like SOC] [--family F] [--ddr-peak GB/s] [--memory GB] [--peak "
             "DEVICE=TFLOP/s[:CORES] "
             "...] [--measured ROWS ...] [--pairs FILE.csv] [-o FILE]\n"
             "NAME --from my-machine.tar.gz [-o FILE]",
    .about =
        "Writes a SoC file that runs: every number of a similar chip, marked assumed, with its "
        "source. Rates, bandwidths and launches get the range of the errors of predictions from "
        "one SoC to another, where both are published. So `compare --uncertainty` prints the "
        "effect of these numbers. The similar chip's fits are left out.\n\n--measured updates "
        "these "
        "numbers by rows of one model or more that you measured (a normal prior from the ranges, "
        "linear-Gaussian in logarithms). Their ranges shrink. The command prints the benchmark to "
        "run next at each width, and the share of the remaining variance that it removes.",
    .operands = {"NAME", 1, 1, offsetof(OPTIONS, names)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows)),
    .run = run,
};

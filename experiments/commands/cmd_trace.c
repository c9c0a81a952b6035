/* `xpusim trace`: makes, converts and describes traces. */
#include "experiments/commands/commands.h"
#include "experiments/shell/document.h"
#include "sim/base/words.h"
#include "traces/traces.h"

#define MAX_MIXED 64

struct options {
    struct option_texts files;
    const char *workload, *machine, *output;
    struct trace_import_options import;
    uint64_t seed;
    struct option_output shown;
};

static int emit(const struct trace *t, const char *output, struct err *e)
{
    if (output == NULL) {
        trace_print(stdout, t);
        return ferror(stdout) != 0 ? err_add(e, "standard output: write failed") : 0;
    }
    return trace_write(output, t, e);
}

static int gen(void *values, struct err *e)
{
    const struct options *o = values;
    SCOPED(trace_fini) struct trace t = {0};
    if (o->workload == NULL) {
        return err_add(e, "trace gen needs --workload");
    }
    int rc = trace_generate(o->workload, o->seed, 1.0, &t, e);
    rc = rc == 0 && o->machine != NULL ? machine_events_read(o->machine, &t, e) : rc;
    rc = rc == 0 ? emit(&t, o->output, e) : rc;
    if (rc == 0 && t.texts != NULL) {
        (void)fprintf(stderr,
                      "xpusim: note: trace: a trace file has the lengths of texts, not their "
                      "tokens\n");
    }
    return rc;
}

/* Reports parts of the source that the trace leaves out. */
static void note_losses(const struct trace_import_losses *l)
{
    if (l->failed > 0) {
        (void)fprintf(stderr, "xpusim: note: trace: %zu request%s without output tokens left out\n",
                      l->failed, text_plural(l->failed));
    }
    if (l->promptless > 0) {
        (void)fprintf(stderr, "xpusim: note: trace: %zu request%s without prompt tokens left out\n",
                      l->promptless, text_plural(l->promptless));
    }
    if (l->uncounted > 0) {
        (void)fprintf(stderr,
                      "xpusim: note: trace: %zu request%s without numbers of tokens left out, the "
                      "first in line %llu\n",
                      l->uncounted, text_plural(l->uncounted), l->uncounted_line);
    }
    if (l->estimated) {
        (void)fprintf(stderr,
                      "xpusim: note: trace: %s holds texts: tokens are characters over "
                      "--chars-per-token%s\n",
                      l->format,
                      l->no_times ? ", arrivals and gaps are --rate-per-min and --think-s" : "");
    }
    const struct {
        size_t n;
        const char *noun, *what;
    } counts[] = {
        {l->empty, "answer", "without tokens, given one token"},
        {l->other_model, "request", "of another model than the session's first; all get one model"},
        {l->overlapping, "request",
         "sent while another of the same agent ran, and nobody waits for the answer"},
        {l->early, "turn", "sent before the answer before it had ended; here it waits"},
        {l->untimed, "request", "without a time left out"},
        {l->unsent, "request",
         "taken to begin with its answer: the source does not say when it was sent"},
        {l->grown, "turn", "with the length of what is new; the conversation before it is added"},
        {l->not_before, "request", "that had to wait for an instant in the source, and here not"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].n > 0) {
            (void)fprintf(stderr, "xpusim: note: trace: %zu %s%s %s\n", counts[i].n, counts[i].noun,
                          text_plural(counts[i].n), counts[i].what);
        }
    }
    if (l->unread != NULL) {
        (void)fprintf(stderr, "xpusim: note: trace: columns or keys not read: %s\n", l->unread);
    }
    if (l->without_effect != NULL) {
        (void)fprintf(stderr, "xpusim: note: trace: without effect on this file: %s\n",
                      l->without_effect);
    }
    if (l->no_times && !l->estimated) {
        (void)fprintf(stderr, "xpusim: note: trace: sessions begin at --rate-per-min\n");
    }
    if (l->gaps_from_arrivals > 0) {
        (void)fprintf(stderr,
                      "xpusim: note: trace: the source does not say when answers ended; %zu gap%s "
                      "between turns taken from arrival to arrival\n",
                      l->gaps_from_arrivals, text_plural(l->gaps_from_arrivals));
    }
    if (l->prefix_tokens > 0) {
        (void)fprintf(stderr,
                      "xpusim: warning: trace: the source says that a cache shared by all requests "
                      "can serve %" PRIu64 " more of %" PRIu64 " prompt tokens; here they are "
                      "computed, because requests of different sessions share no KV (prompts with "
                      "hash_ids do with --share)\n",
                      l->prefix_tokens, l->input_tokens);
    }
}

/* Number of sessions, including those that a request of another session starts. */
static size_t sessions_of(const struct trace *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->rows[i].turn == 0;
    }
    return n;
}

static int import(void *values, struct err *e)
{
    const struct options *o = values;
    SCOPED(trace_fini) struct trace t = {0};
    struct trace_import_losses lost = {0};
    int rc = trace_import(&o->import, o->files.v[0], &t, &lost, e);
    if (rc == 0) {
        if (t.n < lost.rows) {
            (void)fprintf(stderr,
                          "xpusim: note: trace: taken: %zu of %zu request%s; notes count all of "
                          "the file\n",
                          t.n, lost.rows, text_plural(lost.rows));
        }
        note_losses(&lost);
        size_t sessions = sessions_of(&t);
        (void)fprintf(stderr, "xpusim: note: trace: read as %s: %zu request%s, %zu session%s\n",
                      lost.format, t.n, text_plural(t.n), sessions, text_plural(sessions));
    }
    return rc == 0 ? emit(&t, o->output, e) : rc;
}

/* "mean/p50/p90/p99/max" of a length, for people. */
static const char *five(double mean, double p50, double p90, double p99, double max)
{
    return document_format("%.0f/%.0f/%.0f/%.0f/%.0f", mean, p50, p90, p99, max);
}

static void graph_document(const struct trace *t, struct document *d)
{
    struct trace_graph_stats s;
    trace_graph_stats(t, &s);
    document_note(d,
                  "\n%" PRIu32 " job%s: %" PRIu32 " fork%s, %" PRIu32 " join%s, %" PRIu32
                  " background request%s\nlongest path %.1f requests in the mean, %" PRIu32
                  " at most; width %.1f in the mean, %" PRIu32
                  " at most\ncritical path without service %.1f s in the mean, %.1f s at most",
                  s.jobs, text_plural(s.jobs), s.forks, text_plural(s.forks), s.joins,
                  text_plural(s.joins), s.background, text_plural(s.background), s.depth_mean,
                  s.depth, s.width_mean, s.width, s.gaps_s_mean, s.gaps_s);
    DOCUMENT_VALUES(document_within(d, "graph"), "jobs", s.jobs, "forks", s.forks, "joins", s.joins,
                    "background", s.background, "depth_mean", s.depth_mean, "depth_max", s.depth,
                    "width_mean", s.width_mean, "width_max", s.width, "critical_gaps_s_mean",
                    s.gaps_s_mean, "critical_gaps_s_max", s.gaps_s);
}

/* Adds the share of prompt tokens that a shared prefix cache could serve. */
static void content_document(const struct trace *t, struct document *d)
{
    uint64_t by_class[REQUEST_CLASS_COUNT];
    uint64_t shareable = trace_shareable_tokens(t, by_class);
    uint64_t prompts = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        prompts += t->rows[i].input_tokens;
    }
    double frac = (double)shareable / (double)prompts;
    document_note(d, "a shared cache could serve %" PRIu64 " of %" PRIu64 " prompt tokens (%.1f%%)",
                  shareable, prompts, 100.0 * frac);
    DOCUMENT_VALUES(d, "shareable_tokens", shareable, "shareable_frac", frac);
}

static void stats_document(const struct trace_stats *s, struct document *d)
{
    document_note(d, "%zu request%s in %zu session%s, first turns over %.1f s\n", s->n,
                  text_plural(s->n), s->n_sessions, text_plural(s->n_sessions), s->span_s);
    DOCUMENT_VALUES(d, "requests", s->n, "sessions", s->n_sessions, "span_s", s->span_s);
    struct frame *f =
        document_table(d, 0, "lrrrrrr", "class", "requests", "first turns/min", "gap CV",
                       "input mean/p50/p90/p99/max", "output mean/p50/p90/p99/max", "reuse");
    for (int i = 0; i < 2; i++) {
        const struct trace_class_stats *c = &s->cls[i];
        struct document *data = document_within(d, words_classes[i]);
        DOCUMENT_VALUES(data, "requests", c->n, "rate_per_min", c->rate_per_min, "gap_cv",
                        c->gap_cv, "input_tokens_mean", c->input_mean, "input_tokens_p50",
                        c->input_p50, "input_tokens_p90", c->input_p90, "input_tokens_p99",
                        c->input_p99, "input_tokens_max", c->input_max);
        DOCUMENT_VALUES(data, "output_tokens_mean", c->output_mean, "output_tokens_p50",
                        c->output_p50, "output_tokens_p90", c->output_p90, "output_tokens_p99",
                        c->output_p99, "output_tokens_max", c->output_max, "prefix_frac",
                        c->prefix_frac);
        if (c->n == 0) {
            continue;
        }
        FRAME_ROW(f, words_classes[i], document_format("%zu", c->n),
                  isnan(c->rate_per_min) ? "-" : document_format("%.3f", c->rate_per_min),
                  isnan(c->gap_cv) ? "-" : document_format("%.2f", c->gap_cv),
                  five(c->input_mean, c->input_p50, c->input_p90, c->input_p99, c->input_max),
                  five(c->output_mean, c->output_p50, c->output_p90, c->output_p99, c->output_max),
                  document_format("%.1f%%", 100.0 * c->prefix_frac));
    }
}

static int stats(void *values, struct err *e)
{
    const struct options *o = values;
    SCOPED(trace_fini) struct trace t = {0};
    int rc = trace_read(o->files.v[0], &t, e);
    if (rc == 0) {
        struct trace_stats s;
        struct document *d = document_new();
        trace_stats(&t, &s);
        stats_document(&s, d);
        if (t.graph != NULL) {
            graph_document(&t, d);
        }
        if (t.graph != NULL && t.graph->source != NULL) {
            content_document(&t, d);
        }
        document_show(d, &o->shown);
    }
    return rc;
}

static int mix(void *values, struct err *e)
{
    const struct options *o = values;
    struct trace *v = xkept(xcalloc(o->files.n, sizeof *v));
    SCOPED(trace_fini) struct trace t = {0};
    int rc = 0;
    uint32_t n = 0;
    while (n < o->files.n && rc == 0) {
        rc = trace_read(o->files.v[n], &v[n], e);
        n += rc == 0;
    }
    rc = rc == 0 ? trace_mix(v, o->files.v, n, &t, e) : rc;
    rc = rc == 0 ? emit(&t, o->output, e) : rc;
    while (n-- > 0) {
        trace_fini(&v[n]);
    }
    return rc;
}

#define OPTIONS struct options
#define OUTPUT                                                                                     \
    OPTION_OUTPUT(OPTIONS, output, "FILE", NULL,                                                   \
                  "write the trace here, whole or not at all (default: standard output)")

static const struct option_row gen_rows[] = {
    OPTION_TEXT(OPTIONS, workload, "workload", "SPEC", NULL, "workload to generate, see below"),
    OPTION_TEXT(OPTIONS, machine, "machine", "FILE", NULL,
                "events of the machine from a JSON file, kept in the trace"),
    OPTION_SEED(OPTIONS, seed, "seed", "1", "seed of the generator"),
    OUTPUT,
};
#define IMPORT struct trace_import_options
static const struct option_row import_rows[] = {
    OPTION_ROW(TEXT, IMPORT, format, const char *, "format", "FORMAT",
               "format of the file; traces/README.md describes each (default: recognised by the "
               "file's beginning)",
               .names = trace_formats),
    OPTION_CHOICE(IMPORT, cls, "class", "CLASS", NULL, words_classes, "class of every request"),
    OPTION_NUMBER(IMPORT, from_s, "from", "S", "0", 0.0, 1e9,
                  "first start of a session that is taken; it becomes 0"),
    OPTION_NUMBER(IMPORT, to_s, "to", "S", "1e9", 0.0, 1e9,
                  "sessions that begin here or later are left out"),
    OPTION_NUMBER(IMPORT, rate_scale, "rate-scale", "X", "1", 1e-6, 1e6,
                  "factor on how often sessions begin; gaps within them stay"),
    OPTION_NUMBER(IMPORT, sample_frac, "sample", "SHARE", "1", 0.0, 1.0,
                  "share of the sessions, drawn by --seed"),
    OPTION_SEED(IMPORT, seed, "seed", "1", "seed of --sample, and of drawn arrivals"),
    OPTION_FLAG(IMPORT, link, "link",
                "link sessions: a prompt that continues all whole blocks of an earlier one "
                "(hash_ids) becomes its next turn"),
    OPTION_FLAG(IMPORT, share, "share",
                "share the leading blocks (hash_ids) of prompts between sessions, by prefix_of"),
    OPTION_FLAG(IMPORT, history, "history",
                "let the prompt of a turn begin with the prompt and the answer before it"),
    OPTION_COUNT(IMPORT, block_tokens, "block-tokens", "N", NULL, 1, 1000000,
                 "tokens of a block of hash_ids, of the formats mooncake (default 512) and bailian "
                 "(16)"),
    OPTION_NUMBER(IMPORT, chars_per_token, "chars-per-token", "X", "4", 0.1, 100.0,
                  "characters per token of texts (sharegpt)"),
    OPTION_NUMBER(IMPORT, rate_per_min, "rate-per-min", "X", NULL, 1e-6, 1e6,
                  "conversations that begin in a minute (Poisson), for texts without times"),
    OPTION_NUMBER(IMPORT, think_s, "think-s", "S", "10", 0.0, 1e6,
                  "time from an answer to the next turn, for texts without times"),
};
static const struct option_row import_output_rows[] = {OUTPUT};

static const struct command trace_gen = {
    .name = "trace gen",
    .summary = "a trace from a generator",
    .usage = "--workload SPEC [--machine FILE.json] [--seed N] [-o FILE.csv]",
    .print_notes = trace_generator_help,
    COMMAND_TAKES(OPTION_ROWS(NULL, gen_rows)),
    .run = gen,
};
static const struct command trace_import_command = {
    .name = "trace import",
    .summary = "another tool's trace",
    .usage = "FILE [--format FORMAT] -o OUT.csv",
    COMMAND_TAKES({.table = &(const struct option_table)OPTION_TABLE(NULL, import_rows),
                   .offset = offsetof(OPTIONS, import)},
                  OPTION_ROWS(NULL, import_output_rows)),
    .operands = {"FILE", 1, 1, offsetof(OPTIONS, files)},
    .run = import,
};
static const struct command trace_stats_command = {
    .name = "trace stats",
    .summary = "rates, lengths and sessions of a trace",
    .usage = "FILE.csv [--json]",
    COMMAND_TAKES(OPTION_CHILD(option_output_table, shown)),
    .operands = {"FILE.csv", 1, 1, offsetof(OPTIONS, files)},
    .run = stats,
};
static const struct command trace_mix_command = {
    .name = "trace mix",
    .summary = "several traces as one",
    .usage = "A.csv B.csv ... -o OUT.csv",
    .about = "Requests of all files at their own times: those of users and background work, say. "
             "Ids, sessions, clients and shared texts of later files get other numbers; models "
             "keep their names.",
    COMMAND_TAKES(OPTION_ROWS(NULL, import_output_rows)),
    .operands = {"FILE.csv", 2, MAX_MIXED, offsetof(OPTIONS, files)},
    .run = mix,
};
static const struct command *const subcommands[] = {&trace_gen, &trace_import_command,
                                                    &trace_mix_command, &trace_stats_command, NULL};
const struct command cmd_trace = {
    .name = "trace",
    .summary = "generate, import, mix or describe workloads",
    .usage = "gen --workload SPEC [--seed N] [-o FILE.csv]\n"
             "import FILE [--format FORMAT] -o OUT.csv\n"
             "mix A.csv B.csv ... -o OUT.csv\n"
             "stats FILE.csv [--json]",
    .about = "Creates a trace, converts another tool's, mixes several, or describes one.",
    .print_notes = trace_generator_help,
    .subcommands = subcommands,
};

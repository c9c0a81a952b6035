/* `xpusim observe`: replays a trace against a real server. */
#include "experiments/commands/commands.h"
#include "experiments/observe/observe.h"
#include "experiments/run/config.h"
#include "hwmodels/backends/host.h"
#include "sim/base/clock.h"
#include "sim/base/output.h"

struct observe_values {
    struct config_options config;
    struct observe_options observe;
    const char *out;
};

/* The energy of the package so far. Its counter wraps within an hour on some machines, so it is
 * read regularly. */
struct drawn {
    struct host_energy meter;
    double joules; /* below 0: unknown */
};

static void read_meter(void *ctx)
{
    struct drawn *d = ctx;
    double more = host_energy_joules(&d->meter);
    d->joules = more < 0.0 || d->joules < 0.0 ? -1.0 : d->joules + more;
}

static int replay(const struct observe_values *o, const struct trace *t, FILE *out, struct err *e)
{
    OWNED struct observe_row *rows = xcalloc(t->n, sizeof *rows);
    uint32_t counts[OBSERVE_STATUS_COUNT] = {0};
    struct drawn drawn = {.joules = 0.0};
    struct observe_options how = o->observe;
    how.each_second = read_meter;
    how.ctx = &drawn;
    host_energy_init(&drawn.meter, host_rapl_dir());
    double begin_s = clock_now_s();
    int rc = observe_run(&how, t, rows, e);
    read_meter(&drawn);
    double seconds = clock_now_s() - begin_s;
    if (rc == 0) {
        observe_write(&o->observe, t, rows, out);
    }
    uint32_t unknown = 0;
    int http = 0; /* last status other than 200 */
    for (size_t i = 0; i < t->n; i++) {
        counts[rows[i].status]++;
        http = rows[i].status == OBSERVE_HTTP ? rows[i].http : http;
        unknown += rows[i].status == OBSERVE_OK && rows[i].count == OBSERVE_COUNT_UNKNOWN;
    }
    if (rc != 0) {
        return rc;
    }
    OWNED char *energy = host_energy_text(drawn.joules, seconds);
    (void)fprintf(stderr, "%s\n", energy);
    for (int s = 0; s < OBSERVE_STATUS_COUNT; s++) {
        if (counts[s] > 0) {
            OWNED char *which = s == OBSERVE_HTTP ? xformat(" (status %d)", http) : NULL;
            (void)fprintf(stderr, "%u %s%s\n", counts[s], observe_status_names[s],
                          which != NULL ? which : "");
        }
    }
    if (unknown > 0) {
        (void)fprintf(stderr,
                      "xpusim: warning: the server does not say how long prompts are: input_tokens "
                      "of %u row%s come from the trace, and its own may be several times that\n",
                      unknown, text_plural(unknown));
    }
    return counts[OBSERVE_OK] > 0 ? EXIT_OK : EXIT_CHECK_FAILED;
}

static bool cancels(const struct trace *t)
{
    for (size_t i = 0; t->graph != NULL && i < t->n; i++) {
        if (t->graph->ends_with[i] != TRACE_NO_ROW) {
            return true;
        }
    }
    return false;
}

static int run(void *values, struct err *e)
{
    const struct observe_values *o = values;
    if (o->observe.url == NULL || o->config.trace == NULL) {
        return err_add(e, "--url and --trace are needed");
    }
    struct trace t = {0};
    if (config_trace(&o->config, o->config.seed, (struct config_arrivals){.rate_scale = 1.0}, &t,
                     e) != 0) {
        return EXIT_BAD_INPUT;
    }
    if (cancels(&t)) {
        trace_fini(&t);
        return err_add(e, "--trace %s: requests that cancel others are not replayed on a server",
                       o->config.trace);
    }
    struct output *out = o->out == NULL ? NULL : output_open(o->out, e);
    int status = EXIT_BAD_INPUT;
    if (o->out == NULL || out != NULL) {
        status = replay(o, &t, out == NULL ? stdout : output_stream(out), e);
    }
    status = output_close(out, status >= 0, e) == 0 ? status : EXIT_BAD_INPUT;
    trace_fini(&t);
    return status;
}

#define OPTIONS struct observe_values

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, observe.url, "url", "URL", NULL,
                "address of the server, up to /v1: http://127.0.0.1:8080/v1"),
    OPTION_TEXT(OPTIONS, observe.model, "model", "NAME", "default",
                "name of the model on the server"),
    OPTION_TEXT(OPTIONS, config.trace, "trace", "FILE.csv", NULL, "trace of the requests"),
    OPTION_FLAG(OPTIONS, observe.chat, "chat", "use chat/completions instead of completions"),
    OPTION_NUMBER(OPTIONS, observe.timeout_s, "timeout", "S", "300", 0.001, 1e6,
                  "time after which a request is given up"),
    OPTION_NUMBER(OPTIONS, observe.scale, "scale", "X", "1", 1e-6, 1e6,
                  "factor on arrivals and gaps"),
    OPTION_OUTPUT(OPTIONS, out, "FILE.csv", NULL, "write here (default: standard output)"),
};
const struct command cmd_observe = {
    .name = "observe",
    .summary = "replay a trace on a real server with OpenAI's interface, for validate --run",
    .usage = "--url URL --trace T.csv [-o run.csv] [options]",
    .about = "Sends the requests of a trace at their times, with streaming. Later turns and "
             "the requests of an agent's job follow what they wait for, and prompts begin with "
             "what the trace says that they share. Writes the arrival of "
             "the first and the last token of each, and the number of tokens. A server that "
             "refuses, breaks off or is silent makes rows with another status than ok; where "
             "none is there at the start, nothing is written. Prints what the package of this "
             "machine drew, where its counter (RAPL) can be read.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows)),
    .run = run,
};

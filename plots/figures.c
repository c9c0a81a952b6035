/* The list of figures, and their preparation. */
#include <sys/stat.h>

#include "plots/about.h"
#include "plots/figure.h"
#include "sim/base/memory.h"
#include "sim/metrics/metric_table.h"

#define METRICS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct figure figures[] = {
    {"affinity", "rate, and rate per watt, of each operator against its intensity",
     "characterize --csv", "affinity table", true, false, NULL, figure_study},
    {"batch", "latency of a step against its batch",
     "characterize --csv, or CSV device,batch,latency_s[,low,high]", "batch table", true, false,
     NULL, figure_batch},
    {"breakdown", "where latency goes: pending, prefill, decode", "compare --json", "compare",
     false, false, NULL, figure_breakdown},
    {"causes", "why requests take as long as they do: mean time by cause",
     "explain --interference --json", "interference", false, false, NULL, figure_causes},
    {"cdf", "distributions of TTFT, time per token and latency by class", "run --requests CSV",
     "requests table", false, false, METRICS("ttft_s", "tpot_s", "e2e_s"), figure_distributions},
    {"chunk", "chunk trade-off: throughput against how long a reactive request waits",
     "characterize --csv, sweep --export csv, CSV", "chunk sweep table", false, false,
     METRICS("reactive.ttft_s.mean", "all.throughput_req_per_min"), figure_chunk},
    {"corun", "slowdown of kernel pairs that share the DDR",
     "characterize --csv, or CSV victim,aggressor,slowdown[,low,high]", "corun table", true, false,
     NULL, figure_corun},
    {"ddr", "DDR bandwidth over time with its tiers", "run --timeline JSON", "timeline", true,
     false, NULL, figure_ddr},
    {"draft", "verification time against draft length",
     "characterize verify --csv, or CSV draft_tokens,verify_s[,low,high][,device]", "verify table",
     true, false, NULL, figure_draft},
    {"drive", "real runs against simulated ones, request by request", "drive --compare --json",
     "drive", true, false, NULL, figure_drive},
    {"gantt", "the schedule of a window: launches on devices, loader, compiler",
     "run --timeline JSON", "timeline", false, false, NULL, figure_gantt},
    {"graphs", "switching NPU graphs, strategy by strategy", "graphs --gantt --json", "graphs",
     true, false, NULL, figure_graphs},
    {"headline", "latency by class and policy", "compare --json", "compare", false, false,
     metric_usual, figure_bars},
    {"heatmap", "a metric over two parameters", "sweep --export csv, CSV", "sweep table", false,
     true, METRICS("reactive.e2e_s.mean"), figure_heatmap},
    {"interference", "who delays whom: victims and aggressors by class",
     "explain --interference --json", "interference", false, false, NULL, figure_interference},
    {"job", "the requests of a job, who waits for whom, and the critical path",
     "explain --job --json", "job", true, false, NULL, figure_job},
    {"kernels", "time and energy of each operator on each device",
     "list kernels --json, or CSV device,op,time_s[,low,high][,energy_j]", "kernels table", true,
     false, NULL, figure_kernels},
    {"latency-rate", "latency against arrival rate, mean and P90",
     "compare --load --json, sweep --export csv, CSV", "load sweep table", false, false,
     METRICS("reactive.e2e_s.mean", "reactive.e2e_s.p90", "proactive.e2e_s.mean",
             "proactive.e2e_s.p90"),
     figure_lines},
    {"lengths", "distributions of input and output tokens", "run --requests CSV, trace CSV",
     "requests table trace", false, false, METRICS("input_tokens", "output_tokens"),
     figure_distributions},
    {"mixed", "decode batches with a prefill chunk in them", "characterize --csv", "mixed table",
     true, false, NULL, figure_study},
    {"pareto", "reactive latency against proactive throughput",
     "compare --json, sweep --export csv, CSV", "compare load sweep table", false, false,
     METRICS("proactive.throughput_req_per_min", "reactive.e2e_s.mean"), figure_pareto},
    {"prompt", "prefill time and rate against the length of the prompt", "characterize --csv",
     "prompt table", true, false, NULL, figure_study},
    {"queue", "live requests and decode batch over time", "run --timeline JSON", "timeline", true,
     false, NULL, figure_queue},
    {"roofline", "kernels under the roofs of their devices", "list kernels --json", "kernels", true,
     false, NULL, figure_roofline},
    {"schemes", "the four co-scheduling schemes over load", "characterize schemes --csv",
     "schemes table", true, false, NULL, figure_study},
    {"sd", "latency, energy and memory of speculative decoding systems", "compare --json",
     "compare sd", false, true,
     METRICS("all.e2e_s.mean", "energy_j_per_token", "memory_peak_bytes"), figure_bars},
    {"throughput-rate", "throughput and normalized latency against arrival rate",
     "compare --load --json, sweep --export csv, CSV", "load sweep table", false, false,
     METRICS("all.throughput_req_per_min", "all.norm_e2e_per_token_s.mean"), figure_lines},
    {"tornado", "what an order hangs on, and how often each policy is best",
     "compare --uncertainty --json", "uncertainty", true, false, NULL, figure_tornado},
    {"utilisation", "iGPU utilisation and energy", "compare --json", "compare", false, true,
     METRICS("igpu.weighted_util_frac", "energy_j_per_token", "energy_active_j_per_token"),
     figure_bars},
};

const struct figure *figure_list(size_t *n)
{
    *n = sizeof figures / sizeof figures[0];
    return figures;
}

const struct figure *figure_find(const char *name)
{
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (strcmp(figures[i].name, name) == 0) {
            return &figures[i];
        }
    }
    return NULL;
}

/* Lists the distinct values of a fact over the inputs, up to MOST. */
static void put_fact(const struct figure_request *r, const char *key, FILE *out, bool *any)
{
    enum { MOST = 4 };
    const char *seen[MOST];
    size_t n = 0;
    for (size_t i = 0; i < r->n_inputs; i++) {
        const char *v = about_fact(r->inputs[i].about, key);
        size_t k = 0;
        while (k < n && strcmp(seen[k], v) != 0) {
            k++;
        }
        if (v[0] == '\0' || k < n) {
            continue;
        }
        (void)fprintf(out, "%s%s", n > 0 ? ", " : *any ? "  \u00b7  " : "", n < MOST ? v : "...");
        *any = true;
        if (n == MOST) {
            return;
        }
        seen[n++] = v;
    }
}

static void put_subject(const struct figure_request *r, struct figure_data *d)
{
    /* With several inputs the figure itself names the policies. */
    static const char *const all[] = {"policy", "llm", "soc", "workload", "failed"};
    const char *const *facts = r->n_inputs > 1 ? all + 1 : all;
    size_t n = r->n_inputs > 1 ? 4 : 5;
    OWNED char *text = NULL;
    size_t size = 0;
    bool any = false;
    FILE *out = memory_stream(&text, &size);
    for (size_t i = 0; i < n; i++) {
        put_fact(r, facts[i], out, &any);
    }
    memory_stream_close(out, &text);
    figure_var_text(d, "subject", text);
}

size_t figure_takes_metrics(const struct figure *f)
{
    bool any =
        f->prepare == figure_bars || f->prepare == figure_lines || f->prepare == figure_chunk;
    return any                           ? FIGURE_MAX_METRICS
           : f->prepare == figure_pareto ? 2
                                         : f->prepare == figure_heatmap;
}

/* An error, because a figure would silently ignore metrics that it cannot draw. */
static int check_metrics(const struct figure *f, size_t n, struct err *e)
{
    size_t most = figure_takes_metrics(f);
    return n == 0 || most == FIGURE_MAX_METRICS || n == most
               ? 0
               : err_add(e, "%s draws %s, and --metric was given %zu time%s", f->name,
                         most == 0   ? "no metric that one can choose"
                         : most == 1 ? "one metric"
                                     : "two metrics, x and y",
                         n, text_plural(n));
}

/* Figures read tables and timelines again, which a pipe does not permit. */
static bool is_in_a_file(const struct figure_input *in)
{
    struct stat is;
    return in->tree != NULL || (stat(in->path, &is) == 0 && S_ISREG(is.st_mode));
}

int figure_prepare(const struct figure *f, const struct figure_request *r, struct figure_data *d,
                   struct err *e)
{
    for (size_t i = 0; i < r->n_inputs; i++) {
        const struct figure_input *in = &r->inputs[i];
        /* Checks all inputs before any is drawn, to report every wrong one at once. */
        if (about_fact(in->about, "kind")[0] != '\0' && !about_is(in->about, f->kinds)) {
            (void)err_add(e, "%s: of the kind \"%s\"; %s reads: %s", in->path,
                          about_fact(in->about, "kind"), f->name, f->reads);
        } else if (!is_in_a_file(in)) {
            (void)err_add(e, "%s: a pipe: a table or a timeline must be in a file", in->path);
        }
    }
    if (f->alone && r->n_inputs != 1) {
        (void)err_add(e, "%s takes one input, not %zu", f->name, r->n_inputs);
    }
    (void)check_metrics(f, r->n_metrics, e);
    d->figure = f;
    int rc = e->n > 0 ? -EINVAL : f->prepare(r, d, e);
    if (rc == 0) {
        put_subject(r, d);
    }
    return rc;
}

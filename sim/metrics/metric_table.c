/* The glossary of metrics. A metric is added here and where it is measured, nowhere else. */
#include "sim/metrics/metric_table.h"

#include <stdio.h>
#include <string.h>

const char *const metric_better_names[] = {"lower", "higher", "neither", NULL};

const char *const metric_usual[] = {
    "reactive.ttft_s.mean",    "reactive.e2e_s.mean",           "reactive.e2e_s.p90",
    "proactive.e2e_s.mean",    "all.norm_e2e_per_token_s.mean", "all.throughput_req_per_min",
    "igpu.weighted_util_frac", "energy_active_j_per_token",     NULL,
};

#define ROW(part, title, unit, scale, better, definition)                                          \
    {                                                                                              \
        part, title, unit, scale, METRIC_BETTER_##better, definition                               \
    }

static const struct metric_descriptor rows[] = {
    ROW("ttft_s", "time to first token", "s", 1.0, LOWER,
        "First output token minus arrival, queueing included."),
    ROW("tbt_s", "time between tokens", "s", 1.0, LOWER,
        "Every gap between two output tokens of a request; tokens that a verification yields "
        "together have gaps of 0."),
    ROW("tbt_step_s", "time between steps", "s", 1.0, LOWER,
        "The same, one gap per step that yields tokens."),
    ROW("tpot_s", "time per output token", "s", 1.0, LOWER,
        "(Last token - first token) / (output tokens - 1); requests of one token have none."),
    ROW("e2e_s", "latency", "s", 1.0, LOWER, "Last output token minus arrival."),
    ROW("norm_ttft_per_input_s", "time to first token per input token", "s", 1.0, LOWER,
        "Time to first token / prompt tokens (agent-xpu-v1)."),
    ROW("norm_e2e_per_token_s", "latency per token", "s", 1.0, LOWER,
        "Latency / (prompt + output tokens), mean over requests (agent-xpu-v2)."),
    ROW("norm_e2e_per_output_s", "latency per output token", "s", 1.0, LOWER,
        "Latency / output tokens (vLLM, Orca)."),
    ROW("norm_e2e_ratio_of_sums_s", "latency per token, ratio of sums", "s", 1.0, LOWER,
        "Sum of latencies / sum of prompt and output tokens."),
    ROW("prefill_pending_s", "prefill pending", "s", 1.0, LOWER, "First service minus arrival."),
    ROW("prefill_suspended_s", "prefill suspended", "s", 1.0, LOWER,
        "Time in prefill after first service with no launch of the request running."),
    ROW("decode_pending_s", "decode pending", "s", 1.0, LOWER,
        "Time after the first token with no launch of the request running; waiting after a KV "
        "eviction counts."),
    ROW("wait_s", "waiting time", "s", 1.0, LOWER,
        "Prefill pending + prefill suspended + decode pending."),
    ROW("session_s", "session latency", "s", 1.0, LOWER,
        "First arrival of a session to its last finish."),
    ROW("preempt_latency_s", "preemption latency", "s", 1.0, LOWER,
        "First service minus arrival, less the time in which the device ran other reactive work; "
        "of "
        "requests that found it busy with proactive work only."),
    ROW("preempt_residual_s", "preemption latency, running launch", "s", 1.0, LOWER,
        "The part of it that was the rest of the launch that ran there."),
    ROW("preempt_rest_s", "preemption latency, the rest", "s", 1.0, LOWER,
        "The part of it that came after that launch."),
    ROW("arrived", "requests arrived", "requests", 1.0, NEITHER,
        "Requests that arrived during the run."),
    ROW("finished", "requests finished", "requests", 1.0, HIGHER,
        "Requests whose last token came out."),
    ROW("shed", "requests shed", "requests", 1.0, LOWER,
        "Requests that were cancelled or dropped."),
    ROW("unfinished", "requests unfinished", "requests", 1.0, LOWER,
        "Requests still in the system at the end."),
    ROW("throughput_req_per_min", "throughput", "requests/min", 1.0, HIGHER,
        "Requests finished / span (first arrival to last finish of the run)."),
    ROW("output_tokens_per_s", "output", "tokens/s", 1.0, HIGHER, "Output tokens / span."),
    ROW("goodput_req_per_min", "goodput", "requests/min", 1.0, HIGHER,
        "Requests that finished and met every target they carry / span."),
    ROW("slo_attainment_frac", "SLO attainment", "1", 1.0, HIGHER,
        "Of the requests that carry a target, the share that finished and met all."),
    ROW("preemptions", "preemptions", "events", 1.0, LOWER, "Evictions of KV of running requests."),
    ROW("evictions", "evictions", "events", 1.0, LOWER, "KV evictions, of waiting requests too."),
    ROW("recomputed_tokens", "recomputed tokens", "tokens", 1.0, LOWER,
        "Prompt and output tokens computed again after their KV was dropped."),
    ROW("starved", "requests starved", "requests", 1.0, LOWER,
        "Requests that waited longer than the threshold, unfinished ones included."),
    ROW("stops_asked", "stops asked", "events", 1.0, NEITHER,
        "Launches that the policy asked to stop, for another request or to split their work."),
    ROW("arrival_rate_req_per_min", "arrival rate", "requests/min", 1.0, NEITHER,
        "Realised rate of arrivals."),
    ROW("arrival_cv", "variation of arrivals", "1", 1.0, NEITHER,
        "Realised coefficient of variation of the gaps between arrivals."),
    ROW("duration_s", "duration", "s", 1.0, NEITHER, "Simulated time of the run."),
    ROW("arrival_window_s", "arrival window", "s", 1.0, NEITHER, "First to last arrival."),
    ROW("drain_s", "drain", "s", 1.0, LOWER, "End of the run minus last arrival."),
    ROW("in_system", "requests in the system", "requests", 1.0, LOWER,
        "Number in system over time."),
    ROW("backlog.at_last_arrival", "backlog at the last arrival", "requests", 1.0, LOWER,
        "Number in system just after the last arrival."),
    ROW("backlog.growth_frac", "growth of the backlog", "1", 1.0, LOWER,
        "Share of the arriving requests that was left behind in the second half."),
    ROW("backlog.unfinished_frac", "unfinished at the last arrival", "1", 1.0, LOWER,
        "Backlog / arrivals."),
    ROW("backlog.drain_frac", "drain over arrival window", "1", 1.0, LOWER,
        "Time to do what is left after the last arrival / arrival window."),
    ROW("backlog.longest_request_s", "longest request alone", "s", 1.0, NEITHER,
        "Estimate from mean times per prompt token and per decode iteration."),
    ROW("backlog.verdict", "verdict", "code", 1.0, LOWER, "0 STABLE, 1 BACKLOGGED, 2 OVERLOADED."),
    ROW("fairness_jain", "fairness (Jain)", "1", 1.0, HIGHER,
        "Jain's index of tokens finished per client."),
    ROW("decode_batch", "decode batch", "sequences", 1.0, NEITHER,
        "Sequences per decode iteration."),
    ROW("verify", "verifications", "events", 1.0, NEITHER, "Passes that verified a draft."),
    ROW("verify.drafted_tokens", "drafted tokens", "tokens", 1.0, NEITHER,
        "Draft tokens per verification."),
    ROW("verify.accepted_tokens", "accepted tokens", "tokens", 1.0, HIGHER,
        "Draft tokens that a verification accepts."),
    ROW("busy_frac", "busy share", "1", 1.0, NEITHER,
        "Share of the run in which the device had work."),
    ROW("prefill_frac", "prefill share", "1", 1.0, NEITHER,
        "Share of the run in which it ran prefill."),
    ROW("decode_frac", "decode share", "1", 1.0, NEITHER,
        "Share of the run in which it ran decode."),
    ROW("weighted_util_frac", "utilisation", "1", 1.0, NEITHER,
        "Prefill and decode time weighted by how much each loads the device (agent-xpu-v2 6.4)."),
    ROW("npu_igpu_overlap_frac", "NPU and iGPU both busy", "1", 1.0, NEITHER, "Share of the run."),
    ROW("contention_loss_frac", "contention loss", "1", 1.0, LOWER,
        "Sum of (actual - solo) / sum of solo time over launches."),
    ROW("killed_kernel_s", "killed kernel time", "s", 1.0, LOWER,
        "Device time of kernels whose work was thrown away."),
    ROW("util_frac", "utilisation", "1", 1.0, NEITHER, "Bandwidth used / peak."),
    ROW("demand_frac", "demand", "1", 1.0, NEITHER, "Bandwidth asked for / peak; may exceed 1."),
    ROW("tier_low_frac", "low pressure", "1", 1.0, NEITHER, "Share of the time at low demand."),
    ROW("tier_medium_frac", "medium pressure", "1", 1.0, NEITHER,
        "Share of the time at medium demand."),
    ROW("tier_high_frac", "high pressure", "1", 1.0, NEITHER, "Share of the time at high demand."),
    ROW("energy_j", "energy", "J", 1.0, LOWER, "Integral of power, idle included."),
    ROW("energy_active_j", "active energy", "J", 1.0, LOWER,
        "Of it, what working took above idle."),
    ROW("energy_idle_j", "idle energy", "J", 1.0, LOWER, "Of it, platform and idle devices."),
    ROW("energy_j_per_token", "energy", "J/token", 1.0, LOWER,
        "Energy / (prompt + output tokens that came out)."),
    ROW("energy_active_j_per_token", "active energy", "J/token", 1.0, LOWER,
        "Active energy / (prompt + output tokens that came out)."),
    ROW("energy_j_per_output_token", "energy", "J/output token", 1.0, LOWER,
        "Energy / output tokens."),
    ROW("energy_active_j_per_output_token", "active energy", "J/output token", 1.0, LOWER,
        "Active energy / output tokens."),
    ROW("peak_power_watts", "peak power", "W", 1.0, LOWER, "Highest power of the machine."),
    ROW("memory_peak_bytes", "peak memory", "GB", 1e-09, LOWER, "Most memory in use at once."),
    ROW("kv_peak_tokens", "peak KV", "tokens", 1.0, LOWER, "Most KV tokens in use at once."),
    ROW("events", "events", "events", 1.0, NEITHER, "Events of the simulation."),
    ROW("kernels", "kernels", "kernels", 1.0, NEITHER, "Kernels that ran."),
    ROW("decisions", "decisions", "decisions", 1.0, NEITHER, "Actions that policies took."),
};

#define N_ROWS (sizeof rows / sizeof rows[0])

static const char *const statistics[] = {"mean", "p50", "p90", "p99", "max", "n", NULL};
static const char *const statistic_titles[] = {"mean", "median", "P90", "P99", "maximum", "count"};

/* A name taken apart; texts are borrowed from it. */
struct parts {
    const char *who; /* the group, device or part before the row's name; not 0-terminated */
    size_t who_length;
    const struct metric_descriptor *row;
    int statistic; /* index; -1: none */
};

static const struct metric_descriptor *row_of(const char *part, size_t length)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].part) == length && memcmp(rows[i].part, part, length) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static int statistic_of(const char *text)
{
    for (int i = 0; statistics[i] != NULL; i++) {
        if (strcmp(statistics[i], text) == 0) {
            return i;
        }
    }
    return -1;
}

/* The row whose name is all of it, or what follows the first dots; the longest one that fits. */
static void take_apart(const char *name, struct parts *p)
{
    static const char cut[] = "truncated.";
    *p = (struct parts){.statistic = -1};
    name += strncmp(name, cut, sizeof cut - 1) == 0 ? sizeof cut - 1 : 0;
    size_t length = strlen(name);
    const char *last = strrchr(name, '.');
    if (last != NULL && statistic_of(last + 1) >= 0) {
        p->statistic = statistic_of(last + 1);
        length = (size_t)(last - name);
    }
    for (const char *at = name; at != NULL && p->row == NULL;) {
        size_t before = (size_t)(at - name);
        p->row = before <= length ? row_of(at, length - before) : NULL;
        p->who = name;
        p->who_length = before > 0 ? before - 1 : 0;
        at = strchr(at, '.');
        at = at != NULL ? at + 1 : NULL;
    }
}

const struct metric_descriptor *metric_table(size_t *n)
{
    *n = N_ROWS;
    return rows;
}

const struct metric_descriptor *metric_describe(const char *name)
{
    struct parts p;
    take_apart(name, &p);
    return p.row;
}

bool metric_is_gain(const char *name)
{
    const struct metric_descriptor *d = metric_describe(name);
    return d != NULL && d->better == METRIC_BETTER_HIGHER;
}

double metric_scale(const char *name)
{
    const struct metric_descriptor *d = metric_describe(name);
    return d != NULL ? d->scale : 1.0;
}

/* "device.busy_frac" is a device's, "reactive.e2e_s" a group's; "all" goes without saying. */
static void put_who(const struct parts *p, char *buf, size_t size)
{
    if (p->who_length == 0 || (p->who_length == 3 && memcmp(p->who, "all", 3) == 0)) {
        buf[0] = '\0';
    } else if (p->who_length == 4 && memcmp(p->who, "igpu", 4) == 0) {
        (void)snprintf(buf, size, "iGPU ");
    } else {
        (void)snprintf(buf, size, "%.*s ", (int)p->who_length, p->who);
    }
}

const char *metric_title(const char *name, char *buf, size_t size)
{
    struct parts p;
    char who[64];
    take_apart(name, &p);
    if (p.row == NULL) {
        (void)snprintf(buf, size, "%s", name);
        return buf;
    }
    put_who(&p, who, sizeof who);
    const char *statistic = p.statistic < 0 ? "" : statistic_titles[p.statistic];
    bool share = strcmp(p.row->unit, "1") == 0;
    (void)snprintf(buf, size, "%s%s%s%s%s%s%s", statistic, statistic[0] != '\0' ? " " : "", who,
                   p.row->title, share ? "" : " (", share ? "" : p.row->unit, share ? "" : ")");
    return buf;
}

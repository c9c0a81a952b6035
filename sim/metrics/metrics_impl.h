/* Internals of struct metrics, for files of sim/metrics only. */
#pragma once

#include "sim/base/map.h"
#include "sim/base/quantile.h"
#include "sim/metrics/backlog.h"
#include "sim/metrics/jobs.h"
#include "sim/metrics/metrics.h"
#include "sim/metrics/usage.h"

enum group { GROUP_REACTIVE, GROUP_PROACTIVE, GROUP_ALL, GROUP_COUNT };

enum series_id {
#define SERIES(id, ...) SERIES_##id,
#define REACTIVE_SERIES(id, ...) SERIES_##id,
#define FINISHED(id, ...) SERIES_##id,
#define WAITED(id, ...) SERIES_##id,
#include "sim/metrics/metrics.def"
    SERIES_COUNT
};

enum truncated_id { TRUNCATED_TTFT, TRUNCATED_E2E, TRUNCATED_NORM_TOKEN, TRUNCATED_COUNT };

struct series {
    struct sample of[GROUP_COUNT]; /* ALL is filled by metrics_collect */
};

struct class_totals {
    uint64_t arrived, finished, shed;
    uint64_t input_tokens, output_tokens; /* done; a prompt counts with its first output token */
    uint64_t zero_gaps;                   /* tokens in one step with the previous token */
    units_sum e2e_ns;                     /* sums over finished requests */
    uint64_t tokens;
    uint64_t preemptions, evictions, recomputed_tokens;
    uint64_t prompt_tokens, cached_tokens; /* over finished requests */
    uint64_t starved;
    uint64_t stops_asked;
    uint64_t slo_carriers, slo_met;
    int64_t first_arrival_ns, last_arrival_ns;
    double gap_mean_ns, gap_m2; /* Welford over interarrival gaps */
    uint64_t truncated;
};

#define RESIDUAL_NONE (-2)   /* at arrival the device was free or had reactive work */
#define RESIDUAL_ACTIVE (-1) /* the launch that ran at arrival still runs */

/* Progress of the reader of an answer. */
struct reading {
    uint32_t tokens;
    int64_t read_ns;   /* when the reader begins the last of them */
    units_sum late_ns; /* sum over tokens: actual minus expected begin */
};

/* State of a live request. */
struct live {
    const struct request *request; /* NULL: unused */
    int64_t since_ns;              /* end or stop of its last service */
    int64_t suspended_ns, decode_pending_ns;
    /* usage_clear_ns at its arrival, and at the end of the launch that ran then */
    int64_t clear_ns[MACHINE_MAX_DEVICES], residual_end_ns[MACHINE_MAX_DEVICES];
    uint32_t recomputed_tokens;
    struct reading reading;
    bool served;
};

struct session {
    int64_t first_arrival_ns, last_finish_ns;
    int64_t turn_arrival_ns; /* arrival of its last turn so far */
    uint32_t cls, turn_cls;  /* class of the last finished turn, and of the last arrived one */
    bool broken;             /* a turn was shed, so the session has no latency */
};

struct client {
    uint64_t tokens;
};

/* Clients that are complete. */
struct closed_clients {
    uint64_t n;
    double sum, squares; /* sums over their tokens */
    uint64_t open;       /* clients with one unfinished turn, which have no tokens yet */
};

/* Values that a finished request adds to distributions. */
enum ended_id {
#define FINISHED(id, ...) ENDED_##id,
#define WAITED(id, ...) ENDED_##id,
#include "sim/metrics/metrics.def"
    ENDED_SESSION,
    ENDED_TURN,
    ENDED_COUNT
};

/* Requests of a class that finished after the last arrival. Their values are added to distributions
 * at the next arrival or the end of the run. Truncated distributions are those at the last arrival.
 */
struct ended {
    double (*rows)[ENDED_COUNT]; /* owned; NaN: no value */
    size_t n, cap;
};

struct request_record {
    uint32_t request_id, session_id, turn, client_id;
    uint8_t cls, state;
    uint32_t input_tokens, output_tokens, reused_tokens, recomputed_tokens, preemptions;
    int64_t arrival_ns, start_ns, first_token_ns, finish_ns; /* TIME_NEVER_NS: never */
    int64_t last_token_ns;
    int64_t suspended_ns, decode_pending_ns;
};

struct waiter {
    uint32_t slot, id;
};

struct waiters {
    struct waiter *v; /* owned */
    size_t n;
};

/* Consecutive equal gaps between tokens of one class, as a batch has them. They are not in the
 * distribution yet. */
struct gap_run {
    int64_t gap_ns;
    uint32_t count;
};

struct metrics {
    struct metrics_options opt;
    const struct machine *machine;
    struct observer observer;
    struct series series[SERIES_COUNT];
    struct series truncated[TRUNCATED_COUNT];
    struct gap_run gaps[REQUEST_CLASS_COUNT];
    struct class_totals totals[REQUEST_CLASS_COUNT];
    struct live *live; /* owned, by slot */
    uint32_t live_cap;
    struct map sessions, clients;
    struct map inner_turns; /* ids of requests that have a next turn */
    bool client_is_session; /* the trace has no clients, so each session is one */
    struct closed_clients closed_clients;
    struct waiters waiting[MACHINE_MAX_DEVICES]; /* reactive requests behind a running launch */
    struct ended ended[REQUEST_CLASS_COUNT];
    struct request_record *records; /* owned */
    size_t n_records;
    struct backlog backlog;
    struct jobs jobs;
    struct usage usage;
    uint64_t verifies, drafted_tokens, accepted_tokens, decode_passes, decode_sequences;
    /* Isolated time of launches of passes with and without prompt tokens, and their work. */
    units_sum prefill_ns, decode_ns;
    uint64_t prefill_rows, decode_tokens;
    int64_t last_finish_ns, end_ns;
    bool closed; /* all values are in distributions */
    bool battery_empty;
};

/* The record of a request, or NULL. */
static inline struct live *metrics_live(const struct metrics *m, const struct request *r)
{
    bool has = r->slot < m->live_cap && m->live[r->slot].request != NULL;
    return has ? &m->live[r->slot] : NULL;
}

/* The end of its last service, or its arrival. */
static inline int64_t metrics_since_ns(const struct live *v)
{
    int64_t token_ns = v->request->last_token_ns;
    return token_ns != TIME_NEVER_NS && token_ns > v->since_ns ? token_ns : v->since_ns;
}

static inline void series_add_n(struct series *s, enum request_class cls, double x, uint32_t n)
{
    sample_add_n(&s->of[cls], x, n);
}

static inline void series_add(struct series *s, enum request_class cls, double x)
{
    series_add_n(s, cls, x, 1);
}

/* The full distribution for a truncated one. */
static inline struct series *metrics_whole(struct metrics *m, enum truncated_id which)
{
    static const enum series_id of[TRUNCATED_COUNT] = {[TRUNCATED_TTFT] = SERIES_TTFT,
                                                       [TRUNCATED_E2E] = SERIES_E2E,
                                                       [TRUNCATED_NORM_TOKEN] = SERIES_NORM_TOKEN};
    return &m->series[of[which]];
}

/* Adds the pending gaps to their distribution. */
void metrics_gaps_flush(struct metrics *m, enum request_class cls);
/* Adds `count` tokens of a class, gap_ns after the previous ones. */
static inline void metrics_gap(struct metrics *m, enum request_class cls, int64_t gap_ns,
                               uint32_t count)
{
    struct gap_run *g = &m->gaps[cls];
    if (g->gap_ns != gap_ns) {
        metrics_gaps_flush(m, cls);
        g->gap_ns = gap_ns;
    }
    g->count += count;
}

/* Adds the pending finished requests of a class to distributions. */
void metrics_ended_flush(struct metrics *m, enum request_class cls);

/* Observer hooks of service.c, and its part of an arrival. */
void service_arrived(struct metrics *m, struct live *v, const struct request *r);
void service_first_service(void *self, int64_t now_ns, const struct request *r,
                           const struct launch *l);
void service_launch_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns);
void service_launch_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                          int64_t lost_ns);
bool service_runs(const struct metrics *m, const struct request *r);
void service_preempt_asked(void *self, int64_t now_ns, const struct launch *l);
void service_repeated(void *self, int64_t now_ns, const struct repeat_record *r);
void service_tokens(void *self, int64_t now_ns, const struct pass *p);
/* Sets the inputs of the run status other than arrivals and departures. */
void service_judge_work(struct metrics *m);

void records_add(struct metrics *m, const struct request *r, const struct live *v, bool finished,
                 int64_t now_ns);

/* Whether a request arrived after the warm-up, and so is in distributions. */
static inline bool metrics_measured(const struct metrics *m, int64_t arrival_ns)
{
    return arrival_ns >= m->opt.warmup_ns;
}

/* Adds the session's last turn, which ends with the next turn's arrival or its last token. */
static inline void metrics_turn(struct metrics *m, const struct session *s, int64_t now_ns)
{
    if (metrics_measured(m, s->turn_arrival_ns)) {
        series_add(&m->series[SERIES_TURN], (enum request_class)s->turn_cls,
                   units_s_from_ns(now_ns - s->turn_arrival_ns));
    }
}

/* ---- quality of experience: qoe.c ---- */

static inline bool metrics_has_reader(const struct metrics *m)
{
    return m->opt.asked.reader.tokens_per_s > 0.0;
}
/* Adds tokens of a pass, or of several equal ones. Call these only with a reader, before
 * last_token_ns of the requests changes. Cost: O(tokens). */
void qoe_tokens(struct metrics *m, int64_t now_ns, const struct pass *p);
void qoe_repeated(struct metrics *m, const struct repeat_record *r);
/* The quality of a finished request: 1 if all tokens were in time, towards 0 the later they came.
 */
double qoe_of(const struct metrics *m, const struct live *v);

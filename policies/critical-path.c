/* critical-path: an order of ours for the requests of agents' jobs (clauses.md E.22). A client
 * states which requests belong to a job, which are background, and how many agents wait for an
 * answer (sim/api/request.h). Nothing else about the job's future is used.
 *
 *   remaining   isolated time of the rest of a prompt and of an expected answer. Each agent that
 *               waits will answer once more at least, so it adds one expected answer
 *   path        the largest remaining time among a job's requests that are here and awaited
 *   slack       path less remaining: so long it may wait without making its job later
 *   key         path + slack: short jobs first, and in a job the request that it waits for longest
 *
 * Background requests come after all others of their class. */
#include "policies/common/iter.h"
#include "sim/base/map.h"

enum { CP_EXPECTED = ITER_PARAM_COUNT, CP_WAITS, CP_JOBS, CP_SLACK };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [CP_EXPECTED] = POLICY_INT("expected_output", 100, 1, 1e6,
                               "output tokens assumed in the remaining time (as prema)"),
    [CP_WAITS] = POLICY_BOOL("waits", true,
                             "background requests last, and waiting agents' answers in the path"),
    [CP_JOBS] = POLICY_BOOL("jobs", true, "off: every request is a job of its own"),
    [CP_SLACK] = POLICY_BOOL("slack", true, "off: requests of a job are equal"),
    {.name = NULL},
};

/* Behind all awaited requests, us. */
#define CP_BACKGROUND 1e14

struct cp_job {
    const struct request *first; /* list of its live requests, unordered */
    double path_ns;
    bool changed; /* a request progressed or left */
};

struct critical_path {
    struct iter iter;
    struct map index;    /* indices of jobs */
    struct cp_job *jobs; /* owned */
    uint32_t n_jobs;
    uint32_t *changed; /* owned; indices of changed jobs */
    uint32_t n_changed;
};

struct cp_request {
    struct iter_request iter;
    const struct request *next, *prev; /* list of its job */
    uint32_t job;                      /* index + 1; 0: not yet in the list */
};

static struct cp_request *own(const struct request *r)
{
    return r->own;
}

static bool is_awaited(const struct sched *s, const struct request *r)
{
    return !r->background || !param_bool(s, CP_WAITS);
}

static double remaining_ns(struct sched *s, const struct request *r)
{
    const struct iter *it = s->state;
    int64_t expected = param_int(s, CP_EXPECTED);
    int64_t left = expected - r->generated_tokens;
    uint32_t waiting = param_bool(s, CP_WAITS) ? r->waiters : 0;
    uint64_t answers = (left > 1 ? (uint64_t)left : 1) + (uint64_t)expected * waiting;
    return (double)(iter_prefill_ns(s, r, it->it.device) +
                    iter_decode_ns(s, r, it->it.device, answers));
}

static struct cp_job *job_of(struct critical_path *c, const struct request *r)
{
    return &c->jobs[own(r)->job - 1];
}

static void joins_job(struct sched *s, struct critical_path *c, const struct request *r)
{
    size_t at = map_number(&c->index, param_bool(s, CP_JOBS) ? r->job_id : r->id);
    if (at == c->n_jobs) {
        LIST_ADD(c->jobs, c->n_jobs, (struct cp_job){0});
    }
    own(r)->job = (uint32_t)at + 1;
    struct cp_job *j = job_of(c, r);
    own(r)->next = j->first;
    if (j->first != NULL) {
        own(j->first)->prev = r;
    }
    j->first = r;
}

static void note_change(struct sched *s, const struct request *r)
{
    struct critical_path *c = s->state;
    struct cp_job *j = job_of(c, r);
    if (!j->changed) {
        j->changed = true;
        LIST_ADD(c->changed, c->n_changed, own(r)->job - 1);
    }
}

/* A new request can only make keys of others grow, which needs no iter_rekey. */
static double cp_key(struct sched *s, const struct request *r)
{
    struct critical_path *c = s->state;
    if (own(r)->job == 0) {
        joins_job(s, c, r);
    }
    struct cp_job *j = job_of(c, r);
    double remaining = remaining_ns(s, r);
    if (!is_awaited(s, r)) {
        return CP_BACKGROUND + remaining / NS_PER_US;
    }
    j->path_ns = remaining > j->path_ns ? remaining : j->path_ns;
    double slack = param_bool(s, CP_SLACK) ? j->path_ns - remaining : 0.0;
    return (j->path_ns + slack) / NS_PER_US;
}

static void cp_served(struct sched *s, const struct request *r, const struct segment *seg UNUSED,
                      int64_t elapsed_ns UNUSED)
{
    note_change(s, r);
}

static void cp_left(struct sched *s, const struct request *r)
{
    struct critical_path *c = s->state;
    struct cp_request *x = own(r);
    if (x->job == 0) {
        return;
    }
    note_change(s, r);
    *(x->prev != NULL ? &own(x->prev)->next : &job_of(c, r)->first) = x->next;
    if (x->next != NULL) {
        own(x->next)->prev = x->prev;
    }
}

/* After progress the path may be shorter, and with it the keys of waiting requests. */
static void cp_refresh(struct sched *s)
{
    struct critical_path *c = s->state;
    while (c->n_changed > 0) {
        struct cp_job *j = &c->jobs[c->changed[--c->n_changed]];
        j->changed = false;
        j->path_ns = 0.0;
        for (const struct request *r = j->first; r != NULL; r = own(r)->next) {
            double remaining = is_awaited(s, r) ? remaining_ns(s, r) : 0.0;
            j->path_ns = remaining > j->path_ns ? remaining : j->path_ns;
        }
        for (const struct request *r = j->first; r != NULL; r = own(r)->next) {
            iter_rekey(s, r);
        }
    }
}

/* Annotations are noisy: even a loss of KV can make a path shorter. */
static void cp_found(struct sched *s, const struct request *r)
{
    note_change(s, r);
    cp_refresh(s);
}

static const struct iter_order order = {.key = cp_key,
                                        .served = cp_served,
                                        .left = cp_left,
                                        .found = cp_found,
                                        .refresh = cp_refresh,
                                        .steady = true};

static int cp_init(struct sched *s)
{
    return iter_init(s, &order);
}

static void cp_exit(struct sched *s)
{
    struct critical_path *c = s->state;
    map_fini(&c->index);
    free(c->jobs);
    free(c->changed);
    iter_exit(s);
}

static const char *const ablations[] = {"waits=false", "jobs=false", "slack=false", NULL};

const struct policy_ops policy_critical_path_ops = {
    .name = "critical-path",
    .summary = "shortest known critical path of a job first, slack last (ours)",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct critical_path),
    .request_state_size_bytes = sizeof(struct cp_request),
    .params = params,
    .ablations = ablations,
    .init = cp_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = cp_exit,
};

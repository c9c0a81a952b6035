/* program-fcfs: serves programs in the order in which their first requests arrived (clauses.md
 * E.16: Continuum; InferCept keeps the arrival time over interceptions). So a turn after a tool
 * call does not queue behind requests that arrived during the call. A program is a session. With
 * preempt=reset and class=rt_alone this is REEF (E.8): reactive requests are served first come,
 * first served, and never preempt each other. */
#include "policies/common/iter.h"
#include "sim/base/map.h"

static const struct policy_param params[] = {ITER_PARAMS, {.name = NULL}};

struct program_fcfs {
    struct iter iter;
    struct map programs; /* double: first arrival, us */
};

static double program_fcfs_key(struct sched *s, const struct request *r)
{
    struct program_fcfs *p = s->state;
    if (map_record(&p->programs, r->session_id) == NULL) {
        *(double *)map_add(&p->programs, r->session_id) = units_us_from_ns(r->arrival_ns);
    }
    return *(const double *)map_record(&p->programs, r->session_id);
}

static const struct iter_order order = {.key = program_fcfs_key, .steady = true, .constant = true};

static int program_fcfs_init(struct sched *s)
{
    return iter_init(s, &order);
}

static void program_fcfs_exit(struct sched *s)
{
    struct program_fcfs *p = s->state;
    map_fini(&p->programs);
    iter_exit(s);
}

const struct policy_ops policy_program_fcfs_ops = {
    .name = "program-fcfs",
    .summary = "sessions in order of their first arrival",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct program_fcfs),
    .request_state_size_bytes = sizeof(struct iter_request),
    .params = params,
    .init = program_fcfs_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = program_fcfs_exit,
};

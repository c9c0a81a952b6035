/* autellix-like: program-level least attained service (clauses.md E.13, from section 4.2 of the
 * paper and third-party code; the number of queues, their bounds and quanta are ours, hence -like).
 * A call inherits the service of its program (client): PLAS the sum over the program's finished
 * calls, ATLAS their longest path so far. A finished call ends a path, whose length is the service
 * that it inherited plus its own. The inherited service falls into one of K queues. A call drops
 * one queue when it uses up the quantum. It moves to the top when program and call have waited beta
 * times the service that they got; then the call's own part of both restarts at 0.
 *
 * Deviation: a program's waiting and service are those at the call's arrival, not those of now. */
#include "policies/common/iter.h"
#include "sim/base/map.h"

enum { AUTELLIX_MODE = ITER_PARAM_COUNT, AUTELLIX_T0, AUTELLIX_BETA };
enum { AUTELLIX_PLAS, AUTELLIX_ATLAS };

static const char *const modes[] = {"plas", "atlas", NULL};
static const struct policy_param params[] = {
    ITER_PARAMS,
    [AUTELLIX_MODE] =
        POLICY_CHOICE("mode", AUTELLIX_PLAS, modes,
                      "service inherited: of all the program's calls, or of its longest path"),
    [AUTELLIX_T0] =
        POLICY_NUMBER("t0_s", 1, 1e-6, 1e6,
                      "unit of queue bounds {0,1,2,4,...,64} 2 t0 and quanta, s (E.13 [S])"),
    [AUTELLIX_BETA] = POLICY_NUMBER(
        "beta", 8, 0, 1e9, "waiting over service that returns a call to the top (E.13 [S])"),
    {.name = NULL},
};

#define AUTELLIX_QUEUES 8

/* Sums over a program's finished calls, ns. */
struct autellix_program {
    double service, waiting;
};

struct autellix {
    struct iter iter;
    struct map programs;     /* struct autellix_program by id */
    struct order to_promote; /* calls below the top queue, by the instant of their promotion */
};

struct autellix_request {
    struct iter_request iter;
    struct order_node promote; /* key: ns */
    bool known;
    int queue;
    double program_service_ns, program_wait_ns; /* at arrival; whole ns, as all members below */
    double served_ns, at_queue_ns;
    int64_t since_ns;        /* arrival or last promotion: waiting and service count from here */
    double served_before_ns; /* served_ns at since_ns */
};

/* The instant, ns, at which (program waiting + own waiting) / (program service + own service)
 * reaches beta if the call is not served before. */
static double due_ns(struct sched *s, const struct request *r)
{
    const struct autellix_request *own = r->own;
    /* The program's sums are fixed at arrival, and of a waiting call only the waiting grows, so the
     * instant is known in advance. It is a whole number of ns after arrival, so that it does not
     * depend on the begin of the run. */
    double served_ns = own->served_ns - own->served_before_ns;
    double got_ns = own->program_service_ns + served_ns;
    double wait_ns = param_number(s, AUTELLIX_BETA) * got_ns - own->program_wait_ns;
    return (double)own->since_ns + ceil(served_ns + wait_ns);
}

static double autellix_key(struct sched *s, const struct request *r)
{
    struct autellix *a = s->state;
    struct autellix_request *own = r->own;
    if (!own->known) {
        own->known = true;
        own->since_ns = r->arrival_ns;
        const struct autellix_program *program = map_add(&a->programs, r->client_id);
        own->program_service_ns = program->service;
        own->program_wait_ns = program->waiting;
        double bound = 2e9 * param_number(s, AUTELLIX_T0);
        /* Calls of a program with much service start in a lower queue, without being demoted step
         * by step.
         */
        while (own->program_service_ns >= bound && own->queue + 1 < AUTELLIX_QUEUES) {
            bound *= 2.0;
            own->queue++;
        }
        if (own->queue > 0) {
            order_add(&a->to_promote, r, due_ns(s, r));
        }
    }
    return own->queue;
}

static void autellix_served(struct sched *s, const struct request *r,
                            const struct segment *seg UNUSED, int64_t elapsed_ns)
{
    struct autellix *a = s->state;
    struct autellix_request *own = r->own;
    own->served_ns += (double)elapsed_ns;
    own->at_queue_ns += (double)elapsed_ns;
    if (own->at_queue_ns > 1e9 * ldexp(param_number(s, AUTELLIX_T0), own->queue) &&
        own->queue + 1 < AUTELLIX_QUEUES) {
        own->queue++;
        own->at_queue_ns = 0.0;
    }
    order_remove(&a->to_promote, r);
    if (own->queue > 0) {
        order_add(&a->to_promote, r, due_ns(s, r));
    }
}

/* Promotes calls that are due. A call in service does not wait: autellix_served returns it. */
static void autellix_refresh(struct sched *s)
{
    struct autellix *a = s->state;
    const struct request *r;
    while ((r = order_first(&a->to_promote)) != NULL &&
           order_node(&a->to_promote, r)->key <= (double)s->now_ns) {
        const double due = order_node(&a->to_promote, r)->key;
        order_remove(&a->to_promote, r);
        if (r->pass == NULL) {
            struct autellix_request *own = r->own;
            own->queue = 0;
            own->at_queue_ns = 0.0;
            /* The instant of promotion, not of this call. A program may have waited enough before
             * the call arrived. */
            own->since_ns = due > (double)own->since_ns ? (int64_t)due : own->since_ns;
            own->served_before_ns = own->served_ns;
            iter_rekey(s, r);
        }
    }
}

static void autellix_left(struct sched *s, const struct request *r)
{
    struct autellix *a = s->state;
    const struct autellix_request *own = r->own;
    struct autellix_program *program = map_add(&a->programs, r->client_id);
    /* Counted when the call ends, so concurrent calls of one program inherit the same. */
    bool sum = param_int(s, AUTELLIX_MODE) == AUTELLIX_PLAS;
    program->service = sum ? program->service + own->served_ns
                           : fmax(program->service, own->program_service_ns + own->served_ns);
    program->waiting += (double)(s->now_ns - r->arrival_ns) - own->served_ns;
    order_remove(&a->to_promote, r);
}

static const struct iter_order order = {.key = autellix_key,
                                        .served = autellix_served,
                                        .left = autellix_left,
                                        .refresh = autellix_refresh};

static int autellix_init(struct sched *s)
{
    struct autellix *a = s->state;
    a->programs.record_bytes = sizeof(struct autellix_program);
    a->to_promote.at = offsetof(struct autellix_request, promote);
    return iter_init(s, &order);
}

static void autellix_exit(struct sched *s)
{
    struct autellix *a = s->state;
    map_fini(&a->programs);
    iter_exit(s);
}

const struct policy_ops policy_autellix_like_ops = {
    .name = "autellix-like",
    .summary = "program-level least attained service, PLAS and ATLAS",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct autellix),
    .request_state_size_bytes = sizeof(struct autellix_request),
    .params = params,
    .init = autellix_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = autellix_exit,
};

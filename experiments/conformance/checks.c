/* The checks of the suite. Each returns NULL, or a text about the first load that breaks its rule;
 * the caller frees it. */
#include "experiments/conformance/conformance.h"
#include "experiments/conformance/randomload.h"
#include "policies/external/external.h"
#include "traces/traces.h"

/* A policy on one load. */
struct trial {
    const struct conformance *c;
    struct conformance_case how;
    struct scenario sc;
    struct scenario_request q[CONFORMANCE_MAX_REQUESTS];
    uint32_t n;
};

bool conformance_applies(const struct conformance_check *check, const struct conformance *c)
{
    bool applies = check->param == NULL;
    for (const struct policy_param *p = c->ops->params; p != NULL && p->name != NULL; p++) {
        applies = applies || strcmp(p->name, check->param) == 0;
    }
    return applies && (!check->confined || c->confined != NULL);
}

/* Every device can do all that a policy may ask for. */
static void make_capable(struct scenario *sc)
{
    for (uint32_t d = 0; d < sc->machine.n_devices; d++) {
        struct device *dev = &sc->machine.devices[d];
        dev->can_reset = dev->can_withdraw = dev->can_suspend = true;
    }
}

/* Kernels of all devices have equal demands, but the arbiter prefers some devices. So only the
 * requesting device matters. */
static void make_alike(struct scenario *sc)
{
    for (int d = 0; d < 3; d++) {
        if (d != IGPU) {
            memcpy(sc->cost[d], sc->cost[IGPU], sizeof sc->cost[d]);
        }
        sc->machine.devices[d].ddr_weight = 1 << d;
    }
    sc->setup.contention = contention_find("weighted");
}

uint32_t conformance_prepare(struct scenario *sc, struct scenario_request *q,
                             const struct conformance *c, const struct conformance_case *how)
{
    uint32_t n = randomload_make(sc, q, CONFORMANCE_MAX_REQUESTS, how->load);
    if (strcmp(c->ops->name, "sd-npu") == 0) {
        sc->machine.devices[NPU].static_attention = false; /* its graphs contain the attention */
        sc->llm.n_layers = 6;
    }
    if (how->capable) {
        make_capable(sc);
    }
    if (how->pair == CONFORMANCE_COLLAPSED && how->load % 4 == 0) {
        make_alike(sc);
    }
    scenario_policy(sc, c->ops, how->params != NULL ? how->params : c->params);
    if (how->pair == CONFORMANCE_CONFINED && c->confined != NULL) {
        SCOPED(err_fini) struct err e = ERR_INIT;
        sc->confined = c->confined(c->label, &e);
        SIM_REQUIRE(sc->confined != NULL, "%s", e.lines[0]);
    }
    /* No kernel of these loads takes a second. With a longer limit a stall in which frames continue
     * would take long to find. */
    sc->setup.stall_ns = 60 * NS_PER_S;
    /* The horizon ends runs in which requests take KV from each other for ever. Shipped policies
     * need less than a minute. */
    sc->setup.horizon_ns = 600 * NS_PER_S;
    return n;
}

static struct trial *trial_new(const struct conformance *c, struct conformance_case how)
{
    struct trial *t = xcalloc(1, sizeof *t);
    t->c = c;
    t->how = how;
    t->n = conformance_prepare(&t->sc, t->q, c, &how);
    if (c->now != NULL) {
        OWNED char *command = conformance_command(c, &how, NULL);
        (void)snprintf(c->now, CONFORMANCE_NOW_BYTES, "%s", command);
    }
    return t;
}

static void trial_free(struct trial *t)
{
    scenario_fini(&t->sc);
    free(t);
}

/* Formats the load, its fault, and the last refused action, which is often the cause. */
static char *told(const struct trial *t, const char *what)
{
    const char *params = t->how.params != NULL ? t->how.params : "";
    const char *refused = strstr(t->sc.result.scene, "last action refused");
    refused = t->sc.result.status != 0 && refused != NULL ? refused : "";
    return xformat("%s%s%s, load %llu: %s%s%.*s", t->c->label, params[0] != '\0' ? " with " : "",
                   params, (unsigned long long)t->how.load, what, refused[0] != '\0' ? "; " : "",
                   (int)strcspn(refused, "\n"), refused);
}

/* Describes the first incomplete or disordered request of the last run. NULL: all are whole. */
static char *broken_request(const struct trial *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const struct scenario_record *r = &t->sc.records[i];
        bool whole = r->state == REQUEST_STATE_FINISHED && r->generated == t->q[i].output_tokens &&
                     r->tokens_n == r->generated;
        if (!whole) {
            return xformat("request %u did not finish with all its tokens", i);
        }
        bool ordered = r->start_ns >= r->arrival_ns && r->token_ns[0] > r->start_ns;
        for (uint32_t k = 1; k < r->tokens_n && k < 64; k++) {
            ordered = ordered && r->token_ns[k] >= r->token_ns[k - 1];
        }
        /* The times of the first 64 tokens are known, and no load has longer outputs. */
        if (!ordered || r->finish_ns != r->token_ns[r->tokens_n - 1]) {
            return xformat("the times of request %u are out of order", i);
        }
    }
    return NULL;
}

/* Runs the load. Returns NULL, or its fault. A failed run also leaves its trace and the command. */
static char *run_whole(const struct conformance *c, struct conformance_case how)
{
    struct trial *t = trial_new(c, how);
    OWNED char *why = NULL;
    int rc = scenario_run(&t->sc, t->q, t->n, false);
    if (rc != 0) {
        why = xformat("%s", t->sc.result.message);
    } else if (!t->sc.result.audit.clean || t->sc.result.audit.finished != t->n) {
        why = xformat("%llu of %u requests finished within 600 s, or the audit is not clean",
                      (unsigned long long)t->sc.result.audit.finished, t->n);
    } else if (t->sc.result.counters[COUNTER_OUTSIDE_SCHEDULE] != 0) {
        why = xformat("it acts outside of schedule");
    } else {
        why = broken_request(t);
    }
    char *said = why != NULL ? told(t, why) : NULL;
    if (conformance_failed(&t->sc)) {
        conformance_leave(&t->sc, c, &how);
    }
    trial_free(t);
    return said;
}

static char *every_request_whole(const struct conformance *c)
{
    char *why = NULL;
    for (uint64_t load = 1; why == NULL && load <= c->n_loads; load++) {
        why = run_whole(c, (struct conformance_case){.load = load});
    }
    return why;
}

/* Random loads on which a policy once failed with little memory. In some, only reactive sequences
 * have KV. In others, a request that lost its prefill keeps its prefix, or a pass takes the prefix
 * of a member. */
static char *tight_memory(const struct conformance *c)
{
    static const uint64_t hard[] = {41,  64,   139,  286,  335,  372,  765, 825,
                                    913, 1042, 1065, 1172, 1212, 1349, 2458};
    char *why = NULL;
    for (size_t i = 0; why == NULL && i < sizeof hard / sizeof hard[0]; i++) {
        why = run_whole(c, (struct conformance_case){.load = hard[i]});
    }
    return why;
}

/* Sets cancellations by the last run's times: one request ends at its first token, and the next one
 * while it waits. */
static void give_up(struct trial *t)
{
    struct trace *trace = &t->sc.trace;
    trace->extras = xcalloc(t->n, sizeof *trace->extras);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t id = trace->rows[i].request_id;
        const struct scenario_record *r = &t->sc.records[id];
        int64_t waits_ns = (r->start_ns - r->arrival_ns) / 2;
        trace->extras[i] = trace_extra_none();
        if (id == t->how.load % t->n) {
            trace->extras[i].cancel_ns = r->first_token_ns - r->arrival_ns;
        } else if (id == (t->how.load + 1) % t->n && waits_ns > 0) {
            trace->extras[i].cancel_ns = waits_ns;
        }
    }
}

static char *users_give_up(const struct conformance *c)
{
    char *said = NULL;
    for (uint64_t load = 1; said == NULL && load <= c->n_loads; load++) {
        struct conformance_case how = {.load = load};
        struct trial *t = trial_new(c, how);
        int rc = scenario_run(&t->sc, t->q, t->n, false);
        if (rc == 0) {
            give_up(t);
            if (c->now != NULL) {
                c->now[0] = '\0'; /* the load without cancellations passed */
            }
            rc = scenario_again(&t->sc);
        }
        const struct sim_audit *a = &t->sc.result.audit;
        if (rc != 0) {
            said = told(t, t->sc.result.message);
            conformance_leave(&t->sc, c, &how);
        } else if (!a->clean || a->finished + a->shed != t->n) {
            said = told(t, "not everybody finished or gave up, or the audit is not clean");
        }
        trial_free(t);
    }
    return said;
}

/* Combines every preemption mechanism of the iteration-level orders with every treatment of KV. */
static char *preemption_axes(const struct conformance *c)
{
    static const char *const preempt[] = {"iteration", "layer", "kernel", "reset"};
    static const char *const gap[] = {"cache", "preserve", "discard", "swap", "infercept", "ttl"};
    static const char *const level[] = {"device", "1", "2", "3"};
    static const char *const kv[] = {"checkpoint", "recompute", "swap"};
    char *why = NULL;
    for (uint64_t i = 1; why == NULL && i <= c->n_loads * 9; i++) {
        OWNED char *params = xformat("preempt=%s,kv=%s,level=%s,inflight=%u,gap_kv=%s",
                                     preempt[i % 4], kv[i / 4 % 3], level[i / 12 % 4],
                                     1 + (unsigned)(i / 7 % 2) * 3, gap[i / 2 % 6]);
        why = run_whole(c, (struct conformance_case){
                               .params = params, .load = i % c->n_loads + 1, .capable = true});
    }
    return why;
}

/* Changes three of ten parameters on average, but never the time limit of a program. */
static void random_params(const struct policy_ops *ops, uint64_t load, char *params, size_t size)
{
    size_t used = 0;
    struct rng r;
    rng_init(&r, rng_key(load, RNG_TEST, 79, 0));
    params[0] = '\0';
    for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
        bool differs = rng_below(&r, 10) < 3;
        if (differs && used + 128 < size && !external_is_limit(ops, p)) {
            used += used > 0 ? (size_t)snprintf(params + used, 2, ",") : 0;
            used += randomload_param(params + used, size - used, &r, p);
        }
    }
}

/* A policy may refuse parameters before the first event. After it, the policy must serve every
 * request. */
static char *any_parameters(const struct conformance *c)
{
    char *said = NULL;
    for (uint64_t load = 1; said == NULL && load <= c->n_loads; load++) {
        char params[1024];
        random_params(c->ops, load, params, sizeof params);
        struct conformance_case how = {
            .params = params[0] != '\0' ? params : NULL, .load = load, .capable = true};
        struct trial *t = trial_new(c, how);
        int rc = scenario_run(&t->sc, t->q, t->n, false);
        const struct sim_result *r = &t->sc.result;
        bool says_why = strstr(r->message, "says: idle_guard=false: a kernel") != NULL;
        OWNED char *why = NULL;
        if (rc != 0 && r->events > 0 && !says_why) {
            why = xformat("%s", r->message);
        } else if (r->audit.shed > 0 && strstr(params, "shed=true") == NULL) {
            why = xformat("it sheds requests");
        } else if (rc == 0 && r->audit.shed == 0) {
            why = broken_request(t);
        }
        said = why != NULL ? told(t, why) : NULL;
        if (why != NULL && conformance_failed(&t->sc)) {
            conformance_leave(&t->sc, c, &how);
        }
        trial_free(t);
    }
    return said;
}

/* Compares two runs of a load that must be equal. Returns NULL, or how they differ. Then it also
 * leaves the trace and the command, unless the policy may differ. */
static char *differ(const struct conformance *c, uint64_t load, enum conformance_pair pair)
{
    struct conformance_case how = {.load = load, .pair = pair};
    struct trial *t = trial_new(c, how);
    scenario_trace(&t->sc, t->q, t->n);
    const char *what = conformance_differ(&t->sc, &t->sc.trace, pair);
    bool may = pair == CONFORMANCE_HIDDEN && (c->ops->flags & POLICY_F_ORACLE) != 0;
    char *said = what != NULL ? told(t, what) : NULL;
    if (what != NULL && !may) {
        conformance_leave(&t->sc, c, &how);
    }
    trial_free(t);
    return said;
}

static char *collapsed_alike(const struct conformance *c)
{
    char *why = NULL;
    for (uint64_t load = 1; why == NULL && load <= c->n_loads; load++) {
        why = differ(c, load, CONFORMANCE_COLLAPSED);
    }
    return why;
}

static char *repeated_alike(const struct conformance *c)
{
    char *why = NULL;
    for (uint64_t load = 1; why == NULL && load <= 5; load++) {
        why = differ(c, load, CONFORMANCE_REPEATED);
    }
    return why;
}

/* Only loads with KV for longer outputs are of use. An oracle is the positive control, because it
 * uses hidden numbers. */
static char *hidden_alike(const struct conformance *c)
{
    bool oracle = (c->ops->flags & POLICY_F_ORACLE) != 0;
    char *why = NULL;
    for (uint64_t load = 1; why == NULL && load <= c->n_loads; load++) {
        struct trial *t = trial_new(c, (struct conformance_case){.load = load});
        bool roomy = t->sc.setup.kv_capacity_tokens == 0;
        trial_free(t);
        why = roomy ? differ(c, load, CONFORMANCE_HIDDEN) : NULL;
    }
    if (oracle && why == NULL && c->n_loads < CONFORMANCE_LOADS) {
        return xformat(CONFORMANCE_OPEN
                       "%s: it is marked as an oracle, and %llu load%s cannot show "
                       "that",
                       c->label, (unsigned long long)c->n_loads, text_plural(c->n_loads));
    }
    if (oracle && why == NULL) {
        return xformat("%s: it is marked as an oracle, and decides as if it knew nothing",
                       c->label);
    }
    if (oracle) {
        free(why);
        why = NULL;
    }
    return why;
}

/* In a separate process, a policy's promises (POLICY_F_LATE, POLICY_F_SLEEPS) save messages, so
 * they must be true. */
static char *confined_alike(const struct conformance *c)
{
    char *why = NULL;
    for (uint64_t load = 1; why == NULL && load <= c->n_loads; load++) {
        why = differ(c, load, CONFORMANCE_CONFINED);
    }
    return why;
}

const struct conformance_check conformance_checks[] = {
    {"every request finishes with all its tokens, and the audit is clean", NULL,
     every_request_whole, false},
    {"little memory stalls nobody", NULL, tight_memory, false},
    {"who gives up holds nobody up", NULL, users_give_up, false},
    {"every preemption mechanism keeps every request whole", "kv", preemption_axes, false},
    {"no parameter leaves a request behind", NULL, any_parameters, false},
    {"kernels one by one and as one give the same run", NULL, collapsed_alike, false},
    {"the same run takes the same decisions", NULL, repeated_alike, false},
    {"decisions do not depend on what is hidden", NULL, hidden_alike, false},
    {"in a process of its own it decides the same", NULL, confined_alike, true},
    {.name = NULL},
};

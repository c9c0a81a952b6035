/* Policies that do everything wrong. The core must refuse, count, and stay whole. A run that such a
 * policy spoils ends with a message that names the policy, and no run ends the process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/common/reqq.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

struct bad {
    struct reqq queue;
    const struct request *current, *gone;
    struct pass *pass;
    const struct launch *launch;
    uint64_t calls;
};

static void arrived(struct sched *s, const struct request *r)
{
    struct bad *b = s->state;
    reqq_push(&b->queue, r);
}

static void launch_done(struct sched *s, const struct launch *l)
{
    struct bad *b = s->state;
    (void)l;
    b->launch = NULL;
}

static void pass_done(struct sched *s, const struct pass *p)
{
    struct bad *b = s->state;
    const struct request *r = p->segments[0].request;
    b->pass = NULL;
    if (r->state == REQUEST_STATE_FINISHED) {
        b->gone = r;
        b->current = NULL;
    }
}

static int form(struct sched *s, const struct request *r, struct pass **p)
{
    bool prefill = r->state == REQUEST_STATE_QUEUED;
    struct segment seg = {.request = r,
                          .role = prefill ? SEGMENT_PREFILL : SEGMENT_DECODE,
                          .n_tokens = prefill ? request_prefill_left(r) : 1};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    return sched_pass_form(s, &spec, p);
}

static int launch(struct sched *s, struct pass *p, uint8_t device, uint32_t n_ops, uint32_t rows,
                  const struct launch **l)
{
    struct launch_spec spec = {.pass = p,
                               .device = device,
                               .n_ops = n_ops,
                               .rows = rows,
                               .yield = YIELD_KERNEL,
                               .inflight = 1};
    return sched_launch(s, &spec, l);
}

/* Serves one request at a time, correctly. Each bad policy does its wrong actions before that. */
static void serve(struct sched *s)
{
    struct bad *b = s->state;
    if (b->current == NULL) {
        b->current = reqq_pop(&b->queue);
    }
    if (b->current == NULL || b->current->pass != NULL) {
        return;
    }
    if (form(s, b->current, &b->pass) == 0) {
        (void)launch(s, b->pass, IGPU, b->pass->n_ops, b->pass->rows_todo, &b->launch);
    }
}

/* Tries everything that must be refused, in every call. */
static void meddle(struct sched *s)
{
    struct bad *b = s->state;
    struct pass *p;
    (void)sched_set_timer(s, s->now_ns - 1);
    (void)sched_oracle_output_tokens(s, b->current);
    (void)sched_kv_move(s, kv_of(b->current), KV_MEMORY);
    (void)sched_kv_move(s, kv_of(NULL), KV_NOWHERE);
    (void)sched_kv_move(s, kv_of(b->current), KV_CACHE);
    (void)sched_kv_move(s, kv_of_session(UINT32_MAX), KV_FLASH);
    (void)sched_shed(s, NULL);
    (void)sched_compile(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 1, 1});
    (void)sched_load(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 1, 0}, 1e9);
    (void)sched_load(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 1, 1}, -1.0);
    (void)sched_load(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 1, 1}, 1e300);
    (void)sched_map(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 1, 1}, 5e9);
    (void)sched_resident_evict(s, (struct resident_key){RESIDENT_COMPILED_ATTENTION, 5, 0});
    (void)sched_pass_form(s, &(struct pass_spec){0}, &p);
    (void)launch(s, NULL, IGPU, 0, 0, NULL);
    if (b->gone != NULL) {
        (void)form(s, b->gone, &p); /* finished at this or an earlier instant */
        (void)sched_shed(s, b->gone);
        (void)sched_kv_move(s, kv_of(b->gone), KV_NOWHERE);
    }
    if (b->current != NULL && b->current->pass != NULL) {
        (void)form(s, b->current, &p); /* twice in a pass */
        (void)sched_shed(s, b->current);
        (void)sched_kv_move(s, kv_of(b->current), KV_FLASH);
    }
    if (b->launch != NULL && b->pass != NULL) {
        (void)launch(s, b->pass, IGPU, 1, 1, NULL);      /* rows are all taken */
        (void)launch(s, b->pass, 77, 1, 1, NULL);        /* no such device */
        (void)launch(s, b->pass, CPU, 1000000, 1, NULL); /* no such span */
        (void)launch(s, b->pass, CPU, 0, 1, NULL);       /* an empty one */
        (void)sched_pass_cancel(s, b->pass);             /* it runs */
        (void)sched_preempt(
            s, b->launch,
            (struct preempt_spec){.now = true, .discard = true}); /* the device cannot */
    }
    (void)sched_preempt(s, NULL, (struct preempt_spec){0});
    serve(s);
}

static void from_notification(struct sched *s, const struct request *r)
{
    struct pass *p;
    arrived(s, r);
    (void)form(s, r, &p); /* notifications only record */
}

static void spin(struct sched *s)
{
    struct bad *b = s->state;
    struct pass *p;
    sched_again(s);
    if (b->queue.head != NULL && form(s, b->queue.head, &p) == 0) {
        (void)sched_pass_cancel(s, p); /* acts for ever, in one instant */
    }
}

static void forget(struct sched *s)
{
    (void)s;
}

static void doze(struct sched *s)
{
    (void)sched_set_timer(s, s->now_ns + 60 * NS_PER_S); /* never works, always has an event */
}

static void shed_twice(struct sched *s)
{
    struct bad *b = s->state;
    const struct request *r = reqq_pop(&b->queue);
    sched_again(s);
    if (r != NULL) {
        (void)sched_shed(s, r);
        (void)sched_shed(s, r);
    }
}

static void busy(struct sched *s)
{
    struct bad *b = s->state;
    for (const struct request *r = b->queue.head; r != NULL; r = reqq_next(r)) {
        struct pass *p =
            (struct pass *)(uintptr_t)r->pass; /* one for everyone, all on one device */
        if (p != NULL || form(s, r, &p) == 0) {
            (void)launch(s, p, IGPU, p->n_ops - p->op, p->rows_todo, NULL);
        }
    }
}

static void busy_pass_done(struct sched *s, const struct pass *p)
{
    (void)s;
    if (p->segments[0].request->state == REQUEST_STATE_FINISHED) {
        reqq_remove(p->segments[0].request);
    }
}

static uint64_t calls;

static void serve_counted(struct sched *s)
{
    calls++;
    serve(s);
}

static void serve_again(struct sched *s)
{
    serve_counted(s);
    sched_again(s);
}

/* Declares that it forms the same decode pass again, and sets a timer instead. */
static void declare_and_pause(struct sched *s)
{
    struct bad *b = s->state;
    sched_steady(s, TIME_NEVER_NS, 0);
    bool decodes = b->current != NULL && b->current->generated_tokens == 2;
    if (decodes && b->current->pass == NULL && s->now_ns == b->current->last_token_ns) {
        (void)sched_set_timer(s, s->now_ns + 1000);
        return;
    }
    serve(s);
}

/* Declares that it does the same again, and launches the last request's third pass otherwise: only
 * its first op, or on another device. */
static void declare_and_launch(struct sched *s, bool cut, uint8_t device)
{
    struct bad *b = s->state;
    sched_steady(s, TIME_NEVER_NS, 0);
    bool decodes = b->current != NULL && b->current->generated_tokens == 2 && b->queue.n == 0;
    if (decodes && b->current->pass == NULL && form(s, b->current, &b->pass) == 0) {
        uint32_t n_ops = cut ? 1 : b->pass->n_ops;
        ck_assert_int_eq(launch(s, b->pass, device, n_ops, b->pass->rows_todo, &b->launch), 0);
    }
    serve(s);
}

static void declare_and_cut(struct sched *s)
{
    declare_and_launch(s, true, IGPU);
}

static void declare_and_move(struct sched *s)
{
    declare_and_launch(s, false, NPU);
}

static struct policy_ops ops(const char *name, void (*schedule)(struct sched *))
{
    return (struct policy_ops){.name = name,
                               .contract = POLICY_CONTRACT,
                               .state_size_bytes = sizeof(struct bad),
                               .request_state_size_bytes = sizeof(struct reqq_node),
                               .request_arrived = arrived,
                               .launch_done = launch_done,
                               .pass_done = pass_done,
                               .schedule = schedule};
}

static const struct scenario_request q[] = {
    {BE, 0, 300, 3, 0, 0}, {RT, 0.001, 20, 2, 0, 0}, {BE, 0.001, 40, 4, 0, 0}};

static FILE *log_to; /* NULL: nowhere */

static int resets = -1; /* the device that can be reset */
static bool npu_decodes;

static int run(struct policy_ops *p)
{
    scenario_init(&sc);
    for (int i = 0; i < (int)sc.machine.n_devices && resets >= 0; i++) {
        sc.machine.devices[i].can_reset = i == resets;
    }
    sc.machine.devices[NPU].static_attention = !npu_decodes;
    scenario_cost(&sc, -1, OP_QKV, 1, 0.01, 10);
    scenario_cost(&sc, -1, OP_FFN, 1, 0.02, 10);
    sc.setup.policy = p;
    sc.setup.params = &sc.params;
    sc.setup.decision_log = log_to;
    int rc = scenario_run(&sc, q, 3, false);
    scenario_fini(&sc);
    return rc;
}

static uint64_t counter(enum counter c)
{
    return sc.result.counters[c];
}

START_TEST(meddling_is_refused_counted_and_harmless)
{
    struct policy_ops p = ops("meddler", meddle);
    ck_assert_int_eq(run(&p), 0);
    ck_assert(sc.result.audit.clean);
    ck_assert_uint_eq(sc.result.audit.finished, 3);
    static const enum counter rise[] = {COUNTER_TIMER_REFUSED,    COUNTER_ORACLE_REFUSED,
                                        COUNTER_EVICT_REFUSED,    COUNTER_SHED_REFUSED,
                                        COUNTER_RESIDENT_REFUSED, COUNTER_PASS_BAD_SEGMENT,
                                        COUNTER_LAUNCH_BAD_SPAN,  COUNTER_PREEMPT_REFUSED};
    for (size_t i = 0; i < sizeof rise / sizeof rise[0]; i++) {
        ck_assert_msg(counter(rise[i]) > 0, "%s did not rise", counter_names[rise[i]]);
    }
}
END_TEST

START_TEST(actions_from_notifications_are_refused)
{
    struct policy_ops p = ops("eager", serve);
    p.request_arrived = from_notification;
    ck_assert_int_eq(run(&p), 0);
    ck_assert_uint_eq(counter(COUNTER_OUTSIDE_SCHEDULE), 3);
    ck_assert_uint_eq(sc.result.audit.finished, 3);
}
END_TEST

/* Returns the refusals of one action for one counter. */
static const struct sim_refusal *refusal(const char *action, enum counter which)
{
    for (uint32_t i = 0; i < sc.result.n_refusals; i++) {
        const struct sim_refusal *x = &sc.result.refusals[i];
        if (strcmp(x->action, action) == 0 && x->counter == which) {
            return x;
        }
    }
    ck_abort_msg("%s: no refusal as %s", action, counter_names[which]);
    return NULL;
}

static void from_end(struct sched *s, const struct pass *p)
{
    struct pass *next;
    (void)form(s, p->segments[0].request, &next);
    pass_done(s, p);
}

/* Requests arrive at 0 and 1 ms, two of them at the second instant. Each asks for a pass in its
 * hook, so three are refused. */
START_TEST(a_refusal_says_action_hook_reason_count_and_first_instant)
{
    struct policy_ops p = ops("eager", serve);
    p.request_arrived = from_notification;
    ck_assert_int_eq(run(&p), 0);
    const struct sim_refusal *x = refusal("form", COUNTER_OUTSIDE_SCHEDULE);
    ck_assert_str_eq(x->hook, "request_arrived");
    ck_assert_ptr_nonnull(strstr(x->why, "hooks only record"));
    ck_assert_uint_eq(x->n, 3);
    ck_assert_int_eq(x->first_ns, 0);
    ck_assert_int_eq(x->status, -EPERM);
    p.pass_done = from_end;
    ck_assert_int_eq(run(&p), 0);
    uint64_t n[2] = {0, 0}; /* one reason in two hooks is two refusals */
    for (uint32_t i = 0; i < sc.result.n_refusals; i++) {
        x = &sc.result.refusals[i];
        bool outside = x->counter == COUNTER_OUTSIDE_SCHEDULE;
        n[strcmp(x->hook, "pass_done") == 0] += outside ? x->n : 0;
    }
    ck_assert_uint_eq(n[0], 3);
    ck_assert_uint_eq(n[1], counter(COUNTER_OUTSIDE_SCHEDULE) - 3);
    ck_assert_uint_gt(n[1], 0);
    p = ops("meddler", meddle);
    ck_assert_int_eq(run(&p), 0);
    x = refusal("launch", COUNTER_LAUNCH_BAD_SPAN);
    ck_assert_str_eq(x->hook, "schedule");
    ck_assert_str_eq(x->why, "the pass is over, or there is none");
    ck_assert_uint_eq(refusal("timer", COUNTER_TIMER_REFUSED)->n, counter(COUNTER_SCHEDULE_ROUNDS));
    /* 32 kinds of refusals hold all of them, so the kinds' sum must be what the counters have. */
    uint64_t told = 0;
    uint64_t counted = 0;
    for (uint32_t i = 0; i < sc.result.n_refusals; i++) {
        told += sc.result.refusals[i].n;
    }
    for (int i = 0; i < COUNTER_COUNT; i++) {
        counted += counter_is_refusal((enum counter)i) ? counter((enum counter)i) : 0;
    }
    ck_assert_uint_eq(told, counted);
}
END_TEST

START_TEST(an_action_in_a_hook_is_in_the_decision_log)
{
    struct policy_ops p = ops("eager", serve);
    p.request_arrived = from_notification;
    char *log = NULL;
    size_t size = 0;
    log_to = open_memstream(&log, &size);
    ck_assert_int_eq(run(&p), 0);
    fclose(log_to);
    log_to = NULL;
    /* The first request arrives before the first call of schedule, so in epoch 0. */
    ck_assert_ptr_nonnull(strstr(log, "\n0 0 form fused=0 0:0:300 in=request_arrived = -1\n"));
    free(log);
}
END_TEST

/* At the first instant the policy compiles a kernel for every length from 1 to 1000, and gives up
 * every third. These must be absent and the others there, while the table of residents grows. */
enum { MANY = 1000 };
static void compile_many(struct sched *s)
{
    struct bad *b = s->state;
    for (uint32_t i = 1; i <= MANY && b->calls == 0; i++) {
        struct resident_key key = {RESIDENT_COMPILED_ATTENTION, i, 0};
        ck_assert_int_eq(sched_compile(s, key), 0);
        ck_assert_int_eq(sched_compile(s, key), -EALREADY);
    }
    for (uint32_t i = 3; i <= MANY && b->calls == 0; i += 3) {
        struct resident_key key = {RESIDENT_COMPILED_ATTENTION, i, 0};
        ck_assert_int_eq(sched_resident_evict(s, key), 0);
        ck_assert_int_eq(sched_resident_evict(s, key), -ENOENT);
    }
    b->calls++;
    for (uint32_t i = 1; i <= MANY; i++) {
        struct resident_key key = {RESIDENT_COMPILED_ATTENTION, i, 0};
        ck_assert((sched_resident_state(s, key) == RESIDENT_ABSENT) == (i % 3 == 0));
    }
    serve(s);
}

static void form_only(struct sched *s)
{
    struct bad *b = s->state;
    struct pass *p;
    const struct request *r = reqq_pop(&b->queue);
    sched_again(s);
    if (r != NULL) {
        (void)form(s, r, &p);
    }
}

START_TEST(a_thousand_residents_are_no_limit)
{
    struct policy_ops p = ops("compiler", compile_many);
    ck_assert_int_eq(run(&p), 0);
    ck_assert_uint_eq(counter(COUNTER_COMPILES), MANY);
    ck_assert_uint_eq(counter(COUNTER_COMPILES_CANCELLED), MANY / 3);
    ck_assert_uint_eq(sc.result.audit.finished, 3);
}
END_TEST

START_TEST(a_stall_tells_what_there_was)
{
    struct policy_ops p = ops("forgetter", forget);
    ck_assert_int_ne(run(&p), 0);
    static const char *const lines[] = {
        "3 live: 3 wait for prefill, 0 for decode",
        "waits longest: request 0, proactive, since 0 s: 300 prompt tokens, 0 of its tokens in KV",
        "residents: 0 ready, 0 on their way",
        "npu 1 of 1 slot free, igpu 1 of 1 slot free",
        "no action was accepted",
        "no action was refused"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(strstr(sc.result.scene, lines[i]) != NULL, "not told: %s\nin\n%s", lines[i],
                      sc.result.scene);
    }
    p = ops("former", form_only);
    ck_assert_int_ne(run(&p), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.scene, "formed and on no device: 3 passes"));
    ck_assert_ptr_nonnull(strstr(sc.result.scene,
                                 "3 live: 0 wait for prefill, 0 for decode, 0 with "
                                 "KV on flash, 0 with KV on its way, 3 in a pass"));
    ck_assert_ptr_nonnull(strstr(sc.result.scene, "last action accepted: form at 0.001 s"));
}
END_TEST

START_TEST(busy_devices_are_refused)
{
    struct policy_ops p = ops("pusher", busy);
    p.pass_done = busy_pass_done;
    ck_assert_int_eq(run(&p), 0);
    ck_assert_uint_gt(counter(COUNTER_LAUNCH_DEVICE_BUSY), 0);
    ck_assert_uint_eq(sc.result.audit.finished, 3);
    ck_assert_uint_eq(sc.result.audit.double_bookings, 0);
}
END_TEST

static void ends_with(void (*schedule)(struct sched *), const char *name, const char *says)
{
    struct policy_ops p = ops(name, schedule);
    ck_assert_int_ne(run(&p), 0);
    ck_assert_msg(strstr(sc.result.message, name) != NULL &&
                      strstr(sc.result.message, says) != NULL,
                  "%s", sc.result.message);
}

START_TEST(spinning_in_one_instant_ends_the_run)
{
    ends_with(spin, "spinner", "did not come to rest");
}
END_TEST

/* 9 tokens of 3 requests are 9 passes, each formed and launched in one call. A policy that asks to
 * be called again is called once more after each of these. It is not called again after calls that
 * did nothing. */
START_TEST(who_acts_is_called_again_where_it_asks)
{
    struct policy_ops p = ops("server", serve_counted);
    calls = 0;
    ck_assert_int_eq(run(&p), 0);
    uint64_t once = calls;
    int64_t end_ns = sc.result.end_ns;
    ck_assert_uint_eq(counter(COUNTER_SCHEDULE_ROUNDS), once);
    p = ops("asker", serve_again);
    calls = 0;
    ck_assert_int_eq(run(&p), 0);
    ck_assert_uint_eq(calls, once + 9);
    ck_assert_uint_eq(counter(COUNTER_SCHEDULE_ROUNDS), calls);
    ck_assert_int_eq(sc.result.end_ns, end_ns);
}
END_TEST

/* The last request is alone when it decodes. Those before it have 3 and 2 passes, so pass 7 gives
 * its second token. */
START_TEST(a_policy_that_is_not_steady_as_it_declared_is_found_with_a_decision_log)
{
    log_to = tmpfile();
    ck_assert_ptr_nonnull(log_to);
    ends_with(declare_and_pause, "fickle", "did not form pass");
    ends_with(declare_and_cut, "cutter",
              "did not form pass 7 again and launch it whole on its device");
    npu_decodes = true;
    ends_with(declare_and_move, "mover",
              "did not form pass 7 again and launch it whole on its device");
    npu_decodes = false;
    (void)fclose(log_to);
    log_to = NULL;
}
END_TEST

START_TEST(forgetting_requests_ends_the_run)
{
    ends_with(forget, "forgetter", "3 requests live");
}
END_TEST

START_TEST(waiting_for_ever_on_timers_ends_the_run)
{
    ends_with(doze, "dozer", "stalled");
}
END_TEST

START_TEST(shedding_counts_as_shed_once)
{
    struct policy_ops p = ops("shedder", shed_twice);
    ck_assert_int_eq(run(&p), 0);
    ck_assert_uint_eq(sc.result.audit.shed, 3);
    ck_assert_uint_eq(counter(COUNTER_SHED_REFUSED), 3);
}
END_TEST

START_TEST(missing_hooks_needs_and_versions_are_refused)
{
    struct policy_ops p = ops("old", serve);
    p.contract.version = 99;
    ck_assert_int_ne(run(&p), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "policy API version 99"));
    for (size_t i = 0; i < sizeof p.contract.struct_bytes / sizeof p.contract.struct_bytes[0];
         i++) {
        p = ops("older", serve);
        p.contract.struct_bytes[i] -= 8;
        ck_assert_int_ne(run(&p), 0);
        ck_assert_ptr_nonnull(strstr(sc.result.message, i == 2 ? "its struct request has" : "has"));
    }
    p = ops("shuffled", serve);
    p.contract.layout++;
    ck_assert_int_ne(run(&p), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "layout"));
    p = ops("hollow", NULL);
    ck_assert_int_ne(run(&p), 0);
    p = ops("greedy", serve);
    p.needs = CAP_RESET;
    ck_assert_int_ne(run(&p), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "device reset"));
}
END_TEST

/* One device that can be reset is enough, and it may be any of them. */
START_TEST(what_one_device_can_the_machine_can)
{
    struct policy_ops p = ops("resets", serve);
    p.needs = CAP_RESET;
    for (resets = 0; resets < 4; resets++) {
        int rc = run(&p);
        ck_assert_msg((rc == 0) == (resets < 3), "device %d: %s", resets,
                      sc.result.message); /* there are three */
    }
    ck_assert_ptr_nonnull(strstr(sc.result.message, "device reset"));
}
END_TEST

static const struct suite_row suite[] = {
    TEST(meddling_is_refused_counted_and_harmless),
    TEST(actions_from_notifications_are_refused),
    TEST(a_refusal_says_action_hook_reason_count_and_first_instant),
    TEST(an_action_in_a_hook_is_in_the_decision_log),
    TEST(a_thousand_residents_are_no_limit),
    TEST(a_stall_tells_what_there_was),
    TEST(busy_devices_are_refused),
    TEST(spinning_in_one_instant_ends_the_run),
    TEST(who_acts_is_called_again_where_it_asks),
    TEST(a_policy_that_is_not_steady_as_it_declared_is_found_with_a_decision_log),
    TEST(forgetting_requests_ends_the_run),
    TEST(waiting_for_ever_on_timers_ends_the_run),
    TEST(shedding_counts_as_shed_once),
    TEST(missing_hooks_needs_and_versions_are_refused),
    TEST(what_one_device_can_the_machine_can),
};
SUITE_MAIN("bad policies", suite)

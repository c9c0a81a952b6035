/* A policy that does anything (tests/helpers/wild.h) and asks everything, as a plug-in. Its
 * counters are digests of all that it is given and answered, and of what its memory holds. So two
 * processes that treat it equally print the same counters (hosted.sh). */
#include <errno.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/helpers/wild.h"

#define NOTES 16 /* as many counters as a policy may have */
#define LATE 80  /* calls in one hook: more than the 64 that one message holds */
#define REQUESTS 64

enum { P_NONSENSE, P_TIRES, P_SHARE, P_KIND };

struct asks {
    struct rng rng;
    uint64_t digest;
    const struct request *known[REQUESTS];
    uint32_t n;
};

static struct asks *asks_of(const struct sched *s)
{
    return (struct asks *)(void *)((char *)s->state + wild.state_size_bytes);
}

static void add(struct asks *a, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        a->digest = (a->digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3U;
    }
}

static void add_i64(struct asks *a, int64_t x)
{
    add(a, &x, sizeof x);
}

static void add_double(struct asks *a, double x)
{
    add(a, &x, sizeof x);
}

static void add_request(struct asks *a, const struct request *r)
{
    add_i64(a, r->id);
    add_i64(a, r->state);
    add_i64(a, r->kv_tokens);
    add_i64(a, r->generated_tokens);
    add_i64(a, r->first_token_ns);
    add_i64(a, r->pass != NULL ? r->pass->id : 0);
    add_i64(a, *(const uint32_t *)r->own);
}

/* ---- questions ---- */

static void ask_estimate(struct sched *s, struct asks *a)
{
    uint32_t rows = 1 + rng_below(&a->rng, 6);
    struct work_shape w = {.rows = rows,
                           .attn_pairs = rows * 8,
                           .kv_read_tokens = rows * 8,
                           .max_context_tokens = 8 + rng_below(&a->rng, 2)};
    w.logit_rows = rng_below(&a->rng, 2);
    enum op_kind op = (enum op_kind)rng_below(&a->rng, OP_KIND_COUNT);
    uint8_t device = (uint8_t)rng_below(&a->rng, s->machine->n_devices + 1); /* one too many */
    uint32_t chunk = rng_below(&a->rng, 3) * 8;
    struct estimate e = {0};
    int rc = sched_estimate_graph(s, &w, op, device, rng_below(&a->rng, 2) * rows, chunk, 0, &e);
    add_i64(a, rc);
    add_i64(a, e.t_ns);
    add_double(a, e.bytes_per_s);
    add_double(a, e.flop_per_byte);
    add_double(a, e.watts);
    add_i64(a, e.memory_bound);
}

static void ask(struct sched *s, struct asks *a)
{
    add_i64(a, (int64_t)sched_kv_free_tokens(s));
    add_i64(a, (int64_t)sched_kv_capacity_tokens(s));
    for (uint8_t d = 0; d <= s->machine->n_devices; d++) { /* one too many */
        add_i64(a, sched_device_free_slots(s, d));
    }
    struct machine_state now = sched_machine_state(s);
    add_double(a, now.memory_taken_bytes);
    add_double(a, now.power_limit_watts);
    add_i64(a, now.on_battery);
    for (uint32_t i = 0; i < 4; i++) {
        ask_estimate(s, a);
    }
    if (a->n > 0) {
        const struct request *r = a->known[rng_below(&a->rng, a->n)];
        add_i64(a, sched_oracle_output_tokens(s, r));
        add_i64(a, sched_draft_tokens(s, r));
        add_i64(a, (int64_t)sched_kv_cached_tokens(s, r));
        add_i64(a, (int64_t)sched_prompt_hash(s, r, rng_below(&a->rng, 64)));
        struct resident_key key = {RESIDENT_COMPILED_ATTENTION, request_prefill_target(r), 0};
        add_i64(a, sched_resident_state(s, key));
    }
}

/* ---- actions that the other policy does not take ---- */

static void do_more(struct sched *s, struct asks *a)
{
    uint32_t what = rng_below(&a->rng, 12);
    uint8_t device = (uint8_t)rng_below(&a->rng, s->machine->n_devices);
    const struct request *r = a->n > 0 ? a->known[rng_below(&a->rng, a->n)] : NULL;
    if (what == 0) {
        add_i64(a, sched_occupy(s, device, s->now_ns + 1 + rng_below(&a->rng, 1000)));
    } else if (what == 1 && r != NULL) {
        add_i64(a, sched_kv_rank(s, r, rng_below(&a->rng, 3)));
    } else if (what == 2 && r != NULL && rng_below(&a->rng, 20) == 0) {
        add_i64(a, sched_shed(s, r));
    } else if (what == 3) {
        add_i64(a, sched_kv_move(s, kv_of_session(rng_below(&a->rng, 8)), KV_NOWHERE));
    } else if (what == 4) {
        add_i64(a, sched_set_timer(s, s->now_ns - 1)); /* refused: it is past */
    } else if (what == 5) {
        add_i64(a, sched_map(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 9, 1}, 1.0)); /* late */
    } else if (what == 6) {
        struct pass *none = NULL;
        add_i64(a, sched_pass_form(s, &(struct pass_spec){.n_segments = 0}, &none));
    }
}

static void note(struct sched *s, struct asks *a)
{
    char name[] = "digest_a";
    for (int i = 0; i < NOTES; i++) {
        name[sizeof name - 2] = (char)('a' + i);
        add_i64(a, sched_note(s, name, (a->digest >> i) & 0xffff));
    }
    add_i64(a, sched_note(s, "one_too_many", 1));
}

/* ---- what no policy may do ---- */

/* A pointer that it never was given, or was given for something else, and words that do not exist.
 */
static void do_nonsense(struct sched *s, const struct asks *a, int64_t kind)
{
    const struct request *r = a->known[0];
    const struct request *bogus = (const struct request *)(const void *)((const char *)r + 16);
    struct segment g = {.request = r, .role = SEGMENT_PREFILL, .n_tokens = 1};
    struct pass_spec spec = {.segments = &g, .n_segments = 1};
    struct pass *p = NULL;
    if (kind == 1) {
        (void)sched_shed(s, bogus);
    } else if (kind == 2) {
        (void)sched_pass_cancel(s, (struct pass *)(uintptr_t)r);
    } else if (kind == 3) {
        (void)sched_preempt(s, (const struct launch *)(const void *)r, (struct preempt_spec){0});
    } else if (kind == 4) {
        (void)sched_resident_evict(s, (struct resident_key){(enum resident_kind)3, 0, 0});
    } else if (kind == 5) {
        (void)sched_kv_move(s, kv_of(r), (enum kv_place)4);
    } else if (kind == 6) {
        g.role = (enum segment_role)(SEGMENT_AHEAD + 1);
        (void)sched_pass_form(s, &spec, &p);
    } else if (kind == 7) {
        g.request = bogus;
        (void)sched_pass_form(s, &spec, &p);
    } else if (kind == 8) {
        (void)sched_draft_tokens(s, (const struct request *)(const void *)&g); /* its own stack */
    } else if (sched_pass_form(s, &spec, &p) == 0) {
        struct launch_spec l = sched_launch_rest(s, p, 0, (enum yield_point)(YIELD_PASS + 1));
        (void)sched_launch(s, &l, NULL);
    }
}

/* ---- hooks ---- */

static int init(struct sched *s)
{
    struct asks *a = asks_of(s);
    rng_init(&a->rng, rng_key(s->seed, RNG_TEST, 3, 0));
    for (uint32_t i = 0; i < s->params->n; i++) {
        add_double(a, s->params->v[i]);
    }
    add_i64(a, (int64_t)s->kv_block_tokens);
    add_i64(a, (int64_t)s->n_models);
    add(a, s->machine->name, strlen(s->machine->name));
    add(a, s->llm->name, strlen(s->llm->name));
    add_i64(a, sched_map(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 7, 2}, 1e6));
    add_i64(a, sched_set_timer(s, s->now_ns));
    ask(s, a);
    return wild.init(s);
}

static void arrived(struct sched *s, const struct request *r)
{
    struct asks *a = asks_of(s);
    if (a->n < REQUESTS) {
        a->known[a->n++] = r;
    }
    *(uint32_t *)r->own = r->id + 1;
    add_request(a, r);
    add_i64(a, r->ttft_slo_ns);
    add_i64(a, r->max_output_tokens);
    ask(s, a);
    wild.request_arrived(s, r);
}

static void cancelled(struct sched *s, const struct request *r)
{
    add_request(asks_of(s), r);
    ask(s, asks_of(s));
    wild.request_cancelled(s, r);
}

static void launch_done(struct sched *s, const struct launch *l)
{
    add_i64(asks_of(s), l->outcome);
    add_i64(asks_of(s), l->device);
    add_i64(asks_of(s), l->end_ns - l->start_ns);
    ask(s, asks_of(s));
}

static void pass_done(struct sched *s, const struct pass *p)
{
    for (uint32_t i = 0; i < p->n_segments; i++) {
        add_request(asks_of(s), p->segments[i].request);
        add_i64(asks_of(s), p->segments[i].emitted_tokens);
    }
    ask(s, asks_of(s));
}

static void resident_ready(struct sched *s, struct resident_key key)
{
    add_i64(asks_of(s), key.kind);
    add_i64(asks_of(s), key.a);
    add_i64(asks_of(s), key.b);
    ask(s, asks_of(s));
}

static void kv_moved(struct sched *s, const struct request *r)
{
    add_request(asks_of(s), r);
    ask(s, asks_of(s));
}

/* Those that have left are forgotten: their structs belong to others. */
static void forget(struct asks *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        a->known[n] = a->known[i];
        n += a->known[i]->state == REQUEST_STATE_QUEUED ||
             a->known[i]->state == REQUEST_STATE_DECODE;
    }
    a->n = n;
}

static void schedule(struct sched *s)
{
    struct asks *a = asks_of(s);
    forget(a);
    ask(s, a);
    do_more(s, a);
    if (rng_below(&a->rng, 8) == 0) {
        for (int i = 0; i < LATE; i++) {
            add_i64(a, sched_note(s, "digest_a", (uint64_t)i));
        }
    }
    note(s, a);
    if (rng_below(&a->rng, 4) == 0) {
        sched_again(s);
    }
    if (param_bool(s, P_TIRES) && s->epoch > 30) {
        sched_give_up(s, "it has had enough");
        return;
    }
    if (param_int(s, P_NONSENSE) > 0 && a->n > 0 && a->known[0]->state == REQUEST_STATE_QUEUED &&
        a->known[0]->pass == NULL) {
        do_nonsense(s, a, param_int(s, P_NONSENSE));
        return;
    }
    wild.schedule(s);
}

static void dump(struct sched *s, FILE *out)
{
    (void)fprintf(out, "asks: %u requests known\n", asks_of(s)->n);
}

/* A fork of a process that waits for runs has that as its last argument. */
__attribute__((constructor)) static void say_how(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[argc - 1], "--fork-runs") == 0) {
        (void)fprintf(stderr, "asks: a fork\n");
    }
}

static const char *const kinds[] = {"plain", "fancy", "last", NULL};
static const struct policy_param params[] = {
    [P_NONSENSE] = POLICY_INT("nonsense", 0, 0, 9, "which nonsense it does; 0: none"),
    [P_TIRES] = POLICY_BOOL("tires", 0, "it gives up"),
    [P_SHARE] = POLICY_NUMBER("share", 0.25, 0.125, 7.5, "a number"),
    [P_KIND] = POLICY_CHOICE("kind", 1, kinds, "a word"),
    {0}};

const struct policy_ops *xpusim_policy(void);
const struct policy_ops *xpusim_policy(void)
{
    static struct policy_ops ops;
    ops = wild;
    ops.name = "asks";
    ops.state_size_bytes = wild.state_size_bytes + sizeof(struct asks);
    ops.request_state_size_bytes = sizeof(uint32_t);
    ops.params = params;
    ops.init = init;
    ops.request_arrived = arrived;
    ops.request_cancelled = cancelled;
    ops.launch_done = launch_done;
    ops.pass_done = pass_done;
    ops.resident_ready = resident_ready;
    ops.kv_moved = kv_moved;
    ops.schedule = schedule;
    ops.dump = dump;
    return &ops;
}

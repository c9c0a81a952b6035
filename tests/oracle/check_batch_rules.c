/* The batching rules by plain lists. On random loads with little memory, every iteration of a
 * scheduler must be the one that its rules give for the requests that are there. The rules are
 * those at the heads of policies/vllm-v0.c, vllm-v1.c, vllm-priority.c, sarathi.c, orca.c and
 * openvino-cb.c. Compared are the members in their order, the rows of each, and the KV of every
 * request. Here the rules are loops over arrays that are built from arrivals and finished passes
 * alone. KV is counted in blocks of 16 tokens. */
#include <string.h>

#include "policies/registry.h"
#include "sim/base/rng.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

enum { N = 24, BLOCK = 16, LOADS = 40 };
enum rule { RUNNING_FIRST, PROMPTS_ONLY, DECODES_FIRST, ORCA, SPLIT_FUSE, WHOLE };

static const struct form {
    const char *policy, *params;
    enum rule rule;
    uint32_t budget, seqs;
    uint32_t threshold;      /* most rows of a prompt while others are there; 0: none */
    bool whole;              /* a prompt is not cut */
    bool first_chunk;        /* only a prompt's first chunk must find memory */
    bool priority, by_force; /* classes count; a place is taken by force */
    double watermark;
} forms[] = {
    {"vllm-v1", "", RUNNING_FIRST, 512, 16, 0, 0, 0, 0, 0, 0},
    {"vllm-v1", "max_num_batched_tokens=64,max_num_seqs=4", RUNNING_FIRST, 64, 4, 0, 0, 0, 0, 0, 0},
    {"vllm-v1", "max_num_batched_tokens=128,long_prefill_token_threshold=40", RUNNING_FIRST, 128,
     16, 40, 0, 0, 0, 0, 0},
    {"vllm-v1", "reserve_full_isl=false,max_num_batched_tokens=64", RUNNING_FIRST, 64, 16, 0, 0, 1,
     0, 0, 0},
    {"vllm-v1", "chunked_prefill=false,max_num_batched_tokens=200", RUNNING_FIRST, 200, 16, 0, 1, 0,
     0, 0, 0},
    {"vllm-priority", "max_num_batched_tokens=64", RUNNING_FIRST, 64, 16, 0, 0, 0, 1, 0, 0},
    {"vllm-priority", "mode=v0,max_num_seqs=5,watermark_frac=0.1", PROMPTS_ONLY, 512, 5, 0, 1, 0, 1,
     1, 0.1},
    {"vllm-v0", "watermark_frac=0.1,max_num_batched_tokens=256", PROMPTS_ONLY, 256, 16, 0, 1, 0, 0,
     0, 0.1},
    {"sarathi", "max_num_batched_tokens=64,watermark_frac=0.1", DECODES_FIRST, 64, 16, 0, 0, 0, 0,
     0, 0.1},
    {"orca", "max_num_seqs=4", ORCA, 1000000000, 4, 0, 0, 0, 0, 0, 0},
    {"openvino-cb", "max_num_batched_tokens=64", SPLIT_FUSE, 64, 256, 0, 0, 0, 0, 0, 0},
    {"openvino-cb", "variant=whole", SPLIT_FUSE, 1000000000, 256, 0, 0, 0, 0, 0, 0},
    {"openvino-cb", "variant=vllm,max_num_seqs=6", WHOLE, 1000000000, 6, 0, 0, 0, 0, 0, 0},
};

struct item {
    const struct request *r;
    uint32_t kv, generated;
    bool decodes, sits_out;
};

struct list {
    struct item *v[N];
    uint32_t n;
};

static const struct form *form;
static struct item items[N];
static struct list waiting, running;
static struct {
    struct item *who[N];
    uint32_t rows[N], n, tokens;
} batch;
static uint64_t capacity_blocks, evictions, passes;
static uint64_t states; /* blocks that a request has as long as it has KV */
static struct scenario_request q[N];

/* ---- lists, rows, blocks ---- */

static void insert(struct list *l, uint32_t at, struct item *x)
{
    memmove(&l->v[at + 1], &l->v[at], (l->n - at) * sizeof l->v[0]);
    l->v[at] = x;
    l->n++;
}

static uint32_t index_of(const struct list *l, const struct item *x)
{
    uint32_t i = 0;
    while (i < l->n && l->v[i] != x) {
        i++;
    }
    return i;
}

static void take_out(struct list *l, struct item *x)
{
    uint32_t i = index_of(l, x);
    if (i < l->n) {
        l->n--;
        memmove(&l->v[i], &l->v[i + 1], (l->n - i) * sizeof l->v[0]);
    }
}

static uint32_t left_of(const struct item *x)
{
    return x->decodes ? 0 : x->r->input_tokens + x->generated - x->kv;
}

static uint64_t blocks(uint64_t tokens)
{
    return (tokens + BLOCK - 1) / BLOCK + (tokens > 0 ? states : 0);
}

static uint64_t needed(const struct item *x, uint32_t rows)
{
    return blocks(x->kv + rows) - blocks(x->kv);
}

static uint64_t planned(void)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < batch.n; i++) {
        n += needed(batch.who[i], batch.rows[i]);
    }
    return n;
}

static uint64_t free_blocks(void)
{
    uint64_t n = capacity_blocks;
    for (int i = 0; i < N; i++) {
        n -= items[i].r != NULL ? blocks(items[i].kv) : 0;
    }
    return n;
}

static bool room_for(const struct item *x, uint32_t rows)
{
    return planned() + needed(x, rows) <= free_blocks();
}

static void add(struct item *x, uint32_t rows)
{
    batch.who[batch.n] = x;
    batch.rows[batch.n++] = rows;
    batch.tokens += rows;
}

static void clear(void)
{
    batch.n = 0;
    batch.tokens = 0;
}

/* The request keeps `keep` tokens of KV, and has to compute the others again. */
static void lose(struct item *x, uint32_t keep)
{
    x->kv = keep;
    x->decodes = false;
    evictions++;
}

/* ---- vLLM, Sarathi ---- */

static bool before(const struct item *a, const struct item *b)
{
    const struct request *x = a->r;
    const struct request *y = b->r;
    return x->cls != y->cls                 ? x->cls < y->cls
           : x->priority != y->priority     ? x->priority < y->priority
           : x->arrival_ns != y->arrival_ns ? x->arrival_ns < y->arrival_ns
                                            : x->id < y->id;
}

static struct item *head(void)
{
    struct item *first = waiting.n > 0 ? waiting.v[0] : NULL;
    for (uint32_t i = 1; form->priority && i < waiting.n; i++) {
        first = before(waiting.v[i], first) ? waiting.v[i] : first;
    }
    return first;
}

static struct item *worst(void)
{
    struct item *last = running.v[running.n - 1];
    for (uint32_t i = 0; form->priority && i < running.n; i++) {
        last = before(last, running.v[i]) ? running.v[i] : last;
    }
    return last;
}

/* The request leaves the iteration, loses its KV, and waits in front of all others. */
static void preempt(struct item *x)
{
    for (uint32_t i = 0; i < batch.n; i++) {
        if (batch.who[i] == x) {
            batch.tokens -= batch.rows[i];
            for (batch.n--; i < batch.n; i++) {
                batch.who[i] = batch.who[i + 1];
                batch.rows[i] = batch.rows[i + 1];
            }
        }
    }
    lose(x, 0);
    take_out(&running, x);
    insert(&waiting, 0, x);
}

static uint32_t chunk(const struct item *x, uint32_t present)
{
    uint32_t left = left_of(x);
    uint32_t room = form->budget > batch.tokens ? form->budget - batch.tokens : 0;
    if (form->whole) {
        return left <= room || (batch.n == 0 && left > form->budget) ? left : 0;
    }
    left = form->threshold > 0 && present > 1 && left > form->threshold ? form->threshold : left;
    return left < room ? left : room;
}

/* Counts the free blocks that nobody has a claim on. Prompts that were admitted have a claim on
 * what they still need, and decodes of this iteration on the block of their token. */
static uint64_t unreserved(void)
{
    uint64_t taken = 0;
    for (uint32_t i = 0; i < running.n; i++) {
        taken += running.v[i]->decodes ? 0 : needed(running.v[i], left_of(running.v[i]));
    }
    for (uint32_t i = 0; i < batch.n; i++) {
        taken += batch.who[i]->decodes ? needed(batch.who[i], 1) : 0;
    }
    return free_blocks() - taken;
}

/* All that is left of the request fits, and the watermark's share of the memory stays free. */
static bool all_of_it_fits(const struct item *x)
{
    uint64_t kept = (uint64_t)(form->watermark * (double)capacity_blocks);
    return needed(x, left_of(x)) + kept <= unreserved();
}

static bool memory_for(const struct item *x, uint32_t rows)
{
    return running.n == 0                ? true
           : form->rule == RUNNING_FIRST ? room_for(x, form->first_chunk ? rows : left_of(x))
                                         : all_of_it_fits(x);
}

static uint32_t admit(uint32_t most, uint32_t present)
{
    uint32_t n = 0;
    for (struct item *x = head(); x != NULL && n < most && running.n < form->seqs; x = head()) {
        uint32_t rows = chunk(x, present);
        if (rows == 0 || !memory_for(x, rows)) {
            break;
        }
        take_out(&waiting, x);
        insert(&running, running.n, x);
        add(x, rows);
        n++;
    }
    return n;
}

/* Returns whether somebody was preempted. */
static bool go_on_in_order(uint32_t present)
{
    bool any = false;
    for (uint32_t i = 0; i < running.n && batch.tokens < form->budget; i++) {
        struct item *x = running.v[i];
        uint32_t rows = x->decodes ? 1 : chunk(x, present);
        while (rows > 0 && !room_for(x, rows)) {
            struct item *out = worst();
            i -= index_of(&running, out) < i;
            preempt(out);
            any = true;
            if (out == x) {
                return true;
            }
        }
        if (rows > 0) {
            add(x, rows);
        }
    }
    return any;
}

static void compose_v1(void)
{
    uint32_t present = running.n + waiting.n;
    bool any;
    do {
        clear();
        any = go_on_in_order(present);
        if (!any) {
            (void)admit(UINT32_MAX, present);
        }
    } while (batch.n == 0 && any);
}

static void by_force(void)
{
    for (struct item *x = head(); form->by_force && x != NULL && running.n > 0; x = head()) {
        if ((running.n < form->seqs && all_of_it_fits(x)) || !before(x, worst())) {
            return;
        }
        preempt(worst());
    }
}

/* Gives a token to each request that decodes, if a block is free when its turn comes. Returns
 * whether a request was preempted for that. */
static bool give_tokens(void)
{
    bool any = false;
    for (uint32_t i = 0; i < running.n; i++) {
        struct item *x = running.v[i];
        struct item *out = NULL;
        while (x->decodes && out != x && unreserved() == 0) {
            out = worst();
            i -= index_of(&running, out) <= i;
            preempt(out);
            any = true;
        }
        if (x->decodes && out != x) {
            add(x, 1);
        }
    }
    return any;
}

static void compose_v0(void)
{
    bool any;
    clear();
    by_force();
    do {
        clear();
        if (form->rule == DECODES_FIRST) {
            any = give_tokens();
            for (uint32_t i = 0; i < running.n; i++) {
                uint32_t rows = running.v[i]->decodes ? 0 : chunk(running.v[i], 0);
                if (rows > 0) {
                    add(running.v[i], rows);
                }
            }
            (void)admit(any ? 0 : UINT32_MAX, 0);
        } else {
            any = admit(UINT32_MAX, 0) == 0 && give_tokens();
        }
    } while (batch.n == 0 && any);
}

/* ---- Orca: every request that has begun, and each whose KV can be reserved to the end ---- */

static void compose_orca(void)
{
    clear();
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < running.n; i++) {
        const struct request *r = running.v[i]->r;
        reserved += blocks(r->input_tokens + r->max_output_tokens);
        add(running.v[i], running.v[i]->decodes ? 1 : left_of(running.v[i]));
    }
    while (waiting.n > 0 && running.n < form->seqs) {
        struct item *x = waiting.v[0];
        reserved += blocks(x->r->input_tokens + x->r->max_output_tokens);
        if (running.n > 0 && reserved > capacity_blocks) {
            return;
        }
        take_out(&waiting, x);
        insert(&running, running.n, x);
        add(x, left_of(x));
    }
}

/* ---- OpenVINO GenAI ---- */

static uint32_t available(const struct item *x)
{
    uint32_t left = left_of(x);
    return x->generated == 0 ? left : left > 1 ? left - 1 : 1;
}

static struct item *last_holder_after(uint32_t at)
{
    for (uint32_t i = running.n; i-- > at + 1;) {
        if (running.v[i]->kv > 0) {
            return running.v[i];
        }
    }
    return NULL;
}

static void generate(void)
{
    for (uint32_t i = 0; i < running.n && batch.tokens < form->budget; i++) {
        struct item *x = running.v[i];
        if (x->generated == 0 || x->sits_out) {
            continue;
        }
        uint32_t rows = available(x);
        rows = rows < form->budget - batch.tokens ? rows : form->budget - batch.tokens;
        struct item *out;
        while (!room_for(x, rows) && (out = last_holder_after(i)) != NULL) {
            uint64_t held = blocks(out->kv) - states;
            uint64_t wanted = needed(x, rows);
            bool part = form->rule == SPLIT_FUSE && held > wanted;
            lose(out, part ? (uint32_t)(held - wanted) * BLOCK : 0);
            out->sits_out = true;
        }
        if (room_for(x, rows)) {
            add(x, rows);
        }
    }
}

static uint32_t prompt_rows(const struct item *x)
{
    uint64_t most = blocks(x->kv) + free_blocks() - planned();
    uint64_t slots = most < states ? 0 : (most - states) * BLOCK - x->kv;
    uint32_t rows = available(x);
    rows = rows < form->budget - batch.tokens ? rows : form->budget - batch.tokens;
    return rows < slots ? rows : (uint32_t)slots;
}

static void compose_split_fuse(void)
{
    generate();
    for (uint32_t i = 0; i < running.n; i++) {
        struct item *x = running.v[i];
        uint32_t rows = x->generated == 0 && !x->sits_out ? prompt_rows(x) : 0;
        if (rows > 0) {
            add(x, rows);
        }
    }
    while (waiting.n > 0 && prompt_rows(waiting.v[0]) > 0) {
        struct item *x = waiting.v[0];
        add(x, prompt_rows(x));
        take_out(&waiting, x);
        insert(&running, running.n, x);
    }
}

static void compose_whole(void)
{
    uint32_t generating = 0;
    for (uint32_t i = 0; i < running.n; i++) {
        generating += running.v[i]->generated > 0;
    }
    bool more = true;
    for (uint32_t i = 0; i < running.n && more; i++) {
        struct item *x = running.v[i];
        if (x->kv == 0 && !x->sits_out) {
            more = generating < form->seqs && room_for(x, available(x));
            if (more) {
                add(x, available(x));
                generating++;
            }
        }
    }
    while (more && waiting.n > 0 && generating < form->seqs &&
           room_for(waiting.v[0], available(waiting.v[0]))) {
        struct item *x = waiting.v[0];
        add(x, available(x));
        take_out(&waiting, x);
        insert(&running, running.n, x);
        generating++;
    }
    if (batch.n == 0) {
        generate();
    }
}

static void compose_openvino(void)
{
    clear();
    for (int step = 0; step < 100 && batch.n == 0; step++) { /* an empty step takes no time */
        for (int i = 0; i < N; i++) {
            items[i].sits_out = false;
        }
        if (form->rule == SPLIT_FUSE) {
            compose_split_fuse();
        } else {
            compose_whole();
        }
    }
}

/* ---- against the policy ---- */

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    (void)now_ns;
    items[r->id] = (struct item){.r = r};
    insert(&waiting, waiting.n, &items[r->id]);
}

static void on_formed(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    (void)now_ns;
    passes++;
    switch (form->rule) {
    case RUNNING_FIRST:
        compose_v1();
        break;
    case PROMPTS_ONLY:
    case DECODES_FIRST:
        compose_v0();
        break;
    case ORCA:
        compose_orca();
        break;
    case SPLIT_FUSE:
    case WHOLE:
        compose_openvino();
        break;
    }
    ck_assert_msg(p->n_segments == batch.n, "%s:%s: pass %u has %u members, not %u", form->policy,
                  form->params, p->id, p->n_segments, batch.n);
    for (uint32_t i = 0; i < batch.n; i++) {
        const struct segment *g = &p->segments[i];
        ck_assert_msg(g->request == batch.who[i]->r && g->n_tokens == batch.rows[i],
                      "%s:%s: pass %u has %u rows of request %u at %u, not %u of %u", form->policy,
                      form->params, p->id, g->n_tokens, g->request->id, i, batch.rows[i],
                      batch.who[i]->r->id);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_msg(items[i].r == NULL || items[i].r->kv_tokens == items[i].kv,
                      "%s:%s: pass %u: request %d holds %u tokens, not %u", form->policy,
                      form->params, p->id, i, items[i].r->kv_tokens, items[i].kv);
    }
}

static void on_done(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    (void)now_ns;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct item *x = &items[p->segments[i].request->id];
        bool token = x->decodes || p->segments[i].n_tokens == left_of(x);
        x->kv += p->segments[i].n_tokens;
        x->generated += token;
        x->decodes = token;
        if (x->generated == q[x->r->id].output_tokens) {
            take_out(&running, x);
            x->r = NULL;
        }
    }
}

static uint32_t make_load(struct rng *r)
{
    uint32_t n = 8 + rng_below(r, N - 8);
    double t_us = 1.0;
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        t_us += rng_below(r, 3) == 0 ? 0.0 : 1.0 + rng_below(r, 30000);
        q[i] = (struct scenario_request){rng_below(r, 2) == 0 ? RT : BE,
                                         t_us * 1e-6,
                                         1 + rng_below(r, rng_below(r, 3) == 0 ? 300 : 60),
                                         1 + rng_below(r, 45),
                                         0,
                                         0};
        rules_extra(i)->priority = (int32_t)rng_below(r, 3);
        uint32_t total = q[i].input_tokens + q[i].output_tokens;
        largest = total > largest ? total : largest;
    }
    capacity_blocks = blocks(largest) + 1 + rng_below(r, 20);
    capacity_blocks = form->rule == ORCA ? 100 + rng_below(r, 200) : capacity_blocks;
    return n;
}

START_TEST(every_iteration_is_the_one_that_the_rules_give)
{
    form = &forms[_i];
    for (uint64_t load = 0; load < LOADS; load++) {
        struct rng r;
        rng_init(&r, rng_key(load, RNG_TEST, 78, 0));
        rules_machine(1);
        states = load % 3 == 1 ? 1 + load % 7 : 0;
        sc.llm.kv_state_bytes = (double)(states * BLOCK) * sc.llm.kv_bytes_per_token;
        uint32_t n = make_load(&r);
        memset(items, 0, sizeof items);
        waiting.n = running.n = 0;
        sc.setup.kv_capacity_tokens = capacity_blocks * BLOCK;
        scenario_policy(&sc, policy_find(form->policy), form->params);
        struct observer o = {
            .request_arrived = on_arrived, .pass_formed = on_formed, .pass_done = on_done};
        sc.setup.observers[sc.setup.n_observers++] = &o;
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
        ck_assert_uint_eq(sc.result.audit.finished, n);
        scenario_fini(&sc);
    }
    ck_assert_uint_gt(passes, 1000);
    ck_assert(form->rule == ORCA || evictions > 20); /* memory is short at times */
}
END_TEST

static const struct suite_row suite[] = {
    CASE("batches", .timeout_s = 60),
    LOOP(every_iteration_is_the_one_that_the_rules_give, sizeof forms / sizeof forms[0]),
};
SUITE_MAIN("batch_rules", suite)

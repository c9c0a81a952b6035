/* Shared prefixes against a cache that compares tokens (tests/helpers/naive_cache.h). On random
 * traces every hit must be equal, and so must every request's blocks. Cases by hand follow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/core/core.h"
#include "sim/core/kv.h"
#include "tests/helpers/naive_cache.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define N_GRAPHS 1000
#define OWN(row) (((uint64_t)(row) + 1) << 32)
#define TEXT(group) (1ULL << 60 | (uint64_t)(group) << 32)

/* The core has no executor here: the test forms passes, and ends them. */
static struct scenario sc;
static struct core core;
static struct trace trace;
static struct naive_cache naive;
static uint64_t *tokens[NAIVE_MAX_REQUESTS]; /* of a row: prompt and answer */
static uint32_t due[NAIVE_MAX_REQUESTS];     /* later turns whose turn before has ended */
static uint32_t n_due, states;               /* blocks of the states of a request */
static bool infinite;                        /* unlimited memory, and blocks of one token */
static uint32_t known[NAIVE_MAX_REQUESTS];   /* computed tokens of a row that others may use */

static void nothing(struct sched *s)
{
    (void)s;
}

static void no_news(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r;
}

static const struct policy_ops nobody = {
    .name = "nobody", .contract = POLICY_CONTRACT, .request_arrived = no_news, .schedule = nothing};

static void arrive_later(void *exec, int64_t at_ns, uint32_t row)
{
    (void)exec;
    (void)at_ns;
    due[n_due++] = row;
}

static void move(void *exec UNUSED, struct full_request *r UNUSED, uint32_t row UNUSED,
                 double bytes UNUSED, bool in UNUSED)
{
}

static const struct executor_ops no_executor = {
    .caps = CAP_KV_MOVE, .arrive_later = arrive_later, .kv_move = move};

/* Returns the token of a row at a place, from the trace's columns alone. */
static uint64_t token(uint32_t row, uint32_t at)
{
    uint32_t of = trace.graph->source[row];
    if (of == TRACE_NO_ROW || at >= trace.rows[row].prefix_tokens) {
        return OWN(row) | at;
    }
    return of >= trace.n ? TEXT(of) | at : token(of, at);
}

static void begin(uint32_t block_tokens, uint32_t blocks)
{
    scenario_init(&sc);
    sc.setup.trace = &trace;
    sc.setup.policy = &nobody;
    sc.setup.kv_block_tokens = block_tokens;
    sc.setup.kv_capacity_tokens = (uint64_t)block_tokens * blocks;
    sc.llm.kv_state_bytes = states * block_tokens * sc.llm.kv_bytes_per_token;
    ck_assert_msg(core_init(&core, &sc.setup, &no_executor, NULL, &sc.result) == 0, "%s",
                  sc.result.message);
    memset(&naive, 0, sizeof naive);
    naive.block_tokens = block_tokens;
    naive.blocks = blocks;
    naive.states = states;
    memset(known, 0, sizeof known);
    n_due = 0;
    ck_assert_uint_le(trace.n, NAIVE_MAX_REQUESTS);
    for (uint32_t i = 0; i < trace.n; i++) {
        uint32_t n = trace.rows[i].input_tokens + trace.rows[i].output_tokens;
        tokens[i] = malloc(n * sizeof *tokens[i]);
        for (uint32_t k = 0; k < n; k++) {
            tokens[i][k] = token(i, k);
        }
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < trace.n; i++) {
        free(tokens[i]);
    }
    core_fini(&core);
    trace_fini(&trace);
    scenario_fini(&sc);
}

static struct full_request *real(uint32_t row)
{
    return core_request_find(&core, trace.rows[row].request_id);
}

/* Both must agree on every request, and on the numbers of blocks. */
static void compare(const char *after)
{
    for (uint32_t i = 0; i < trace.n; i++) {
        const struct naive_request *n = &naive.of[i];
        if (n->live) {
            const struct full_request *r = real(i);
            ck_assert_ptr_nonnull(r);
            ck_assert_msg(r->pub->kv_tokens == n->kv && r->pub->reused_tokens == n->reused,
                          "%s: row %u has %u tokens, %u of them reused; not %u, %u", after, i,
                          r->pub->kv_tokens, r->pub->reused_tokens, n->kv, n->reused);
            ck_assert_msg(r->prefix_idle == n->idle, "%s: row %u idle", after, i);
            ck_assert_uint_eq(r->kv_blocks, n->own + n->held);
            ck_assert_uint_eq(r->pub->kv_state_tokens, (states - n->states) * naive.block_tokens);
        }
    }
    ck_assert_msg(
        core.kv_blocks_free == naive_free(&naive) && core.kv_blocks_cold == naive_unheld(&naive) &&
            core.kv_blocks_idle == naive_idle(&naive),
        "%s: free, cached, idle %u %u %u, not %u %u %u", after, (unsigned)core.kv_blocks_free,
        (unsigned)core.kv_blocks_cold, (unsigned)core.kv_blocks_idle, naive_free(&naive),
        naive_unheld(&naive), naive_idle(&naive));
}

/* A prompt must find all tokens of its beginning that were ever computed, and no other. */
static void check_known(uint32_t row)
{
    const struct naive_request *n = &naive.of[row];
    uint32_t most = 0;
    for (uint32_t j = 0; j < trace.n; j++) {
        uint32_t k = 0;
        while (k < known[j] && k < n->input - 1 && n->tokens[k] == tokens[j][k]) {
            k++;
        }
        most = k > most ? k : most;
    }
    ck_assert_uint_eq(real(row)->pub->reused_tokens, most);
}

/* Ends an instant: waiting requests look for their prefix again. */
static void instant(void)
{
    core_advance(&core, core.sched->now_ns + 1000);
    core_timer(&core);
    ck_assert_int_eq(core_schedule(&core), 0);
    naive_look_again(&naive);
    compare("instant");
    for (uint32_t i = 0; i < trace.n && infinite; i++) {
        if (naive.of[i].live && !naive.of[i].served) {
            check_known(i);
        }
    }
}

static void leave(uint32_t row)
{
    naive_leave(&naive, row);
    known[row] = naive.of[row].kv;
}

static void arrive(uint32_t row)
{
    core_request_arrives(&core, row);
    naive_arrive(&naive, row, tokens[row], trace.rows[row].input_tokens);
    compare("arrival");
    if (infinite) {
        check_known(row);
    }
}

static struct segment segment_of(uint32_t row, uint32_t most)
{
    const struct full_request *r = real(row);
    if (r->pub->state == REQUEST_STATE_DECODE) {
        return (struct segment){.request = r->pub, .role = SEGMENT_DECODE, .n_tokens = 1};
    }
    uint32_t left = request_prefill_left(r->pub);
    return (struct segment){
        .request = r->pub, .role = SEGMENT_PREFILL, .n_tokens = most < left ? most : left};
}

/* Forms a pass of several requests, and then ends or cancels it. Returns false where there is no
 * room. */
static bool pass(const uint32_t *rows, const uint32_t *most, uint32_t n, bool done)
{
    struct segment v[4];
    uint32_t tokens_of[4];
    for (uint32_t k = 0; k < n; k++) {
        v[k] = segment_of(rows[k], most[k]);
        tokens_of[k] = v[k].n_tokens;
    }
    struct pass_spec spec = {.segments = v, .n_segments = n};
    struct pass *p = NULL;
    int rc = core_pass_form(&core, &spec, &p);
    ck_assert_int_eq(rc == 0, naive_reserve(&naive, rows, tokens_of, n));
    compare("form");
    if (rc != 0) {
        return false;
    }
    if (!done) {
        ck_assert_int_eq(core_pass_cancel(&core, p), 0);
        naive_give_back(&naive, rows, n);
        compare("cancel");
        return true;
    }
    for (uint32_t k = 0; k < n; k++) {
        struct request *r = real(rows[k])->pub;
        r->first_service_ns =
            r->first_service_ns == TIME_NEVER_NS ? core.sched->now_ns : r->first_service_ns;
    }
    p->state = PASS_STATE_RUNNING;
    p->op = p->n_ops;
    p->rows_todo = 0;
    core_pass_tail_done(&core, core_pass(p));
    for (uint32_t k = 0; k < n; k++) {
        bool prefill = v[k].role == SEGMENT_PREFILL;
        naive_computed(&naive, rows[k], tokens_of[k], prefill);
        known[rows[k]] = prefill ? naive.of[rows[k]].kv : known[rows[k]];
    }
    for (uint32_t k = 0; k < n; k++) {
        const struct full_request *r = real(rows[k]);
        if (r == NULL) {
            leave(rows[k]);
        } else {
            naive.of[rows[k]].generated = r->pub->generated_tokens;
        }
    }
    compare("pass");
    return true;
}

static void cancel(uint32_t row)
{
    core_request_cancel(&core, real(row));
    leave(row);
    compare("leave");
}

static void lose(uint32_t row, uint32_t keep)
{
    const struct full_request *r = real(row);
    struct kv_part part = {.request = r->pub, .from_token = keep};
    ck_assert_int_eq(core_kv_move(&core, part, KV_NOWHERE), 0);
    naive_lose(&naive, row, keep);
    compare("eviction");
}

static void rank(uint32_t row, uint32_t to)
{
    core.hook = HOOK_schedule;
    ck_assert_int_eq(sched_kv_rank(core.sched, real(row)->pub, to), 0);
    core.hook = HOOK_outside;
    naive_rank(&naive, row, to);
}

/* ---- random ---- */

/* Makes sessions of some turns. A first turn may begin with a group's text or with any request
 * before it. A later one may also begin with the turn before. */
static void random_trace(struct rng *r)
{
    struct trace_builder b;
    struct err e = ERR_INIT;
    trace_builder_init(&b);
    uint32_t n = 4 + rng_below(r, 12);
    uint32_t length[NAIVE_MAX_REQUESTS];
    uint16_t turn = 0;
    uint32_t session = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool goes_on = i > 0 && rng_below(r, 3) == 0;
        turn = goes_on ? (uint16_t)(turn + 1) : 0;
        session += i > 0 && !goes_on;
        struct trace_node node = trace_node_none();
        struct trace_extra x = trace_extra_none();
        struct trace_row row = {.request_id = i,
                                .session_id = session,
                                .turn = turn,
                                .arrival_ns = (int64_t)i,
                                .next = TRACE_NO_ROW,
                                .output_tokens = 1 + rng_below(r, 9)};
        uint32_t most = i > 0 ? length[i - 1] : 0;
        uint32_t kind = rng_below(r, 4);
        if (kind < 2 && i > 0) {
            node.prefix_of = rng_below(r, i);
            most = length[node.prefix_of];
        } else if (kind == 2) {
            x.prefix_group = 1 + rng_below(r, 2);
            most = 30;
        }
        bool begins = node.prefix_of != UINT32_MAX || x.prefix_group > 0 || turn > 0;
        row.prefix_tokens = begins ? rng_below(r, most + 1) : 0;
        row.input_tokens = row.prefix_tokens + rng_below(r, 20) + (row.prefix_tokens == 0);
        row.max_output_tokens = row.output_tokens;
        length[i] = row.input_tokens + row.output_tokens;
        trace_builder_add(&b, &row, &x);
        trace_builder_node(&b, &node);
    }
    ck_assert_msg(trace_build(&b, false, "random", &trace, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
}

static uint32_t live_rows(uint32_t *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < trace.n; i++) {
        if (naive.of[i].live) {
            rows[n++] = i;
        }
    }
    return n;
}

/* Takes several of the live requests, each once. */
static void random_pass(struct rng *r, const uint32_t *rows, uint32_t n)
{
    uint32_t some[4];
    uint32_t most[4];
    uint32_t want = 1 + rng_below(r, n < 3 ? n : 3);
    uint32_t first = rng_below(r, n);
    for (uint32_t k = 0; k < want; k++) {
        some[k] = rows[(first + k) % n];
        most[k] = 1 + rng_below(r, 40);
    }
    if (!pass(some, most, want, rng_below(r, 6) > 0)) {
        const struct full_request *v = real(rows[rng_below(r, n)]);
        if (v->pub->kv_tokens > 0 && rng_below(r, 3) > 0) {
            lose(v->row, rng_below(r, 2) == 0 ? 0 : rng_below(r, v->pub->kv_tokens));
        } else {
            cancel(v->row);
        }
    }
}

static uint64_t random_run(uint64_t number)
{
    struct rng r;
    rng_init(&r, rng_key(number, RNG_TEST, 77, infinite));
    random_trace(&r);
    if (trace.graph->source == NULL) { /* no row names a prefix */
        trace_fini(&trace);
        return 0;
    }
    uint32_t block_tokens = infinite ? 1 : 1 + rng_below(&r, 6);
    /* At least the longest request fits. */
    uint32_t longest = 0;
    for (uint32_t i = 0; i < trace.n; i++) {
        uint32_t n = trace.rows[i].input_tokens + trace.rows[i].output_tokens;
        longest = n > longest ? n : longest;
    }
    uint32_t least = longest / block_tokens + 1;
    states = number % 3 == 0 ? 1 + (uint32_t)(number % 7) : 0;
    begin(block_tokens, states + (infinite ? 4096 : least + rng_below(&r, 2 * least)));
    uint32_t next = 0;
    uint64_t hits = 0;
    for (uint32_t steps = 0; steps < 400; steps++) {
        uint32_t rows[NAIVE_MAX_REQUESTS];
        uint32_t n = live_rows(rows);
        if (next < trace.n_first && rng_below(&r, 4) == 0) {
            arrive(next++);
        } else if (n_due > 0 && rng_below(&r, 2) == 0) {
            n_due--;
            arrive(due[n_due]);
        } else if (n > 0) {
            random_pass(&r, rows, n);
        } else if (next == trace.n_first && n_due == 0) {
            break;
        }
        n = live_rows(rows);
        if (n > 0 && number % 2 == 1 && rng_below(&r, 4) == 0) { /* in even runs all have one */
            rank(rows[rng_below(&r, n)], rng_below(&r, 3));
        }
        if (rng_below(&r, 2) == 0) {
            instant();
        }
    }
    for (uint32_t i = 0; i < trace.n; i++) {
        hits += naive.of[i].reused > 0;
    }
    end();
    return hits;
}

START_TEST(every_hit_is_that_of_a_cache_of_tokens)
{
    uint64_t hits = 0;
    for (uint64_t i = 0; i < N_GRAPHS / 10; i++) {
        hits += random_run((uint64_t)_i * (N_GRAPHS / 10) + i);
    }
    ck_assert_uint_gt(hits, N_GRAPHS / 10); /* else the test shows nothing */
}
END_TEST

START_TEST(without_a_limit_all_that_was_computed_is_served)
{
    uint64_t hits = 0;
    infinite = true;
    for (uint64_t i = 0; i < 300; i++) {
        hits += random_run(i);
    }
    ck_assert_uint_gt(hits, 300);
}
END_TEST

/* ---- by hand ---- */

static void read_trace(const char *rows)
{
    static const char head[] = "# xpusim-trace v2\n"
                               "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
                               "output_tokens,prefix_tokens,prefix_group,prefix_of\n";
    struct err e = ERR_INIT;
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s", head, rows);
    const char *path = tempfile_make(".csv");
    tempfile_put(text);
    ck_assert_msg(trace_read(path, &trace, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    tempfile_remove();
}

static void serve(uint32_t row)
{
    for (uint32_t k = 0; k < trace.rows[row].output_tokens; k++) {
        ck_assert(pass(&row, (uint32_t[]){1000}, 1, true));
    }
}

static void blocks_are(uint64_t free, uint64_t cached)
{
    ck_assert_uint_eq(core.kv_blocks_free, free);
    ck_assert_uint_eq(core.kv_blocks_cold, cached);
}

/* There are 12 blocks of 4 tokens. Requests 0 and 1 begin with the same 10 tokens, 2 whole blocks.
 * Request 2 begins with all 13 tokens of request 0, of which the last has no KV.
 *
 *   0   11 + 2 tokens; 12 have KV when it ends: 3 blocks, cached
 *   1   finds 2 blocks; its 15 + 1 tokens take 4, of which 2 are its own; it leaves 3 whole ones,
 *       so the cache has 0's 3 and 1's third: 4 blocks
 *   2   finds 3 blocks (12 of 13 tokens); its 35 tokens need 9, so 6 of its own, and 8 are free;
 *       it leaves 8 whole ones, of which 3 are 0's: 5 more, 9 in the cache */
START_TEST(three_requests_share_as_by_hand)
{
    read_trace("0,0,0,reactive,0,,11,2,10,1,\n1,1,0,reactive,1,,15,1,10,1,\n"
               "2,2,0,reactive,2,,35,1,13,0,0\n");
    begin(4, 12);
    arrive(0);
    ck_assert_uint_eq(real(0)->pub->reused_tokens, 0);
    serve(0);
    blocks_are(9, 3);
    arrive(1);
    ck_assert_uint_eq(real(1)->pub->reused_tokens, 8);
    ck_assert_uint_eq(core.kv_blocks_idle, 2);
    blocks_are(9, 1);
    serve(1);
    blocks_are(8, 4);
    arrive(2);
    ck_assert_uint_eq(real(2)->pub->reused_tokens, 12);
    ck_assert_uint_eq(request_prefill_left(real(2)->pub), 23);
    serve(2);
    blocks_are(3, 9);
    ck_assert_uint_eq(sc.result.kv_peak_tokens, 4 * 10); /* the third block of 1, and 9 of 2 */
    end();
}
END_TEST

/* The case above with room for 9 blocks: request 2 needs 6 of its own, and 5 are free. The third
 * block of request 1 is the only one that no request holds, so it is evicted. Request 2 leaves its
 * own. */
START_TEST(under_pressure_the_leaf_that_nobody_holds_gives_way)
{
    read_trace("0,0,0,reactive,0,,11,2,10,1,\n1,1,0,reactive,1,,15,1,10,1,\n"
               "2,2,0,reactive,2,,35,1,13,0,0\n");
    begin(4, 9);
    for (uint32_t i = 0; i < 3; i++) {
        arrive(i);
        serve(i);
    }
    blocks_are(1, 8);
    ck_assert_uint_eq(prefix_find(&core, 1, 4)->to, 2); /* the shared part of 1 is left */
    end();
}
END_TEST

/* 20 tokens of request 0 are 5 blocks: 2 of the group's text, and 3 of its own. Request 1 begins
 * with 17 of these tokens, so a look-up splits the 3 blocks into 2 and 1. It takes none of them.
 * Evictions must take blocks from the end all the same. */
START_TEST(what_was_parted_and_not_taken_gives_way_from_its_end)
{
    read_trace("0,0,0,reactive,0,,20,1,10,1,\n1,1,0,reactive,1,,30,1,17,0,0\n");
    begin(4, 12);
    arrive(0);
    serve(0);
    blocks_are(7, 5);
    ck_assert_uint_eq(prefix_find(&core, 1, 4)->to, 4);
    for (uint32_t left = 4; left > 0; left--) {
        prefix_evict(&core, 1);
        blocks_are(12 - left, left);
        ck_assert_uint_eq(prefix_find(&core, 1, 4)->to, left);
    }
    end();
}
END_TEST

/* Two requests wait with the same prompt. When the first has computed it, the second finds it
 * before it is served. It finds 8 of 9 tokens, since it must compute the last one itself. */
START_TEST(who_waits_finds_what_was_computed_meanwhile)
{
    read_trace("0,0,0,reactive,0,,9,2,9,1,\n1,1,0,reactive,0,,9,1,9,1,\n");
    begin(4, 9);
    arrive(0);
    arrive(1);
    ck_assert_uint_eq(real(1)->pub->reused_tokens, 0);
    ck_assert(pass((uint32_t[]){0}, (uint32_t[]){9}, 1, true));
    instant();
    ck_assert_uint_eq(real(1)->pub->reused_tokens, 8);
    end();
}
END_TEST

/* Two requests compute the same tokens at once, and one copy is kept. */
START_TEST(what_is_computed_twice_is_kept_once)
{
    read_trace("0,0,0,reactive,0,,8,2,8,1,\n1,1,0,reactive,0,,8,2,8,1,\n");
    begin(4, 9);
    arrive(0);
    arrive(1);
    ck_assert(pass((uint32_t[]){0, 1}, (uint32_t[]){8, 8}, 2, true));
    blocks_are(7, 0);
    end();
}
END_TEST

/* Computes all passes of a request, without the other cache. */
static void compute(uint32_t row)
{
    core_request_arrives(&core, row);
    while (real(row) != NULL) {
        struct segment v = segment_of(row, 1000);
        struct pass *p = NULL;
        ck_assert_int_eq(
            core_pass_form(&core, &(struct pass_spec){.segments = &v, .n_segments = 1}, &p), 0);
        real(row)->pub->first_service_ns = core.sched->now_ns;
        p->state = PASS_STATE_RUNNING;
        p->op = p->n_ops;
        p->rows_todo = 0;
        core_pass_tail_done(&core, core_pass(p));
    }
}

/* A turn of 16 tokens and 5 of output leaves 20 with KV, in 5 blocks, which are moved to flash.
 * Then another request computes its first tokens again, 1 to all 21. The next turn has 20 tokens in
 * any case: from flash, unless memory has as many. */
START_TEST(flash_is_read_only_for_more_than_memory_has)
{
    for (uint32_t again = 1; again <= 21; again++) {
        char rows[256];
        (void)snprintf(rows, sizeof rows,
                       "0,0,0,reactive,0,,16,5,0,,\n1,1,0,reactive,1,,24,1,%u,,0\n"
                       "2,0,1,reactive,,1,40,1,21,,\n",
                       again);
        read_trace(rows);
        begin(4, 40);
        compute(0);
        ck_assert_int_eq(core_kv_move(&core, kv_of_session(0), KV_FLASH), 0);
        core_cold_moved(&core, 2);
        ck_assert_uint_eq(core.kv_blocks_free, 40);
        compute(1);
        core_request_arrives(&core, 2);
        const struct request *r = real(2)->pub;
        ck_assert_uint_eq(r->kv_tokens, 20);
        ck_assert_uint_eq(r->reused_tokens, 20);
        ck_assert_msg(r->kv_swapped == (again < 20), "%u tokens computed again", again);
        end();
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("shared prefixes", .timeout_s = 120),
    LOOP(every_hit_is_that_of_a_cache_of_tokens, 10),
    TEST(without_a_limit_all_that_was_computed_is_served),
    CASE("shared prefixes by hand"),
    TEST(three_requests_share_as_by_hand),
    TEST(under_pressure_the_leaf_that_nobody_holds_gives_way),
    TEST(what_was_parted_and_not_taken_gives_way_from_its_end),
    TEST(who_waits_finds_what_was_computed_meanwhile),
    TEST(what_is_computed_twice_is_kept_once),
    TEST(flash_is_read_only_for_more_than_memory_has),
};
SUITE_MAIN("prefix", suite)

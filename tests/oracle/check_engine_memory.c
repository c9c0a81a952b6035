/* KV blocks, prefixes, swaps, recomputation and cancelled requests, by hand. On the toy iGPU QKV
 * takes 1 ms a row, and attention, FFN and head take 1 ns each. So a prefill of n rows takes n ms
 * and 3 ns. A fused decode layer takes 10 ms, and its head 1 ns. A token takes 1 MB of KV, in
 * blocks of 16 tokens, and swapping it at 1 GB/s takes 1 ms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "tests/helpers/byhand.h"

static uint64_t free_tokens[8], session_free[10], lost_tokens;

static void on_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    (void)self;
    (void)now_ns;
    (void)r;
    lost_tokens += tokens;
}

static void setup(void)
{
    byhand_setup();
    lost_tokens = 0;
    x.device = IGPU;
    sc.observer.kv_lost = on_lost;
    scenario_cost(&sc, IGPU, OP_QKV, 0, 1, 0);
    scenario_cost(&sc, IGPU, OP_LAYER, 10, 0, 0);
}

/* ---- blocks ---- */

static void count_blocks(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        free_tokens[0] = sched_kv_free_tokens(s);
    }
    script_serve(s, y);
    if (y->stage == 0) {
        y->stage = 1;
        free_tokens[1] = sched_kv_free_tokens(s);
    } else if (y->request[0] != NULL && y->request[0]->generated_tokens == 8) {
        free_tokens[2] = sched_kv_free_tokens(s); /* the pass for token 9 is formed */
    } else if (y->request[0] != NULL && y->request[0]->generated_tokens == 9) {
        free_tokens[3] = sched_kv_free_tokens(s); /* and the one for token 10 */
    } else if (y->request[0] == NULL) {
        free_tokens[4] = sched_kv_free_tokens(s);
    }
}

/* 200 tokens are 12 blocks of 16, so 192. A prompt of 40 takes 3 blocks when its pass is formed,
 * and 144 are left. Each decode adds one token: the pass for output token k holds 40 + k - 1 of
 * them. With k = 9 that is 48, still 3 blocks. With k = 10 it is 49, so 4 blocks, and 128 are left.
 * When the request has finished all 192 are free. The peak is 4 blocks. */
START_TEST(kv_is_held_in_whole_blocks)
{
    static const struct scenario_request q[] = {{BE, 0, 40, 10, 0, 0}};
    sc.setup.kv_capacity_tokens = 200;
    byhand_run(count_blocks, q, 1);
    ck_assert_uint_eq(free_tokens[0], 192);
    ck_assert_uint_eq(free_tokens[1], 144);
    ck_assert_uint_eq(free_tokens[2], 144);
    ck_assert_uint_eq(free_tokens[3], 128);
    ck_assert_uint_eq(free_tokens[4], 192);
    ck_assert_uint_eq(sc.result.kv_peak_tokens, 64);
}
END_TEST

/* ---- prefixes ---- */

/* There are eight blocks. Request 0 (turn 0 of session 7) leaves 40 tokens, a cached prefix of 3
 * blocks. At 1 s turn 1 (90 tokens, request 1) finds them and waits, while request 2 (60 tokens, 4
 * blocks) prefills: one block is free. Turn 1 needs 6 blocks, 3 more, and is refused.
 *
 * Its refusal keeps nothing from others. Request 3 (64 tokens, 4 blocks) gets the free block and
 * the 3 of the waiting prefix. */
static void ask_in_vain(struct sched *s, struct script *y)
{
    if (y->request[1] == NULL) {
        script_serve(s, y);
        return;
    }
    if (y->stage == 0 && y->request[2] != NULL && y->request[3] != NULL) {
        y->stage = 1;
        y->pass[2] = script_form(s, y->request[2]);
        ck_assert_ptr_nonnull(y->pass[2]);
        free_tokens[0] = sched_kv_free_tokens(s);
        ck_assert_ptr_null(script_form(s, y->request[1]));
        free_tokens[1] = sched_kv_free_tokens(s);
        y->pass[3] = script_form(s, y->request[3]);
        ck_assert_ptr_nonnull(y->pass[3]);
        free_tokens[2] = sched_kv_free_tokens(s);
    }
    if (y->stage == 1) {
        script_serve(s, y);
    }
}

START_TEST(a_waiting_prefix_is_only_cache_also_after_a_refusal)
{
    static const struct scenario_request q[] = {{BE, 0, 40, 1, 7, 0},
                                                {BE, 1, 90, 1, 7, 40},
                                                {BE, 1.1, 60, 1, 0, 0},
                                                {BE, 1.1, 64, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 128;
    byhand_run(ask_in_vain, q, 4);
    ck_assert_uint_eq(free_tokens[0], 64); /* 1 block and 3 of the prefix */
    ck_assert_uint_eq(free_tokens[1], 64);
    ck_assert_uint_eq(free_tokens[2], 0);
    ck_assert_uint_ge(sc.result.counters[COUNTER_PASS_NO_MEMORY], 1);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_COLD_DROPS], 1);
    /* Request 2 takes 60 ms from 1.1 s on, and request 3 takes 64 ms more. Turn 1 has lost its
     * prefix, so it computes all 90 rows. */
    ck_assert_int_eq(sc.records[2].finish_ns, MS(1160) + 3);
    ck_assert_int_eq(sc.records[3].finish_ns, MS(1224) + 6);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(1314) + 9);
}
END_TEST

/* There are eight blocks, 3 of them the prefix of turn 1. That has 70 tokens, 40 of them in the
 * prefix, so it needs 30 rows and 2 more blocks. A pass of request 2 (96 tokens, 6 blocks) and
 * these 30 rows needs 8 blocks next to the prefix, and 5 are free. It must not take the prefix that
 * its own 30 rows continue. */
static void ask_together(struct sched *s, struct script *y)
{
    if (y->stage == 0 && y->request[1] != NULL && y->request[2] != NULL) {
        struct segment both[] = {
            {.request = y->request[2], .role = SEGMENT_PREFILL, .n_tokens = 96},
            {.request = y->request[1], .role = SEGMENT_PREFILL, .n_tokens = 30}};
        struct pass_spec spec = {.segments = both, .n_segments = 2};
        struct pass *p;
        y->stage = 1;
        y->rc[0] = sched_pass_form(s, &spec, &p);
        free_tokens[0] = sched_kv_free_tokens(s);
        y->pass[1] = script_form(s, y->request[1]);
        ck_assert_ptr_nonnull(y->pass[1]);
    }
    if (y->stage == 1 || y->request[1] == NULL) {
        script_serve(s, y);
    }
}

START_TEST(a_pass_makes_no_room_for_itself_with_its_own_prefix)
{
    static const struct scenario_request q[] = {
        {BE, 0, 40, 1, 7, 0}, {BE, 1, 70, 1, 7, 40}, {BE, 1.1, 96, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 128;
    byhand_run(ask_together, q, 3);
    ck_assert_int_eq(x.rc[0], -ENOMEM);
    ck_assert_uint_eq(free_tokens[0], 128); /* 5 blocks and the 3 of the prefix, still cache */
    /* The prefix was there, so the turn computes 30 rows from 1.1 s on. */
    ck_assert_int_eq(sc.records[1].finish_ns, MS(1130) + 3);
    ck_assert_int_eq(sc.records[2].finish_ns, MS(1226) + 6);
}
END_TEST

/* A prefill of the turn is begun, stopped and cancelled. The prefix is then cache again, as it was
 * before. Request 2 needs all 8 blocks, and gets them. */
static void begin_and_cancel(struct sched *s, struct script *y)
{
    if (y->stage == 0 && y->request[1] != NULL) {
        y->stage = 1;
        y->pass[1] = script_form(s, y->request[1]);
        struct launch_spec spec = sched_launch_rest(s, y->pass[1], IGPU, YIELD_KERNEL);
        spec.n_ops = 1;
        y->rc[0] = sched_launch(s, &spec, NULL);
    } else if (y->stage == 1 && y->request[2] != NULL && y->pass[1]->n_launches == 0) {
        y->stage = 2;
        y->rc[1] = sched_pass_cancel(s, y->pass[1]);
        y->pass[1] = NULL;
        free_tokens[0] = sched_kv_free_tokens(s);
        y->pass[2] = script_form(s, y->request[2]);
        ck_assert_ptr_nonnull(y->pass[2]);
    }
    if (y->stage == 2 || y->request[1] == NULL) {
        script_serve(s, y);
    }
}

START_TEST(a_prefix_is_cache_again_when_its_prefill_is_cancelled)
{
    static const struct scenario_request q[] = {
        {BE, 0, 40, 1, 7, 0}, {BE, 1, 70, 1, 7, 40}, {BE, 1.1, 120, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 128;
    byhand_run(begin_and_cancel, q, 3);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_uint_eq(free_tokens[0], 128);
    ck_assert_int_eq(sc.records[2].finish_ns, MS(1220) + 3);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(1290) + 6); /* all 70 rows */
}
END_TEST

/* The policy drops the session's prefix twice. Its 3 blocks are freed once, and the second call is
 * refused. */
static void drop_prefix(struct sched *s, struct script *y)
{
    if (y->request[1] != NULL && y->stage == 0) {
        y->stage = 1;
        free_tokens[0] = sched_kv_free_tokens(s);
        y->rc[0] = sched_kv_move(s, kv_of(y->request[1]), KV_NOWHERE);
        free_tokens[1] = sched_kv_free_tokens(s);
        y->rc[1] = sched_kv_move(s, kv_of(y->request[1]), KV_NOWHERE);
    }
    script_serve(s, y);
}

START_TEST(an_evicted_prefix_is_freed_once)
{
    static const struct scenario_request q[] = {{BE, 0, 40, 1, 7, 0}, {BE, 1, 90, 1, 7, 40}};
    sc.setup.kv_capacity_tokens = 128;
    byhand_run(drop_prefix, q, 2);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], -EINVAL);
    ck_assert_uint_eq(free_tokens[0], 128);
    ck_assert_uint_eq(free_tokens[1], 128);
    ck_assert_uint_eq(lost_tokens, 40);
    ck_assert_uint_eq(sc.result.counters[COUNTER_EVICT_REFUSED], 1);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(1040) + 3 + MS(90) + 3);
}
END_TEST

/* Two sessions leave cached prefixes of 3 and 2 of 8 blocks. A request of 80 tokens (5 blocks)
 * needs 2 of them. The older prefix (session 7) is dropped, and the other one serves its next
 * turn. */
START_TEST(the_oldest_cold_prefix_goes_first)
{
    static const struct scenario_request q[] = {{BE, 0, 40, 1, 7, 0},
                                                {BE, 0.1, 20, 1, 8, 0},
                                                {BE, 1, 60, 1, 7, 40},
                                                {BE, 1, 60, 1, 8, 20},
                                                {BE, 0.5, 80, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 128;
    byhand_run(script_serve, q, 5);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_COLD_DROPS], 1);
    /* Turn 1 of session 7 comes at 1.04 s and computes all 60 rows, until 1.1 s. That of session 8
     * comes at 1.12 s and computes 40. */
    ck_assert_int_eq(sc.records[2].finish_ns, MS(1100) + 6);
    ck_assert_int_eq(sc.records[3].finish_ns, MS(1160) + 6);
}
END_TEST

/* Three sessions leave cached prefixes of one block each, of four blocks in all. A request of 63
 * and 1 tokens needs all four. So the prefixes are dropped one after the other, each once, and
 * every turn that comes later computes all of its 32 rows. */
START_TEST(cold_prefixes_go_one_after_the_other)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 7, 0},   {BE, 0.1, 16, 1, 8, 0},
                                                {BE, 0.2, 16, 1, 9, 0}, {BE, 2, 32, 1, 7, 16},
                                                {BE, 2, 32, 1, 8, 16},  {BE, 2, 32, 1, 9, 16},
                                                {BE, 0.5, 63, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 64;
    byhand_run(script_serve, q, 7);
    ck_assert_uint_ge(sc.result.counters[COUNTER_KV_COLD_DROPS], 3);
    for (uint32_t i = 3; i < 6; i++) {
        ck_assert_int_ge(sc.records[i].finish_ns - sc.records[i].arrival_ns, MS(32));
    }
}
END_TEST

/* ---- recomputation ---- */

static void recompute(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (y->stage == 0 && r != NULL && r->generated_tokens == 3) {
        y->stage = 1;
        for (uint32_t from = 102; from <= 103; from++) { /* no token is left to move */
            int rc =
                sched_kv_move(s, (struct kv_part){.request = r, .from_token = from}, KV_NOWHERE);
            ck_assert_int_eq(rc, -EINVAL);
        }
        ck_assert_uint_eq(r->preemptions, 0);
        y->rc[0] = sched_kv_move(s, (struct kv_part){.request = r, .from_token = 40}, KV_NOWHERE);
        ck_assert_uint_eq(request_prefill_target(r), 103);
        ck_assert_uint_eq(request_prefill_left(r), 63);
    }
    script_serve(s, y);
}

/* A prompt of 100 tokens takes 100 ms, and two decodes 10 each: tokens come at 100, 110 and 120.
 * 102 tokens have their KV then. 40 of them are kept and 62 are lost. With the third token itself,
 * 103 - 40 = 63 rows are prefilled again. So token 4 comes at 120 + 63 = 183 ms, and token 5 at
 * 193. */
START_TEST(evicted_kv_is_prefilled_again_with_what_was_generated)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 5, 0, 0}};
    byhand_run(recompute, q, 1);
    static const double ms[] = {100, 110, 120, 183, 193};
    ck_assert_uint_eq(sc.records[0].tokens_n, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_le(llabs(sc.records[0].token_ns[i] - MS(ms[i])), 10);
    }
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_uint_eq(lost_tokens, 62);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 1);
}
END_TEST

/* ---- swapping ---- */

static void swap(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (y->stage == 0 && r != NULL && r->generated_tokens == 1) {
        y->stage = 1;
        y->rc[0] = sched_kv_move(s, kv_of(r), KV_FLASH);
        y->rc[1] = sched_kv_move(s, kv_of(r), KV_MEMORY); /* still on its way out */
        ck_assert_ptr_null(script_form(s, r));
        free_tokens[0] = sched_kv_free_tokens(s);
        return;
    }
    if (y->stage == 1 && y->n_moved == 1) {
        free_tokens[1] = sched_kv_free_tokens(s);
        ck_assert_ptr_null(script_form(s, r));
        y->stage = 2;
    }
    if (script_at(s, y, 2, 300)) {
        y->rc[2] = sched_kv_move(s, kv_of(r), KV_MEMORY);
        y->rc[3] = sched_kv_move(s, kv_of(r), KV_NOWHERE);
        free_tokens[2] = sched_kv_free_tokens(s);
    }
    if (y->stage == 0 || y->n_moved == 2) {
        script_serve(s, y);
    }
}

/* A prompt of 100 tokens takes 7 of 8 blocks, and its first token comes at 100 ms. Its KV leaves in
 * 100 ms, so all is free at 200. At 300 it is called back: its 7 blocks are taken at once, and it
 * is there at 400. Token 2 comes at 410 and token 3 at 420. In the second case each move takes 7 ms
 * more, so these come at 417 and 427. In the third there are 10 blocks, and states of 30 MB take 2
 * of them. They move with the KV, in 30 ms: tokens come at 440 and 450. */
START_TEST(swapped_kv_leaves_and_returns_through_the_loader)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}};
    const int more_ms = ((const int[]){0, 7, 30})[_i];
    const uint32_t most = _i == 2 ? 160 : 128;
    sc.llm.kv_state_bytes = _i == 2 ? 30e6 : 0.0;
    sc.setup.kv_capacity_tokens = most;
    sc.machine.swap_fixed_ns = MS(_i == 1 ? 7 : 0);
    byhand_run(swap, q, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], -EINVAL);
    ck_assert_int_eq(x.rc[2], 0);
    ck_assert_int_eq(x.rc[3], -EINVAL);
    ck_assert_uint_eq(free_tokens[0], 16);
    ck_assert_uint_eq(free_tokens[1], most);
    ck_assert_uint_eq(free_tokens[2], 16);
    ck_assert_uint_eq(x.n_moved, 2);
    ck_assert(x.moved[0].swapped && !x.moved[1].swapped);
    ck_assert_int_eq(x.moved[0].at_ns, MS(200 + more_ms) + 3);
    ck_assert_int_eq(x.moved[1].at_ns, MS(400 + more_ms));
    ck_assert_int_eq(sc.records[0].token_ns[1], MS(410 + more_ms) + 1);
    ck_assert_int_eq(sc.records[0].token_ns[2], MS(420 + more_ms) + 2);
    ck_assert_uint_eq(sc.result.counters[COUNTER_PASS_BAD_SEGMENT], 2);
    ck_assert_uint_eq(sc.result.counters[COUNTER_EVICT_REFUSED], 2);
}
END_TEST

/* ---- cancelled by the user ---- */

static void cancels(uint32_t n, const int64_t *cancel_ns)
{
    sc.trace.extras = xcalloc(n, sizeof *sc.trace.extras);
    for (uint32_t i = 0; i < n; i++) {
        sc.trace.extras[i] = (struct trace_extra){.ttft_slo_ns = TIME_NEVER_NS,
                                                  .tbt_slo_ns = TIME_NEVER_NS,
                                                  .deadline_ns = TIME_NEVER_NS,
                                                  .cancel_ns = cancel_ns[i],
                                                  .until_ns = TIME_NEVER_NS};
    }
}

static void serve_one_at_a_time(struct sched *s, struct script *y)
{
    for (uint32_t i = 0; i < 4; i++) {
        if (y->request[i] != NULL) {
            if (y->pass[i] == NULL && y->request[i]->pass == NULL) {
                y->pass[i] = script_form(s, y->request[i]);
                (void)script_launch(s, y->pass[i], IGPU, YIELD_PASS, NULL);
            }
            return;
        }
    }
}

/* Request 0 prefills from 0 to 50 ms and is cancelled at 30. It leaves when its pass ends, at 50,
 * with one token. Request 1 waits and is cancelled at 20, so it leaves at once. Request 2 runs from
 * 50 to 70, and its cancel at 500 finds it gone. Request 3 is the next turn after request 0, and
 * comes 100 ms after that left: at 150. */
START_TEST(a_cancelled_request_leaves_at_once_or_at_the_end_of_its_pass)
{
    static const struct scenario_request q[] = {
        {BE, 0, 50, 5, 7, 0}, {BE, 0, 50, 1, 0, 0}, {BE, 0, 20, 1, 0, 0}, {BE, 0.1, 60, 1, 7, 50}};
    static const int64_t at[] = {MS(30), MS(20), MS(500), TIME_NEVER_NS};
    cancels(4, at);
    byhand_run(serve_one_at_a_time, q, 4);
    ck_assert_int_eq((int)sc.records[0].state, (int)REQUEST_STATE_SHED);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(50) + 3);
    ck_assert_uint_eq(sc.records[0].tokens_n, 1);
    ck_assert_int_eq((int)sc.records[1].state, (int)REQUEST_STATE_SHED);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(20));
    ck_assert_uint_eq(x.n_cancelled, 1);
    ck_assert_uint_eq(x.cancelled[0].id, 1);
    ck_assert_int_eq(sc.records[2].finish_ns, MS(70) + 6);
    ck_assert_int_eq((int)sc.records[2].state, (int)REQUEST_STATE_FINISHED);
    ck_assert_int_eq(sc.records[3].arrival_ns, MS(150) + 3);
    /* 50 tokens of prefix were kept, so 10 rows are computed. */
    ck_assert_int_eq(sc.records[3].finish_ns, MS(160) + 6);
    ck_assert_uint_eq(sc.result.audit.shed, 2);
    ck_assert_uint_eq(sc.result.audit.finished, 2);
}
END_TEST

/* Request 0 leaves at 50 ms and 3 ns, and its session's next turn is due 100 ms later. A session
 * that ends at 150 ms and 3 ns has no such turn any more. The test below ends it one nanosecond
 * later, and the turn arrives. */
START_TEST(a_later_turn_does_not_arrive_after_the_last_instant_of_its_session)
{
    static const struct scenario_request q[] = {{BE, 0, 50, 1, 7, 0}, {BE, 0.1, 60, 1, 7, 50}};
    static const int64_t never[] = {TIME_NEVER_NS, TIME_NEVER_NS};
    cancels(2, never);
    sc.trace.extras[1].until_ns = MS(150) + 3;
    byhand_run(serve_one_at_a_time, q, 2);
    ck_assert_uint_eq(sc.result.audit.finished, 1);
    ck_assert_uint_eq(sc.result.audit.future, 1);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_COLD_DROPS], 0); /* no prefix was kept for it */
    ck_assert_int_eq(sc.result.end_ns, MS(50) + 3);
}
END_TEST

START_TEST(a_turn_due_before_the_last_instant_arrives)
{
    static const struct scenario_request q[] = {{BE, 0, 50, 1, 7, 0}, {BE, 0.1, 60, 1, 7, 50}};
    static const int64_t never[] = {TIME_NEVER_NS, TIME_NEVER_NS};
    cancels(2, never);
    sc.trace.extras[1].until_ns = MS(150) + 4;
    byhand_run(serve_one_at_a_time, q, 2);
    ck_assert_uint_eq(sc.result.audit.finished, 2);
    ck_assert_int_eq(sc.records[1].arrival_ns, MS(150) + 3);
}
END_TEST

/* Cancels a request while its KV leaves, from 100 to 200 ms. It leaves when that has ended. */
static void swap_only(struct sched *s, struct script *y)
{
    if (y->stage == 0 && y->request[0] != NULL && y->request[0]->generated_tokens == 1) {
        y->stage = 1;
        y->rc[0] = sched_kv_move(s, kv_of(y->request[0]), KV_FLASH);
        y->rc[1] = sched_shed(s, y->request[0]);
    }
    if (y->stage == 0) {
        script_serve(s, y);
    }
}

START_TEST(a_request_cancelled_during_a_swap_leaves_when_it_ends)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0}};
    static const int64_t at[] = {MS(150)};
    cancels(1, at);
    byhand_run(swap_only, q, 1);
    ck_assert_int_eq(x.rc[1], -EINVAL);
    ck_assert_uint_eq(sc.result.counters[COUNTER_SHED_REFUSED], 1);
    ck_assert_int_eq((int)sc.records[0].state, (int)REQUEST_STATE_SHED);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(200) + 3);
    ck_assert_uint_eq(x.n_cancelled, 1);
}
END_TEST

/* ---- sessions between turns ---- */

/* There are ten blocks. Turn 0 of session 7 (32 tokens, two blocks) ends at 32 ms, and turn 1 comes
 * at 232 ms. In between, each row of the table moves the session's KV and notes how many tokens are
 * free after it. */
static void between_turns(struct sched *s, struct script *y)
{
    static const struct {
        double ms;
        uint32_t session;
        enum kv_place to;
    } asks[] = {{40, 8, KV_MEMORY},   {50, 7, KV_CACHE},  {60, 7, KV_MEMORY}, {70, 7, KV_MEMORY},
                {80, 7, KV_CACHE},    {90, 7, KV_FLASH},  {100, 7, KV_CACHE}, {130, 7, KV_MEMORY},
                {140, 7, KV_NOWHERE}, {150, 7, KV_MEMORY}};
    script_serve(s, y);
    for (uint32_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        if (script_at(s, y, i, asks[i].ms)) {
            y->rc[i] = sched_kv_move(s, kv_of_session(asks[i].session), asks[i].to);
            session_free[i] = sched_kv_free_tokens(s);
        }
    }
}

/* Cached KV counts as free. Pinned KV does not, and neither does KV on its way to flash (90 to 122
 * ms). */
START_TEST(kv_between_turns_is_cached_pinned_dropped_or_swapped)
{
    static const struct scenario_request q[] = {{BE, 0, 32, 1, 7, 0}, {BE, 0.2, 64, 1, 7, 32}};
    static const int rc[] = {-ENOENT, -EALREADY, 0,         -EALREADY, 0,
                             0,       -EALREADY, -EALREADY, 0,         -ENOENT};
    static const uint64_t left[] = {160, 160, 128, 128, 160, 128, 128, 160, 160, 160};
    sc.setup.kv_capacity_tokens = 160;
    byhand_run(between_turns, q, 2);
    for (int i = 0; i < 10; i++) {
        ck_assert_msg(x.rc[i] == rc[i] && session_free[i] == left[i], "ask %d: %d, %llu free", i,
                      x.rc[i], (unsigned long long)session_free[i]);
    }
    ck_assert_int_eq(sc.records[1].finish_ns, MS(232 + 64) + 6); /* all 64 rows again */
}
END_TEST

/* The KV is on flash at 122 ms. Turn 1 comes at 232 and reads it, until 264. Then it computes 32
 * rows. In the second case states of 30 MB go with it, which takes 30 ms more each way. */
static void swap_between_turns(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 90)) {
        y->rc[0] = sched_kv_move(s, kv_of_session(7), KV_FLASH);
    }
    if (y->request[1] != NULL && y->request[1]->kv_swapped && y->stage == 1) {
        y->stage = 2;
        session_free[0] = sched_kv_free_tokens(s);
        y->rc[1] = sched_kv_move(s, kv_of(y->request[1]), KV_MEMORY);
    }
    if (y->request[1] == NULL || !y->request[1]->kv_swapped) {
        script_serve(s, y);
    }
}

START_TEST(a_turn_reads_back_what_went_to_flash_before_it)
{
    static const struct scenario_request q[] = {{BE, 0, 32, 1, 7, 0}, {BE, 0.2, 64, 1, 7, 32}};
    sc.setup.kv_capacity_tokens = 160;
    sc.llm.kv_state_bytes = _i * 30e6;
    byhand_run(swap_between_turns, q, 2);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_uint_eq(session_free[0], 160);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(264 + 30 * _i + 32) + 6);
}
END_TEST

/* Turn 1 shares nothing with turn 0. So there is nothing to read, and it begins when it comes. */
START_TEST(a_turn_without_a_prefix_reads_nothing_back)
{
    static const struct scenario_request q[] = {{BE, 0, 32, 1, 7, 0}, {BE, 0.2, 64, 1, 7, 0}};
    sc.setup.kv_capacity_tokens = 160;
    byhand_run(swap_between_turns, q, 2);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_uint_eq(x.n_moved, 0);
    ck_assert_int_eq(sc.records[1].start_ns, sc.records[1].arrival_ns);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = byhand_teardown),
    TEST(kv_is_held_in_whole_blocks),
    TEST(a_waiting_prefix_is_only_cache_also_after_a_refusal),
    TEST(an_evicted_prefix_is_freed_once),
    TEST(a_pass_makes_no_room_for_itself_with_its_own_prefix),
    TEST(a_prefix_is_cache_again_when_its_prefill_is_cancelled),
    TEST(the_oldest_cold_prefix_goes_first),
    TEST(cold_prefixes_go_one_after_the_other),
    TEST(evicted_kv_is_prefilled_again_with_what_was_generated),
    LOOP(swapped_kv_leaves_and_returns_through_the_loader, 3),
    TEST(a_cancelled_request_leaves_at_once_or_at_the_end_of_its_pass),
    TEST(a_later_turn_does_not_arrive_after_the_last_instant_of_its_session),
    TEST(a_turn_due_before_the_last_instant_arrives),
    TEST(a_request_cancelled_during_a_swap_leaves_when_it_ends),
    TEST(kv_between_turns_is_cached_pinned_dropped_or_swapped),
    LOOP(a_turn_reads_back_what_went_to_flash_before_it, 2),
    TEST(a_turn_without_a_prefix_reads_nothing_back),
};
SUITE_MAIN("engine memory", suite)

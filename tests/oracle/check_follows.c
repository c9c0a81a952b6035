/* A pass that follows another one (pass_spec.follows) is that of a segment for each of its requests
 * that decode. Three prompts of 16 tokens, one block each, with 1, 2 and 3 tokens of output: passes
 * of 3, 2 and 1 requests. */
#include <errno.h>
#include <string.h>

#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

#define BE REQUEST_CLASS_PROACTIVE

static struct scenario sc;
static struct script x;
static uint32_t formed;
static struct pass *running, *earlier;
static int refused[4]; /* of a running pass, fused with two, of an earlier instant, of nobody */

static void setup(void)
{
    scenario_init(&sc);
    memset(&x, 0, sizeof x);
    sc.machine.devices[NPU].static_attention = false;
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void launch(struct sched *s, struct pass *p)
{
    running = p;
    ck_assert_int_eq(script_launch(s, p, IGPU, YIELD_PASS, NULL), 0);
    formed++;
}

static void begin(struct sched *s, const struct script *y)
{
    struct segment all[3];
    for (uint32_t i = 0; i < 3; i++) {
        all[i] =
            (struct segment){.request = y->request[i], .role = SEGMENT_PREFILL, .n_tokens = 16};
    }
    struct pass_spec spec = {.segments = all, .n_segments = 3};
    struct pass *p;
    ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
    ck_assert_uint_eq(p->n_followed, 0);
    launch(s, p);
    spec = (struct pass_spec){.follows = p};
    refused[0] = sched_pass_form(s, &spec, &p);
}

/* Those of the last pass that decode now, and no others. */
static void check_segments(const struct pass *p, uint32_t first, const struct script *y)
{
    ck_assert_uint_eq(p->n_segments, 3 - first);
    ck_assert_uint_eq(p->n_followed, 3 - first);
    ck_assert_uint_eq(p->shape.rows, 3 - first);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *g = &p->segments[i];
        ck_assert_ptr_eq(g->request, y->request[first + i]);
        ck_assert_int_eq(g->role, SEGMENT_DECODE);
        ck_assert_uint_eq(g->n_tokens, 1);
        ck_assert_uint_eq(g->first_token, 15 + first);
        ck_assert_ptr_eq(g->request->pass, p);
    }
    ck_assert_uint_eq(p->shape.kv_read_tokens, (uint64_t)(3 - first) * (16 + first));
}

static void go_on(struct sched *s, const struct script *y)
{
    struct pass *last = running;
    struct pass_spec spec = {.follows = last, .fused_layers = true};
    uint32_t first = formed; /* each pass ends one of them */
    ck_assert_uint_eq(last->n_left, 1);
    ck_assert_uint_eq(last->n_decoding, 3 - first);
    ck_assert_uint_eq(last->kv_blocks_next, first == 1 ? 2 : 0);
    struct pass *p = NULL;
    int rc = sched_pass_form(s, &spec, &p);
    if (first == 1) {
        refused[1] = rc;
        spec.fused_layers = false;
        rc = sched_pass_form(s, &spec, &p);
    }
    if (first == 3) {
        refused[3] = rc;
        running = NULL;
        return;
    }
    ck_assert_int_eq(rc, 0);
    check_segments(p, first, y);
    earlier = last;
    launch(s, p);
}

static void step(struct sched *s, struct script *y)
{
    if (formed == 0 && y->request[2] != NULL) {
        begin(s, y);
    } else if (running != NULL && running->state == PASS_STATE_DONE) {
        if (earlier != NULL) {
            struct pass *p;
            struct pass_spec spec = {.follows = earlier};
            refused[2] = sched_pass_form(s, &spec, &p);
            earlier = NULL;
        }
        go_on(s, y);
    }
}

START_TEST(those_who_decode_go_on)
{
    static const struct scenario_request q[] = {
        {BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 2, 0, 0}, {BE, 0, 16, 3, 0, 0}};
    formed = 0;
    running = earlier = NULL;
    sc.setup.kv_block_tokens = 16;
    x.step = step;
    ck_assert_msg(script_run(&sc, &x, q, 3) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    ck_assert_uint_eq(formed, 3);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(refused[i], -EINVAL);
    }
}
END_TEST

/* At the same instant, but after the call that was told of it: a timer brings the next one. */
static void too_late(struct sched *s, struct script *y)
{
    static uint32_t calls;
    if (formed == 0) {
        calls = 0;
        if (y->request[2] != NULL) {
            begin(s, y);
        }
    } else if (running != NULL && running->state == PASS_STATE_DONE) {
        struct pass *p;
        struct pass_spec spec = {.follows = running};
        calls++;
        if (calls == 1) { /* one goes on alone, so that the machine is at work */
            struct segment alone = {
                .request = y->request[1], .role = SEGMENT_DECODE, .n_tokens = 1};
            spec = (struct pass_spec){.segments = &alone, .n_segments = 1};
            ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
            ck_assert_int_eq(script_launch(s, p, IGPU, YIELD_PASS, NULL), 0);
            (void)sched_set_timer(s, s->now_ns);
        } else if (calls == 3) {
            refused[2] = sched_pass_form(s, &spec, &p);
            running = NULL;
        }
    }
}

START_TEST(nobody_follows_a_pass_whose_call_is_over)
{
    static const struct scenario_request q[] = {
        {BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 2, 0, 0}, {BE, 0, 16, 3, 0, 0}};
    formed = 0;
    running = NULL;
    refused[2] = 0;
    x.step = too_late;
    (void)script_run(&sc, &x, q, 3); /* two requests are left behind */
    ck_assert_int_eq(refused[2], -EINVAL);
    const struct sim_refusal *last = &sc.result.refusals[sc.result.n_refusals - 1];
    ck_assert_str_eq(last->why, "the tokens of the pass that it follows did not come out just now");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(those_who_decode_go_on),
    TEST(nobody_follows_a_pass_whose_call_is_over),
};
SUITE_MAIN("follows", suite)

/* Launches that hang (sim.hang_frac): which kernels take longer, and how many, by hand. Kernels of
 * the toy iGPU take 1 ns where no cost is set. */
#include <string.h>

#include "tests/helpers/byhand.h"

#define BE REQUEST_CLASS_PROACTIVE
#define MS(t) ((int64_t)((t)*1e6 + 0.5))

/* 60 requests have 3,780 iterations. Each hangs with probability 0.1, and then takes 11 times as
 * long. All kernels of a launch hang together. Those of an iteration are the layers (1 ms) and the
 * head (1 ns, the least that a kernel takes), those of a prompt its four operators of 1 ns.
 *
 * One launch follows the other, so the run takes the sum of what was counted, to the ns. The share
 * that hangs has a standard error of sqrt(0.09 / 3780) = 0.0049. */
static struct {
    uint32_t layers, layers_hung, short_ones, short_hung, others;
} hung;

static void count_hung(void *self, const struct kernel_record *k)
{
    (void)self;
    int64_t ns = k->end_ns - k->begin_ns;
    hung.layers += ns == MS(1);
    hung.layers_hung += ns == MS(11);
    hung.short_ones += ns == 1;
    hung.short_hung += ns == 11;
    hung.others += ns != MS(1) && ns != MS(11) && ns != 1 && ns != 11;
}

START_TEST(a_share_of_the_launches_hangs)
{
    static struct scenario_request q[60];
    for (uint32_t i = 0; i < 60; i++) {
        q[i] = (struct scenario_request){BE, 0, 1, 64, 0, 0};
    }
    memset(&hung, 0, sizeof hung);
    scenario_cost(&sc, IGPU, OP_LAYER, 1, 0, 0);
    sc.setup.hang_frac = 0.1;
    sc.setup.hang_factor = 11.0;
    sc.observer.kernel = count_hung;
    sc.observer.wants_kernels = true;
    x.step = script_serve;
    int rc = script_run(&sc, &x, q, 60);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    ck_assert_uint_eq(hung.others, 0);
    ck_assert_uint_eq(hung.layers + hung.layers_hung, 60 * 63);
    ck_assert_uint_eq(hung.short_ones + hung.short_hung, 60 * 63 + 60 * 4);
    uint32_t of_prompts = hung.short_hung - hung.layers_hung; /* heads hang with their layers */
    ck_assert_uint_le(of_prompts, 60 * 4);
    ck_assert_uint_eq(of_prompts % 4, 0);
    int64_t sum_ns = hung.layers * MS(1) + hung.layers_hung * MS(11) + hung.short_ones +
                     11 * (int64_t)hung.short_hung;
    ck_assert_int_eq(sc.result.end_ns, sum_ns);
    ck_assert_double_eq_tol(hung.layers_hung / (60.0 * 63.0), 0.1, 4 * 0.0049);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = byhand_igpu_setup, .teardown = byhand_teardown),
    TEST(a_share_of_the_launches_hangs),
};
SUITE_MAIN("engine hangs", suite)

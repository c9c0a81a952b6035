#include "tests/helpers/byhand.h"

#include <string.h>

struct script x;

void byhand_setup(void)
{
    scenario_init(&sc);
    memset(&x, 0, sizeof x);
}

void byhand_igpu_setup(void)
{
    byhand_setup();
    x.device = IGPU;
    sc.machine.devices[NPU].static_attention = false;
}

void byhand_teardown(void)
{
    scenario_fini(&sc);
}

void byhand_toy(double gb_per_s)
{
    sc.llm.n_layers = 2;
    for (int d = NPU; d <= IGPU; d++) {
        scenario_cost(&sc, d, OP_QKV, 4, 0, gb_per_s);
        scenario_cost(&sc, d, OP_MHA, 6, 0, gb_per_s);
        scenario_cost(&sc, d, OP_FFN, 8, 0, gb_per_s);
        scenario_cost(&sc, d, OP_HEAD, 1, 0, gb_per_s);
    }
    sc.machine.devices[NPU].static_attention = false;
}

void byhand_run(void (*step)(struct sched *s, struct script *y), const struct scenario_request *q,
                uint32_t n)
{
    x.step = step;
    int rc = script_run(&sc, &x, q, n);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
}

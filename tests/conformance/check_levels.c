/* Levels of preemption, which a machine must support on both of its accelerators. */
#include <errno.h>

#include "policies/registry.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

/* Level 2 takes kernels back, and level 3 interrupts one. Level 1 and the device's own need
 * nothing. */
START_TEST(a_level_is_refused_where_one_device_cannot)
{
    static const char *const policies[] = {"hpf", "hhpf"};
    static const char *const levels[] = {"device", "1", "2", "3"};
    static const struct scenario_request q[] = {{BE, 0, 64, 2, 0, 0}, {RT, 0.001, 64, 2, 0, 0}};
    for (int can = 0; can < 4; can++) {
        for (int level = 0; level < 4; level++) {
            char params[32];
            (void)snprintf(params, sizeof params, "level=%s", levels[level]);
            scenario_init(&sc);
            for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
                sc.machine.devices[d].inflight_depth = 4;
                sc.machine.devices[d].can_withdraw = level == 2 && (d == NPU ? can & 1 : can & 2);
                sc.machine.devices[d].can_suspend = level == 3 && (d == NPU ? can & 1 : can & 2);
            }
            scenario_policy(&sc, policy_find(policies[_i]), params);
            int rc = scenario_run(&sc, q, 2, false);
            bool able = level < 2 || can == 3;
            ck_assert_msg(able ? rc == 0 : rc == -EPERM, "%s, devices %d: %d, %s", params, can, rc,
                          sc.result.message);
            scenario_fini(&sc);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("levels"),
    LOOP(a_level_is_refused_where_one_device_cannot, 2),
};
SUITE_MAIN("levels", suite)

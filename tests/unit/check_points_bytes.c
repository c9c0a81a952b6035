/* Bytes that rows of the shipped tables state, against the formats of their files, by hand. */
#include <string.h>

#include "experiments/validation/points.h"
#include "sim/base/datadir.h"
#include "tests/helpers/suite.h"

/* Gemma 4 26B has 30 layers of 128 experts, each with three products of 2816 x 704. A block of a
 * K-quant has 256 weights, which do not divide 704. llama.cpp stores down projections as Q5_0
 * (0.6875 B) next to Q4_K (0.5625), as Q8_0 (1.0625) next to Q6_K (0.8203). */
START_TEST(gemmas_experts_weigh_what_its_format_falls_back_to)
{
    const char *tables[] = {"hwmodels/points/strix-halo-kinds.csv", "hwmodels/points/machines.csv"};
    double all = 25.2331e9, experts = 30.0 * 128 * 3 * 2816 * 704;
    size_t n = 0;
    struct err err = ERR_INIT;
    for (size_t t = 0; t < 2; t++) {
        struct points points = {0};
        ck_assert_int_eq(points_read(datadir_path(tables[t]), &points, &err), 0);
        for (size_t i = 0; i < points.n; i++) {
            const struct point *p = &points.v[i];
            if (strcmp(p->model, "gemma-4-26b-a4b") != 0 || p->dense_bytes_per_weight == 0.0 ||
                p->weight_bits > 6) {
                continue;
            }
            double bytes = p->bytes_per_weight * all - p->dense_bytes_per_weight * (all - experts);
            double three = p->weight_bits == 4 ? 2 * 0.5625 + 0.6875 : 2 * 0.8203 + 1.0625;
            ck_assert_double_eq_tol(bytes / experts, three / 3, 0.001);
            n++;
        }
    }
    ck_assert_uint_eq(n, 18);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(gemmas_experts_weigh_what_its_format_falls_back_to),
};
SUITE_MAIN("bytes of points", suite)

/* The table of machines that were left out, from made-up rows: every cell worked out again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/leave_machine.h"
#include "experiments/validation/residuals.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "sim/base/words.h"
#include "tests/helpers/suite.h"

#define ROWS 90

static struct leave_row rows[ROWS];

/* Makes six pairs of machines with 15 rows each, so that every combination of the flags occurs. */
static void make_rows(void)
{
    static const char *const soc[] = {"a", "a", "b", "b", "b", "c"};
    static const char *const by[] = {"b", "c", "a", "c", "a", "a"};
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t pair = i / 15;
        rows[i] = (struct leave_row){.soc = soc[pair],
                                     .by = by[pair],
                                     .same_family = pair % 2 == 0,
                                     .kind = pair < 4 ? DEVICE_KIND_IGPU : DEVICE_KIND_NPU,
                                     .phase = (enum conformal_phase)((i / 3 + pair) % 3),
                                     .width_measured = i % 3 != 0,
                                     .small = i % 4 == 1,
                                     .small_measured = i % 5 == 2};
        for (int way = 0; way < LEAVE_WAYS; way++) {
            rows[i].ln_error[way] = 0.9 * sin(1.7 * i + way) / (1.0 + way);
            rows[i].half[way] = way == LEAVE_SHEET || way == LEAVE_UPDATED
                                    ? 0.05 + 0.6 * fabs(cos(2.3 * i + way))
                                    : (double)NAN;
        }
    }
}

static bool is_of(const struct leave_row *r, const char *part)
{
    bool usual = !r->small && !r->small_measured;
    return strcmp(part, "all") == 0                             ? true
           : strcmp(part, "width measured") == 0                ? r->width_measured
           : strcmp(part, "width not measured") == 0            ? !r->width_measured
           : strcmp(part, "sibling of the family") == 0         ? r->same_family
           : strcmp(part, "sibling of another family") == 0     ? !r->same_family
           : strcmp(part, "measured model is small") == 0       ? r->small_measured
           : strcmp(part, "predicted model is small") == 0      ? r->small
           : strcmp(part, "neither small, width measured") == 0 ? usual && r->width_measured
                                                                : usual && !r->width_measured;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The least of so many that a share of them does not exceed: the nearest rank. */
static double nearest(double *x, uint32_t n, double share)
{
    qsort(x, n, sizeof *x, by_size);
    uint32_t rank = (uint32_t)ceil(share * n - 1e-9);
    return x[rank > 0 ? rank - 1 : 0];
}

static double number(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    ck_assert_msg(cJSON_IsNumber(v), "%s is no number", name);
    return v->valuedouble;
}

/* Compares a cell's numbers with those of the chosen rows. */
static void compare(const cJSON *o, const bool *chosen)
{
    static const char *const ways[LEAVE_WAYS] = {"roofline", "sheet", "scaled", "updated"};
    uint32_t n = 0;
    for (int way = 0; way < LEAVE_WAYS; way++) {
        double error[ROWS];
        double half[ROWS];
        uint32_t inside = 0;
        n = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            if (chosen[i]) {
                error[n] = fabs(exp(rows[i].ln_error[way]) - 1.0);
                half[n++] = rows[i].half[way];
                inside += rows[i].half[way] >= fabs(rows[i].ln_error[way]);
            }
        }
        ck_assert_uint_gt(n, 0);
        OWNED char *median = xformat("%s_median_frac", ways[way]);
        OWNED char *p90 = xformat("%s_p90_frac", ways[way]);
        ck_assert_double_eq_tol(number(o, median), nearest(error, n, 0.5), 1e-9);
        ck_assert_double_eq_tol(number(o, p90), nearest(error, n, 0.9), 1e-9);
        if (way == LEAVE_SHEET || way == LEAVE_UPDATED) {
            OWNED char *inside_name = xformat("%s_inside_frac", ways[way]);
            OWNED char *half_name = xformat("%s_half", ways[way]);
            ck_assert_double_eq_tol(number(o, inside_name), inside / (double)n, 1e-9);
            ck_assert_double_eq_tol(number(o, half_name), exp(nearest(half, n, 0.5)), 1e-9);
        }
    }
    ck_assert_double_eq(number(o, "n"), n);
}

START_TEST(every_cell_is_of_its_rows)
{
    make_rows();
    struct leave_rows all = {.v = rows, .n = ROWS, .machines = 3, .pairs = 6};
    struct document *d = document_new();
    leave_machine_document(&all, 2, d);
    cJSON *tree = document_json(d);
    ck_assert_double_eq(number(tree, "measured_models"), 2);
    ck_assert_double_eq(number(tree, "machines"), 3);
    ck_assert_double_eq(number(tree, "pairs"), 6);
    uint32_t cells = 0;
    const cJSON *device;
    const cJSON *part;
    const cJSON *phase;
    cJSON_ArrayForEach (device, cJSON_GetObjectItem(tree, "left_out")) {
        cJSON_ArrayForEach (part, device) {
            cJSON_ArrayForEach (phase, part) {
                bool chosen[ROWS];
                for (uint32_t i = 0; i < ROWS; i++) {
                    chosen[i] = strcmp(device->string,
                                       rows[i].kind == DEVICE_KIND_IGPU ? "igpu" : "npu") == 0 &&
                                strcmp(phase->string, conformal_phase_names[rows[i].phase]) == 0 &&
                                is_of(&rows[i], part->string);
                }
                compare(phase, chosen);
                cells++;
            }
        }
    }
    ck_assert_uint_eq(cells, 2 * 9 * 3); /* each has rows */
    /* Pairs are rows next to each other of one machine, sibling and device, by phase. */
    const cJSON *row;
    uint32_t shown = 0;
    cJSON_ArrayForEach (row, cJSON_GetObjectItem(tree, "pairs_of_machines")) {
        uint32_t pair = shown / 3;
        bool chosen[ROWS];
        for (uint32_t i = 0; i < ROWS; i++) {
            chosen[i] = i / 15 == pair && rows[i].phase == (enum conformal_phase)(shown % 3);
        }
        ck_assert_str_eq(cJSON_GetObjectItem(row, "soc")->valuestring, rows[15 * pair].soc);
        ck_assert_str_eq(cJSON_GetObjectItem(row, "by")->valuestring, rows[15 * pair].by);
        ck_assert_str_eq(cJSON_GetObjectItem(row, "phase")->valuestring,
                         conformal_phase_names[shown % 3]);
        compare(row, chosen);
        shown++;
    }
    ck_assert_uint_eq(shown, 18);
    cJSON_Delete(tree);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    ck_assert_msg(strstr(text, "3 machines, each made from its siblings (6 pairs) and updated by 2 "
                               "measured models\n") == text,
                  "%s", text);
    free(text);
}
END_TEST

/* Errors of 1 to n %: the median is number ceil(n / 2), and P90 number ceil(0.9 n), of 9 to 21
 * rows. Decodes of short contexts do not count. Neither do machines that were left out, nor other
 * kinds. */
START_TEST(ranks_of_models_left_out_are_the_nearest)
{
    static struct conformal_row v[40];
    for (int n = 9; n <= 21; n++) {
        for (int i = 0; i < 40; i++) {
            v[i] =
                (struct conformal_row){.soc = "s",
                                       .family = "f",
                                       .kind = DEVICE_KIND_NPU,
                                       .phase = CONFORMAL_DECODE,
                                       .tokens = i == 39 ? CONFORMAL_SHORT_TOKENS - 1.0 : 2000.0,
                                       .left = i < n || i == 39 ? CONFORMAL_MODEL : CONFORMAL_SOC,
                                       .ln_error = log1p(i < n ? (n - i) / 100.0 : 9.0)};
        }
        const struct conformal c = {.v = v, .n = 40};
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        left_out_table_print(&c, f);
        (void)fclose(f);
        OWNED char *want = xformat("  %4d %7.1f %6.1f\n", n, ceil(n / 2.0), ceil(0.9 * n - 1e-9));
        const char *all = strstr(text, "all ");
        ck_assert_msg(all != NULL && strstr(all, want) != NULL, "%s, not %s", text, want);
        free(text);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("leave table"),
    TEST(every_cell_is_of_its_rows),
    TEST(ranks_of_models_left_out_are_the_nearest),
};
SUITE_MAIN("leave table", suite)

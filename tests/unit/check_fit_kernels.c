/* Kernels as drive's fit sees them: what each counts as, overlaps, sums over runs, the path that a
 * prompt takes, and each number of a written machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/fit_impl.h"
#include "sim/base/arena.h"
#include "sim/drive/drive_impl.h"
#include "tests/helpers/suite.h"

/* ---- what a kernel counts as ---- */

static struct fit_input in;
static struct drive_report report;

static void input_add(struct drive_kernel k)
{
    report.kernels = xrealloc(report.kernels, (report.n_kernels + 1) * sizeof k);
    report.kernels[report.n_kernels++] = k;
}

static void segment_add(uint32_t rows, uint32_t keys, bool prefill)
{
    struct drive_kernel *k = &report.kernels[report.n_kernels - 1];
    report.segments = xrealloc(report.segments, (report.n_segments + 1) * sizeof *report.segments);
    k->segment0 = k->n_segments == 0 ? (uint32_t)report.n_segments : k->segment0;
    k->n_segments++;
    report.segments[report.n_segments++] = (struct drive_segment){rows, keys, prefill};
}

static void take(bool disturbed)
{
    fit_input_add(&in, &report, 2.5, disturbed);
    free(report.kernels);
    free(report.segments);
    free(report.residents);
    report = (struct drive_report){0};
}

/* Segments of a second run are behind those of the first: places move, and each kernel keeps its
 * own. */
START_TEST(terms_are_of_a_kernels_own_segments)
{
    fit_input_init(&in, DRIVE_CLOCK_WALL);
    input_add((struct drive_kernel){.op = OP_MHA});
    segment_add(7, 70, true);
    take(false);
    input_add((struct drive_kernel){.op = OP_MHA});
    segment_add(5, 50, true);
    input_add((struct drive_kernel){.op = OP_MHA});
    segment_add(4, 10, true);
    segment_add(20, 20, true);
    segment_add(1, 33, false);
    segment_add(1, 44, false);
    segment_add(16, 40, true);
    take(true);
    ck_assert(in.n == 3 && in.n_segments == 7 && in.fit.n_runs == 2 && in.fit.n_disturbed == 1);
    ck_assert(in.run[0] == 1 && in.run[1] == 2 && in.run[2] == 2);
    is_near(in.fit.tail_tokens, 5);
    double x[4];
    fit_prompt_terms(&in, &in.kernels[2], (struct fit_split){16, 0}, x);
    is_near(x[0], 4 * 10 - 6);
    is_near(x[1], 4);
    is_near(x[2], 20 * 20 - 190 + 16 * 40 - 120);
    is_near(x[3], 36);
    fit_prompt_terms(&in, &in.kernels[2], (struct fit_split){17, 16}, x);
    is_near(x[0], 34 + 16 * 40 - 120); /* 16 rows are fewer than 17; few rows have no tiles */
    is_near(x[1], 20);
    is_near(x[2], 16 * 16 + 16 * 32); /* of 20 rows: 16 see 16 keys, 4 see 20: two tiles */
    is_near(x[3], 20);
    fit_prompt_terms(&in, &in.kernels[1], (struct fit_split){0, 0}, x);
    is_near(x[2], 5 * 50 - 10);
    ck_assert(x[0] == 0 && x[1] == 0 && x[3] == 5);
    ck_assert_double_eq(fit_decode_keys(&in, &in.kernels[2]), 77);
    ck_assert_double_eq(fit_decode_keys(&in, &in.kernels[0]), 0);
    ck_assert_uint_eq(fit_longest(&in, &in.kernels[2]), 44);
    ck_assert_uint_eq(fit_longest(&in, &in.kernels[1]), 50);
    struct drive_kernel none = {0};
    ck_assert_uint_eq(fit_longest(&in, &none), 0);
    struct drive_kernel k = {
        .shape_rows = 5, .sequences = 4, .prefill_rows = 3, .pairs = 2, .keys = 1};
    struct work_shape w = fit_shape(&k);
    ck_assert(w.rows == 5 && w.sequences == 4 && w.prefill_rows == 3 && w.attn_pairs == 2 &&
              w.kv_read_tokens == 1);
    fit_input_fini(&in);
    ck_assert(in.n == 0 && in.kernels == NULL && in.segments == NULL);
}
END_TEST

START_TEST(one_row_is_no_attention_and_no_head)
{
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        struct drive_kernel k = {.op = (uint8_t)op, .padded_rows = 1};
        bool is = op != OP_MHA && op != OP_HEAD;
        ck_assert(fit_is_one_row(&k) == is);
        k.stopped = true;
        ck_assert(!fit_is_one_row(&k));
        k.stopped = false;
        k.padded_rows = 2;
        ck_assert(!fit_is_one_row(&k));
    }
}
END_TEST

/* Kernel 2 is [100, 200) on device 0. Others of other devices in its run: [50, 120), [150, 160),
 * [190, 300): 20 + 10 + 10. Those of its own device, of another run, and that only touch it count
 * nothing. */
START_TEST(an_overlap_is_the_share_of_others)
{
    fit_input_init(&in, DRIVE_CLOCK_WALL);
    input_add((struct drive_kernel){.device = 1, .begin_ns = 50, .ns = 70});
    input_add((struct drive_kernel){.device = 0, .begin_ns = 50, .ns = 70});
    input_add((struct drive_kernel){.device = 0, .begin_ns = 100, .ns = 100});
    input_add((struct drive_kernel){.device = 2, .begin_ns = 150, .ns = 10});
    input_add((struct drive_kernel){.device = 1, .begin_ns = 200, .ns = 50});
    input_add((struct drive_kernel){.device = 1, .begin_ns = 20, .ns = 80});
    input_add((struct drive_kernel){.device = 1, .begin_ns = 190, .ns = 110});
    take(false);
    input_add((struct drive_kernel){.device = 1, .begin_ns = 100, .ns = 100});
    take(false);
    is_near(fit_overlap(&in, 2), 0.4);
    is_near(fit_overlap(&in, 0), (70.0 + 20.0) / 70); /* of device 0: [50, 120) and [100, 120) */
    is_near(fit_overlap(&in, 7), 0);
    is_near(fit_overlap(&in, 6), 10.0 / 110);
    in.one_by_one = true;
    is_near(fit_overlap(&in, 2), 0);
    fit_input_fini(&in);
}
END_TEST

/* Two ops of one device have 30 kernels or more of each kind, which take 20 % and 40 % longer. The
 * result is their mean, with the variances of both sides. 29 kernels say nothing, nor do those that
 * overlap by half. */
START_TEST(a_slowdown_is_the_mean_of_its_ops)
{
    static const struct {
        uint8_t op, device;
        int n;
        double overlap, ns, step;
    } all[] = {
        {OP_QKV, 0, 30, 0.1, 1000, 10}, {OP_QKV, 0, 30, 0.9, 1200, 20},
        {OP_FFN, 0, 40, 0.0, 2000, 50}, {OP_FFN, 0, 31, 1.0, 2800, 30},
        {OP_LAYER, 0, 29, 0.0, 500, 5}, {OP_LAYER, 0, 60, 1.0, 5000, 5},
        {OP_QKV, 0, 50, 0.5, 9000, 5},  {OP_QKV, 1, 50, 0.0, 100, 5},
        {OP_QKV, 1, 29, 1.0, 900, 5},   {OP_MHA, 0, 50, 0.0, 100, 1},
        {OP_MHA, 0, 50, 1.0, 900, 1},   {OP_QKV, 0, 40, 0.11, 9000, 1},
        {OP_QKV, 0, 40, 0.89, 9000, 1},
    };
    fit_input_init(&in, DRIVE_CLOCK_WALL);
    double overlap[1024];
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int k = 0; k < all[i].n; k++) {
            overlap[n++] = all[i].overlap;
            double ns = all[i].ns + all[i].step * (k - (all[i].n - 1) / 2.0);
            input_add((struct drive_kernel){
                .op = all[i].op, .device = all[i].device, .padded_rows = 1, .ns = (int64_t)(ns)});
        }
    }
    take(false);
    double ratio[2];
    double variance = 0;
    for (int op = 0; op < 2; op++) {
        double mean[2];
        for (int b = 0; b < 2; b++) {
            double sum = 0;
            double squares = 0;
            int m = all[2 * op + b].n;
            for (int k = 0; k < m; k++) {
                double x = (double)(int64_t)(all[2 * op + b].ns +
                                             all[2 * op + b].step * (k - (m - 1) / 2.0));
                sum += x;
                squares += x * x;
            }
            mean[b] = sum / m;
            variance += (squares / m / (mean[b] * mean[b]) - 1) / m;
        }
        ratio[op] = mean[1] / mean[0];
    }
    struct fit_device d = {.n_beside = 0};
    fit_beside(&in, overlap, 0, &d);
    double value = (ratio[0] + ratio[1]) / 2 - 1;
    double sd = sqrt(variance) / 2;
    ck_assert_uint_eq(d.n_beside, 61);
    is_near(d.beside.value, value);
    is_near(d.beside.low, value - 1.96 * sd);
    is_near(d.beside.high, value + 1.96 * sd);
    struct fit_device other = {.n_beside = 0}; /* 29 of a kind */
    fit_beside(&in, overlap, 1, &other);
    ck_assert(other.n_beside == 0 && other.beside.high == 0);
    fit_input_fini(&in);
}
END_TEST

/* Host times of runs are added up: each sum, the longest, and every octave. */
START_TEST(times_of_runs_are_added_up)
{
    fit_input_init(&in, DRIVE_CLOCK_WALL);
    static const int64_t ns[2][3] = {{1000, 3000, 1}, {500, 9000, 1500}};
    struct drive_times want[5] = {{0}};
    for (int run = 0; run < 2; run++) {
        struct drive_times *const to[] = {&report.schedule, &report.submit, &report.completion,
                                          &report.tail, &report.reset};
        for (int k = 0; k < 5; k++) {
            for (int i = 0; i < 3; i++) {
                drive_times_add(to[k], ns[run][i] * (k + 1));
                drive_times_add(&want[k], ns[run][i] * (k + 1));
            }
        }
        report.n_residents = 2;
        report.residents = xcalloc(2, sizeof *report.residents);
        report.residents[0] = (struct drive_resident_time){DRIVE_LOAD, 1e6 * (run + 1),
                                                           1000000 * (3 + 2 * (int64_t)run)};
        report.residents[1] =
            (struct drive_resident_time){DRIVE_EVICT, 4, 250000000 / (1 + (int64_t)run)};
        take(run == 1);
    }
    const struct drive_times *const is[] = {&in.fit.schedule, &in.fit.submit, &in.fit.completion,
                                            &in.fit.tail, &in.fit.reset};
    for (int k = 0; k < 5; k++) {
        ck_assert(is[k]->n == want[k].n && is[k]->sum_ns == want[k].sum_ns &&
                  is[k]->sum_sq == want[k].sum_sq && is[k]->max_ns == want[k].max_ns);
        for (int i = 0; i < DRIVE_OCTAVES; i++) {
            ck_assert(is[k]->octave[i].n == want[k].octave[i].n &&
                      is[k]->octave[i].sum_ns == want[k].octave[i].sum_ns &&
                      is[k]->octave[i].sum_sq == want[k].octave[i].sum_sq);
        }
    }
    const struct fit_line *l = &in.fit.residents[DRIVE_LOAD];
    ck_assert(l->n == 2 && l->x == 3e6 && l->xx == 5e12);
    is_near(l->y, 8e-3);
    is_near(l->xy, 3e3 + 1e4);
    is_near(l->max_s, 5e-3);
    is_near(in.fit.residents[DRIVE_EVICT].max_s, 0.25);
    is_near(in.fit.residents[DRIVE_EVICT].x, 8);
    ck_assert(in.fit.residents[DRIVE_COMPILE].n == 0);
    fit_input_fini(&in);
}
END_TEST

/* ---- which path a prompt takes ---- */

static struct fit_split made;
static int kinds_few, kinds_many;

/* Kernels that some split explains, in kinds below and above it. */
static void collect(void *self, struct fit_split split, struct samples *to)
{
    (void)self;
    for (int i = 0; i < kinds_few + kinds_many; i++) {
        uint32_t rows = i < kinds_few ? 2 + (uint32_t)i : 300 + 40 * (uint32_t)(i - kinds_few);
        for (int again = 0; again < 2; again++) {
            struct sample *k = samples_add(to);
            *k = (struct sample){.t_s = 1e-4};
            for (int t = 0; t < 2; t++) { /* by the true split, then by the one asked about */
                struct fit_split p = t == 0 ? made : split;
                bool few = rows < p.few_below;
                double pairs = soc_ops_pairs(rows, rows, few ? 0 : p.tile);
                if (t == 0) {
                    k->t_s += few ? 9e-6 * pairs + 4e-5 * rows : 1e-6 * pairs + 2e-6 * rows;
                } else {
                    k->x[0] = 1;
                    k->x[few ? 1 : 3] = pairs;
                    k->x[few ? 2 : 4] = rows;
                }
            }
            k->t_s *= again == 0 ? 0.99 : 1.01; /* repeats scatter */
        }
    }
    samples_screen(to);
}

START_TEST(the_split_that_made_the_kernels_is_found)
{
    static const struct fit_split all[] = {{0, 0}, {32, 0}, {32, 64}, {0, 32}, {0, 128}};
    kinds_few = 6;
    kinds_many = 10;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        made = all[i];
        struct fit_split is = fit_prompt_split(collect, NULL);
        if (made.few_below == 0) {
            ck_assert_msg(is.few_below == 0 && is.tile == made.tile, "%zu: %u %u", i, is.few_below,
                          is.tile);
        } else { /* rows are 2 to 7, then 300 and more: any change between says the same */
            ck_assert_msg(is.few_below >= 8 && is.few_below <= 256 && is.tile == made.tile,
                          "%zu: %u %u", i, is.few_below, is.tile);
        }
    }
    /* three kinds on a path are too few to tell it */
    made = (struct fit_split){32, 0};
    kinds_few = 3;
    struct fit_split is = fit_prompt_split(collect, NULL);
    ck_assert_uint_eq(is.few_below, 0);
    kinds_few = 4;
    is = fit_prompt_split(collect, NULL);
    ck_assert_uint_gt(is.few_below, 0);
    kinds_few = 6;
    kinds_many = 3;
    is = fit_prompt_split(collect, NULL);
    ck_assert_uint_eq(is.few_below, 0);
}
END_TEST

/* ---- a machine's file ---- */

/* Everything that a fit writes of its devices, each with another number. */
START_TEST(every_number_is_written_in_its_place)
{
    cJSON *soc = cJSON_Parse(
        "{\"name\":\"x\",\"hwmodel\":\"old\",\"ddr\":{\"peak\":{\"value\":50}},\"host\":{},"
        "\"loader\":{},\"compiler\":{},\"devices\":["
        "{\"runtimes\":[{\"weight_bits\":8,\"valid\":{\"rows_max\":1},\"ops\":{}}]},"
        "{\"runtimes\":[{\"weight_bits\":8},{\"weight_bits\":8}]}]}");
    static struct fit f;
    f = (struct fit){.n_devices = 2};
    for (int i = 0; i < 2; i++) {
        struct fit_device *d = &f.devices[i];
        static const int ops[] = {OP_QKV, OP_FFN, OP_HEAD};
        for (int k = 0; k < 3; k++) {
            double v = 1e-6 * (10 * i + k + 1);
            d->token[ops[k]] = (struct fit_table){1, {4}, {{v, v / 2, 2 * v}}};
        }
        d->split = (struct fit_split){i == 0 ? 16 : 0, 32};
        for (int k = 0; k < FIT_PROMPT_TERMS; k++) {
            d->prefill[k].value = 1e-6 * (20 + 10 * i + k);
        }
        for (int k = 0; k < 3; k++) {
            d->decode[k].value = 1e-6 * (40 + 10 * i + k);
        }
        d->layer[0].value = 1e-6 * (60 + i);
        d->layer[1].value = 1e-9 * (70 + i);
        d->rows_max = 100 + (uint32_t)i;
        d->keys_max = 200 + (uint32_t)i;
    }
    f.devices[1].n_beside = 5;
    f.devices[1].beside = (struct fit_number){0.25, 0.125, 0.5};
    drive_times_add(&f.reset, 4000);
    struct llm llm = {.weight_bits = 8};
    (void)snprintf(llm.name, sizeof llm.name, "m");
    cJSON *got = fit_to_soc(&f, NULL, soc, &llm, "mine", "src");
#define TABLE(us, low, high) "[{\"rows\":4,\"us\":" us ",\"low\":" low ",\"high\":" high "}]"
#define OPS_1                                                                                      \
    "{\"model\":\"m\",\"source\":\"src\",\"qkv\":" TABLE("11", "5.5", "22") ",\"ffn\":" TABLE(     \
        "12", "6",                                                                                 \
        "24") ",\"head\":" TABLE("13", "6.5",                                                      \
                                 "26") ",\"prefill\":{\"fixed_us\":30,"                            \
                                       "\"pair_ns\":33000,\"row_us\":34,\"tile\":32},\"decode\":{" \
                                       "\"fixed_us\":50,\"key_ns\":51000,"                         \
                                       "\"row_us\":52},\"layer\":{\"fixed_us\":61,\"key_ns\":71}}"
    static const char *const want[3] = {
        "{\"model\":\"m\",\"source\":\"src\",\"qkv\":" TABLE("1", "0.5", "2") ",\"ffn\":" TABLE(
            "2", "1", "4") ",\"head\":" TABLE("3", "1.5",
                                              "6") ",\"prefill\":{\"fixed_us\":20,"
                                                   "\"pair_ns\":23000,\"row_us\":24,\"tile\":32,"
                                                   "\"few_below\":16,\"few_pair_ns\":21000,"
                                                   "\"few_row_us\":22},\"decode\":{\"fixed_us\":40,"
                                                   "\"key_ns\":41000,\"row_us\":42},"
                                                   "\"layer\":{\"fixed_us\":60,\"key_ns\":70}}",
        OPS_1, OPS_1};
    for (int i = 0; i < 3; i++) {
        const cJSON *d = cJSON_GetArrayItem(cJSON_GetObjectItem(got, "devices"), i > 0);
        const cJSON *r = cJSON_GetArrayItem(cJSON_GetObjectItem(d, "runtimes"), i == 2);
        cJSON *wanted = cJSON_Parse(want[i]);
        ck_assert_ptr_nonnull(wanted);
        const cJSON *is = cJSON_GetObjectItem(r, "ops");
        /* Numbers are compared within rounding. */
        OWNED char *x = cJSON_PrintUnformatted(is);
        OWNED char *y = cJSON_PrintUnformatted(wanted);
        const char *p = x;
        const char *q = y;
        while (*p != '\0' && *q != '\0') { /* number by number, and letter by letter between */
            if (strchr("0123456789", *p) != NULL && strchr("0123456789", *q) != NULL) {
                char *end_p;
                char *end_q;
                is_near(strtod(p, &end_p), strtod(q, &end_q));
                p = end_p;
                q = end_q;
            } else {
                ck_assert_msg(*p == *q, "%s\nnot\n%s", p, q);
                p++;
                q++;
            }
        }
        ck_assert(*p == *q);
        const cJSON *valid = cJSON_GetObjectItem(r, "valid");
        ck_assert_double_eq(cJSON_GetObjectItem(valid, "rows_max")->valuedouble, 100 + (i > 0));
        ck_assert_double_eq(cJSON_GetObjectItem(valid, "context_max")->valuedouble, 200 + (i > 0));
        const cJSON *beside = cJSON_GetObjectItem(d, "beside");
        ck_assert((beside != NULL) == (i > 0));
        if (beside != NULL) {
            ck_assert_double_eq(cJSON_GetObjectItem(beside, "value")->valuedouble, 0.25);
            ck_assert_double_eq(cJSON_GetObjectItem(beside, "low")->valuedouble, 0.125);
            ck_assert_double_eq(cJSON_GetObjectItem(beside, "high")->valuedouble, 0.5);
        }
        const cJSON *reset = cJSON_GetObjectItem(d, "reset");
        ck_assert_double_eq(cJSON_GetObjectItem(reset, "value")->valuedouble, 4);
        ck_assert_ptr_null(cJSON_GetObjectItem(d, "submit"));
        cJSON_Delete(wanted);
    }
    ck_assert_str_eq(cJSON_GetObjectItem(got, "hwmodel")->valuestring, "per-op");
    ck_assert_str_eq(cJSON_GetObjectItem(got, "contention")->valuestring, "beside");
    ck_assert_str_eq(cJSON_GetObjectItem(soc, "hwmodel")->valuestring, "old");
    cJSON_Delete(got);
    cJSON_Delete(soc);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("kernels of a fit"),
    TEST(terms_are_of_a_kernels_own_segments),
    TEST(one_row_is_no_attention_and_no_head),
    TEST(an_overlap_is_the_share_of_others),
    TEST(a_slowdown_is_the_mean_of_its_ops),
    TEST(times_of_runs_are_added_up),
    TEST(the_split_that_made_the_kernels_is_found),
    TEST(every_number_is_written_in_its_place),
};
SUITE_MAIN("kernels of a fit", suite)

/* People and SoC files see a calibration in these forms. A fit is made up, with a parameter in each
 * state. Every number must be in its place and unit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/interval.h"
#include "experiments/validation/calibrate_report.h"
#include "sim/base/json.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"

enum { ROWS = 5 };

static struct soc soc;
static struct point points[ROWS];
static struct calibrate_row rows[ROWS];
static struct calibrate_entry entry;

static const char *const names[] = {"rate",
                                    "bandwidth",
                                    "launch",
                                    "row_fill",
                                    "attention",
                                    "width_fill",
                                    "one_row.bandwidth",
                                    "one_row.launch",
                                    "enqueue",
                                    "prompt_enqueue",
                                    "special_attention"};
static const char *const units[] = {"TFLOP/s", "GB/s", "us", "rows", "1", "columns",
                                    "GB/s",    "us",   "us", "us",   "1"};
static const double si[] = {1e12, 1e9, 1e-6, 1, 1, 1, 1e9, 1e-6, 1e-6, 1e-6, 1};
static const enum calibrate_state states[] = {CALIBRATE_FITTED, CALIBRATE_FITTED, CALIBRATE_HELD,
                                              CALIBRATE_BOUND,  CALIBRATE_HELD,   CALIBRATE_ABSENT,
                                              CALIBRATE_FITTED, CALIBRATE_HELD,   CALIBRATE_ABSENT,
                                              CALIBRATE_ABSENT, CALIBRATE_ABSENT};

/* Parameter k is 10 + k in its file's unit, +- 0.5, from 9 + k to 12 + k. */
static void setup(void)
{
    memset(&soc, 0, sizeof soc);
    (void)snprintf(soc.machine.name, sizeof soc.machine.name, "here");
    soc.machine.n_devices = 2;
    (void)snprintf(soc.machine.devices[1].name, sizeof soc.machine.devices[1].name, "igpu");
    soc.machine.devices[1].kind = DEVICE_KIND_IGPU;
    struct soc_runtime *r = &soc.devices[1].runtimes[2];
    (void)snprintf(r->runtime, sizeof r->runtime, "ov-2025");
    r->weight_bits = 4;
    r->start = (struct soc_start){.given = true,
                                  .flop_per_s = 1e12,
                                  .bytes_per_s = 2e9,
                                  .launch_s = 3e-6,
                                  .fill_rows = 4,
                                  .attention_frac = 0.5,
                                  .width_fill = 6,
                                  .one_bytes_per_s = 7e9,
                                  .one_launch_s = 8e-6};
    static const char *const metrics[] = {"ttft_ms", "tpot_ms", "ttft_ms", "tpot_ms", "ttft_ms"};
    static const uint32_t tokens[] = {1024, 512, 32, 0, 2048};
    for (int i = 0; i < ROWS; i++) {
        points[i] = (struct point){.line = 10 + (uint64_t)i,
                                   .metric = i % 2 == 0 ? POINT_TTFT_MS : POINT_TPOT_MS,
                                   .input_tokens = tokens[i],
                                   .batch = 1};
        points[i].metric_name = xkeep(xstrdup(metrics[i]));
        points[i].soc = xkeep(xformat("soc-%d", i));
        rows[i] = (struct calibrate_row){.point = &points[i], .ln_error = 0.125 * i};
        rows[i].k.llm.weight_bytes = 1e9 * (i * 2 % 5);
        rows[i].k.llm.body_weights = 1e9 * (i * 2 % 5);
    }
    entry =
        (struct calibrate_entry){.set = {.soc = &soc,
                                         .device = 1,
                                         .runtime = 2,
                                         .rows = rows,
                                         .n = ROWS,
                                         .groups = {{"a", "r1", true}, {"b", "r2", false}},
                                         .n_groups = 2},
                                 .fitted = true,
                                 .sigma = {0.125, 0.0625},
                                 .seen = {{3, 0.0625, 0.25}, {2, 0.125, 0.5}, {0, NAN, NAN}},
                                 .unseen = {{3, 0.1875, 0.375}, {2, 0.21875, 0.75}, {0, NAN, NAN}},
                                 .leave_refused = 2,
                                 .rows_max = 2048,
                                 .context_max = 513,
                                 .fit = {.n_models = 4, .rounds = 6}};
    entry.fit.offset[0][0] = log(1.5);
    entry.fit.offset[0][1] = log(0.75);
    entry.fit.offset[1][0] = log(2);
    entry.fit.offset[1][1] = log(1.25);
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        entry.fit.state[k] = states[k];
        entry.fit.value[k] = (10 + k) * si[k];
        entry.fit.se[k] = 0.5 * si[k];
        entry.fit.low[k] = (9 + k) * si[k];
        entry.fit.high[k] = (12 + k) * si[k];
        for (int j = 0; j < CALIBRATE_N_PARAMS; j++) {
            entry.fit.covariance[k][j] = 0.5 * k + 0.0625 * j;
        }
    }
}

static void near(const cJSON *o, double want)
{
    ck_assert_msg(isnan(want)
                      ? cJSON_IsNull(o)
                      : cJSON_IsNumber(o) && fabs(o->valuedouble - want) <= 1e-9 * fabs(want),
                  "%g, not %g", o != NULL ? o->valuedouble : (double)NAN, want);
}

#define NUMBERS                                                                                    \
    "rate 10 +- 0.5 TFLOP/s\nbandwidth 11 +- 0.5 GB/s\nlaunch 12 us not determined: held at its "  \
    "start\nrow_fill 13 rows at its bound; the points allow 12 to 15\nattention 14 1 not "         \
    "determined: held at its start\none_row.bandwidth 16 +- 0.5 GB/s\none_row.launch 17 us not "   \
    "determined: held at its start\n"
#define REST                                                                                       \
    "|error|, % rows median P90 models left out: median P90\nprefill 3 6.2 25.0 3 18.8 37.5\n"     \
    "decode 2 12.5 50.0 2 21.9 75.0\nresidual noise on models left out: prefill 0.125, decode "    \
    "0.062 (as sim.annotation.sigma_*)\n"
#define REFUSED "2 models left out left too little for a fit: predicted from the starting values\n"

START_TEST(a_calibration_is_told_whole)
{
    struct document *d = document_new();
    calibrate_entry_document(&entry, d);
    shown_is(d,
             "igpu, ov-2025, 4 bits: 5 points of 4 models, 6 rounds\n" NUMBERS
             "a under r1: rate x 1.500, bandwidth x 0.750 of the pool's, counted in\n"
             "b under r2: rate x 2.000, bandwidth x 1.250 of the pool's\n" REST REFUSED "\n",
             NULL);
    cJSON *tree = document_json(d);
    ck_assert_str_eq(json_string(tree, "device"), "igpu");
    ck_assert_str_eq(json_string(tree, "runtime"), "ov-2025");
    near(cJSON_GetObjectItem(tree, "weight_bits"), 4);
    near(cJSON_GetObjectItem(tree, "points"), 5);
    near(cJSON_GetObjectItem(tree, "models"), 4);
    near(cJSON_GetObjectItem(tree, "sigma_prefill"), 0.125);
    near(cJSON_GetObjectItem(tree, "sigma_decode"), 0.0625);
    const cJSON *params = cJSON_GetObjectItem(tree, "parameters");
    const cJSON *covariance = cJSON_GetObjectItem(tree, "ln_covariance");
    ck_assert_int_eq(cJSON_GetArraySize(params), 7);
    ck_assert_int_eq(cJSON_GetArraySize(covariance), 7);
    int at = 0;
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        static const char *const words[] = {"absent", "fitted", "held", "bound"};
        const cJSON *p = cJSON_GetObjectItem(params, names[k]);
        ck_assert((p == NULL) == (states[k] == CALIBRATE_ABSENT));
        if (p == NULL) {
            continue;
        }
        near(cJSON_GetObjectItem(p, "value"), 10 + k);
        ck_assert_str_eq(json_string(p, "unit"), units[k]);
        near(cJSON_GetObjectItem(p, "low"), 9 + k);
        near(cJSON_GetObjectItem(p, "high"), 12 + k);
        ck_assert_str_eq(json_string(p, "state"), words[states[k]]);
        ck_assert((cJSON_GetObjectItem(p, "se") != NULL) == (states[k] == CALIBRATE_FITTED));
        const cJSON *row = cJSON_GetArrayItem(covariance, at++);
        ck_assert_int_eq(cJSON_GetArraySize(row), 7);
        int column = 0;
        for (int j = 0; j < CALIBRATE_N_PARAMS; j++) {
            if (states[j] != CALIBRATE_ABSENT) {
                near(cJSON_GetArrayItem(row, column++), 0.5 * k + 0.0625 * j);
            }
        }
    }
    static const char *const kinds[] = {"prefill", "decode", "short prefill"};
    for (int k = 0; k < 3; k++) {
        const cJSON *a = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "errors"), kinds[k]);
        const cJSON *b =
            cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "errors_leave_one_model_out"), kinds[k]);
        near(cJSON_GetObjectItem(a, "n"), (double)entry.seen[k].n);
        near(cJSON_GetObjectItem(a, "median"), entry.seen[k].median);
        near(cJSON_GetObjectItem(a, "p90"), entry.seen[k].p90);
        near(cJSON_GetObjectItem(b, "n"), (double)entry.unseen[k].n);
        near(cJSON_GetObjectItem(b, "median"), entry.unseen[k].median);
        near(cJSON_GetObjectItem(b, "p90"), entry.unseen[k].p90);
    }
    const cJSON *list = cJSON_GetObjectItem(tree, "rows");
    ck_assert_int_eq(cJSON_GetArraySize(list), ROWS);
    for (int i = 0; i < ROWS; i++) {
        const cJSON *row = cJSON_GetArrayItem(list, i);
        near(cJSON_GetObjectItem(row, "line"), 10 + i);
        ck_assert_str_eq(json_string(row, "soc"), points[i].soc);
        ck_assert_str_eq(json_string(row, "metric"), points[i].metric_name);
        near(cJSON_GetObjectItem(row, "input_tokens"), points[i].input_tokens);
        near(cJSON_GetObjectItem(row, "unseen_ln_error"), 0.125 * i);
    }
    cJSON_Delete(tree);
}
END_TEST

/* One group has no offset, and text about refused points is left out where none is refused. The
 * interval is of the model in the middle by its weights: 2 of 0 to 4 GB. */
START_TEST(an_interval_is_of_the_middle_model)
{
    struct err e = ERR_INIT;
    const struct conformal *table = interval_table(&e);
    ck_assert_ptr_nonnull(table);
    entry.residuals = table;
    entry.set.n_groups = 1;
    entry.leave_refused = 0;
    struct soc_runtime r = soc.devices[1].runtimes[2];
    struct llm m = {.weight_bytes = 2e9, .body_weights = 2e9};
    struct conformal_interval prefill = interval_of(table, &soc, 1, &r, &m, true, 1024);
    struct conformal_interval decode = interval_of(table, &soc, 1, &r, &m, false, 1024);
    OWNED char *a = interval_text(&prefill);
    OWNED char *b = interval_text(&decode);
    struct document *d = document_new();
    calibrate_entry_document(&entry, d);
    OWNED char *want = xformat("igpu, ov-2025, 4 bits: 5 points of 4 models, 6 rounds\n%s%s95 %% "
                               "interval of an unseen model's prefill: %s\n95 %% interval of an "
                               "unseen model's decode: %s\n\n",
                               NUMBERS, REST, a, b);
    shown_is(d, want, NULL);
}
END_TEST

START_TEST(a_refusal_is_told)
{
    entry.fitted = false;
    (void)snprintf(entry.refusal, sizeof entry.refusal, "too few models");
    struct document *d = document_new();
    calibrate_entry_document(&entry, d);
    shown_is(d,
             "igpu, ov-2025, 4 bits: 5 points; not fitted, the file's values stay\ntoo few "
             "models\n\n",
             "{\"device\":\"igpu\",\"runtime\":\"ov-2025\",\"weight_bits\":4,\"points\":5,"
             "\"not_fitted\":\"too few models\"}");
}
END_TEST

/* A file gets each number that is fitted or at its bound, with its range. A held number is written
 * only where an earlier fit had set it. Keys that the file lacks are not made. */
START_TEST(a_calibration_is_written_whole)
{
    cJSON *r = cJSON_CreateObject();
    cJSON *one = cJSON_CreateObject();
    static const struct {
        const char *key, *kind;
    } had[] = {{"rate", "datasheet"},   {"bandwidth", "fitted"},  {"launch", "fitted"},
               {"row_fill", "assumed"}, {"attention", "assumed"}, {"bandwidth", "assumed"}};
    for (int i = 0; i < 6; i++) {
        cJSON *q = cJSON_CreateObject();
        (void)cJSON_AddNumberToObject(q, "value", 1);
        (void)cJSON_AddStringToObject(q, "unit", "x");
        (void)cJSON_AddStringToObject(q, "kind", had[i].kind);
        (void)cJSON_AddItemToObject(i < 5 ? r : one, had[i].key, q);
    }
    (void)cJSON_AddItemToObject(r, "one_row", one);
    (void)cJSON_AddStringToObject(r, "runtime", "ov-2025");
    (void)cJSON_AddStringToObject(r, "fit", "old");
    (void)cJSON_AddStringToObject(r, "valid", "old");
    calibrate_entry_write(&entry, "table.csv", r);
    static const struct {
        int k;
        double low, high;
        const char *kind, *how;
    } want[] = {
        {0, 9, 12, "fitted", "range: 2 standard errors"},
        {1, 10, 13, "fitted", "range: 2 standard errors"},
        {2, 6, 24, "assumed", "not determined by them: the value before, a factor of 2 either way"},
        {3, 12, 15, "fitted", "at its physical bound; range: profile"},
        {6, 15, 18, "fitted", "range: 2 standard errors"},
    };
    for (int i = 0; i < 5; i++) {
        int k = want[i].k;
        const cJSON *q = k == 6
                             ? cJSON_GetObjectItem(cJSON_GetObjectItem(r, "one_row"), "bandwidth")
                             : cJSON_GetObjectItem(r, names[k]);
        near(cJSON_GetObjectItem(q, "value"), 10 + k);
        near(cJSON_GetObjectItem(q, "low"), want[i].low);
        near(cJSON_GetObjectItem(q, "high"), want[i].high);
        ck_assert_str_eq(json_string(q, "kind"), want[i].kind);
        ck_assert_str_eq(json_string(q, "unit"), units[k]);
        OWNED char *source = xformat("fit to 5 points of 4 models in table.csv; %s", want[i].how);
        ck_assert_str_eq(json_string(q, "source"), source);
    }
    near(cJSON_GetObjectItem(cJSON_GetObjectItem(r, "attention"), "value"), 1);
    ck_assert_str_eq(json_string(cJSON_GetObjectItem(r, "attention"), "kind"), "assumed");
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(r, "one_row")), 1);
    OWNED char *valid = cJSON_PrintUnformatted(cJSON_GetObjectItem(r, "valid"));
    ck_assert_str_eq(valid, "{\"rows_max\":2048,\"context_max\":513}");
    OWNED char *fit = cJSON_PrintUnformatted(cJSON_GetObjectItem(r, "fit"));
    ck_assert_str_eq(
        fit,
        "{\"start\":{\"rate\":1,\"bandwidth\":2,\"launch\":3,\"row_fill\":4,"
        "\"attention\":0.5,\"width_fill\":6,\"one_row_bandwidth\":7,\"one_row_launch\":8},"
        "\"points\":\"table.csv\",\"n\":5,\"models\":4,\"sigma_prefill\":0.125,"
        "\"sigma_decode\":0.0625,\"parameters\":[\"rate\",\"bandwidth\",\"one_row.bandwidth\"],"
        "\"ln_covariance\":[[0,0.0625,0.375],[0.5,0.5625,0.875],[3,3.062,3.375]],"
        "\"unseen_prefill\":{\"median\":0.1875,\"p90\":0.375},"
        "\"unseen_decode\":{\"median\":0.2188,\"p90\":0.75}}");
    ck_assert_int_eq(cJSON_GetArraySize(r), 9);
    cJSON_Delete(r);
    /* without rows of a phase its noise and errors are not written */
    entry.sigma[1] = (double)NAN;
    entry.unseen[CALIBRATE_DECODE].n = 0;
    cJSON *other = cJSON_CreateObject();
    calibrate_entry_write(&entry, "t", other);
    const cJSON *f = cJSON_GetObjectItem(other, "fit");
    ck_assert_ptr_null(cJSON_GetObjectItem(f, "sigma_decode"));
    ck_assert_ptr_null(cJSON_GetObjectItem(f, "unseen_decode"));
    ck_assert_ptr_nonnull(cJSON_GetObjectItem(f, "unseen_prefill"));
    ck_assert_int_eq(cJSON_GetArraySize(other), 2);
    cJSON_Delete(other);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("a calibration told", .setup = setup), TEST(a_calibration_is_told_whole),
    TEST(an_interval_is_of_the_middle_model),   TEST(a_refusal_is_told),
    TEST(a_calibration_is_written_whole),
};
SUITE_MAIN("a calibration told", suite)

/* Figures hand data to gnuplot, and these tests check it number by number, from files written by
 * hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plots/about.h"
#include "plots/figure.h"
#include "plots/palette.h"
#include "plots/svg_compact.h"
#include "tests/helpers/suite.h"

static char path[] = "/tmp/xpusim-check-figures-XXXXXX";
static struct figure_data data;
static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    figure_data_init(&data);
}

static void teardown(void)
{
    figure_data_fini(&data);
    err_fini(&err);
    (void)remove(path);
}

static void put(const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static const char *drawn(const char *figure, struct figure_request q)
{
    ck_assert_int_eq(figure_input_add(&q, path, &err), 0);
    int rc = figure_prepare(figure_find(figure), &q, &data, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
    (void)fflush(data.tsv);
    return data.tsv_text;
}

/* A block per column and class: value and share at or below it. A value that never came is left
 * out of its column only. */
START_TEST(distributions_are_shares_of_each_class)
{
    put("request_id,class,ttft_s,tpot_s,e2e_s\n"
        "0,reactive,3,0.1,9\n"
        "1,proactive,5,0.3,20\n"
        "2,reactive,1,,4\n");
    ck_assert_str_eq(drawn("cdf", (struct figure_request){0}), "reactive\n1\t0.5\n3\t1\n\n\n"
                                                               "proactive\n5\t1\n\n\n"
                                                               "reactive\n0.1\t1\n\n\n"
                                                               "proactive\n0.3\t1\n\n\n"
                                                               "reactive\n4\t0.5\n9\t1\n\n\n"
                                                               "proactive\n20\t1\n");
}
END_TEST

/* One of two requests that did not finish has a first token. It is in no distribution. */
START_TEST(distributions_are_of_finished_requests)
{
    put("request_id,class,ttft_s,tpot_s,e2e_s,state,input_tokens,output_tokens\n"
        "0,reactive,3,0.1,9,finished,10,61\n"
        "1,reactive,8,,,decode,20,5\n"
        "2,reactive,,,,shed,30,0\n");
    ck_assert_str_eq(drawn("cdf", (struct figure_request){0}),
                     "reactive\n3\t1\n\n\nproactive\n\n\n"
                     "reactive\n0.1\t1\n\n\nproactive\n\n\n"
                     "reactive\n9\t1\n\n\nproactive\n");
}
END_TEST

START_TEST(lengths_are_of_finished_requests)
{
    put("class,state,input_tokens,output_tokens\n"
        "reactive,finished,10,61\n"
        "reactive,decode,20,5\n");
    ck_assert_str_eq(drawn("lengths", (struct figure_request){0}),
                     "reactive\n10\t1\n\n\nproactive\n\n\nreactive\n61\t1\n\n\nproactive\n");
}
END_TEST

/* Two devices, what holds of the machine from 4 to 8 s, and a track of requests, which is not
 * drawn. The second device's decode is cut at the window's end. */
static const char timeline[] =
    "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
    "{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"npu\"}},\n"
    "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"igpu\"}},\n"
    "{\"ph\":\"B\",\"pid\":1,\"tid\":0,\"ts\":1000000,\"name\":\"prefill 7\","
    "\"args\":{\"class\":\"reactive\",\"request\":7}},\n"
    "{\"ph\":\"B\",\"pid\":2,\"tid\":0,\"ts\":1000000,\"name\":\"decode\","
    "\"args\":{\"class\":\"reactive\",\"sequences\":9}},\n"
    "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":2000000,\"name\":\"decode 3\","
    "\"args\":{\"class\":\"proactive\",\"sequences\":3}},\n"
    "{\"ph\":\"E\",\"pid\":1,\"tid\":0,\"ts\":3000000},\n"
    "{\"ph\":\"E\",\"pid\":2,\"tid\":0,\"ts\":3500000},\n"
    "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":6000000},\n"
    "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\","
    "\"args\":{\"name\":\"conditions\"}},\n"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":4000000,\"dur\":4000000,\"name\":\"battery\"},\n"
    "{\"ph\":\"C\",\"pid\":1,\"tid\":0,\"ts\":8000000,\"name\":\"live requests\","
    "\"args\":{\"reactive\":0,\"proactive\":0}}\n"
    "]}\n";

START_TEST(each_bar_is_in_the_block_of_its_kind)
{
    put(timeline);
    ck_assert_str_eq(drawn("gantt", (struct figure_request){.to_s = 5}),
                     "reactive prefill\n0\t1\t3\n\n\n"
                     "reactive decode\n\n\n"
                     "proactive prefill\n\n\n"
                     "proactive decode\n1\t2\t5\n\n\n"
                     "load or compile\n\n\n"
                     "conditions\n2\t4\t5\n\n\n"
                     "preemption asked\n\n\n"
                     "what holds\n2\t4\tbattery\n\n\n"
                     "requests\n0\t2\t7\t2\n\n\n" /* in the middle; the other bar names none */
                     "busy\n0\t0.4\n1\t0.6\n");
}
END_TEST

/* Both devices are asked at one instant: each row has its mark, and one a pixel later on the same
 * row is not drawn on top of it. */
START_TEST(a_preemption_asked_of_two_devices_shows_on_both_rows)
{
    put("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"B\",\"pid\":1,\"tid\":0,\"ts\":1000000,\"name\":\"decode 1\",\"args\":{}},\n"
        "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":1000000,\"name\":\"decode 1\",\"args\":{}},\n"
        "{\"ph\":\"i\",\"pid\":1,\"tid\":0,\"ts\":2000000,\"name\":\"preempt asked\"},\n"
        "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":2000000,\"name\":\"preempt asked\"},\n"
        "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":2005000,\"name\":\"preempt asked\"},\n"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":0,\"ts\":3000000},\n"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3000000}\n"
        "]}\n");
    const char *text = strstr(drawn("gantt", (struct figure_request){.to_s = 5}), "preemption");
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, "preemption asked\n0\t2\n1\t2\n\n\nwhat holds\n\n\nrequests\n\n\n"
                           "busy\n0\t0.4\n1\t0.4\n");
}
END_TEST

/* 2 TFLOP/s over 100 GB/s: below 20 flop a byte the roof rises by 0.1 TFLOP/s for each, above it is
 * flat.
 */
START_TEST(a_roof_has_its_corner_at_the_knee)
{
    put("{\"about\":{\"kind\":\"kernels\"},\"kernels\":[{\"device\":\"npu\",\"op\":\"ffn\","
        "\"work\":\"prefill\","
        "\"flop_per_byte\":10,\"flop_per_s\":5e11}],"
        "\"roofs\":[{\"device\":\"npu\",\"flop_per_s\":2e12,\"bytes_per_s\":1e11}]}");
    const char *text = drawn("roofline", (struct figure_request){0});
    double at[3];
    double tflops[3];
    ck_assert_int_eq(sscanf(text, "npu %lf %lf %lf %lf %lf %lf", &at[0], &tflops[0], &at[1],
                            &tflops[1], &at[2], &tflops[2]),
                     6);
    ck_assert_double_lt(at[0], 20.0);
    ck_assert_double_eq_tol(tflops[0], 0.1 * at[0], 1e-9);
    ck_assert_double_eq_tol(at[1], 20.0, 1e-9);
    ck_assert_double_eq_tol(tflops[1], 2.0, 1e-9);
    ck_assert_double_gt(at[2], 20.0);
    ck_assert_double_eq_tol(tflops[2], 2.0, 1e-9);
}
END_TEST

/* Three sequences decode from 2 to 6 of 8 s, on the machine; the requests' own tracks are not
 * counted again. While they do the batch is 3; before and after there is none. */
START_TEST(decoding_sequences_are_counted_while_they_decode)
{
    put(timeline);
    const char *text = strstr(drawn("queue", (struct figure_request){0}), "decod");
    ck_assert_ptr_nonnull(text);
    double t;
    double v;
    int with = 0;
    int without = 0;
    for (text = strchr(text, '\n'); text != NULL && sscanf(text, " %lf %lf", &t, &v) == 2;
         text = strchr(text + 1, '\n')) {
        if (t > 2.1 && t < 5.9) {
            ck_assert_double_eq_tol(v, 3.0, 1e-9);
            with++;
        } else if (t < 1.9 || t > 6.1) {
            ck_assert(isnan(v));
            without++;
        }
    }
    ck_assert_int_gt(with, 10);
    ck_assert_int_gt(without, 10);
}
END_TEST

/* The last of 2, 3 and 100 is over four times the next: the axis ends at 3's interval, 3.5, and
 * without intervals 5 % behind 3. Nothing of 2, 3 and 11 is cut; of 1 and 100, each half, the
 * larger is. */
START_TEST(an_outlier_does_not_flatten_the_rest)
{
    double nan = (double)NAN;
    ck_assert_double_eq_tol(figure_bars_end((double[]){2, 100, 3}, (double[]){2.5, 130, 3.5}, 3),
                            3.5, 1e-12);
    ck_assert_double_eq_tol(figure_bars_end((double[]){2, 100, 3}, (double[]){nan, nan, nan}, 3),
                            3.15, 1e-12);
    ck_assert_double_eq_tol(figure_bars_end((double[]){2, 11, 3}, (double[]){nan, 12, nan}, 3),
                            12.0, 1e-12);
    ck_assert_double_eq_tol(figure_bars_end((double[]){1, 100}, (double[]){nan, nan}, 2), 1.05,
                            1e-12);
    ck_assert(figure_bars_end((double[]){nan, 0}, (double[]){nan, nan}, 2) == 0.0);
}
END_TEST

/* A common policy has its colour in any order of policies. With parameters it has its name's
 * colour, and still another mark. An unknown policy takes a colour that no other has, and keeps
 * it. */
START_TEST(a_policy_keeps_its_colour)
{
    unsigned stranger = palette_slot("my-policy");
    unsigned other = palette_slot("another");
    ck_assert_uint_ne(stranger % PALETTE_COLOURS, other % PALETTE_COLOURS);
    static const char *const usual[] = {"openvino-cb", "agent-xpu-v2", "fcfs",
                                        "edf",         "vllm-v1",      "agent-xpu-v1"};
    for (size_t i = 0; i < 6; i++) {
        ck_assert_uint_ne(palette_slot(usual[i]) % PALETTE_COLOURS, stranger % PALETTE_COLOURS);
        for (size_t k = 0; k < i; k++) {
            ck_assert_uint_ne(palette_slot(usual[i]), palette_slot(usual[k]));
        }
    }
    unsigned whole = palette_slot("openvino-cb:variant=whole");
    unsigned vllm = palette_slot("openvino-cb:variant=vllm");
    ck_assert_uint_eq(whole % PALETTE_COLOURS, palette_slot("openvino-cb") % PALETTE_COLOURS);
    ck_assert_uint_ne(whole, palette_slot("openvino-cb"));
    ck_assert_uint_ne(whole, vllm);
    ck_assert_uint_eq(palette_slot("my-policy"), stranger);
    ck_assert_uint_eq(palette_slot("openvino-cb:variant=whole"), whole);
    ck_assert_uint_eq(palette_slot("my-policy:k=1") % PALETTE_COLOURS, stranger % PALETTE_COLOURS);
}
END_TEST

/* Drawn parts stay: one line of three points, a box of two neighbours, the text at its place with
 * its colour. Parts that show nothing go: the empty group, the tic of no length, the shape nobody
 * uses. */
START_TEST(a_small_picture_shows_the_same)
{
    char *svg =
        svg_compact("<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 9 9\">\n<title>Gnuplot</title>\n"
                    "<g id=\"gnuplot_canvas\">\n<defs>\n<circle id='gpDot' r='0.5'/>\n</defs>\n"
                    "<g fill=\"none\" stroke=\"currentColor\">\n</g>\n"
                    "<g fill=\"none\" stroke=\"currentColor\"><path stroke='rgb( 68,  68, 68)' "
                    "d='M1.04,2.00 L3.06,4.00 L5.00,6.00'/>\n<path stroke='rgb( 68,  68, 68)' "
                    "class=\"x\" d='M7.00,8.00'/></g>\n<g stroke='none'>"
                    "<polygon fill = 'rgb(1,2,3)' points = '0,0 1,0 1,1'/>"
                    "<polygon fill = 'rgb(1,2,3)' points = '2,0 3,0 3,1'/></g>\n"
                    "<g transform=\"translate(5.20,6.90)\" stroke=\"none\" fill=\"rgb(176,0,32)\" "
                    "text-anchor=\"end\">\n<text>it's</text>\n</g>\n</g>\n</svg>\n");
    const char *with[] = {"<path stroke='#444' d='M1 2l2.1 2l1.9 2'/>",
                          "<path fill='#010203' d='M0 0h1v1zM2 0h1v1z'/>",
                          "<text x='5' y='7' style='fill:#b00020' text-anchor='end'>it's</text>",
                          "</g></svg>"};
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        ck_assert_msg(strstr(svg, with[i]) != NULL, "%s\nis not in\n%s", with[i], svg);
    }
    ck_assert_ptr_null(strstr(svg, "gpDot"));
    ck_assert_ptr_null(strstr(svg, "M7"));
    ck_assert_ptr_null(strchr(svg, '"'));
    free(svg);
}
END_TEST

/* Steps along an axis are single numbers, a point on the way is left out, a move without a line
 * too; what turns back stays. A curve is not an outline. */
START_TEST(an_outline_is_short_and_draws_the_same)
{
    static const char *const is[][2] = {
        {"M70,304 366.7,304 M366.7,42 M70,42", "M70 304h296.7"},
        {"M1,1 1,2 1,5.04 3,5", "M1 1v4h2"},
        {"M0,0 2,0 1,0", "M0 0h2h-1"},
        {"M-1,-2 -3,-4", "M-1-2l-2-2"},
        {"M5,5 5,5", ""},
        {"M1,1 2,1 2,2 Z M4,4 5,4", "M1 1h1v1zM4 4h1"},
    };
    for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
        struct text out = {0};
        ck_assert(svg_outline(&out, is[i][0], strlen(is[i][0]), false));
        text_char(&out, '\0');
        ck_assert_str_eq(out.p, is[i][1]);
        free(out.p);
    }
    struct text none = {0};
    ck_assert(!svg_outline(&none, "M1,1 C 2,2 3,3 4,4", 18, false) && none.n == 0);
    free(none.p);
}
END_TEST

/* A CSV states facts and kinds before its header; a file without them has a kind, too. */
START_TEST(a_file_says_what_it_is)
{
    put("# kind: requests later\n# policy: fcfs:device=npu\nrequest_id,class\n1,reactive\n");
    cJSON *tree;
    cJSON *about = about_read(path, &tree, &err);
    ck_assert_str_eq(about_fact(about, "policy"), "fcfs:device=npu");
    ck_assert(about_is(about, "timeline requests") && about_is(about, "later"));
    ck_assert(!about_is(about, "request requestslater"));
    cJSON_Delete(about);
    put("a,b\n1,2\n");
    about = about_read(path, &tree, &err);
    ck_assert_str_eq(about_fact(about, "kind"), "table");
    cJSON_Delete(about);
    put(timeline);
    about = about_read(path, &tree, &err);
    ck_assert_str_eq(about_fact(about, "kind"), "timeline");
    ck_assert_ptr_null(tree);
    cJSON_Delete(about);
}
END_TEST

/* Name, mean, and the interval from below: of one metric asked for. Nothing sticks out, so the axis
 * ends where the highest interval does. */
START_TEST(bars_have_their_interval)
{
    put("{\"about\":{\"kind\":\"compare\"},"
        "\"policies\":{\"fcfs\":{\"decisions\":{\"mean\":5,\"low\":4,\"high\":7}},"
        "\"edf\":{\"decisions\":{\"mean\":9,\"low\":8,\"high\":12}}}}");
    struct figure_request q = {.metrics = {"decisions"}, .n_metrics = 1};
    const char *text = drawn("headline", q);
    ck_assert_msg(strstr(text, "fcfs\t5\t4\t7\t12\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "edf\t9\t8\t12\t12\n") != NULL, "%s", text);
}
END_TEST

/* Victims are rows, aggressors on the other engine columns; other metrics of the study are not
 * slowdowns. */
START_TEST(slowdowns_beside_the_other_engine)
{
    put("study,device,what,x_name,x,metric,value,unit\n"
        "corun,npu,GEMM beside GEMV,n,1,slowdown,1.5,1\n"
        "corun,npu,GEMM beside GEMV,n,1,bandwidth,60,GB/s\n"
        "corun,igpu,GEMV beside GEMM,n,1,slowdown,2.25,1\n");
    ck_assert_str_eq(drawn("corun", (struct figure_request){0}),
                     "slowdown\n"
                     "0\t0\t1.5\tNaN\tNaN\tGEMV, igpu\tGEMM, npu\n"
                     "1\t1\t2.25\tNaN\tNaN\tGEMM, npu\tGEMV, igpu\n");
}
END_TEST

/* Two rates by two chunks: column, row, mean. */
START_TEST(a_map_has_its_columns_and_rows)
{
    put("rate,chunk,reactive.e2e_s.mean\n"
        "1,256,10\n2,256,20\n4,256,40\n1,512,11\n2,512,22\n4,512,44\n");
    const char *text = strchr(drawn("heatmap", (struct figure_request){.x = "rate", .y = "chunk"}),
                              '\n'); /* behind the file's name */
    ck_assert_str_eq(text, "\n0\t0\t10\n1\t0\t20\n2\t0\t40\n0\t1\t11\n1\t1\t22\n2\t1\t44\n");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(distributions_are_shares_of_each_class),
    TEST(distributions_are_of_finished_requests),
    TEST(lengths_are_of_finished_requests),
    TEST(each_bar_is_in_the_block_of_its_kind),
    TEST(a_preemption_asked_of_two_devices_shows_on_both_rows),
    TEST(a_roof_has_its_corner_at_the_knee),
    TEST(decoding_sequences_are_counted_while_they_decode),
    TEST(bars_have_their_interval),
    TEST(slowdowns_beside_the_other_engine),
    TEST(a_map_has_its_columns_and_rows),
    TEST(an_outlier_does_not_flatten_the_rest),
    TEST(a_policy_keeps_its_colour),
    TEST(a_small_picture_shows_the_same),
    TEST(an_outline_is_short_and_draws_the_same),
    TEST(a_file_says_what_it_is),
};
SUITE_MAIN("figures", suite)

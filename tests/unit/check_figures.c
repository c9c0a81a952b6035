/* What figures hand to gnuplot, number by number, from files written by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plots/figure.h"
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
    int rc = figure_find(figure)->prepare(&q, &data, &err);
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

/* Two tracks of the machine and one of requests, which is not drawn. The first track's decode is
 * cut at the window's end. */
static const char timeline[] =
    "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
    "{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"npu\"}},\n"
    "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"igpu\"}},\n"
    "{\"ph\":\"B\",\"pid\":1,\"tid\":0,\"ts\":1000000,\"name\":\"prefill 7\","
    "\"args\":{\"class\":\"reactive\"}},\n"
    "{\"ph\":\"B\",\"pid\":2,\"tid\":0,\"ts\":1000000,\"name\":\"decode\","
    "\"args\":{\"class\":\"reactive\",\"sequences\":9}},\n"
    "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":2000000,\"name\":\"decode 3\","
    "\"args\":{\"class\":\"proactive\",\"sequences\":3}},\n"
    "{\"ph\":\"E\",\"pid\":1,\"tid\":0,\"ts\":3000000},\n"
    "{\"ph\":\"E\",\"pid\":2,\"tid\":0,\"ts\":3500000},\n"
    "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":6000000},\n"
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
                     "preemption asked\n");
}
END_TEST

/* Three sequences decode from 2 to 6 of 8 s, on the machine; the requests' own tracks are not
 * counted again. The mean over all bins: 3 * 4 / 8. */
START_TEST(decoding_sequences_are_counted_while_they_decode)
{
    put(timeline);
    const char *text = strstr(drawn("queue", (struct figure_request){0}), "decod");
    ck_assert_ptr_nonnull(text);
    double sum = 0.0;
    double before = 0.0;
    double t;
    double v;
    int n = 0;
    for (text = strchr(text, '\n'); text != NULL && sscanf(text, " %lf %lf", &t, &v) == 2;
         text = strchr(text + 1, '\n')) {
        sum += v;
        before += t < 1.9 || t > 6.1 ? v : 0.0;
        n++;
    }
    ck_assert_int_gt(n, 10);
    ck_assert_double_eq_tol(sum / n, 1.5, 1e-9);
    ck_assert_double_eq(before, 0.0);
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
    TEST(each_bar_is_in_the_block_of_its_kind),
    TEST(decoding_sequences_are_counted_while_they_decode),
    TEST(slowdowns_beside_the_other_engine),
    TEST(a_map_has_its_columns_and_rows),
};
SUITE_MAIN("figures", suite)

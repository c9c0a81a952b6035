/* Figures over time: every row and every variable that gnuplot gets, by hand. */
#include <string.h>

#include "plots/timeline_read.h"
#include "tests/helpers/drawn.h"
#include "tests/helpers/suite.h"

#define HEAD "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
#define END "]}\n"

static struct text in; /* a timeline as it is written; times in ms */

static void track(int id, const char *name)
{
    text_format(&in,
                "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%"
                "s\"}},\n",
                id, name);
}

static void begin(int id, double ms, const char *name, const char *cls, int request)
{
    text_format(&in,
                "{\"ph\":\"B\",\"pid\":1,\"tid\":%d,\"ts\":%.10g,\"name\":\"%s\",\"args\":{"
                "\"class\":\"%s\",\"request\":%d,\"sequences\":%d}},\n",
                id, 1e3 * ms, name, cls, request, request);
}

static void finish(int id, double ms)
{
    text_format(&in, "{\"ph\":\"E\",\"pid\":1,\"tid\":%d,\"ts\":%.10g},\n", id, 1e3 * ms);
}

static void bar(int id, double ms, double until_ms, const char *name, const char *cls, int request)
{
    begin(id, ms, name, cls, request);
    finish(id, until_ms);
}

static void whole(int id, double ms, double dur_ms, const char *name)
{
    text_format(&in,
                "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.10g,\"dur\":%.10g,\"name\":\"%s\"},\n",
                id, 1e3 * ms, 1e3 * dur_ms, name);
}

static void instant(int pid, int id, double ms, const char *name)
{
    text_format(&in, "{\"ph\":\"i\",\"pid\":%d,\"tid\":%d,\"ts\":%.10g,\"name\":\"%s\"},\n", pid,
                id, 1e3 * ms, name);
}

static void count(double ms, const char *name, const char *a, double x, const char *b, double y)
{
    text_format(&in,
                "{\"ph\":\"C\",\"pid\":1,\"tid\":0,\"ts\":%.10g,\"name\":\"%s\",\"args\":{\"%s\":%"
                "g,\"%s\":%g}},\n",
                1e3 * ms, name, a, x, b, y);
}

/* The timeline so far is an input; the next one begins. */
static void input(const char *label, const char *name, const char *head)
{
    OWNED char *text = xformat("%s%s" END, head, text_end(&in));
    drawn_input(label, name, text);
    text_fini(&in);
}

/* ---- gantt ---- */

/* The table of a schedule: row, work, begin, end, time in which it runs, and its share. */
static void values_are(const char *want)
{
    SCOPED(text_fini) struct text got = {0};
    const struct frame *f = drawn_data.values;
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        OWNED char *line =
            xformat("%s %s %.6g %.6g %.6g %.6g\n", frame_text(f, i, "row"),
                    frame_text(f, i, "work"), frame_get(f, i, "begin_s"), frame_get(f, i, "end_s"),
                    frame_get(f, i, "busy_s"), frame_get(f, i, "busy_frac"));
        text_string(&got, line);
    }
    ck_assert_str_eq(text_end(&got), want);
}

/* A window of 1 to 11 s: a pixel is 10 ms, a number needs 260 ms. Launches of all four kinds, cut
 * at the window's ends. The npu's two launches overlap: it is busy for 6 of 10 s. A loader without
 * a bar has no row, one with a bar has. A slice that is open at the end of the file ends with
 * it. */
START_TEST(bars_are_of_their_kind_and_cut_at_the_window)
{
    track(0, "igpu");
    track(1, "npu");
    track(2, "loader");
    track(3, "compiler");
    track(4, "conditions");
    bar(0, 0, 1000, "prefill 1", "reactive", 1); /* ends where the window begins */
    bar(0, 500, 2000, "prefill 1", "reactive", 1);
    bar(0, 3000, 3259, "decode", "reactive", 2); /* too short for a number */
    bar(0, 4000, 4270, "decode", "proactive", 3);
    bar(1, 5000, 12000, "prefill 4", "proactive", 4);
    whole(2, 6000, 500, "load");
    whole(4, 0, 7000, "it's \\\"hot\\\"");
    whole(4, 11000, 100, "late");
    whole(0, 6000, 500, "no launch");
    begin(1, 10000, "decode 9", "proactive", 9);
    input("", "t.json", HEAD);
    drawn_request.from_s = 1;
    drawn_is("gantt",
             "reactive prefill\n0\t1\t2\n\n\n"
             "reactive decode\n0\t3\t3.259\n\n\n"
             "proactive prefill\n1\t5\t11\n\n\n"
             "proactive decode\n0\t4\t4.27\n1\t10\t11\n\n\n"
             "load or compile\n2\t6\t6.5\n\n\n"
             "conditions\n3\t1\t7\n\n\n"
             "preemption asked\n\n\n"
             "what holds\n3\t1\tit's  hot \n\n\n"
             "requests\n0\t1.5\t1\t1\n1\t8\t4\t6\n0\t4.135\t3\t0.27\n1\t10.5\t9\t1\n\n\n"
             "busy\n0\t0.1529\n1\t0.6\n2\t0.05\n",
             "array rows[5]\nrows[1] = 'igpu'\nrows[2] = 'npu'\nrows[3] = 'loader'\n"
             "rows[4] = 'conditions'\nn_rows = 4\ninputs = 1\nbegin = 1\nend = 11\n");
    values_are("igpu reactive prefill 1 2 1 0.1\n"
               "igpu reactive decode 3 3.259 0.259 0.0259\n"
               "igpu proactive decode 4 4.27 0.27 0.027\n"
               "npu proactive prefill 5 11 6 0.6\n"
               "npu proactive decode 10 11 1 0.1\n"
               "loader load or compile 6 6.5 0.5 0.05\n");
}
END_TEST

/* Bars of a kind less than a pixel apart, 1 ms of 1 s, are one, without a number where they are of
 * several requests. A pixel apart they are two, and so are two with half a pixel of another kind
 * between. The sum of busy time is 0.3 + 0.04875 + 0.001 + 0.0005 + 0.000375 + 0.1475 s. A mark is
 * drawn once in three pixels. All this holds wherever the window begins. */
START_TEST(bars_less_than_a_pixel_apart_are_one)
{
    double t = _i * 64000.0;
    track(7, "npu");
    bar(7, t, t + 100, "decode", "reactive", 5);
    bar(7, t + 100, t + 200, "decode", "reactive", 5);
    bar(7, t + 200, t + 300, "decode", "reactive", 6);
    bar(7, t + 301.25, t + 350, "decode", "reactive", 7);
    bar(7, t + 350, t + 351, "decode", "proactive", 8);
    bar(7, t + 351.5, t + 352, "decode", "reactive", 9);
    bar(7, t + 352, t + 352.375, "prefill", "reactive", 9);
    bar(7, t + 352.5, t + 500, "decode", "reactive", 10);
    static const double asked[] = {600, 602, 603.25, 604, 605, 1001};
    for (size_t i = 0; i < 6; i++) {
        instant(1, 7, t + asked[i], "preempt asked");
    }
    instant(1, 7, t + 700, "another");
    instant(2, 7, t + 700, "preempt asked");
    input("", "t.json", HEAD);
    drawn_request.from_s = t / 1e3;
    drawn_request.to_s = t / 1e3 + 1;
    double s = t / 1e3;
    OWNED char *want = xformat(
        "reactive prefill\n0\t%.12g\t%.12g\n\n\n"
        "reactive decode\n0\t%.12g\t%.12g\n0\t%.12g\t%.12g\n0\t%.12g\t%.12g\n\n\n"
        "proactive prefill\n\n\nproactive decode\n0\t%.12g\t%.12g\n\n\n"
        "load or compile\n\n\nconditions\n\n\n"
        "preemption asked\n0\t%.12g\n0\t%.12g\n\n\nwhat holds\n\n\nrequests\n0\t%.12g\t7\t0.04875\n"
        "\n\nbusy\n0\t0.498125\n",
        s + 0.352, s + 0.352375, s, s + 0.3, s + 0.30125, s + 0.35, s + 0.3515, s + 0.5, s + 0.35,
        s + 0.351, s + 0.6, s + 0.60325, s + 0.325625);
    OWNED char *vars = xformat(
        "array rows[2]\nrows[1] = 'npu'\nn_rows = 1\ninputs = 1\nbegin = %g\nend = %g\n", s, s + 1);
    drawn_near("gantt", want, vars);
}
END_TEST

/* Two files: each has its rows, called by it, also the device and the loader that only the other
 * one uses. */
START_TEST(two_schedules_have_the_same_rows)
{
    track(0, "igpu");
    track(1, "npu");
    track(2, "compiler");
    bar(0, 0, 5000, "decode 1", "reactive", 1);
    input("A=", "t.json", HEAD);
    track(0, "igpu");
    track(1, "npu");
    track(2, "compiler");
    whole(2, 1000, 1000, "compile");
    instant(1, 1, 3000, "preempt asked");
    input("", "u.json",
          "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"policy\":\"edf\",\"llm\":\"L\"},"
          "\"traceEvents\":[\n");
    drawn_request.to_s = 10;
    drawn_is("gantt",
             "reactive prefill\n\n\nreactive decode\n0\t0\t5\n\n\nproactive prefill\n\n\n"
             "proactive decode\n\n\nload or compile\n5\t1\t2\n\n\nconditions\n\n\n"
             "preemption asked\n4\t3\n\n\nwhat holds\n\n\nrequests\n0\t2.5\t1\t5\n\n\n"
             "busy\n0\t0.5\n1\t0\n2\t0\n3\t0\n4\t0\n5\t0.1\n",
             "array rows[7]\nrows[1] = 'A: igpu'\nrows[2] = 'A: npu'\nrows[3] = 'A: compiler'\n"
             "rows[4] = 'edf: igpu'\nrows[5] = 'edf: npu'\nrows[6] = 'edf: compiler'\nn_rows = 6\n"
             "inputs = 2\nbegin = 0\nend = 10\n");
    ck_assert_str_eq(strstr(drawn_vars(), "subject"), "subject = 'L'\n");
}
END_TEST

/* Launches within a launch end in the order of a stack, four deep; tracks from 256 on, other
 * processes, and an end without a begin are passed over. */
START_TEST(what_is_no_launch_of_the_machine_is_passed_over)
{
    track(0, "npu");
    track(255, "igpu");
    track(256, "far");
    finish(0, 10);
    begin(0, 1000, "prefill 1", "reactive", 1);
    begin(0, 2000, "decode 2", "proactive", 2);
    begin(0, 3000, "decode 3", "reactive", 3);
    begin(0, 4000, "prefill 4", "proactive", 4);
    begin(0, 4500, "too deep", "proactive", 5);
    for (int i = 5; i < 10; i++) {
        finish(0, 1e3 * i);
    }
    bar(255, 1000, 2000, "decode 6", "reactive", 6);
    bar(256, 1000, 2000, "decode 7", "reactive", 7);
    begin(-1, 1000, "decode 8", "reactive", 8);
    text_string(&in, "{\"ph\":\"B\",\"pid\":2,\"tid\":0,\"ts\":1000000,\"name\":\"decode 8\"},\n"
                     "{\"ph\":\"E\",\"pid\":2,\"tid\":0,\"ts\":2000000},\n");
    input("", "t.json", HEAD);
    drawn_is("gantt",
             "reactive prefill\n0\t1\t8\n\n\nreactive decode\n0\t3\t6\n1\t1\t2\n\n\n"
             "proactive prefill\n0\t4\t5\n\n\nproactive decode\n0\t2\t7\n\n\n"
             "load or compile\n\n\nconditions\n\n\npreemption asked\n\n\nwhat holds\n\n\n"
             "requests\n0\t4.5\t1\t7\n0\t4.5\t3\t3\n1\t1.5\t6\t1\n0\t4.5\t4\t1\n0\t4.5\t2\t5\n\n\n"
             "busy\n0\t0.7\n1\t0.1\n",
             NULL);
}
END_TEST

START_TEST(a_window_without_a_launch_is_refused)
{
    track(0, "npu");
    bar(0, 0, 5000, "decode 1", "reactive", 1);
    input("", "t.json", HEAD);
    drawn_request.from_s = 5;
    drawn_refused("gantt",
                  "t.json: nothing ran between 5 and 15 s (--from, --to); it ends at 5 s\n");
    drawn_input("", "t.json", HEAD "x" END);
    drawn_refused("gantt", "t.json: no timeline: expected what `xpusim run --timeline` writes\n");
    drawn_input("", "t.json", HEAD "{\"ph\":\"C\"}\n{\"ph\":\"B\",\"pid\n" END);
    drawn_refused("gantt", "t.json:3: not an event\n");
    drawn_input("", "t.json", HEAD "{\"ph\":\"C\"}\n{\"ph\":\"C\"}\n");
    drawn_refused("queue", "t.json:3: the timeline is cut short: no ]} at its end\n");
    drawn_input("", "t.csv", "# kind: timeline\na,b\n");
    drawn_refused("gantt", "t.csv: no timeline: expected what `xpusim run --timeline` writes\n");
    drawn_input("", "t.json", HEAD END);
    drawn_input("", "u.json", HEAD END);
    drawn_refused("queue", "queue takes one input, not 2\n");
    drawn_refused("queue", "queue takes one input, not 0\n");
}
END_TEST

/* 20,000 bars are drawn, one more is too many. */
START_TEST(a_window_of_too_many_bars_is_refused)
{
    for (int more = 0; more < 2; more++) {
        track(0, "npu");
        for (int i = 0; i < 20000 + more; i++) {
            begin(0, 2e-3 * i, "", "", 0);
            finish(0, 2e-3 * i + 1e-3);
        }
        input("", "t.json", HEAD);
        if (more == 1) {
            drawn_refused("gantt", "t.json: more than 20000 launches between 0 and 10 s: choose a "
                                   "shorter window\n");
        } else {
            ck_assert_int_eq(
                figure_prepare(figure_find("gantt"), &drawn_request, &drawn_data, &drawn_err), 0);
            drawn_request.n_inputs = 0;
        }
    }
}
END_TEST

/* ---- steps over time ---- */

static double value_at(const char *block, double t)
{
    const char *p = strstr(drawn_data.tsv_text, block);
    ck_assert_ptr_nonnull(p);
    p = strchr(p, '\n') + 1;
    double at = 0.0;
    double v = 0.0;
    for (; *p != '\n' && *p != '\0'; p = strchr(p, '\n') + 1) {
        ck_assert_int_eq(sscanf(p, "%lf\t%lf", &at, &v), 2);
        if (fabs(at - t) < 1e-9) {
            return v;
        }
    }
    ck_abort_msg("no bin at %g of %s", t, block);
    return 0.0;
}

static void prepare(const char *figure)
{
    int rc = figure_prepare(figure_find(figure), &drawn_request, &drawn_data, &drawn_err);
    ck_assert_msg(rc == 0, "%s", drawn_errors());
    (void)fflush(drawn_data.tsv);
}

/* A window of 2 to 10 s has 200 bins of 40 ms, the first in its middle at 2.02. Carried are 10 GB/s
 * from 1 s, 30 from 4.01: of the bin from 4 to 4.04 a quarter is of 10, so that it has 25. The last
 * value lasts to the end. */
START_TEST(bandwidth_is_a_mean_over_bins)
{
    text_string(
        &in,
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"machine\",\"args\":{\"ddr_peak_gb_per_s\":89.6}},\n");
    count(1000, "DDR GB/s", "carried", 10, "demand", 12);
    count(1000, "another", "carried", 99, "demand", 99);
    count(4010, "DDR GB/s", "carried", 30, "demand", 52);
    count(10000, "live requests", "reactive", 0, "proactive", 0);
    input("", "t.json", HEAD);
    drawn_request.from_s = 2;
    prepare("ddr");
    ck_assert_ptr_eq(strstr(drawn_data.tsv_text, "carried\n2.02\t10\n2.06\t10\n"),
                     drawn_data.tsv_text);
    ck_assert_uint_eq(drawn_data.blocks, 2);
    ck_assert_double_eq_tol(value_at("carried", 3.98), 10, 1e-9);
    ck_assert_double_eq_tol(value_at("carried", 4.02), 25, 1e-9);
    ck_assert_double_eq_tol(value_at("carried", 4.06), 30, 1e-9);
    ck_assert_double_eq_tol(value_at("carried", 9.98), 30, 1e-9);
    ck_assert_double_eq_tol(value_at("demanded", 4.02), 42, 1e-9);
    ck_assert_double_eq_tol(value_at("demanded", 9.98), 52, 1e-9);
    size_t rows = 0;
    for (const char *p = drawn_data.tsv_text; (p = strchr(p, '\t')) != NULL; p++) {
        rows++;
    }
    ck_assert_uint_eq(rows, 400);
    ck_assert_str_eq(drawn_vars(), "peak = 89.6\nbegin = 2\nend = 10\nsubject = ''\n");
}
END_TEST

/* Requests that live, from 2 and 3 on; sequences that decode, on two tracks: 4 from 1 s, 4 + 6 from
 * 3 s, 6 from 5 s, none from 7 s. A prefill on the track ends its decode. Within a bin half of
 * which decodes, the mean is over that half. */
START_TEST(sequences_are_those_of_all_devices)
{
    count(2000, "live requests", "reactive", 1, "proactive", 0);
    count(2000, "others", "reactive", 50, "proactive", 50);
    begin(0, 1000, "decode", "reactive", 4);
    begin(3, 3000, "decode", "proactive", 6);
    count(3010, "live requests", "reactive", 1, "proactive", 5);
    bar(0, 5000, 6000, "prefill 9", "reactive", 9);
    begin(256, 6000, "decode", "reactive", 100);
    text_string(&in, "{\"ph\":\"B\",\"pid\":2,\"tid\":1,\"ts\":6000000,\"name\":\"decode\","
                     "\"args\":{\"sequences\":50}},\n");
    finish(3, 7010);
    count(20000, "live requests", "reactive", 0, "proactive", 0);
    input("", "t.json", HEAD);
    drawn_request.to_s = 4; /* bins of 20 ms */
    prepare("queue");
    ck_assert_double_eq_tol(value_at("reactive", 1.99), 0, 1e-9);
    ck_assert_double_eq_tol(value_at("reactive", 2.01), 1, 1e-9);
    ck_assert_double_eq_tol(value_at("proactive", 3.01), 2.5, 1e-9); /* half of the bin */
    ck_assert_double_eq_tol(value_at("proactive", 3.03), 5, 1e-9);
    ck_assert(isnan(value_at("sequences", 0.99)));
    ck_assert_double_eq_tol(value_at("sequences", 1.01), 4, 1e-9);
    ck_assert_double_eq_tol(value_at("sequences", 3.01), 10, 1e-9);
    ck_assert_str_eq(drawn_vars(), "begin = 0\nend = 4\nsubject = ''\n");
    ck_assert_uint_eq(drawn_data.blocks, 3);
    figure_data_fini(&drawn_data);
    figure_data_init(&drawn_data);
    drawn_request.from_s = 4;
    drawn_request.to_s = 8;
    prepare("queue");
    ck_assert_double_eq_tol(value_at("sequences", 4.01), 10, 1e-9);
    ck_assert_double_eq_tol(value_at("sequences", 5.01), 6, 1e-9);
    ck_assert_double_eq_tol(value_at("sequences", 7.01), 6, 1e-9); /* the half that decodes */
    ck_assert(isnan(value_at("sequences", 7.03)));
    ck_assert_str_eq(drawn_vars(), "begin = 4\nend = 8\nsubject = ''\n");
    drawn_request.from_s = 20;
    drawn_request.to_s = 0;
    drawn_refused("queue", "t.json: nothing between 20 and 20 s; it ends at 20 s\n");
    count(20000, "x", "a", 0, "b", 0);
    input("", "u.json", HEAD);
    drawn_request.from_s = 20;
    drawn_request.to_s = 30;
    drawn_refused("ddr", "u.json: nothing between 20 and 30 s; it ends at 20 s\n");
}
END_TEST

/* ---- graphs ---- */

/* Strategies in the order in which they come, with their times in all; a block per kind: strategy,
 * lane (1 of what is loaded), begin, end, number of the block. */
START_TEST(strategies_have_lanes)
{
    drawn_input("", "g.json",
                "{\"about\":{\"kind\":\"graphs\"},\"strategies\":{"
                "\"whole\":{\"total\":7.5,\"intervals\":[{\"kind\":\"compute_g1\",\"start\":0,"
                "\"end\":2,\"block\":1},"
                "{\"kind\":\"load_g2\",\"start\":2,\"end\":5,\"block\":0},"
                "{\"kind\":\"another\",\"start\":2,\"end\":5,\"block\":0}]},"
                "\"parts\":{\"total\":6,\"intervals\":[{\"kind\":\"compute_g2\",\"start\":3,"
                "\"end\":6,\"block\":2},"
                "{\"kind\":\"load_g2\",\"start\":1,\"end\":3,\"block\":3}]}}}");
    drawn_is("graphs",
             "compute with G1\n0\t0\t0\t2\t1\n\n\ncompute with G2\n1\t0\t3\t6\t2\n\n\n"
             "load G2\n0\t1\t2\t5\t0\n1\t1\t1\t3\t3\n",
             "array rows[3]\nrows[1] = 'whole (7.5)'\nrows[2] = 'parts (6)'\nn_rows = 2\n");
    drawn_input("", "g.json",
                "{\"about\":{\"kind\":\"graphs\"},\"strategies\":{\"a\":{\"total\":1,"
                "\"intervals\":[{\"kind\":\"load_g2\"}]}}}");
    drawn_refused("graphs", "g.json: no column start; there are: strategy, total, kind\n"
                            "g.json: no column end; there are: strategy, total, kind\n"
                            "g.json: no column block; there are: strategy, total, kind\n");
}
END_TEST

/* ---- job ---- */

/* Arrivals at 1 (request 5), 1 (request 3) and 4 s: rows by time, then by number, times from the
 * first. Request 8 ended in prefill: it has no answer, and its prefill lasts to its end. Request 9
 * was never served: it waits to its end. */
START_TEST(requests_of_a_job_begin_at_its_first)
{
    drawn_input(
        "", "j.json",
        "{\"about\":{\"kind\":\"job\"},\"requests\":["
        "{\"request_id\":8,\"class\":\"proactive\",\"background\":true,\"on_path\":false,\"arrival_"
        "ns\":4000000000,\"first_service_ns\":4500000000,\"first_token_ns\":null,\"end_ns\":"
        "6000000000},"
        "{\"request_id\":5,\"class\":\"reactive\",\"background\":false,\"on_path\":true,\"arrival_"
        "ns\":1000000000,\"first_service_ns\":1500000000,\"first_token_ns\":2000000000,\"end_ns\":"
        "3000000000},"
        "{\"request_id\":3,\"class\":\"proactive\",\"background\":false,\"on_path\":false,"
        "\"arrival_ns\":1000000000,\"first_service_ns\":1000000000,\"first_token_ns\":1250000000,"
        "\"end_ns\":1750000000},"
        "{\"request_id\":9,\"class\":\"reactive\",\"background\":false,\"on_path\":true,\"arrival_"
        "ns\":5000000000,\"first_service_ns\":null,\"first_token_ns\":null,\"end_ns\":7000000000}],"
        "\"edges\":[{\"from\":5,\"to\":9,\"on_path\":true},{\"from\":3,\"to\":8,\"on_path\":false},"
        "{\"from\":5,\"to\":77,\"on_path\":false},{\"from\":77,\"to\":5,\"on_path\":true}]}");
    drawn_is("job",
             "waiting\n1\t0\t0.5\n2\t3\t3.5\n3\t4\t6\n\n\n"
             "reactive prefill\n1\t0.5\t1\n\n\n"
             "reactive answer\n1\t1\t2\n\n\n"
             "proactive prefill\n0\t0\t0.25\n2\t3.5\t5\n\n\n"
             "proactive answer\n0\t0.25\t0.75\n\n\n"
             "critical path\n1\t0\t2\n3\t4\t6\n\n\n"
             "other edges\n0\t0.75\t2\t3\n\n\n"
             "critical edges\n1\t2\t3\t4\n\n\n"
             "whole\n0\t0\t0.75\n1\t0\t2\n2\t3\t5\n3\t4\t6\n",
             "array rows[5]\nrows[1] = '3'\nrows[2] = '5'\nrows[3] = '8 (background)'\n"
             "rows[4] = '9'\nn_rows = 4\n");
}
END_TEST

START_TEST(a_job_of_too_many_requests_is_refused)
{
    for (int n = 200; n <= 201; n++) {
        SCOPED(text_fini) struct text t = {0};
        text_string(&t, "{\"about\":{\"kind\":\"job\"},\"requests\":[");
        for (int i = 0; i < n; i++) {
            text_format(&t,
                        "%s{\"request_id\":%d,\"class\":\"reactive\",\"background\":false,"
                        "\"on_path\":false,\"arrival_ns\":%d,\"first_service_ns\":null,"
                        "\"first_token_ns\":null,\"end_ns\":%d}",
                        i > 0 ? "," : "", i, i, i + 1);
        }
        text_string(&t, "]}");
        drawn_input("", "j.json", text_end(&t));
        if (n == 201) {
            drawn_refused("job", "j.json: a job of 201 requests; at most 200 can be drawn\n");
        } else {
            prepare("job");
            ck_assert_ptr_nonnull(strstr(drawn_vars(), "n_rows = 200\n"));
            drawn_request = (struct figure_request){0};
        }
    }
    drawn_input("", "j.json", "{\"about\":{\"kind\":\"job\"},\"requests\":[{\"request_id\":1}]}");
    figure_prepare(figure_find("job"), &drawn_request, &drawn_data, &drawn_err);
    ck_assert_uint_eq(drawn_err.n, 7);
}
END_TEST

/* ---- real runs ---- */

/* Each class has its dots, real against simulated, first by the first token, then by the whole.
 * Then comes the order of the policies in each class. */
START_TEST(dots_are_real_against_simulated)
{
    drawn_input(
        "", "d.json",
        "{\"about\":{\"kind\":\"drive\"},\"drive\":["
        "{\"policy\":\"fcfs\",\"requests\":["
        "{\"class\":\"reactive\",\"real_ttft_s\":1,\"sim_ttft_s\":2,\"real_e2e_s\":3,\"sim_e2e_s\":"
        "4},"
        "{\"class\":\"proactive\",\"real_ttft_s\":5,\"sim_ttft_s\":null,\"real_e2e_s\":7,\"sim_e2e_"
        "s\":8}]},"
        "{\"policy\":\"it's edf\",\"requests\":["
        "{\"class\":\"reactive\",\"real_ttft_s\":1.5,\"sim_ttft_s\":2.5,\"real_e2e_s\":3.5,\"sim_"
        "e2e_s\":4.5}]}],"
        "\"means\":["
        "{\"policy\":\"fcfs\",\"class\":\"reactive\",\"e2e_s\":{\"real\":10,\"simulated\":11}},"
        "{\"policy\":\"fcfs\",\"class\":\"proactive\",\"e2e_s\":{\"real\":12,\"simulated\":13}},"
        "{\"policy\":\"it's "
        "edf\",\"class\":\"reactive\",\"e2e_s\":{\"real\":14,\"simulated\":15}}]}");
    drawn_is("drive",
             "reactive\n1\t2\n1.5\t2.5\n\n\nproactive\n5\tNaN\n\n\n"
             "reactive\n3\t4\n3.5\t4.5\n\n\nproactive\n7\t8\n\n\n"
             "reactive\n0\t10\t11\n1\t14\t15\n\n\nproactive\n0\t12\t13\n",
             "policies = 2\narray rows[3]\nrows[1] = 'fcfs'\nrows[2] = 'it''s edf'\nn_rows = 2\n");
    drawn_input("", "d.json", "{\"about\":{\"kind\":\"drive\"},\"drive\":[{\"policy\":\"a\"}]}");
    drawn_refused("drive", "d.json: no drive/requests; `xpusim plot list` says what figures read\n"
                           "d.json: no means; `xpusim plot list` says what figures read\n");
}
END_TEST

/* ---- reading ---- */

static char seen[256];

static void note(void *ctx, const cJSON *o)
{
    (void)ctx;
    size_t n = strlen(seen);
    (void)snprintf(seen + n, sizeof seen - n, "%s %g %s %g;", timeline_text(o, "name"),
                   timeline_number(o, "ts"), timeline_arg_text(o, "class"), timeline_arg(o, "n"));
}

/* Events of the phases that are asked for, in order; what is not there is 0 or "", and neither a
 * text nor a number that no double holds is a number. */
START_TEST(events_of_other_phases_are_passed_over)
{
    const char *path =
        drawn_file("t.json", HEAD
                   "{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"args\":{\"class\":\"x\",\"n\":2}},\n"
                   "{\"ph\":\"E\",\"name\":\"b\",\"ts\":3}},\n"
                   "{\"ph\":\"X\",\"name\":5,\"ts\":\"7\",\"args\":{\"class\":6,\"n\":1e999}},\n"
                   "{\"name\":\"c\",\"ph\":\"B\"},\n"
                   "{\"ph\":\"\n"
                   "{\"ph\":\"C\",\"name\":\"d\"},\n" END);
    ck_assert_int_eq(timeline_read(path, "BX", NULL, note, NULL, &drawn_err), 0);
    ck_assert_str_eq(seen, "a 1 x 2; 0  0;");
    seen[0] = '\0';
    ck_assert_int_eq(timeline_read(path, "CE", NULL, note, NULL, &drawn_err), 0);
    ck_assert_str_eq(seen, "b 3  0;d 0  0;");
    seen[0] = '\0';
    ck_assert_int_eq(timeline_read(path, "CE", "\"other\"", note, NULL, &drawn_err), 0);
    ck_assert_str_eq(seen, "b 3  0;"); /* of counters alone the name counts */
    seen[0] = '\0';
    ck_assert_int_eq(timeline_read(path, "CE", "\"d\"", note, NULL, &drawn_err), 0);
    ck_assert_str_eq(seen, "b 3  0;d 0  0;");
    path = drawn_file("u.json", "{\"a\":1}\n{\"ph\":\"B\"}\n]}\n");
    ck_assert_int_eq(timeline_read(path, "B", NULL, note, NULL, &drawn_err), -EINVAL);
    path = drawn_file("v.json", "{\"traceEvents\":[\n{\"ph\":\"B\"}\n]}\n\n");
    ck_assert_int_eq(timeline_read(path, "B", NULL, note, NULL, &drawn_err), -EINVAL);
    ck_assert_int_eq(timeline_read("/nonesuch/t.json", "B", NULL, note, NULL, &drawn_err), -EINVAL);
    ck_assert_str_eq(drawn_errors(),
                     "u.json: no timeline: expected what `xpusim run --timeline` writes\n"
                     "v.json:4: the timeline is cut short: no ]} at its end\n"
                     "/nonesuch/t.json: No such file or directory\n");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = drawn_setup, .teardown = drawn_teardown),
    TEST(bars_are_of_their_kind_and_cut_at_the_window),
    LOOP(bars_less_than_a_pixel_apart_are_one, 2),
    TEST(two_schedules_have_the_same_rows),
    TEST(what_is_no_launch_of_the_machine_is_passed_over),
    TEST(a_window_without_a_launch_is_refused),
    TEST(a_window_of_too_many_bars_is_refused),
    TEST(bandwidth_is_a_mean_over_bins),
    TEST(sequences_are_those_of_all_devices),
    TEST(strategies_have_lanes),
    TEST(requests_of_a_job_begin_at_its_first),
    TEST(a_job_of_too_many_requests_is_refused),
    TEST(dots_are_real_against_simulated),
    TEST(events_of_other_phases_are_passed_over),
};
SUITE_MAIN("figures over time", suite)

/* Figures of bars and matrices: every row and every variable that gnuplot gets, by hand. */
#include <string.h>

#include "sim/metrics/explain.h"
#include "tests/helpers/drawn.h"
#include "tests/helpers/suite.h"

/* ---- bars ---- */

/* Four policies: edf's bar is over four times the next and is cut, and sjf has no mean. The axis
 * ends at the highest interval of what is whole: 7 of fcfs, as 2 * 5 are more. Bytes are drawn as
 * GB: the interval of sjf ends at 2.6. Policies are called by name, and marked where
 * runs were overloaded. */
START_TEST(a_bar_has_its_ends_and_its_mark)
{
    drawn_input("", "c.json",
                "{\"about\":{\"kind\":\"compare\",\"llm\":\"it's L\",\"policy\":\"not said "
                "twice\"},\"policies\":{"
                "\"fcfs\":{\"m\":{\"mean\":5,\"low\":4,\"high\":7},\"memory_peak_bytes\":{\"mean\":"
                "1e9,\"low\":1e9,\"high\":1e9}},"
                "\"edf\":{\"m\":{\"mean\":21,\"low\":20,\"high\":22},\"memory_peak_bytes\":{"
                "\"mean\":2e9,\"low\":null,\"high\":null}},"
                "\"sjf\":{\"m\":{\"mean\":null},\"memory_peak_bytes\":{\"mean\":2.5e9,\"low\":2e9,"
                "\"high\":2.6e9}},"
                "\"vllm-v1:chunk=256\":{\"m\":{\"mean\":2,\"low\":1,\"high\":3},\"memory_peak_"
                "bytes\":{\"mean\":0}}},"
                "\"verdicts\":{\"fcfs\":{\"stable\":3,\"undecided\":0,\"overloaded\":0},"
                "\"edf\":{\"stable\":1,\"undecided\":1,\"overloaded\":1},"
                "\"vllm-v1:chunk=256\":{\"stable\":0,\"undecided\":0,\"overloaded\":2}}}");
    drawn_request.metrics[0] = "m";
    drawn_request.metrics[1] = "memory_peak_bytes";
    drawn_request.n_metrics = 2;
    drawn_is("headline",
             "m\n"
             "fcfs\t5\t4\t7\t7\nedf\t21\t20\t22\t7\nsjf\tNaN\tNaN\tNaN\t7\n"
             "vllm-v1:chunk=256\t2\t1\t3\t7\n\n\n"
             "peak memory (GB)\n"
             "fcfs\t1\t1\t1\t2.6\nedf\t2\tNaN\tNaN\t2.6\nsjf\t2.5\t2\t2.6\t2.6\n"
             "vllm-v1:chunk=256\t0\tNaN\tNaN\t2.6\n",
             "panels = 2\n"
             "array slot[5]\nslot[1] = 6\nslot[2] = 3\nslot[3] = 4\nslot[4] = 13\nlongest = 17\n"
             "array rows[5]\nrows[1] = 'fcfs'\nrows[2] = 'edf'\nrows[3] = 'sjf'\n"
             "rows[4] = 'vllm-v1:chunk=256'\nn_rows = 4\n"
             "array marks[5]\nmarks[1] = ''\nmarks[2] = 'overloaded in 1 of 3 runs'\n"
             "marks[3] = ''\nmarks[4] = 'overloaded in 2 of 2 runs'\nn_marks = 4\n"
             "marked = 1\ntitle1 = 'm'\ntitle2 = 'peak memory (GB)'\n");
    ck_assert_str_eq(strstr(drawn_vars(), "subject"),
                     "subject = 'not said twice  \u00b7  it''s L'\n");
}
END_TEST

/* A figure draws those of its own metrics that somebody has. Without any, the error names the last.
 * A metric that the user asks for must be there. */
START_TEST(a_panel_that_nobody_asked_for_may_be_missing)
{
    static const char text[] =
        "{\"about\":{\"kind\":\"compare\"},\"policies\":{"
        "\"fcfs\":{\"energy_j_per_token\":{\"mean\":3,\"low\":2,\"high\":4}}}}";
    drawn_input("", "c.json", text);
    drawn_is("utilisation", "energy (J/token)\nfcfs\t3\t2\t4\t4\n",
             "panels = 1\narray slot[2]\nslot[1] = 6\nlongest = 4\n"
             "array rows[2]\nrows[1] = 'fcfs'\nn_rows = 1\narray marks[2]\nmarks[1] = ''\n"
             "n_marks = 1\nmarked = 0\ntitle1 = 'energy (J/token)'\n");
    drawn_input("", "c.json", text);
    drawn_request.metrics[0] = "energy_j_per_token";
    drawn_request.metrics[1] = "igpu.weighted_util_frac";
    drawn_request.n_metrics = 2;
    drawn_refused(
        "utilisation",
        "c.json: no metric igpu.weighted_util_frac; there are: energy_j_per_token, ...\n");
    drawn_input("", "d.json",
                "{\"about\":{\"kind\":\"compare\"},\"policies\":{\"fcfs\":{\"m\":{\"mean\":3}}}}");
    drawn_refused("utilisation",
                  "d.json: no metric energy_active_j_per_token; there are: m, ...\n");
}
END_TEST

/* Edges add up from the left: 1 s before prefill, 2 suspended, 5 to the first token, 3 pending in
 * decode, 20 in all. Times that contradict one another never go back: a first token at 2 s that is
 * before its own parts, and a whole of 4. The whole's interval is its own. Without a mean there is
 * no bar; the end of the axis is that of bars. */
START_TEST(parts_of_a_latency_add_up)
{
    drawn_input(
        "", "c.json",
        "{\"about\":{\"kind\":\"compare\"},\"policies\":{"
        "\"fcfs\":{\"reactive.prefill_pending_s.mean\":{\"mean\":1},\"reactive.prefill_suspended_s."
        "mean\":{\"mean\":2},"
        "\"reactive.ttft_s.mean\":{\"mean\":8},\"reactive.decode_pending_s.mean\":{\"mean\":3},"
        "\"reactive.e2e_s.mean\":{\"mean\":20,\"low\":19,\"high\":23}},"
        "\"edf\":{\"reactive.prefill_pending_s.mean\":{\"mean\":1.5},\"reactive.prefill_suspended_"
        "s.mean\":{\"mean\":1},"
        "\"reactive.ttft_s.mean\":{\"mean\":2},\"reactive.decode_pending_s.mean\":{\"mean\":3},"
        "\"reactive.e2e_s.mean\":{\"mean\":4,\"low\":3,\"high\":5},"
        "\"proactive.ttft_s.mean\":{\"mean\":6},\"proactive.e2e_s.mean\":{\"mean\":10}}},"
        "\"verdicts\":{\"edf\":{\"stable\":1,\"undecided\":1,\"overloaded\":1}}}");
    drawn_is("breakdown",
             "reactive\n"
             "fcfs\t0\t1\t3\t8\t11\t20\t19\t23\t23\n"
             "edf\t0\t1.5\t2.5\t2.5\t5.5\t5.5\t3\t5\t23\n\n\n"
             "proactive\n"
             "fcfs\t0\t0\t0\t0\t0\t0\tNaN\tNaN\t10.5\n"
             "edf\t0\t0\t0\t6\t6\t10\tNaN\tNaN\t10.5\n",
             "array slot[3]\nslot[1] = 6\nslot[2] = 3\nlongest = 4\n"
             "array rows[3]\nrows[1] = 'fcfs'\nrows[2] = 'edf'\nn_rows = 2\n"
             "array marks[3]\nmarks[1] = ''\nmarks[2] = 'overloaded in 1 of 3 runs'\nn_marks = 2\n"
             "marked = 1\n");
    drawn_input(
        "", "d.json",
        "{\"about\":{\"kind\":\"compare\"},\"policies\":{\"fcfs\":{\"reactive.ttft_s.mean\":{"
        "\"mean\":1}}}}");
    drawn_refused("breakdown",
                  "d.json: no metric reactive.e2e_s.mean; there are: reactive.ttft_s.mean, ...\n");
    drawn_input(
        "", "d.json",
        "{\"about\":{\"kind\":\"compare\"},\"policies\":{\"fcfs\":{\"reactive.e2e_s.mean\":{"
        "\"mean\":1}}}}");
    drawn_is("breakdown",
             "reactive\nfcfs\t0\t0\t0\t0\t0\t1\tNaN\tNaN\t1.05\n\n\n"
             "proactive\nfcfs\t0\t0\t0\t0\t0\t0\tNaN\tNaN\t0\n",
             NULL);
}
END_TEST

/* Half of the bars are drawn whole: with two bars both sides of four times, with five three. A bar
 * that is cut is far from its neighbour, anywhere among the larger half. An interval reaches at
 * most to twice the longest. */
static const struct {
    double mean[6], high[6];
    size_t n;
    double end;
} ends[] = {
    {{0}, {0}, 0, 0.0},
    {{3}, {NAN}, 1, 3.15},
    {{3}, {4}, 1, 4},
    {{3}, {6.5}, 1, 6},           /* at most twice */
    {{3}, {2}, 1, 3.15},          /* an interval below its mean: 5 % */
    {{NAN}, {9}, 1, 0.0},         /* no bar, no interval */
    {{1, 4}, {NAN, NAN}, 2, 4.2}, /* four times is not over four times */
    {{1, 4.1}, {NAN, NAN}, 2, 1.05},
    {{1, 4.1}, {NAN, 9}, 2, 1.05}, /* the interval of a bar that is cut says nothing */
    {{1, 4.1}, {1.5, 9}, 2, 1.5},
    {{1, 5, 6}, {NAN, NAN, NAN}, 3, 6.3}, /* the far one is in the smaller half */
    {{6, 1, 5, 21, 200}, {NAN, NAN, NAN, NAN, NAN}, 5, 22.05},
    {{1, 2, 9, 10, NAN}, {NAN, NAN, NAN, NAN, NAN}, 5, 2.1},
    {{0, 0, 5}, {NAN, NAN, NAN}, 3, 5.25}, /* nothing is no neighbour to be far from */
    {{2, 2, 2}, {2, 3, 4}, 3, 4},
};

START_TEST(an_axis_of_bars_ends_where_they_do)
{
    ck_assert_double_eq_tol(figure_bars_end(ends[_i].mean, ends[_i].high, ends[_i].n), ends[_i].end,
                            1e-12);
}
END_TEST

/* ---- causes and interference ---- */

/* Seconds of each cause are 1, 2, 4, .. times the requests, so that a sum says which causes are in
 * it. They are in order: compute 1, shared_pass 2, host 4, then the slower machine, ... */
START_TEST(every_cause_is_in_one_part)
{
    static const char *const order[] = {
        "compute",    "shared_pass", "host",        "ddr_slowdown", "device_sharing", "throttling",
        "graphics",   "recompute",   "killed",      "compile",      "graph_load",     "kernel_tail",
        "queue_same", "batching",    "queue_other", "held",         "held_back",      "eviction"};
    SCOPED(text_fini) struct text causes = {0};
    for (int i = 0; i < 18; i++) {
        text_format(&causes, "%s\"%s\":%d", i > 0 ? "," : "", order[i], 4 << i);
    }
    OWNED char *text = xformat("{\"about\":{\"kind\":\"interference\",\"policy\":\"edf\"},"
                               "\"interference\":{\"reactive\":{\"requests\":4,\"causes_s\":{%s}},"
                               "\"proactive\":{\"requests\":0,\"causes_s\":{%s}}}}",
                               text_end(&causes), text_end(&causes));
    drawn_input("", "i.json", text);
    drawn_input("Twice=", "j.json",
                "{\"about\":{\"kind\":\"interference\"},\"interference\":{"
                "\"reactive\":{\"requests\":2,\"causes_s\":{\"host\":6,\"eviction\":1}},"
                "\"proactive\":{\"requests\":8,\"causes_s\":{\"killed\":4}}}}");
    /* 2^k - 1 behind the k-th cause; the second input is cut: 262143 > 4 * 3.5 */
    drawn_is("causes",
             "reactive\n"
             "edf\t0\t1\t3\t7\t127\t511\t2047\t4095\t16383\t32767\t262143\tNaN\tNaN\t3.675\n"
             "Twice\t0\t0\t0\t3\t3\t3\t3\t3\t3\t3\t3.5\tNaN\tNaN\t3.675\n\n\n"
             "proactive\n"
             "edf\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\tNaN\tNaN\t0.525\n"
             "Twice\t0\t0\t0\t0\t0\t0.5\t0.5\t0.5\t0.5\t0.5\t0.5\tNaN\tNaN\t0.525\n",
             "marked = 0\narray rows[3]\nrows[1] = 'edf'\nrows[2] = 'Twice'\nn_rows = 2\n");
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        const char *name = explain_cause_names[c];
        bool known = false;
        for (int i = 0; i < 18; i++) {
            known = known || strcmp(order[i], name) == 0;
        }
        ck_assert_msg(known, "the figure has no part with the cause %s", name);
    }
}
END_TEST

/* Column (who is waited for), row (who waits), seconds of each that waits: 8 s of 4, 2 of 4; 9 of
 * 3; and nothing where it is not said. */
START_TEST(a_matrix_has_victims_as_rows)
{
    drawn_input("", "i.json",
                "{\"about\":{\"kind\":\"interference\"},\"interference\":{"
                "\"reactive\":{\"requests\":4,\"by\":{\"reactive\":{\"wait_s\":8},\"proactive\":{"
                "\"wait_s\":2}}},"
                "\"proactive\":{\"requests\":3,\"by\":{\"reactive\":{\"wait_s\":9}}}}}");
    drawn_input("b=", "j.json",
                "{\"about\":{\"kind\":\"interference\"},\"interference\":{"
                "\"proactive\":{\"requests\":0,\"by\":{\"proactive\":{\"wait_s\":0}}}}}");
    drawn_is("interference",
             "i\n0\t0\t2\treactive\treactive\n1\t0\t0.5\tproactive\treactive\n"
             "0\t1\t3\treactive\tproactive\n1\t1\t0\tproactive\tproactive\n\n\n"
             "b\n0\t0\t0\treactive\treactive\n1\t0\t0\tproactive\treactive\n"
             "0\t1\t0\treactive\tproactive\n1\t1\t0\tproactive\tproactive\n",
             "array names[3]\nnames[1] = 'i'\nnames[2] = 'b'\nn_names = 2\n");
    drawn_input("", "i.json", "{\"about\":{\"kind\":\"interference\"},\"interference\":{}}");
    drawn_input("", "j.json", "{\"about\":{\"kind\":\"interference\"}}");
    drawn_refused("causes",
                  "i.json: no interference/{class}; `xpusim plot list` says what figures read\n"
                  "j.json: no interference/{class}; `xpusim plot list` says what figures read\n");
    drawn_input("", "j.json", "{\"about\":{\"kind\":\"interference\"}}");
    drawn_refused("interference",
                  "j.json: no interference/{class}; `xpusim plot list` says what figures read\n");
}
END_TEST

/* ---- tornado ---- */

/* The figure shows the first metric alone. Effects, from the least to the most of the three: ddr 3,
 * cores 6, watts 0 (unmoved), flash 3 after ddr, as they are equal. */
START_TEST(a_tornado_goes_from_the_largest_effect)
{
    static const char one[] =
        "{\"about\":{\"kind\":\"uncertainty\"},\"baseline\":\"fcfs\",\"uncertainty\":{\"machines\":"
        "64,"
        "\"factors\":{\"reactive.e2e_s.mean\":{\"edf\":{"
        "\"ddr\":{\"low\":0.5,\"high\":1.25,\"difference_file\":1,\"difference_low\":0,"
        "\"difference_high\":-2},"
        "\"cores\":{\"low\":2,\"high\":4096.4,\"difference_file\":5,\"difference_low\":0,"
        "\"difference_high\":-1},"
        "\"watts\":{\"low\":1,\"high\":2,\"difference_file\":3,\"difference_low\":3,\"difference_"
        "high\":3},"
        "\"flash\":{\"low\":1,\"high\":2,\"difference_file\":0,\"difference_low\":-1,\"difference_"
        "high\":2}%s}},"
        "\"m\":{\"edf\":{\"ddr\":{\"low\":1,\"high\":2,\"difference_file\":1,\"difference_low\":0,"
        "\"difference_high\":9}}}},"
        "\"best\":{\"reactive.e2e_s.mean\":{\"fcfs\":{\"best_frac\":0.25},\"edf\":{\"best_frac\":0."
        "75}},"
        "\"m\":{\"prema\":{\"best_frac\":1}}}}}";
    OWNED char *text = xformat(one, "");
    drawn_input("", "u.json", text);
    drawn_is(
        "tornado",
        "factors\n0\t5\t0\t-1\n1\t1\t0\t-2\n2\t0\t-1\t2\n\n\n"
        "best\n0\t0.25\tfcfs\n1\t0.75\tedf\n",
        "unmoved = 1\nfactor_rows = 3\n"
        "array slot[3]\nslot[1] = 6\nslot[2] = 3\nlongest = 4\npolicies = 2\n"
        "array best_names[3]\nbest_names[1] = 'fcfs'\nbest_names[2] = 'edf'\nn_best_names = 2\n"
        "baseline = 'fcfs'\nmachines = 64\ntitle1 = 'mean reactive latency (s)'\n"
        "array rows[4]\nrows[1] = 'cores, 2 to 4.1e+03'\nrows[2] = 'ddr, 0.5 to 1.25'\n"
        "rows[3] = 'flash, 1 to 2'\nn_rows = 3\n");
    /* Two policies: a row says which it is of. */
    OWNED char *two =
        xformat(one, "},\"my, own\":{\"ddr\":{\"low\":1,\"high\":2,\"difference_file\":"
                     "0,\"difference_low\":0,\"difference_high\":9}");
    drawn_input("", "u.json", two);
    drawn_is("tornado",
             "factors\n0\t0\t0\t9\n1\t5\t0\t-1\n2\t1\t0\t-2\n3\t0\t-1\t2\n\n\n"
             "best\n0\t0.25\tfcfs\n1\t0.75\tedf\n",
             NULL);
    ck_assert_ptr_nonnull(strstr(drawn_vars(), "rows[1] = 'ddr, my, own, 1 to 2'\n"
                                               "rows[2] = 'cores, edf, 2 to 4.1e+03'\n"));
    drawn_input("", "u.json",
                "{\"about\":{\"kind\":\"uncertainty\"},\"uncertainty\":{\"best\":{\"m\":{\"edf\":{"
                "\"best\":1}}}}}");
    drawn_refused("tornado", "u.json: no uncertainty/factors/{metric}/{policy}/{factor}; `xpusim "
                             "plot list` says what figures read\n");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = drawn_setup, .teardown = drawn_teardown),
    TEST(a_bar_has_its_ends_and_its_mark),
    TEST(a_panel_that_nobody_asked_for_may_be_missing),
    TEST(parts_of_a_latency_add_up),
    LOOP(an_axis_of_bars_ends_where_they_do, sizeof ends / sizeof ends[0]),
    TEST(every_cause_is_in_one_part),
    TEST(a_matrix_has_victims_as_rows),
    TEST(a_tornado_goes_from_the_largest_effect),
};
SUITE_MAIN("figures of bars", suite)

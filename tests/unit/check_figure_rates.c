/* Figures over an axis: every row and every variable that gnuplot gets, by hand. */
#include <string.h>

#include "plots/palette.h"
#include "plots/results.h"
#include "plots/series.h"
#include "tests/helpers/drawn.h"
#include "tests/helpers/suite.h"

static void metrics(const char *a, const char *b)
{
    drawn_request.metrics[0] = a;
    drawn_request.metrics[1] = b;
    drawn_request.n_metrics = b != NULL ? 2 : 1;
}

/* ---- lines ---- */

/* Two values v and w have the mean (v + w) / 2, and Student's half width is t * |v - w| / 2 with t
 * = tan(0.475 pi) = 12.7062047362. These are 3 and t for fcfs at rate 1, and 6 and 2 t at rate 2.
 * One value has no interval. Rows of a point need not be neighbours, nor in order. */
START_TEST(replications_of_a_point_are_a_mean_and_an_interval)
{
    drawn_input("", "a.csv",
                "policy,rate,replication,seed,verdict,m\n"
                "fcfs,2,1,7,STABLE,4\n"
                "edf,1.0,1,7,STABLE,1\n"
                "fcfs,1,1,7,STABLE,2\n"
                "fcfs,2,2,8,OVERLOADED,8\n"
                "fcfs,1,2,8,UNDECIDED,4\n"
                "edf,2,1,7,OVERLOADED,3\n");
    metrics("m", NULL);
    drawn_near("latency-rate",
               "fcfs\n"
               "1\t3\t-9.70620473617\t15.7062047362\t2\t0\n"
               "2\t6\t-19.4124094723\t31.4124094723\t2\t1\n\n\n"
               "edf\n"
               "1\t1\t1\t1\t1\t0\n"
               "2\t3\t3\t3\t1\t1\n",
               "overloads = 2\n"
               "array slot[3]\nslot[1] = 6\nslot[2] = 3\nlongest = 4\n"
               "panels = 1\nseries = 2\n"
               "xlabel_text = 'arrival rate (times the workload''s)'\n"
               "title1 = 'm'\n");
}
END_TEST

/* M.low and M.high of a row of its own are its interval, and where one is empty the mean is taken.
 * Those of two rows are no interval of their mean. A row without the value has no point. */
START_TEST(an_interval_of_the_file_is_taken)
{
    drawn_input("", "a.csv",
                "policy,rate,m,m.low,m.high\n"
                "fcfs,1,5,4,7\n"
                "fcfs,2,6,5,\n"
                "fcfs,3,7,,9\n"
                "fcfs,4,,1,2\n"
                "fcfs,5,8,1,30\nfcfs,5,8,2,40\n");
    metrics("m", NULL);
    drawn_is("latency-rate",
             "fcfs\n1\t5\t4\t7\t1\t0\n2\t6\t5\t6\t1\t0\n3\t7\t7\t9\t1\t0\n5\t8\t8\t8\t2\t0\n",
             NULL);
}
END_TEST

/* A panel per metric, each with all series; both have the unit of their title: 2e9 bytes are 2 GB.
 */
START_TEST(each_metric_is_a_panel_in_its_unit)
{
    drawn_input("", "a.csv",
                "load,policy,all.throughput_req_per_min,memory_peak_bytes\n"
                "1,edf,3,4e9\n0.5,edf,1,2e9\n0.5,my_policy,1.5,2.5e9\n");
    metrics("all.throughput_req_per_min", "memory_peak_bytes");
    drawn_is("throughput-rate",
             "edf\n0.5\t1\t1\t1\t1\t0\n1\t3\t3\t3\t1\t0\n\n\n"
             "my_policy\n0.5\t1.5\t1.5\t1.5\t1\t0\n\n\n"
             "edf\n0.5\t2\t2\t2\t1\t0\n1\t4\t4\t4\t1\t0\n\n\n"
             "my_policy\n0.5\t2.5\t2.5\t2.5\t1\t0\n",
             "overloads = 0\n"
             "array slot[3]\nslot[1] = 3\nslot[2] = 4\nlongest = 9\n"
             "panels = 2\nseries = 2\n"
             "xlabel_text = 'load (share of the baseline''s capacity)'\n"
             "title1 = 'throughput (requests/min)'\ntitle2 = 'peak memory (GB)'\n");
}
END_TEST

/* The offered rate comes before the load that says the same, and the load names no series then. A
 * number by which series differ has its axis' name before it, and a text has none. A value that is
 * equal everywhere is left out. */
START_TEST(series_are_named_by_what_differs)
{
    drawn_input("", "a.csv",
                "load,offered_req_per_min,chunk,policy,kind,where,m\n"
                "0.5,30,256,fcfs,a,here,1\n"
                "0.5,30,512,fcfs,b,here,2\n"
                "1,60,256,fcfs,a,here,3\n"
                "1,60,512,fcfs,b,here,4\n");
    drawn_request.y = "chunk"; /* it is named, so it is an axis */
    metrics("m", NULL);
    drawn_is("latency-rate",
             "chunk 256, fcfs, a\n30\t1\t1\t1\t1\t0\n60\t3\t3\t3\t1\t0\n\n\n"
             "chunk 512, fcfs, b\n30\t2\t2\t2\t1\t0\n60\t4\t4\t4\t1\t0\n",
             "overloads = 0\n"
             "array slot[3]\nslot[1] = 4\nslot[2] = 7\nlongest = 18\n"
             "panels = 1\nseries = 2\nxlabel_text = 'offered rate (requests per minute)'\n"
             "title1 = 'm'\n");
}
END_TEST

/* Without anything that differs a series has the name of its file, or what the user calls it. An
 * axis that is asked for is called as it is. */
START_TEST(a_series_alone_has_the_name_of_its_file)
{
    const char *text = "width,m\n3,1\n-1,2\n1e1,4\n";
    drawn_input("", "my_file.v2.csv", text);
    drawn_request.x = "width";
    metrics("m", NULL);
    drawn_is("latency-rate", "my_file.v2\n-1\t2\t2\t2\t1\t0\n3\t1\t1\t1\t1\t0\n10\t4\t4\t4\t1\t0\n",
             "overloads = 0\narray slot[2]\nslot[1] = 4\nlongest = 10\n"
             "panels = 1\nseries = 1\nxlabel_text = 'width'\ntitle1 = 'm'\n");
    drawn_input("Ours, \"new\"=", "b.csv", text);
    drawn_request.x = "width";
    metrics("m", NULL);
    drawn_is("latency-rate",
             "Ours,  new \n-1\t2\t2\t2\t1\t0\n3\t1\t1\t1\t1\t0\n10\t4\t4\t4\t1\t0\n", NULL);
}
END_TEST

/* The first of offered rate, rate, load and rate_scale that varies, then any number that does. An
 * axis of only one value, of texts, or that some row lacks is none. */
static const struct {
    const char *header, *rows[3], *picked;
} axes[] = {
    {"load,rate,policy,m",
     {"1,5,a,1", "2,6,a,2", "3,7,a,3"},
     "arrival rate (times the workload''s)"},
    {"load,rate,policy,m",
     {"1,5,a,1", "2,5,a,2", "3,5,a,3"},
     "load (share of the baseline''s capacity)"},
    {"load,rate,policy,m",
     {"1,5,a,1", "2,6,a,2", "3,,a,3"},
     "load (share of the baseline''s capacity)"},
    {"rate,offered_req_per_min,policy,m",
     {"1,5,a,1", "2,6,a,2", "3,6,a,3"},
     "offered rate (requests per minute)"},
    {"experiment,fingerprint,set.rate_scale,m",
     {"e,f,1,1", "e,f,2,2", "e,f,3,3"},
     "arrival rate (times the workload''s)"},
    {"experiment,fingerprint,set.policy,set.k,m", {"e,f,1,1,1", "e,f,1,2,2", "e,f,1,3,3"}, "k"},
};

START_TEST(the_axis_is_the_first_that_varies)
{
    OWNED char *text = xformat("%s\n%s\n%s\n%s\n", axes[_i].header, axes[_i].rows[0],
                               axes[_i].rows[1], axes[_i].rows[2]);
    drawn_input("", "a.csv", text);
    metrics("m", NULL);
    ck_assert_int_eq(
        figure_prepare(figure_find("latency-rate"), &drawn_request, &drawn_data, &drawn_err), 0);
    OWNED char *want = xformat("\nxlabel_text = '%s'\n", axes[_i].picked);
    ck_assert_msg(strstr(drawn_vars(), want) != NULL, "no%s in %s", want, drawn_vars());
}
END_TEST

/* The axes of a sweep's export are its set.* columns, and the policy where none of them is that.
 * Failed runs are left out, also where another of their point succeeded; machine, model and
 * workload name the figure where all rows have one. */
START_TEST(a_sweep_export_has_its_axes)
{
    drawn_input("", "s.csv",
                "experiment,point,replication,status,message,soc,llm,workload,policy,params,seed,"
                "rate_scale,verdict,config_hash,trace_hash,fingerprint,set.rate,set.k,m\n"
                "e,1,1,ok,,S,L,W1,fcfs,p,1,1,STABLE,c,t,f,1,9,5\n"
                "e,1,2,failed,no,S,L,W1,fcfs,p,2,1,,c,t,f,1,9,\n"
                "e,2,1,ok,,S,L,W1,fcfs,p,2,2,OVERLOADED,c,t,f,2,9,6\n"
                "e,3,1,failed,no,S,L,W1,fcfs,p,3,1,,c,t,f,3,9,7\n"
                "e,4,1,ok,,S,L,W2,fcfs,p,3,1,STABLE,c,t,f,1,10,8\n");
    metrics("m", NULL);
    drawn_is("latency-rate",
             "fcfs, k 9\n1\t5\t5\t5\t1\t0\n2\t6\t6\t6\t1\t1\n\n\n"
             "fcfs, k 10\n1\t8\t8\t8\t1\t0\n",
             "overloads = 1\narray slot[3]\nslot[1] = 14\nslot[2] = 22\nlongest = 10\n"
             "panels = 1\nseries = 2\n"
             "xlabel_text = 'arrival rate (times the workload''s)'\ntitle1 = 'm'\n");
    ck_assert_str_eq(
        strstr(drawn_vars(), "subject"),
        "subject = 'fcfs  \u00b7  L  \u00b7  S  \u00b7  failed runs, in no mean: 2'\n");
}
END_TEST

/* A comparison at two loads, the capacity 40 requests a minute: offered are 20 and 40. A verdict is
 * the policy's at that load; runs are all that have one. Three that failed have none. A mean that
 * is null has no point, an end that is null is the mean. */
static const char loads[] =
    "{\"about\":{\"kind\":\"load compare\",\"soc\":\"S\",\"llm\":\"L\",\"workload\":\"W\"},"
    "\"replications\":5,\"loads\":["
    "{\"load\":0.5,\"failed_runs\":2,\"capacity_req_per_min\":40,\"policies\":{"
    "\"fcfs\":{\"a\":{\"mean\":2,\"low\":1,\"high\":4},\"b\":{\"mean\":7,\"low\":6,\"high\":9}},"
    "\"edf\":{\"a\":{\"mean\":3,\"low\":null,\"high\":null},\"b\":{\"mean\":8,\"low\":7,"
    "\"high\":8.5}}},"
    "\"verdicts\":{\"fcfs\":{\"stable\":4,\"undecided\":1,\"overloaded\":0},"
    "\"edf\":{\"stable\":0,\"undecided\":2,\"overloaded\":3}}},"
    "{\"load\":1,\"failed_runs\":1,\"capacity_req_per_min\":40,\"policies\":{"
    "\"fcfs\":{\"a\":{\"mean\":5,\"low\":4.5,\"high\":6},\"b\":{\"mean\":1,\"low\":0.5,"
    "\"high\":2}},"
    "\"edf\":{\"a\":{\"mean\":6,\"low\":5,\"high\":7},\"b\":{\"mean\":null,\"low\":null,"
    "\"high\":null}}},"
    "\"verdicts\":{\"fcfs\":{\"stable\":0,\"undecided\":0,\"overloaded\":5},"
    "\"edf\":{\"stable\":0,\"undecided\":1,\"overloaded\":3}}}]}";

START_TEST(a_comparison_of_loads_is_drawn_over_the_offered_rate)
{
    drawn_input("", "l.json", loads);
    metrics("a", "b");
    drawn_is("latency-rate",
             "fcfs\n20\t2\t1\t4\t5\t0\n40\t5\t4.5\t6\t5\t5\n\n\n"
             "edf\n20\t3\t3\t3\t5\t3\n40\t6\t5\t7\t4\t3\n\n\n"
             "fcfs\n20\t7\t6\t9\t5\t0\n40\t1\t0.5\t2\t5\t5\n\n\n"
             "edf\n20\t8\t7\t8.5\t5\t3\n",
             "overloads = 5\narray slot[3]\nslot[1] = 6\nslot[2] = 3\nlongest = 4\n"
             "panels = 2\nseries = 2\nxlabel_text = 'offered rate (requests per minute)'\n"
             "title1 = 'a'\ntitle2 = 'b'\n");
    ck_assert_str_eq(strstr(drawn_vars(), "subject"),
                     "subject = 'L  \u00b7  S  \u00b7  W  \u00b7  failed runs, in no mean: 3'\n");
}
END_TEST

START_TEST(an_axis_or_a_metric_that_is_not_there_is_refused)
{
    const char *text = "policy,rate,reactive.ttft_s.mean,reactive.e2e_s.mean,proactive.e2e_s.mean\n"
                       "fcfs,1,1,2,3\nfcfs,1,1,2,3\n";
    drawn_input("", "a.csv", text);
    metrics("reactive.e2e_s.mean", NULL);
    drawn_refused("latency-rate",
                  "a.csv: no rate or load varies in the input (compare --load R1,R2,.. --json and "
                  "sweeps over it have it; --x names an axis)\n");
    drawn_input("", "a.csv", text);
    metrics("reactive.e2e_s.mean", NULL);
    drawn_request.x = "policy";
    drawn_refused("latency-rate",
                  "axis policy: not a number of every point of the input; there are: rate\n");
    drawn_input("", "a.csv", text);
    drawn_request.x = "rate";
    metrics("reactive.e2x", "tokens");
    drawn_refused("latency-rate",
                  "a.csv: no metric reactive.e2x; there are: reactive.ttft_s.mean, "
                  "reactive.e2e_s.mean, proactive.e2e_s.mean, ...\n"
                  "a.csv: no metric tokens; there are: reactive.ttft_s.mean, reactive.e2e_s.mean, "
                  "proactive.e2e_s.mean, ...\n");
    drawn_input("", "a.csv", text);
    drawn_request.x = "rate";
    metrics("reactive.e2e_s.p90", NULL); /* three letters behind the dot */
    drawn_refused("latency-rate",
                  "a.csv: no metric reactive.e2e_s.p90; there are: reactive.e2e_s.mean, ...\n");
    drawn_input("", "b.csv", "rate,a,b,c,d,e,f,g,h,i,j,verdict\n1,,2,3,4,5,6,7,8,9,10,STABLE\n");
    drawn_request.x = "rate";
    metrics("zz", NULL); /* eight at most */
    drawn_refused("latency-rate", "b.csv: no metric zz; there are: a, b, c, d, e, f, g, h, ...\n");
    drawn_input("", "c.csv", "rate,status,m\n1,failed,1\n2,failed,1\n");
    metrics("m", NULL);
    drawn_refused("latency-rate", "c.csv: no run of it succeeded\n");
    drawn_input("", "d.json", "{\"about\":{\"kind\":\"compare\"},\"policies\":{}}");
    metrics("m", "n");
    drawn_refused("pareto",
                  "d.json: no comparison: expected what `xpusim compare --json` prints\n");
}
END_TEST

/* The chunk figure's own axes: chunk_rows, chunk, max_num_batched_tokens, else any that varies. */
START_TEST(a_trade_off_is_drawn_over_the_chunk)
{
    drawn_input("", "a.csv",
                "experiment,fingerprint,set.rate,set.chunk,m\n"
                "e,f,1,512,1\ne,f,2,256,2\ne,f,1,256,3\n");
    metrics("m", NULL);
    drawn_is("chunk",
             "rate 1\n256\t3\t3\t3\t1\t0\n512\t1\t1\t1\t1\t0\n\n\nrate 2\n256\t2\t2\t2\t1\t0\n",
             "overloads = 0\narray slot[3]\nslot[1] = 4\nslot[2] = 7\nlongest = 6\npanels = 1\n"
             "series = 2\nxlabel_text = 'chunk'\ntitle1 = 'm'\n");
    drawn_input("", "b.csv", "m,policy\n1,fcfs\n2,edf\n");
    metrics("m", NULL);
    drawn_refused("chunk",
                  "b.csv: no chunk size or other number varies in the input (compare --load "
                  "R1,R2,.. --json and sweeps over it have it; --x names an axis)\n");
}
END_TEST

/* ---- Pareto ---- */

/* Throughput, latency, both intervals, overloaded runs. A point that lacks one of the two is not
 * drawn, and a series has its name at the last one that is: fcfs at (10, 5), edf at (18, 9), and
 * prema nowhere. Several loads have no front. */
START_TEST(a_pair_needs_both_numbers)
{
    drawn_input("", "a.csv",
                "policy,load,verdict,a,a.low,a.high,b,b.low,b.high\n"
                "fcfs,1,STABLE,10,9,12,5,4,7\n"
                "fcfs,2,OVERLOADED,20,,,,,\n"
                "edf,2,OVERLOADED,18,,,9,8,\n"
                "edf,1,STABLE,12,11,,4,,6\n"
                "prema,1,STABLE,,,,1,,\n");
    metrics("a", "b");
    drawn_is("pareto",
             "fcfs\n10\t5\t9\t12\t4\t7\t0\n\n\n"
             "edf\n12\t4\t11\t12\t4\t6\t0\n18\t9\t18\t18\t8\t9\t1\n\n\n"
             "prema\n\n\n"
             "Pareto front of the means\n",
             "at_x1 = 10\nat_y1 = 5\nat_x2 = 18\nat_y2 = 9\nat_x3 = NaN\nat_y3 = NaN\n"
             "overloads = 1\nfront = 0\ngain = 1\n"
             "array names[4]\nnames[1] = 'fcfs'\nnames[2] = 'edf'\nnames[3] = 'prema'\n"
             "n_names = 3\nseries = 3\n"
             "array slot[4]\nslot[1] = 6\nslot[2] = 3\nslot[3] = 4\nlongest = 5\n"
             "title1 = 'a'\ntitle2 = 'b'\n");
}
END_TEST

/* All have one load. c beats e in both, a beats b (as much at less), d beats f (more at as little),
 * and g equals d. The front goes from little throughput to much. */
START_TEST(the_front_is_what_nobody_beats)
{
    drawn_input("", "a.csv", "policy,t,m\na,20,8\nb,20,9\nc,12,4\nd,5,1\ne,10,5\nf,4,1\ng,5,1\n");
    metrics("t", "m");
    drawn_is("pareto",
             "a\n20\t8\t20\t20\t8\t8\t0\n\n\n"
             "b\n20\t9\t20\t20\t9\t9\t0\n\n\n"
             "c\n12\t4\t12\t12\t4\t4\t0\n\n\n"
             "d\n5\t1\t5\t5\t1\t1\t0\n\n\n"
             "e\n10\t5\t10\t10\t5\t5\t0\n\n\n"
             "f\n4\t1\t4\t4\t1\t1\t0\n\n\n"
             "g\n5\t1\t5\t5\t1\t1\t0\n\n\n"
             "Pareto front of the means\n"
             "5\t1\t5\t5\t1\t1\t0\n12\t4\t12\t12\t4\t4\t0\n20\t8\t20\t20\t8\t8\t0\n",
             NULL);
    ck_assert_ptr_nonnull(strstr(drawn_vars(), "front = 1\ngain = 1\n"));
    drawn_input("", "b.csv", "policy,a,b\nfcfs,1,1\nedf,2,0.5\n"); /* one that beats all others */
    metrics("a", "b");
    drawn_is("pareto",
             "fcfs\n1\t1\t1\t1\t1\t1\t0\n\n\nedf\n2\t0.5\t2\t2\t0.5\t0.5\t0\n\n\n"
             "Pareto front of the means\n2\t0.5\t2\t2\t0.5\t0.5\t0\n",
             NULL);
    ck_assert_ptr_nonnull(strstr(drawn_vars(), "front = 0\n"));
}
END_TEST

/* Less memory and latency are better, and a larger share of cached tokens: each metric states
 * which. With memory a beats c, and with the share c beats b. Bytes are drawn as GB. */
START_TEST(a_front_goes_by_what_is_better_of_each_metric)
{
    static const char text[] = "policy,memory_peak_bytes,reactive.e2e_s.mean,all.cached_frac\n"
                               "a,5e9,9,0.2\nb,8e9,3,0.1\nc,9e9,9,0.9\n";
    drawn_input("", "a.csv", text);
    metrics("memory_peak_bytes", "reactive.e2e_s.mean");
    drawn_is("pareto",
             "a\n5\t9\t5\t5\t9\t9\t0\n\n\nb\n8\t3\t8\t8\t3\t3\t0\n\n\n"
             "c\n9\t9\t9\t9\t9\t9\t0\n\n\n"
             "Pareto front of the means\n5\t9\t5\t5\t9\t9\t0\n8\t3\t8\t8\t3\t3\t0\n",
             NULL);
    ck_assert_ptr_nonnull(strstr(drawn_vars(), "front = 1\ngain = 0\n"));
    ck_assert_ptr_nonnull(strstr(drawn_vars(), "title1 = 'peak memory (GB)'\n"));
    drawn_input("", "a.csv", text);
    metrics("memory_peak_bytes", "all.cached_frac");
    drawn_is("pareto",
             "a\n5\t0.2\t5\t5\t0.2\t0.2\t0\n\n\nb\n8\t0.1\t8\t8\t0.1\t0.1\t0\n\n\n"
             "c\n9\t0.9\t9\t9\t0.9\t0.9\t0\n\n\n"
             "Pareto front of the means\n5\t0.2\t5\t5\t0.2\t0.2\t0\n9\t0.9\t9\t9\t0.9\t0.9\t0\n",
             NULL);
}
END_TEST

/* Without --metric it is throughput against latency; one metric alone is no pair. */
START_TEST(a_pareto_figure_has_its_own_pair)
{
    static const char input[] = "policy,proactive.throughput_req_per_min,reactive.e2e_s.mean,x\n"
                                "fcfs,3,4,5\n";
    drawn_input("", "a.csv", input);
    drawn_is("pareto",
             "fcfs\n3\t4\t3\t3\t4\t4\t0\n\n\nPareto front of the means\n3\t4\t3\t3\t4\t4\t0\n",
             "at_x1 = 3\nat_y1 = 4\noverloads = 0\nfront = 0\ngain = 1\n"
             "array names[2]\nnames[1] = 'fcfs'\nn_names = 1\nseries = 1\n"
             "array slot[2]\nslot[1] = 6\nlongest = 4\n"
             "title1 = 'proactive throughput (requests/min)'\n"
             "title2 = 'mean reactive latency (s)'\n");
    drawn_input("", "a.csv", input);
    metrics("x", NULL);
    drawn_refused("pareto", "pareto draws two metrics, x and y, and --metric was given 1 time\n");
    drawn_input("", "b.csv", "policy,reactive.e2e_s.mean\nfcfs,4\n");
    drawn_refused("pareto", "b.csv: no metric proactive.throughput_req_per_min; there are: "
                            "reactive.e2e_s.mean, ...\n");
    drawn_input("", "b.csv", "policy,reactive.e2e_s.mean,all.throughput_req_per_min\nfcfs,4,2\n");
    drawn_refused("pareto", "b.csv: no metric proactive.throughput_req_per_min; there are: "
                            "all.throughput_req_per_min, ...\n"); /* that metric of another group */
    drawn_input("", "b.csv", "policy,proactive.throughput_req_per_min\nfcfs,4\n");
    drawn_refused("pareto", "b.csv: no metric reactive.e2e_s.mean; there are: "
                            "proactive.throughput_req_per_min, ...\n");
}
END_TEST

/* ---- heat map ---- */

/* Columns are 1, 2, 10 (by size, not as texts) and rows 256, 512, with a map per policy. A cell
 * without a run is empty. 0.50 and 0.5 are one number. */
START_TEST(a_map_is_sorted_by_numbers)
{
    drawn_input("", "a.csv",
                "policy,rate,chunk,memory_peak_bytes\n"
                "fcfs,10,512,1e9\nfcfs,2,256,2e9\nfcfs,0.50,512,3e9\nfcfs,0.5,256,4e9\n"
                "edf,2,512,5e9\n");
    drawn_request.x = "rate";
    drawn_request.y = "chunk";
    metrics("memory_peak_bytes", NULL);
    drawn_is("heatmap",
             "fcfs\n0\t0\t4\n1\t0\t2\n2\t0\tNaN\n0\t1\t3\n1\t1\tNaN\n2\t1\t1\n\n\n"
             "edf\n0\t0\tNaN\n1\t0\tNaN\n2\t0\tNaN\n0\t1\tNaN\n1\t1\t5\n2\t1\tNaN\n",
             "name1 = 'fcfs'\nname2 = 'edf'\ny_is_text = 0\nseries = 2\n"
             "xlabel_text = 'arrival rate (times the workload''s)'\nylabel_text = 'chunk'\n"
             "array xnames[4]\nxnames[1] = '0.5'\nxnames[2] = '2'\nxnames[3] = '10'\nn_xnames = 3\n"
             "array ynames[3]\nynames[1] = '256'\nynames[2] = '512'\nn_ynames = 2\n"
             "title1 = 'peak memory (GB)'\n");
}
END_TEST

/* Names stay in the order in which they come. The axis that is not asked for is the first number
 * that varies and is not the other. */
START_TEST(a_map_may_have_names_for_rows)
{
    drawn_input("", "a.csv",
                "experiment,fingerprint,policy,set.j,set.k,reactive.e2e_s.mean\n"
                "e,f,z-last,7,2,1\ne,f,fcfs,7,1,2\ne,f,fcfs,7,2,3\n");
    drawn_request.y = "policy";
    drawn_is("heatmap", "a\n0\t0\tNaN\n1\t0\t1\n0\t1\t2\n1\t1\t3\n",
             "name1 = 'a'\ny_is_text = 1\nseries = 1\nxlabel_text = 'k'\nylabel_text = 'policy'\n"
             "array xnames[3]\nxnames[1] = '1'\nxnames[2] = '2'\nn_xnames = 2\n"
             "array ynames[3]\nynames[1] = 'z-last'\nynames[2] = 'fcfs'\nn_ynames = 2\n"
             "title1 = 'mean reactive latency (s)'\n");
    drawn_input("", "b.csv",
                "experiment,fingerprint,set.j,set.k,reactive.e2e_s.mean\n"
                "e,f,7,2,1\ne,f,8,2,2\ne,f,8,3,3\n");
    drawn_is("heatmap", "b\n0\t0\t1\n1\t0\t2\n0\t1\tNaN\n1\t1\t3\n",
             "name1 = 'b'\ny_is_text = 0\nseries = 1\nxlabel_text = 'j'\nylabel_text = 'k'\n"
             "array xnames[3]\nxnames[1] = '7'\nxnames[2] = '8'\nn_xnames = 2\n"
             "array ynames[3]\nynames[1] = '2'\nynames[2] = '3'\nn_ynames = 2\n"
             "title1 = 'mean reactive latency (s)'\n");
    drawn_input("", "b.csv",
                "experiment,fingerprint,set.j,set.k,reactive.e2e_s.mean\n"
                "e,f,7,2,1\ne,f,8,2,2\n");
    drawn_refused("heatmap",
                  "b.csv: no second number varies in the input (compare --load R1,R2,.. --json and "
                  "sweeps over it have it; --x names an axis)\n");
    drawn_input("", "b.csv", "j,reactive.e2e_s.mean\n7,1\n");
    drawn_refused("heatmap",
                  "b.csv: no number varies in the input (compare --load R1,R2,.. --json and "
                  "sweeps over it have it; --x names an axis)\n");
    drawn_input("", "b.csv", "rate,j,reactive.e2e_s.mean\n1,7,1\n2,8,2\n");
    drawn_request.y = "nonesuch";
    drawn_refused("heatmap",
                  "axis nonesuch: not a number of every point of the input; there are: rate\n");
}
END_TEST

/* ---- points ---- */

/* Two files: an axis that only one of them has makes no series of "nothing" in the other, whose
 * points are called as their file. */
START_TEST(inputs_are_read_one_after_the_other)
{
    drawn_input("", "a.csv", "policy,rate,m\nfcfs,1,5\n");
    drawn_input("", "b.csv", "# policy: edf\n# llm: L\nrate,m,k\n2,6,1\n1,7,1\n");
    metrics("m", NULL);
    const struct results *r = results_load(&drawn_request, &drawn_err);
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(results_n(r), 3);
    ck_assert_uint_eq(r->axes.n, 2);
    ck_assert_str_eq(results_axis(r, 0, "policy"), "fcfs");
    ck_assert_ptr_null(results_axis(r, 1, "policy"));
    ck_assert_ptr_null(results_axis(r, 1, "m")); /* no axis, though a column */
    ck_assert_str_eq(results_axis(r, 1, "rate"), "2");
    double x = 9.0;
    ck_assert(!results_axis_number(r, 0, "policy", &x) && x == 9.0);
    ck_assert(results_axis_number(r, 2, "rate", &x) && x == 1.0);
    ck_assert_str_eq(results_label(r, 0, "rate", NULL), "fcfs");
    ck_assert_str_eq(results_label(r, 1, "rate", NULL), "edf");
    ck_assert_str_eq(results_label(r, 1, NULL, NULL), "rate 2");
    ck_assert_str_eq(results_label(r, 0, NULL, "rate_scale"), "fcfs");
    struct results_value v;
    ck_assert(results_metric(r, 2, "m", &v) && v.mean == 7.0 && isnan(v.low));
    ck_assert(!results_metric(r, 2, "k2", &v) && isnan(v.mean));
    ck_assert(!results_metric(r, 0, "k", &v) && results_has(r, "k") && !results_has(r, "rate"));
}
END_TEST

/* The words of a mark: of no overload there are none. */
START_TEST(an_overload_is_said_in_runs)
{
    drawn_input("", "l.json", loads);
    const struct results *r = results_load(&drawn_request, &drawn_err);
    ck_assert_ptr_nonnull(r);
    static const char *const marks[] = {"", "overloaded in 3 of 5 runs",
                                        "overloaded in 5 of 5 runs", "overloaded in 3 of 4 runs"};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(results_mark(r, i), marks[i]);
    }
    const struct series *s = series_of(r, "load", NULL);
    ck_assert_uint_eq(s->names.n, 2);
    static const size_t order[] = {0, 1, 2, 3};
    static const size_t of[] = {0, 1, 0, 1};
    ck_assert_mem_eq(s->order, order, sizeof order);
    ck_assert_mem_eq(s->of, of, sizeof of);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = drawn_setup, .teardown = drawn_teardown),
    TEST(replications_of_a_point_are_a_mean_and_an_interval),
    TEST(an_interval_of_the_file_is_taken),
    TEST(each_metric_is_a_panel_in_its_unit),
    TEST(series_are_named_by_what_differs),
    TEST(a_series_alone_has_the_name_of_its_file),
    LOOP(the_axis_is_the_first_that_varies, sizeof axes / sizeof axes[0]),
    TEST(a_sweep_export_has_its_axes),
    TEST(a_comparison_of_loads_is_drawn_over_the_offered_rate),
    TEST(an_axis_or_a_metric_that_is_not_there_is_refused),
    TEST(a_trade_off_is_drawn_over_the_chunk),
    TEST(a_pair_needs_both_numbers),
    TEST(the_front_is_what_nobody_beats),
    TEST(a_front_goes_by_what_is_better_of_each_metric),
    TEST(a_pareto_figure_has_its_own_pair),
    TEST(a_map_is_sorted_by_numbers),
    TEST(a_map_may_have_names_for_rows),
    TEST(inputs_are_read_one_after_the_other),
    TEST(an_overload_is_said_in_runs),
};
SUITE_MAIN("figures over an axis", suite)

/* Parts of the report page from documents made by hand: sentences, tables and refusals, whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/report/report_impl.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

static cJSON *tree;

static void setup(void)
{
    tree = NULL;
}

static void teardown(void)
{
    cJSON_Delete(tree);
}

/* Quotes may be apostrophes. */
static void of(const char *text)
{
    OWNED char *json = xstrdup(text);
    for (char *c = json; (c = strchr(c, '\'')) != NULL;) {
        *c = '"';
    }
    cJSON_Delete(tree);
    tree = cJSON_Parse(json);
    ck_assert_msg(tree != NULL, "%s", json);
}

static char *written(void (*write)(const cJSON *t, FILE *out), const cJSON *t)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = memory_stream(&text, &n);
    write(t, f);
    memory_stream_close(f, &text);
    return text != NULL ? text : xstrdup("");
}

static void is(void (*write)(const cJSON *t, FILE *out), const char *want)
{
    OWNED char *text = written(write, tree);
    ck_assert_str_eq(text, want);
}

/* ---- numbers ---- */

static double relevance;
static const cJSON *base;

static void change(const cJSON *t, FILE *out)
{
    report_put_change(out, t, base, relevance);
}

static void mean(const cJSON *t, FILE *out)
{
    report_put_mean(out, t);
}

START_TEST(numbers_are_as_people_read_them)
{
    of("{\"mean\": 7.514, \"low\": 6.88, \"high\": 8.15}");
    is(mean, "7.51 [6.88, 8.15]");
    of("{\"mean\": 751.4, \"low\": 688, \"high\": 815}");
    is(mean, "751 [688, 815]");
    of("{\"mean\": null, \"low\": 1, \"high\": 2}");
    is(mean, "&ndash;");
    of("{\"mean\": 2.5}");
    is(mean, "2.500");
    cJSON *b = cJSON_Parse("{\"mean\": -8}");
    base = b;
    relevance = 0.01;
    of("{\"verdict\": \"higher by 12 % (significant)\", \"diff\": 1, \"diff_low\": 0.5, "
       "\"diff_high\": 1.5}");
    is(change, "+1.00 [0.50, 1.50] (+12 %)");
    of("{\"verdict\": \"higher by 12 % (significant)\", \"diff\": 1, \"diff_low\": 0.5, "
       "\"diff_high\": 1.5, \"p_holm\": 0.01}");
    is(change, "+1.00 [0.50, 1.50] (+12 %)");
    of("{\"verdict\": \"higher by 12 % (significant)\", \"diff\": 1, \"diff_low\": 0.5, "
       "\"diff_high\": 1.5, \"p_holm\": null}");
    is(change, "+1.00 [0.50, 1.50] (+12 %) (not corrected)");
    of("{\"verdict\": \"lower by 12 %\", \"diff\": -1, \"diff_low\": -1.5, \"diff_high\": -0.5}");
    is(change, "-1.00 [-1.50, -0.50] (-12 %)");
    of("{\"verdict\": \"lower\", \"diff\": -0.04, \"diff_low\": -0.06, \"diff_high\": -0.02}");
    is(change, "-0.040 [-0.060, -0.020] (-0.50 %): shown, but below the 1 % that matter");
    of("{\"verdict\": \"lower\", \"diff\": -0.08, \"diff_low\": -0.12, \"diff_high\": -0.04}");
    is(change, "-0.080 [-0.120, -0.040] (-1.0 %)");
    of("{\"verdict\": \"no difference shown at n=3 & more\", \"diff\": 1, \"diff_low\": 0, "
       "\"diff_high\": 2}");
    is(change, "no difference shown at n=3 &amp; more");
    of("{\"verdict\": \"higher, of nothing\", \"diff\": null}");
    is(change, "higher, of nothing");
    /* Pairs are 10, 20, 30 against 9, 18, 27: 2 of 20 less. A fourth run of the baseline has 1000
     * and no pair, so that its mean is 265. */
    cJSON_SetNumberValue(json_member(b, "mean"), 265);
    of("{\"verdict\": \"lower by 10 % (significant)\", \"diff\": -2, \"diff_low\": -4, "
       "\"diff_high\": -1, \"ratio\": 0.9}");
    is(change, "-2.0 [-4.0, -1.0] (-10 %)");
    cJSON_Delete(b);
}
END_TEST

START_TEST(overloaded_runs_are_of_all_runs)
{
    of("{\"verdicts\": {\"a\": {\"stable\": 3, \"undecided\": 2, \"overloaded\": 1}, "
       "\"b\": {\"stable\": 3}}}");
    unsigned runs = 77;
    ck_assert_uint_eq(report_overloaded(tree, "a", &runs), 1);
    ck_assert_uint_eq(runs, 6);
    ck_assert_uint_eq(report_overloaded(tree, "b", &runs), 0);
    ck_assert_uint_eq(runs, 0);
    ck_assert_uint_eq(report_overloaded(tree, "c", &runs), 0);
    ck_assert_uint_eq(runs, 0);
    of("{\"verdicts\": {\"a\": {\"stable\": 3, \"undecided\": 2, \"overloaded\": 1, "
       "\"battery_empty\": 4}}}");
    ck_assert_uint_eq(report_overloaded(tree, "a", &runs), 1);
    ck_assert_uint_eq(runs, 10);
    ck_assert_uint_eq(report_battery_empty(tree, "a", &runs), 4);
    ck_assert_uint_eq(runs, 10);
    ck_assert_uint_eq(report_battery_empty(tree, "b", &runs), 0);
}
END_TEST

/* ---- what a section says first ---- */

/* w is best by the primary metric, x meets its interval at its end, and y does not. Against the
 * baseline y, w has a longer first token and fewer requests a minute, which it pays. It has no more
 * energy, and a difference of proactive requests that is not shown. x is first by energy, and y by
 * the first token. By the others no policy is surely first. */
static const char three[] =
    "{'baseline':'y','relevance_frac':0.01,'failed_runs':3,'policies':{'w<':{"
    "'reactive.e2e_s.mean':"
    "{'mean':2.0,'low':1.0,'high':3.0,'verdict':'lower','diff':-2,'diff_low':-3,'diff_high':-1},"
    "'reactive.ttft_s.mean':"
    "{'mean':2.0,'low':1.5,'high':2.5,'verdict':'higher','diff':1,'diff_low':0.5,'diff_high':1.5},"
    "'proactive.e2e_s.mean':"
    "{'mean':9.0,'low':8.0,'high':10.0,'verdict':'no "
    "difference','diff':1,'diff_low':-1,'diff_high':3},"
    "'all.throughput_req_per_min':"
    "{'mean':4.0,'low':3.0,'high':5.0,'verdict':'lower','diff':-1,'diff_low':-1.5,'diff_high':-0.5}"
    ","
    "'energy_j_per_token':"
    "{'mean':1.0,'low':0.9,'high':1.1,'verdict':'lower','diff':-1,'diff_low':-1.25,'diff_high':-0."
    "75}},"
    "'x':{"
    "'reactive.e2e_s.mean':"
    "{'mean':4.0,'low':3.0,'high':5.0,'verdict':'no','diff':0,'diff_low':-1,'diff_high':1},"
    "'reactive.ttft_s.mean':"
    "{'mean':1.5,'low':1.0,'high':2.0},"
    "'proactive.e2e_s.mean':"
    "{'mean':8.5,'low':8.0,'high':9.0},"
    "'all.throughput_req_per_min':"
    "{'mean':4.5,'low':4.0,'high':5.0},"
    "'energy_j_per_token':"
    "{'mean':0.5,'low':0.4,'high':0.6}},"
    "'y':{"
    "'reactive.e2e_s.mean':"
    "{'mean':4.0,'low':3.1,'high':4.9},"
    "'reactive.ttft_s.mean':"
    "{'mean':1.0,'low':0.8,'high':1.2},"
    "'proactive.e2e_s.mean':"
    "{'mean':8.0,'low':7.0,'high':9.0},"
    "'all.throughput_req_per_min':"
    "{'mean':5.0,'low':4.0,'high':6.0},"
    "'energy_j_per_token':"
    "{'mean':2.0,'low':1.5,'high':2.5}}},"
    "'verdicts':{'x':{'stable':2,'undecided':0,'overloaded':2,'battery_empty':1},"
    "'y':{'stable':1,'undecided':0,'overloaded':4}}}";

START_TEST(the_winner_is_told_with_its_price)
{
    const char *ttft = metric_title("reactive.ttft_s.mean");
    const char *rate = metric_title("all.throughput_req_per_min");
    const char *energy = metric_title("energy_j_per_token");
    of(three);
    OWNED char *want = xformat(
        "<p class=headline><b>w&lt;</b> answers reactive requests soonest: 2.0 [1.0, 3.0] s to the "
        "last token, against 4.00 [3.10, 4.90] s of <b>y</b>: -2.0 [-3.0, -1.0] (-50 %%). Joules "
        "per token, idle power included: -1.00 [-1.25, -0.75] (-50 %%). Intervals that meet its "
        "own: x (4.0 [3.0, 5.0] s). <b>It pays with</b> %s: +1.00 [0.50, 1.50] (+100 %%); %s: "
        "-1.00 [-1.50, -0.50] (-20 %%). First by "
        "other means: y (%s), x (%s).</p>\n"
        "<p class=overloaded>OVERLOADED: x in 2 of 5 replications, y in 4 of 5 replications. Its "
        "queue grew to the end of those runs, so a mean over them grows with their length and is "
        "no property of the policy.</p>\n"
        "<p class=overloaded>BATTERY_EMPTY: x in 1 of 5 replications. The battery was empty before "
        "all requests were served, so means cover those that were.</p>\n"
        "<p class=overloaded>3 runs failed: missing from every mean.</p>\n",
        ttft, rate, ttft, energy);
    OWNED char *text = written(report_write_headline, tree);
    ck_assert_str_eq(text, want);
}
END_TEST

/* Numbers of three policies are random. The page names the policy that is first by another measure
 * where its interval does not meet the winner's, on either side. */
START_TEST(who_is_first_by_another_measure_is_named_where_intervals_are_apart)
{
    static const char *const metrics[] = {"reactive.e2e_s.mean", "reactive.ttft_s.mean",
                                          "proactive.e2e_s.mean", "all.throughput_req_per_min",
                                          "energy_j_per_token"};
    static const char *const names[] = {"a", "b", "c"};
    struct rng r;
    uint32_t named[5] = {0};
    rng_init(&r, rng_key(1, RNG_TEST, 11, 0));
    for (int round = 0; round < 300; round++) {
        double mean[3][5], half[3][5];
        uint32_t first[5];
        struct text json = {0}, want = {0};
        text_string(&json, "{'baseline':'a','relevance_frac':0.01,'policies':{");
        for (uint32_t p = 0; p < 3; p++) {
            text_format(&json, "%s'%s':{", p > 0 ? "," : "", names[p]);
            for (uint32_t m = 0; m < 5; m++) {
                mean[p][m] = 1.0 + rng_uniform(&r);
                half[p][m] = 0.3 * rng_uniform(&r);
                text_format(&json,
                            "%s'%s':{'mean':%.17g,'low':%.17g,'high':%.17g,'verdict':'no',"
                            "'diff':0,'diff_low':-1,'diff_high':1}",
                            m > 0 ? "," : "", metrics[m], mean[p][m], mean[p][m] - half[p][m],
                            mean[p][m] + half[p][m]);
            }
            text_string(&json, "}");
        }
        text_string(&json, "}}");
        for (uint32_t m = 0; m < 5; m++) {
            first[m] = 0;
            for (uint32_t p = 1; p < 3; p++) {
                bool more = mean[p][m] > mean[first[m]][m];
                first[m] = more == (m == 3) ? p : first[m]; /* of requests a minute the most */
            }
            double apart = fabs(mean[first[m]][m] - mean[first[0]][m]);
            if (first[m] != first[0] && apart > half[first[m]][m] + half[first[0]][m]) {
                text_format(&want, "%s%s (%s)",
                            want.n > 0 ? ", " : " First by other means: ", names[first[m]],
                            metric_title(metrics[m]));
                named[m]++;
            }
        }
        text_string(&want, want.n > 0 ? ".</p>\n" : "</p>\n");
        bool some = want.n > strlen("</p>\n");
        OWNED char *says = text_end(&want);
        OWNED char *numbers = text_end(&json);
        of(numbers);
        OWNED char *page = written(report_write_headline, tree);
        ck_assert_msg(strstr(page, says) != NULL, "%s: %s", says, page);
        ck_assert(some || strstr(page, "First by") == NULL);
    }
    ck_assert(named[1] > 20 && named[2] > 20 && named[3] > 20 && named[4] > 20);
}
END_TEST

/* A difference that Holm's correction took back is no price and has no size; neither has that of
 * one run. */
START_TEST(what_is_not_significant_is_no_price)
{
    static const char *const taken[] = {"higher by 50 % (not significant after correction)",
                                        "higher by 50 % (n=1, no interval)"};
    for (int i = 0; i < 2; i++) {
        OWNED char *text = xformat(
            "{'baseline':'y','relevance_frac':0.01,'policies':{'w':{'reactive.e2e_s.mean':"
            "{'mean':2.0,'low':1.0,'high':3.0,'verdict':'lower by 50 %% (significant)','diff':-2,"
            "'diff_low':-3,'diff_high':-1},'energy_j_per_token':{'mean':3.0,'low':2.0,'high':4.0,"
            "'verdict':'%s','diff':1,'diff_low':0.5,'diff_high':1.5}},'y':{'reactive.e2e_s.mean':"
            "{'mean':4.0,'low':3.1,'high':4.9},'energy_j_per_token':{'mean':2.0,'low':1.5,"
            "'high':2.5}}}}",
            taken[i]);
        of(text);
        OWNED char *page = written(report_write_headline, tree);
        ck_assert_msg(strstr(page, "It pays with") == NULL, "%s", page);
        ck_assert_msg(strstr(page, "power included: higher by 50 % (n") != NULL, "%s", page);
        ck_assert_int_eq(report_is_shown(taken[i]), false);
    }
    ck_assert(report_is_shown("lower by 3.3 % (significant)"));
    ck_assert(!report_is_shown("equal within 1 %") && !report_is_shown("no difference shown"));
}
END_TEST

START_TEST(a_baseline_that_wins_pays_nothing)
{
    of("{\"baseline\":\"a\",\"policies\":{\"b\":{\"reactive.e2e_s.mean\":"
       "{'mean':5,'low':4,'high':6}"
       "},"
       "\"a\":{\"reactive.e2e_s.mean\":"
       "{'mean':2,'low':1,'high':3}"
       "},"
       "\"c\":{\"reactive.e2e_s.mean\":"
       "{'mean':null,'low':0,'high':9}"
       "}},\"failed_runs\":0}");
    is(report_write_headline, "<p class=headline><b>a</b>, the baseline, answers reactive requests "
                              "soonest: 2.0 [1.0, 3.0] s. Intervals that meet its own: c (&ndash; "
                              "s).</p>\n");
    of("{\"baseline\":\"a\",\"policies\":{\"a\":{\"reactive.e2e_s.mean\":"
       "{'mean':null,'low':null,'high':null}"
       "}}}");
    is(report_write_headline,
       "<p class=headline>No reactive request finished under any policy.</p>\n");
}
END_TEST

/* ---- tables ---- */

START_TEST(means_are_a_row_of_each_policy)
{
    of(three);
    OWNED char *text = written(report_write_headline_table, tree);
    SCOPED(text_fini) struct text want = {0};
    text_string(&want, "<div class=wide><table class=means><thead><tr><th>policy");
    for (const char *const *m = metric_usual; *m != NULL; m++) {
        text_format(&want, "<th>%s", metric_title(*m));
    }
    text_string(&want, "</thead><tbody>\n");
    static const char *const names[] = {"w<", "x", "y"};
    static const char *const notes[] = {
        "", "<br><small class=overloaded>overloaded in 2 of 5</small>",
        "<br><small>baseline</small><br><small class=overloaded>overloaded in 4 of 5</small>"};
    for (int p = 0; p < 3; p++) {
        const cJSON *of_p = json_member(json_member(tree, "policies"), names[p]);
        text_format(&want, "<tr><td>%s%s", p == 0 ? "w&lt;" : names[p], notes[p]);
        for (const char *const *m = metric_usual; *m != NULL; m++) {
            const cJSON *x = json_member(of_p, *m);
            OWNED char *number = written(mean, x);
            text_format(&want, "<td>%s", number);
            if (p < 2 && json_member(x, "verdict") != NULL) {
                relevance = 0.01;
                base = json_member(json_member(json_member(tree, "policies"), "y"), *m);
                OWNED char *to_base = written(change, x);
                text_format(&want, "<br><small>%s</small>", to_base);
            }
        }
        text_string(&want, "\n");
    }
    text_string(&want, "</tbody></table></div>\n");
    ck_assert_str_eq(text, text_end(&want));
}
END_TEST

/* Left out: what nobody has, and what truncated repeats for everybody. An interval (bootstrap-t)
 * need not have its mean in the middle. */
START_TEST(all_metrics_are_those_that_say_something)
{
    of("{'policies':{'a':{'m':{'mean':1,'low':1,'high':1},'none':{'mean':null,'low':0,'high':0},"
       "'truncated.m':{'mean':1,'low':1,'high':1},'truncated.k':{'mean':2,'low':2,'high':2},"
       "'k':{'mean':2,'low':2,'high':2},'one':{'mean':null,'low':0,'high':0},"
       "'two':{'mean':4,'low':4,'high':4}},"
       "'b':{'m':{'mean':3,'low':2,'high':4},'none':{'mean':null,'low':0,'high':0},"
       "'truncated.m':{'mean':3,'low':2,'high':4},'truncated.k':{'mean':5,'low':5,'high':5},"
       "'k':{'mean':2,'low':2,'high':2},'one':{'mean':8,'low':7,'high':11},"
       "'two':{'mean':null,'low':0,'high':0}}}}");
    is(report_write_all_metrics,
       "<details><summary>All metrics</summary><p class=soft>What each is: <code>xpusim list "
       "metric</code>. Left out: what no policy has a number of, and what "
       "<code>truncated.*</code> repeats.</p>\n<div class=wide><input type=search "
       "placeholder=\"search: reactive p90\" aria-label=\"search in all "
       "metrics\"><table><thead><tr><th>metric<th>a<th>b</thead><tbody>\n"
       "<tr><td>m<td>1<td>3.0 [2.0, 4.0]\n<tr><td>truncated.k<td>2<td>5\n<tr><td>k<td>2<td>2\n"
       "<tr><td>one<td>&ndash;<td>8.0 [7.0, 11.0]\n<tr><td>two<td>4<td>&ndash;\n"
       "</tbody></table></div></details>\n");
}
END_TEST

#define MACHINES                                                                                   \
    "<h3>Whatever the true machine is?</h3><p>12 machines that it may be, 5 uncertain numbers "    \
    "drawn together; every policy on each, on the same requests.</p><div "                         \
    "class=wide><table><thead><tr><th>metric<th>policy<th>probability that it is "                 \
    "better<th>difference<th>by requests (95 %)<th>by machine (draws)</thead><tbody>\n"
#define PAIR                                                                                       \
    "\"uncertainty\":{\"machines\":12,\"uncertain_numbers\":5,\"pairs\":{\"energy_j\":{\"p\":{"    \
    "\"better_frac\":0.75,\"better_se\":0.125,\"difference\":-2.5,\"sampling_low\":-3,"            \
    "\"sampling_high\":-2,\"model_low\":-4,\"model_high\":1}}}"

START_TEST(uncertainty_is_told_whole)
{
    of("{}");
    is(report_write_uncertainty, "");
    OWNED char *row = xformat("<tr><td>%s<td>p<td>0.75 &plusmn; 0.12<td>-2.5<td>-3 to -2<td>-4 to "
                              "1\n</tbody></table></div>\n",
                              metric_title("energy_j"));
    of("{" PAIR "}}");
    OWNED char *few = xformat("%s%s<p>What decides is not listed: with so few machines chance "
                              "would name it.\n",
                              MACHINES, row);
    is(report_write_uncertainty, few);
    of("{" PAIR ",\"measured_rows_inside_frac\":0.875,\"measured_rows\":40,\"factors\":{\"m\":{"
       "\"p\":{\"f1\":{\"share\":0.5,\"share_low\":0.25,\"share_high\":0.75,\"value\":3,\"low\":1,"
       "\"high\":9,\"turns_at\":7,\"holds_at\":6},\"f2\":{\"share\":0.125,\"share_low\":0,"
       "\"share_high\":0.25,\"value\":4,\"low\":2,\"high\":8,\"turns_at\":null}}}},"
       "\"measure_next\":{\"p\":\"f1 & more\",\"q\":7}}}");
    OWNED char *all =
        xformat("%s%s<p>Kernel times are drawn from 40 measured rows. 88 %% of them lie between "
                "such ends.\n<div class=wide><table><thead><tr><th>policy<th>what "
                "decides<th>share of variance<th>value (range)<th>order turns</thead><tbody>\n"
                "<tr><td>p<td>f1<td>0.50 (0.25 to 0.75)<td>3 (1 to 9)<td>between 6 and 7\n"
                "<tr><td>p<td>f2<td>0.12 (0.00 to 0.25)<td>4 (2 to 8)<td>never in its range\n"
                "</tbody></table></div><ul>\n<li>Measure next, for p: f1 &amp; more\n"
                "<li>Measure next, for q: \n</ul>\n",
                MACHINES, row);
    is(report_write_uncertainty, all);
}
END_TEST

START_TEST(every_number_of_a_machine_has_a_row)
{
    of("{\"name\":\"m<\",\"note\":\"a note\",\"npu_extrapolated\":true,"
       "\"ddr\":{\"peak\":{\"value\":50,\"unit\":\"GB/s\",\"kind\":\"datasheet\",\"low\":49,"
       "\"high\":51,\"source\":\"S&T\"}},\"devices\":[{\"name\":\"npu\",\"rate\":{\"value\":1.5,"
       "\"unit\":\"T\",\"kind\":\"fitted\",\"low\":1,\"high\":2,\"source\":\"x\"}},"
       "{\"x\":{\"value\":2,\"unit\":\"s\",\"kind\":\"fitted\",\"low\":1,\"high\":3,"
       "\"source\":\"\"}},{\"y\":{\"value\":3,\"unit\":\"J\",\"kind\":\"assumed\",\"low\":2,"
       "\"high\":4,\"source\":\"z\"}}],\"plain\":7}");
    is(report_write_hardware,
       "<p class=trust><b>m&lt;</b>: numbers <span class=measured>measured 0</span>, <span "
       "class=datasheet>datasheet 1</span>, <span class=fitted>fitted 2</span>, <span "
       "class=assumed>assumed 1</span>. <b>Its NPU is extrapolated from other parts</b>: trust the "
       "order of policies more than sizes. a note</p>\n<details><summary>Every number of "
       "m&lt;</summary><div "
       "class=wide><table><thead><tr><th>number<th>value<th>range<th>kind<th>source</"
       "thead><tbody>\n"
       "<tr><td>ddr.peak<td>50 GB/s<td>49 to 51<td class=datasheet>datasheet<td>S&amp;T\n"
       "<tr><td>devices.npu.rate<td>1.5 T<td>1 to 2<td class=fitted>fitted<td>x\n"
       "<tr><td>devices.1.x<td>2 s<td>1 to 3<td class=fitted>fitted<td>\n"
       "<tr><td>devices.2.y<td>3 J<td>2 to 4<td class=assumed>assumed<td>z\n"
       "</tbody></table></div></details>\n");
}
END_TEST

static void again(const cJSON *t, FILE *out)
{
    report_write_again(&(struct report_input){.path = "/nowhere", .tree = t}, out);
}

START_TEST(a_result_says_how_to_get_it_again)
{
    of("{\"about\":{\"command\":\"xpusim x > y\",\"version\":\"v1\"}}");
    is(again, "<h3>How to get these numbers again</h3>\n<pre>xpusim x &gt; y</pre>\n<p>By "
              "v1</p>\n");
    of("{\"about\":{\"command\":\"c\",\"version\":\"v1\"},\"config_hash\":\"00ff\",\"seeds\":[1,"
       "9007199254740991,3],\"config\":{\"sim\":{\"a\":1},\"soc\":{}}}");
    OWNED char *text = written(again, tree);
    ck_assert_str_eq(
        text, "<h3>How to get these numbers again</h3>\n<pre>c</pre>\n<p>By v1, configuration "
              "00ff. One run of it: <code>xpusim run --policy P --seed S</code> with the same "
              "options, S any of the seeds.</p>\n<details><summary>Seeds and "
              "configuration</summary><pre>[1,9007199254740991,3]\n{\n &quot;a&quot;: 1\n}"
              "</pre></details>\n");
}
END_TEST

/* ---- what a page takes ---- */

START_TEST(a_document_that_is_none_is_refused)
{
    static const struct {
        const char *text, *want;
    } all[] = {
        {"{}", "f: policies: missing: not a result of `xpusim compare --json`"},
        {"{\"policies\":{}}", "f: policies: missing: not a result of `xpusim compare --json`"},
        {"{\"policies\":[1]}", "f: policies: missing: not a result of `xpusim compare --json`"},
        {"{\"policies\":{\"a\":{}}}",
         "f: config: missing: not a result of `xpusim compare --json`"},
        {"{\"policies\":{\"a\":{}},\"config\":{\"soc\":{}}}",
         "f: config: missing: not a result of `xpusim compare --json`"},
        {"{\"policies\":{\"a\":{}},\"config\":{\"llm\":{}}}",
         "f: config: missing: not a result of `xpusim compare --json`"},
        {"{\"policies\":{\"a\":{}},\"config\":{\"soc\":{},\"llm\":{}},\"baseline\":\"b\"}",
         "f: baseline: \"b\" is not among the policies"},
        {"{\"policies\":{\"a\":{\"reactive.e2e_s.mean\":{}},\"b\":{}},\"config\":{\"soc\":{},"
         "\"llm\":{}},\"baseline\":\"b\"}",
         "f: policies.b: has no reactive.e2e_s.mean"},
        {"{\"policies\":{\"a\":{},\"b\":{\"reactive.e2e_s.mean\":{}}},\"config\":{\"soc\":{},"
         "\"llm\":{}},\"baseline\":\"b\"}",
         "f: policies.a: has no reactive.e2e_s.mean"},
        {"{\"policies\":{\"a\":{\"reactive.e2e_s.mean\":{}}},\"config\":{\"soc\":{},\"llm\":{}},"
         "\"baseline\":\"a\"}",
         NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct err e = ERR_INIT;
        of(all[i].text);
        struct report_input in = {.path = "f", .tree = tree};
        int rc = report_check(&in, &e);
        ck_assert_int_eq(rc, all[i].want != NULL ? -EINVAL : 0);
        ck_assert_uint_eq(e.n, all[i].want != NULL);
        ck_assert_msg(all[i].want == NULL || strcmp(e.lines[0], all[i].want) == 0, "%s",
                      e.n > 0 ? e.lines[0] : "");
        err_fini(&e);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("parts of a page", .setup = setup, .teardown = teardown),
    TEST(numbers_are_as_people_read_them),
    TEST(overloaded_runs_are_of_all_runs),
    TEST(the_winner_is_told_with_its_price),
    TEST(who_is_first_by_another_measure_is_named_where_intervals_are_apart),
    TEST(what_is_not_significant_is_no_price),
    TEST(a_baseline_that_wins_pays_nothing),
    TEST(means_are_a_row_of_each_policy),
    TEST(all_metrics_are_those_that_say_something),
    TEST(uncertainty_is_told_whole),
    TEST(every_number_of_a_machine_has_a_row),
    TEST(a_result_says_how_to_get_it_again),
    TEST(a_document_that_is_none_is_refused),
};
SUITE_MAIN("parts of a page", suite)

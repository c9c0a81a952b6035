/* Inputs of figures, what they say of themselves, and how data become rows, variables and colours.
 */
#include <string.h>

#include "plots/about.h"
#include "plots/palette.h"
#include "plots/series.h"
#include "tests/helpers/drawn.h"
#include "tests/helpers/suite.h"

/* ---- labels and subjects ---- */

/* The label is the user's, else the policy, else the file's name without its folder and last
 * ending. */
static const struct {
    const char *label, *name, *text, *is;
} labels[] = {
    {"", "run.v2.csv", "a\n1\n", "run.v2"},
    {"", "no_ending", "a\n1\n", "no_ending"},
    {"", ".hidden", "a\n1\n", ".hidden"},
    {"", "run.csv", "# policy: edf:k=1\na\n1\n", "edf:k=1"},
    {"Ours=", "run.csv", "# policy: edf\na\n1\n", "Ours"},
    {"a b=", "run.csv", "a\n1\n", "a b"},
    {"", "x=y.csv", "a\n1\n", "x=y"}, /* a sign behind a slash is the file's own */
    {"", "run.json", "{\"about\":{\"policy\":\"vtc\"}}", "vtc"},
    {"", "run.json", "{\"about\":\"nothing\"}", "run"},
};

START_TEST(an_input_has_a_label)
{
    drawn_input(labels[_i].label, labels[_i].name, labels[_i].text);
    ck_assert_str_eq(drawn_request.inputs[0].label, labels[_i].is);
    ck_assert_uint_eq(drawn_request.n_inputs, 1);
}
END_TEST

/* A name of any length is whole, wherever it comes from. */
START_TEST(a_long_label_is_whole)
{
    char name[301];
    memset(name, 'x', sizeof name - 1);
    name[300] = '\0';
    OWNED char *label = xformat("%s=", name);
    OWNED char *policy = xformat("# policy: %s\na\n1\n", name);
    drawn_input(label, "a.csv", "a\n1\n");
    drawn_input("", "b.csv", policy);
    drawn_input("short=", "c.csv", "a\n1\n");
    OWNED char *rename = xformat("short=%s", name);
    ck_assert_int_eq(figure_rename(&drawn_request, rename, &drawn_err), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(drawn_request.inputs[i].label, name);
    }
}
END_TEST

START_TEST(an_input_that_cannot_be_read_is_refused)
{
    struct figure_request *q = &drawn_request;
    ck_assert_int_eq(figure_input_add(q, "/nonesuch/a.csv", &drawn_err), -EINVAL);
    ck_assert_int_eq(figure_input_add(q, "=/nonesuch/b.csv", &drawn_err), -EINVAL);
    ck_assert_int_eq(figure_input_add(q, drawn_file("c.json", "{\"a\":"), &drawn_err), -EINVAL);
    ck_assert_str_eq(drawn_errors(), "/nonesuch/a.csv: No such file or directory\n"
                                     "=/nonesuch/b.csv: No such file or directory\n"
                                     "c.json:1: malformed JSON: it ends too soon\n");
}
END_TEST

/* 64 inputs, of files or of the program's own. */
START_TEST(there_are_at_most_64_inputs)
{
    const char *path = drawn_file("a.csv", "a\n1\n");
    struct figure_request *q = &drawn_request;
    for (int i = 0; i < 63; i++) {
        ck_assert_int_eq(figure_input_add(q, path, &drawn_err), 0);
    }
    cJSON *tree = cJSON_Parse("{\"about\":{\"policy\":\"edf\",\"kind\":\"compare\"},\"m\":1}");
    ck_assert_int_eq(figure_input_take(q, "own/name.json", tree, &drawn_err), 0);
    ck_assert_uint_eq(q->n_inputs, 64);
    ck_assert_str_eq(q->inputs[63].label, "edf");
    ck_assert_str_eq(q->inputs[63].path, "own/name.json");
    ck_assert_ptr_eq(q->inputs[63].tree, tree);
    ck_assert_str_eq(about_fact(q->inputs[63].about, "kind"), "compare");
    ck_assert_int_eq(figure_input_add(q, path, &drawn_err), -EINVAL);
    ck_assert_int_eq(figure_input_take(q, "one.json", cJSON_Parse("{}"), &drawn_err), -EINVAL);
    ck_assert_uint_eq(q->n_inputs, 64);
    ck_assert_str_eq(drawn_errors(), "a.csv: more than 64 inputs\none.json: more than 64 inputs\n");
}
END_TEST

/* Different values once each, in their order; the fifth of a kind is "...". A figure of several
 * inputs does not say the policy above. A missing fact leaves no dot. */
START_TEST(a_figure_says_what_it_is_of)
{
    static const char row[] = "class,input_tokens,output_tokens\nreactive,1,1\n";
    OWNED char *one = xformat("# llm: L1\n# soc: S\n# policy: fcfs\n# workload: it's\n%s", row);
    drawn_input("", "a.csv", one);
    drawn_is("lengths", "reactive\n1\t1\n\n\nproactive\n\n\nreactive\n1\t1\n\n\nproactive\n", NULL);
    ck_assert_str_eq(strstr(drawn_vars(), "subject"),
                     "subject = 'fcfs  \u00b7  L1  \u00b7  S  \u00b7  it''s'\n");
    drawn_input("", "a.csv", one);
    for (int i = 2; i <= 6; i++) {
        OWNED char *name = xformat("%d.csv", i);
        OWNED char *text = xformat("# llm: L%d\n# policy: p\n%s", i == 3 ? 2 : i, row);
        drawn_input("", name, text);
    }
    drawn_is("lengths", "reactive\n1\t1\n\n\nproactive\n\n\nreactive\n1\t1\n\n\nproactive\n", NULL);
    ck_assert_str_eq(strstr(drawn_vars(), "subject"),
                     "subject = 'L1, L2, L4, L5, ...  \u00b7  S  \u00b7  it''s'\n");
    drawn_input("", "a.csv", row);
    drawn_is("lengths", "reactive\n1\t1\n\n\nproactive\n\n\nreactive\n1\t1\n\n\nproactive\n", NULL);
    ck_assert_str_eq(strstr(drawn_vars(), "subject"), "subject = ''\n");
}
END_TEST

/* Every wrong input is named at once. */
START_TEST(a_figure_takes_its_kinds_alone)
{
    drawn_input("", "a.json", "{\"about\":{\"kind\":\"graphs job\"}}");
    drawn_input("", "b.csv", "a\n1\n");
    drawn_input("", "c.json", "{}");
    drawn_input("", "d.csv", "# xpusim-trace v2\nrequest_id\n1\n");
    drawn_input("", "e.json", "[{}]");
    drawn_refused("job", "b.csv: of the kind \"table\"; job reads: explain --job --json\n"
                         "c.json: of the kind \"json\"; job reads: explain --job --json\n"
                         "d.csv: of the kind \"trace\"; job reads: explain --job --json\n"
                         "e.json: of the kind \"json\"; job reads: explain --job --json\n"
                         "job takes one input, not 5\n");
}
END_TEST

/* ---- other names ---- */

/* Keys and texts that are the policy, in trees, in what is said of it, and labels; nothing that
 * merely begins with it. The last sign parts the names: a policy's parameters have some. */
START_TEST(a_policy_is_renamed_wherever_it_is)
{
    drawn_input("", "a.json",
                "{\"about\":{\"kind\":\"compare\",\"policy\":\"edf:k=1\"},\"policies\":{\"edf:k="
                "1\":{\"m\":{\"mean\":1}},"
                "\"edf\":{\"m\":{\"mean\":2}}},\"list\":[\"edf:k=1\",\"edf:k=12\"]}");
    drawn_input("", "b.csv", "# policy: edf:k=1\na\n1\n");
    ck_assert_int_eq(figure_rename(&drawn_request, "edf:k=1=Ours", &drawn_err), 0);
    OWNED char *text = cJSON_PrintUnformatted(drawn_request.inputs[0].tree);
    ck_assert_str_eq(text, "{\"about\":{\"kind\":\"compare\",\"policy\":\"Ours\"},\"policies\":{"
                           "\"Ours\":{\"m\":{\"mean\":1}},"
                           "\"edf\":{\"m\":{\"mean\":2}}},\"list\":[\"Ours\",\"edf:k=12\"]}");
    ck_assert_str_eq(drawn_request.inputs[0].label, "Ours");
    ck_assert_str_eq(drawn_request.inputs[1].label, "Ours");
    ck_assert_str_eq(about_fact(drawn_request.inputs[1].about, "policy"), "Ours");
    ck_assert_uint_eq(palette_slot("Ours"), palette_slot("edf:k=1"));
    static const char *const wrong[] = {"edf", "=edf", "edf=", "vtc=Ours"};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(figure_rename(&drawn_request, wrong[i], &drawn_err), -EINVAL);
    }
    ck_assert_str_eq(drawn_errors(), "--label edf: must be POLICY=NAME\n"
                                     "--label =edf: must be POLICY=NAME\n"
                                     "--label edf=: must be POLICY=NAME\n"
                                     "--label vtc=Ours: no input has a policy vtc\n");
}
END_TEST

/* ---- colours ---- */

/* Slots 0 to 7 are colours, 8 to 15 the same once more. Fixed names have 0 to 3, 5 and 6; others
 * 4, 7, and then 8, 9, .. A variant has the next free slot of its name's colour, whether the name
 * was asked for before or is a stranger's. */
START_TEST(slots_are_given_in_order)
{
    static const struct {
        const char *name;
        unsigned slot;
    } asked[] = {
        {"openvino-cb", 0},
        {"igpu", 0},
        {"agent-xpu-v2", 1},
        {"npu", 1},
        {"agent-xpu-v1", 2},
        {"cpu", 2},
        {"edf", 3},
        {"dsp", 3},
        {"vllm-v1", 5},
        {"fcfs", 6},
        {"one", 4},
        {"two", 7},
        {"three", 8},
        {"one", 4},
        {"four", 9},
        {"one:k=1", 12},
        {"one, k 2", 20},
        {"fcfs:k=1", 14},
        {"fcfs:k=2", 22},
        {"fcfs:k=1", 14},
        {"edfx", 10},
        {"ed", 11},
        {"openvino-cb, x", 16},
        {"new:k=1", 13},
        {"new", 21},
        {"a: whole name", 15},
        {"a: b", 17},
        {"", 18},
    };
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        ck_assert_msg(palette_slot(asked[i].name) == asked[i].slot, "%s has %u, not %u",
                      asked[i].name, palette_slot(asked[i].name), asked[i].slot);
    }
    palette_rename("edf", "Theirs");
    palette_rename("one", "Theirs too");
    ck_assert_uint_eq(palette_slot("Theirs"), 3);
    ck_assert_uint_eq(palette_slot("Theirs too"), 4);
    for (int i = 0; i < 7; i++) { /* 30, 38, .. 62, then the last one of the colour for all */
        OWNED char *name = xformat("fcfs:j=%d", i);
        ck_assert_uint_eq(palette_slot(name), i < 5 ? 30u + 8u * (unsigned)i : 62u);
    }
}
END_TEST

/* ---- rows and variables ---- */

/* Control characters, quotes and number signs become blanks; an empty text is a dash; a number has
 * 12 digits, and what is no number is NaN. */
START_TEST(a_row_is_clean)
{
    struct figure_data *d = &drawn_data;
    figure_block(d, "a\t\"b\"\n#%s", "c\x1f \xc2\xb7~");
    FIGURE_ROW(d, "it's\r", "", 1.0 / 3.0, (double)INFINITY, -(double)INFINITY, (double)NAN);
    FIGURE_CELLS(d, -0.5);
    FIGURE_ROW(d, 1e300, "#1");
    figure_block(d, "%s", "");
    figure_block(d, "last");
    FIGURE_ROW(d, 123456789012.0, 1234567890123.0);
    (void)fflush(d->tsv);
    ck_assert_str_eq(d->tsv_text, "a  b   c  \xc2\xb7~\n"
                                  "it's \t-\t0.333333333333\tNaN\tNaN\tNaN\n"
                                  "-0.5\t1e+300\t 1\n\n\n-\n\n\nlast\n"
                                  "123456789012\t1.23456789012e+12\n");
    ck_assert_uint_eq(d->blocks, 3);
}
END_TEST

START_TEST(a_variable_is_one_to_gnuplot)
{
    struct figure_data *d = &drawn_data;
    figure_var(d, "a", -1.0 / 3.0);
    figure_var(d, "b", (double)NAN);
    figure_var(d, "c", -(double)INFINITY);
    figure_var_text(d, "d", "it's\n\"\\\x01 \x1f\xc2\xb7");
    struct texts l = {.n = 0};
    texts_add(&l, "one's");
    texts_add(&l, "");
    figure_texts_put(&l, "e", d);
    ck_assert(l.n == 0 && l.v == NULL);
    figure_texts_put(&l, "f", d);
    figure_slots_put((const char *const[]){"edf", "fcfs:kk", "npu"}, 3, d);
    figure_slots_put(NULL, 0, d);
    const char *const metrics[] = {"reactive.ttft_s.p90", "mine"};
    series_titles(metrics, 2, d);
    ck_assert_str_eq(drawn_vars(),
                     "a = -0.333333333333\nb = NaN\nc = NaN\nd = 'it''s \"\\   \xc2\xb7'\n"
                     "array e[3]\ne[1] = 'one''s'\ne[2] = ''\nn_e = 2\narray f[1]\nn_f = 0\n"
                     "array slot[4]\nslot[1] = 3\nslot[2] = 14\nslot[3] = 1\nlongest = 7\n"
                     "array slot[1]\nlongest = 0\n"
                     "title1 = 'P90 reactive time to first token (s)'\ntitle2 = 'mine'\n");
}
END_TEST

/* Sorted, each once, to ten digits; of ten different ones there are none. */
START_TEST(tics_are_few)
{
    static const struct {
        double v[12];
        size_t n;
        const char *is;
    } tics[] = {
        {{0}, 0, ""},
        {{5}, 1, "5"},
        {{5, -1, 5, 0.1, -1}, 5, "-1 0.1 5"},
        {{9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 9, 5}, 12, "1 2 3 4 5 6 7 8 9"},
        {{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9, 5}, 12, ""},
        {{1.0 / 3.0, 1e12}, 2, "0.3333333333 1e+12"},
    };
    for (size_t i = 0; i < sizeof tics / sizeof tics[0]; i++) {
        double v[12];
        memcpy(v, tics[i].v, sizeof v);
        figure_tics_put(v, tics[i].n, &drawn_data);
    }
    SCOPED(text_fini) struct text want = {0};
    for (size_t i = 0; i < sizeof tics / sizeof tics[0]; i++) {
        text_format(&want, "xvalues = '%s'\n", tics[i].is);
    }
    ck_assert_str_eq(drawn_vars(), text_end(&want));
}
END_TEST

/* ---- the figures ---- */

/* Sorted, each found by its name, with what people read; nothing is found by half a name. */
START_TEST(every_figure_says_how_it_is_read)
{
    size_t n;
    const struct figure *v = figure_list(&n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_eq(figure_find(v[i].name), &v[i]);
        ck_assert_msg(figure_reading(v[i].name)[0] != '\0', "%s", v[i].name);
        ck_assert(v[i].title[0] != '\0' && v[i].reads[0] != '\0' && v[i].kinds[0] != '\0');
        ck_assert(i == 0 || strcmp(v[i - 1].name, v[i].name) < 0);
        /* a report draws heat map, sd and utilisation of files of that name alone */
        bool special = strcmp(v[i].name, "heatmap") == 0 || strcmp(v[i].name, "sd") == 0 ||
                       strcmp(v[i].name, "utilisation") == 0;
        ck_assert_msg(v[i].chosen == special, "%s", v[i].name);
        struct figure_data d = {.figure = &v[i]};
        struct figure_request q = {.metrics = {"x", "y"}, .n_metrics = 2};
        size_t asked;
        ck_assert_ptr_eq(figure_metrics(&q, &d, &asked), q.metrics);
        ck_assert_uint_eq(asked, 2);
        q.n_metrics = 0;
        if (v[i].metrics != NULL) {
            ck_assert_ptr_eq(figure_metrics(&q, &d, &asked), v[i].metrics);
            ck_assert_ptr_null(v[i].metrics[asked]);
            ck_assert_ptr_nonnull(v[i].metrics[asked - 1]);
        }
    }
    ck_assert_ptr_null(figure_find("head"));
    ck_assert_ptr_null(figure_find(""));
    ck_assert_str_eq(figure_reading("headlines"), "");
}
END_TEST

/* Inputs that a report and `plot` take for a figure: kinds, and one file or many. */
static const struct {
    const char *name, *kinds;
    bool alone;
} takes[] = {
    {"affinity", "affinity table", true},
    {"batch", "batch table", true},
    {"breakdown", "compare", false},
    {"causes", "interference", false},
    {"cdf", "requests table", false},
    {"chunk", "chunk sweep table", false},
    {"corun", "corun table", true},
    {"ddr", "timeline", true},
    {"draft", "verify table", true},
    {"drive", "drive", true},
    {"gantt", "timeline", false},
    {"graphs", "graphs", true},
    {"headline", "compare", false},
    {"heatmap", "sweep table", false},
    {"interference", "interference", false},
    {"job", "job", true},
    {"kernels", "kernels table", true},
    {"latency-rate", "load sweep table", false},
    {"lengths", "requests table trace", false},
    {"mixed", "mixed table", true},
    {"pareto", "compare load sweep table", false},
    {"prompt", "prompt table", true},
    {"queue", "timeline", true},
    {"roofline", "kernels", true},
    {"schemes", "schemes table", true},
    {"sd", "compare sd", false},
    {"throughput-rate", "load sweep table", false},
    {"tornado", "uncertainty", true},
    {"utilisation", "compare", false},
};

START_TEST(each_figure_takes_these_files)
{
    size_t n;
    (void)figure_list(&n);
    ck_assert_uint_eq(n, sizeof takes / sizeof takes[0]);
    for (size_t i = 0; i < n; i++) {
        const struct figure *f = figure_find(takes[i].name);
        ck_assert_ptr_nonnull(f);
        ck_assert_str_eq(f->kinds, takes[i].kinds);
        ck_assert_msg(f->alone == takes[i].alone, "%s", f->name);
    }
}
END_TEST

/* ---- what a file says of itself ---- */

/* "# key: value" up to the first line that is none; a key needs its blanks. */
static const struct {
    const char *text, *kind, *policy;
    bool tree;
} files[] = {
    {"# kind: requests\n# policy: edf: b\na,b\n# policy: late\n", "requests", "edf: b", false},
    {"#kind: requests\n# policy:edf\n# policy\n#policy: x\na\n", "table", "", false},
    {"a,b\n# policy: edf\n", "table", "", false},
    {"# policy: edf\r\n\r\n# soc: s\na\n", "table", "edf", false},
    {"", "table", "", false},
    {"{\"about\":{\"policy\":\"edf\"}}", "json", "edf", true},
    {" \n\t\r{\"about\":{\"policy\":\"edf\",\"kind\":\"job\"}}", "job", "edf", true},
    {"{\"about\":[1],\"kind\":\"job\"}", "json", "", true},
    {"{\"policy\":\"edf\"}", "json", "", true},
    {"{\"otherData\":{\"policy\":\"edf\",\"kind\":\"mine\"},\"traceEvents\":[\n]}\n", "mine", "edf",
     false},
    {"{\"otherData\":{\"policy\":\"edf\"},\"traceEvents\":[\n]}\n", "timeline", "edf", false},
    {"{\"traceEvents\":[\n{\"otherData\":{\"policy\":\"edf\"}},\n]}\n", "timeline", "", false},
    {"{\"otherData\":oops,\"traceEvents\":[\n]}\n", "timeline", "", false},
};

START_TEST(a_file_of_any_form_says_what_it_is)
{
    cJSON *tree;
    cJSON *about = about_read(drawn_file("f", files[_i].text), &tree, &drawn_err);
    ck_assert_ptr_nonnull(about);
    ck_assert_str_eq(about_fact(about, "kind"), files[_i].kind);
    ck_assert_str_eq(about_fact(about, "policy"), files[_i].policy);
    ck_assert((tree != NULL) == files[_i].tree);
    ck_assert_uint_eq(drawn_err.n, 0);
    cJSON_Delete(tree);
    cJSON_Delete(about);
}
END_TEST

/* Words of both lists count, whole ones, at any place. A number is no text. */
START_TEST(a_kind_is_a_list_of_words)
{
    static const struct {
        const char *own, *kinds;
        bool is;
    } words[] = {
        {"a b", "c b", true}, {"a b", "b", true},     {"a", "c a", true},   {"a b", "a", true},
        {"ab", "a b", false}, {"a", "ab", false},     {"", "a", false},     {"a", "", false},
        {"a  b", "b", true},  {"ab cd", "bc", false}, {"aa", "a aa", true}, {"b", "a", false},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        OWNED char *text = xformat("{\"kind\":\"%s\",\"soc\":5}", words[i].own);
        cJSON *about = cJSON_Parse(text);
        ck_assert_msg(about_is(about, words[i].kinds) == words[i].is, "%s of %s", words[i].own,
                      words[i].kinds);
        ck_assert_str_eq(about_fact(about, "soc"), "");
        cJSON_Delete(about);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = drawn_setup, .teardown = drawn_teardown),
    LOOP(an_input_has_a_label, sizeof labels / sizeof labels[0]),
    TEST(a_long_label_is_whole),
    TEST(an_input_that_cannot_be_read_is_refused),
    TEST(there_are_at_most_64_inputs),
    TEST(a_figure_says_what_it_is_of),
    TEST(a_figure_takes_its_kinds_alone),
    TEST(a_policy_is_renamed_wherever_it_is),
    TEST(slots_are_given_in_order),
    TEST(a_row_is_clean),
    TEST(a_variable_is_one_to_gnuplot),
    TEST(tics_are_few),
    TEST(every_figure_says_how_it_is_read),
    TEST(each_figure_takes_these_files),
    LOOP(a_file_of_any_form_says_what_it_is, sizeof files / sizeof files[0]),
    TEST(a_kind_is_a_list_of_words),
};
SUITE_MAIN("data of figures", suite)

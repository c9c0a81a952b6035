/* Set-ups of the paper's quantities: their lists as read, compared, joined and applied, each entry
 * and each place by itself. */
#include <errno.h>
#include <string.h>

#include "experiments/claims/setup.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"

static struct err err;
static cJSON *tree;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    tree = NULL;
}

static void teardown(void)
{
    cJSON_Delete(tree);
    err_fini(&err);
}

static struct setup read_text(const char *text)
{
    cJSON_Delete(tree);
    tree = cJSON_Parse(text);
    struct json_obj o = json_root(tree, "f", &err);
    struct setup s;
    setup_read(&s, &o);
    return s;
}

START_TEST(every_list_is_read_whole)
{
    struct setup s = read_text("{\"set\": [\"a=1\", \"b=2 @p\"], \"policy\": [\"p:x=1\"],"
                               " \"workload\": [\"w:y=1\", \"v:y=2\", \"u:y=3\"],"
                               " \"metric\": [\"m=n\"], \"soc\": [\"s=t\", \"u=v\"]}");
    ck_assert_uint_eq(err.n, 0);
    static const char *const want[SETUP_LISTS][4] = {
        {"a=1", "b=2 @p"}, {"p:x=1"}, {"w:y=1", "v:y=2", "u:y=3"}, {"m=n"}, {"s=t", "u=v"}};
    for (int k = 0; k < SETUP_LISTS; k++) {
        uint32_t n = 0;
        for (; want[k][n] != NULL; n++) {
            ck_assert_str_eq(s.list[k].v[n], want[k][n]);
        }
        ck_assert_uint_eq(s.list[k].n, n);
    }
    ck_assert(&s.set == &s.list[0] && &s.soc == &s.list[4]);
}
END_TEST

/* A name and a colon for policies and workloads, a name and a value for the others: the first and
 * the last of a list. */
START_TEST(what_is_no_change_is_refused)
{
    static const struct {
        const char *text, *key;
        bool colon;
    } all[] = {
        {"{\"set\": [\"a:1\"]}", "set", false},
        {"{\"set\": [\"a=1\", 3]}", "set", false},
        {"{\"policy\": [\"p\", \"p:x=1\"]}", "policy", true},
        {"{\"policy\": [\"p=1\"]}", "policy", true},
        {"{\"workload\": [\"p:x=1\", \"q=1\"]}", "workload", true},
        {"{\"metric\": [\"m:n\"]}", "metric", false},
        {"{\"soc\": [\"s=t\", \"s:t\"]}", "soc", false},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)read_text(all[i].text);
        ck_assert_uint_eq(err.n, 1);
        OWNED char *want = xformat("f: %s: must hold strings %s", all[i].key,
                                   all[i].colon ? "NAME:key=value" : "NAME=VALUE");
        ck_assert_str_eq(err.lines[0], want);
        err_fini(&err);
        err = (struct err)ERR_INIT;
    }
}
END_TEST

/* Two set-ups are the same when every list is, to its ends; one text in any list is not nothing. */
START_TEST(one_text_makes_another_set_up)
{
    for (int k = 0; k < SETUP_LISTS; k++) {
        struct setup a = {.set = {.n = 0}};
        ck_assert(setup_is_empty(&a));
        for (int l = 0; l < SETUP_LISTS; l++) {
            a.list[l] = (struct setup_texts){{"one", "two", "three"}, 3};
        }
        for (uint32_t i = 0; i < 3; i++) {
            struct setup b = a;
            ck_assert(setup_is_same(&a, &b));
            b.list[k].v[i] = "another";
            ck_assert(!setup_is_same(&a, &b));
        }
        struct setup b = a;
        b.list[k].n = 2;
        ck_assert(!setup_is_same(&a, &b) && !setup_is_same(&b, &a));
        struct setup one = {.set = {.n = 0}};
        one.list[k] = (struct setup_texts){{"one"}, 1};
        ck_assert(!setup_is_empty(&one));
    }
}
END_TEST

/* Added texts come behind, list by list; as many as there is room for, and not one more. */
START_TEST(set_ups_are_joined)
{
    for (int k = 0; k < SETUP_LISTS; k++) {
        struct setup a = {.set = {.n = 0}};
        for (int l = 0; l < SETUP_LISTS; l++) {
            a.list[l] = (struct setup_texts){{"a"}, 1};
        }
        struct setup more = {.set = {.n = 0}};
        more.list[k] = (struct setup_texts){{"b", "c"}, 2};
        ck_assert_int_eq(setup_add(&a, &more, &err), 0);
        for (int l = 0; l < SETUP_LISTS; l++) {
            ck_assert_uint_eq(a.list[l].n, l == k ? 3 : 1);
            ck_assert_str_eq(a.list[l].v[0], "a");
        }
        ck_assert_str_eq(a.list[k].v[1], "b");
        ck_assert_str_eq(a.list[k].v[2], "c");
        a.list[k].n = SETUP_MAX_TEXTS - 2;
        ck_assert_int_eq(setup_add(&a, &more, &err), 0);
        ck_assert_uint_eq(a.list[k].n, SETUP_MAX_TEXTS);
        ck_assert_uint_eq(err.n, 0);
        ck_assert_int_ne(setup_add(&a, &more, &err), 0);
        ck_assert_uint_eq(err.n, 1);
        ck_assert_str_eq(err.lines[0], "b: more than 48 changes of a set-up");
        err_fini(&err);
        err = (struct err)ERR_INIT;
    }
}
END_TEST

/* Whom an entry means: its name to the end, and each of its conditions. */
START_TEST(conditions_are_all_met)
{
    static const struct {
        const char *spec, *with, *place, *merged;
    } all[] = {
        {"a:x=1,y=2", "a?x=1&y=2:z=3", "", "a:x=1,y=2,z=3"},
        {"a:x=1,y=2", "a?x=1&y=3:z=3", "", "a:x=1,y=2"}, /* the last is not met */
        {"a:x=1,y=2", "a?x=2&y=2:z=3", "", "a:x=1,y=2"}, /* the first is not */
        {"a:x=1,y=2", "a?y=2&x=1:z=3", "", "a:x=1,y=2,z=3"},
        {"a", "a?soc=s:z=3", "llm=m,soc=s", "a:z=3"},
        {"a", "a?llm=m&soc=s:z=3", "llm=m,soc=s", "a:z=3"},
        {"a", "a?llm=m&soc=t:z=3", "llm=m,soc=s", "a"},
        {"a:x=1", "a?x=1", "", "a:x=1"}, /* nothing to add */
        {"a:x=1", "ab:y=1", "", "a:x=1"},
        {"a:xx=1,x=2", "a:x=3", "", "a:xx=1,x=3"},
        {"a:x=2,xx=1", "a:xx=3,b=4", "", "a:x=2,xx=3,b=4"},
        {"a:x=1,y=2", "a:y=5,x=4", "", "a:y=5,x=4"}, /* all of its own replaced */
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        OWNED char *is = setup_merge(all[i].spec, all[i].with, all[i].place);
        ck_assert_msg(strcmp(is, all[i].merged) == 0, "%s with %s: %s", all[i].spec, all[i].with,
                      is);
    }
}
END_TEST

static void applied(const struct setup *s, const char *form, const char *want)
{
    cJSON *is = cJSON_Parse(form);
    cJSON *got = setup_apply(s, is);
    char *text = cJSON_PrintUnformatted(got);
    ck_assert_str_eq(text, want);
    cJSON_free(text);
    char *before = cJSON_PrintUnformatted(is);
    ck_assert_str_eq(before, form); /* the original stays */
    cJSON_free(before);
    cJSON_Delete(got);
    cJSON_Delete(is);
}

/* Every kind of definition that runs somewhere is changed, and nothing else is. */
START_TEST(every_form_is_changed)
{
    struct setup s = read_text("{\"set\": [\"k=1\", \"l=2 @p\", \"m=3 @q\", \"n=4 @p?soc=s\"],"
                               " \"policy\": [\"p:x=1\", \"p?soc=s:y=2\"],"
                               " \"workload\": [\"w?llm=m:z=3\"], \"soc\": [\"r=t\", \"s=o\","
                               " \"s=never\"]}");
    static const char *const forms[] = {"run", "sustained", "kernel", "corun", "machine"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        OWNED char *form = xformat("{\"%s\":{\"llm\":\"m\",\"policy\":\"p\",\"workload\":\"w:a=0\","
                                   "\"set\":[\"j=0\"],\"soc\":\"s\"}}",
                                   forms[i]);
        OWNED char *want = xformat("{\"%s\":{\"llm\":\"m\",\"policy\":\"p:x=1,y=2\","
                                   "\"workload\":\"w:a=0,z=3\",\"set\":[\"j=0\",\"k=1\",\"l=2\","
                                   "\"n=4\"],\"soc\":\"o\"}}",
                                   forms[i]);
        applied(&s, form, want);
    }
    applied(&s, "{\"ratio\":{\"policy\":\"p\",\"soc\":\"s\"}}",
            "{\"ratio\":{\"policy\":\"p\",\"soc\":\"s\"}}");
    /* without a policy only what holds for all is set; a list is made for it */
    applied(&s, "{\"kernel\":{\"soc\":\"r\"}}", "{\"kernel\":{\"set\":[\"k=1\"],\"soc\":\"t\"}}");
    applied(&s, "{\"run\":{\"policy\":\"q\",\"soc\":\"u\"}}",
            "{\"run\":{\"policy\":\"q\",\"soc\":\"u\",\"set\":[\"k=1\",\"m=3\"]}}");
    struct setup nothing = {.set = {.n = 0}};
    applied(&nothing, "{\"run\":{\"policy\":\"q\"}}", "{\"run\":{\"policy\":\"q\"}}");
}
END_TEST

START_TEST(a_metric_is_replaced_by_its_whole_name)
{
    struct setup s = read_text("{\"metric\": [\"one=two\", \"on=three\", \"ones=four\"]}");
    static const char *const all[][2] = {{"one", "two"}, {"on", "three"},        {"ones", "four"},
                                         {"o", "o"},     {"oneself", "oneself"}, {"two", "two"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ck_assert_str_eq(setup_metric(&s, all[i][0]), all[i][1]);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("set-ups", .setup = setup, .teardown = teardown),
    TEST(every_list_is_read_whole),
    TEST(what_is_no_change_is_refused),
    TEST(one_text_makes_another_set_up),
    TEST(set_ups_are_joined),
    TEST(conditions_are_all_met),
    TEST(every_form_is_changed),
    TEST(a_metric_is_replaced_by_its_whole_name),
};
SUITE_MAIN("set-ups", suite)

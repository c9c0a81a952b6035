/* The JSON Schema of a document is compared with a whole schema by hand, for made-up values, tables
 * and documents of every kind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/document_impl.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static void schema_is(const struct document *d, const char *want)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put_schema(d, f);
    (void)fclose(f);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(text);
    OWNED char *is = cJSON_PrintUnformatted(tree);
    ck_assert_msg(is != NULL, "%s", text);
    ck_assert_str_eq(is, want);
    free(text);
}

#define NUMBER "{\"type\":[\"number\",\"null\"]}"
#define STRING "{\"type\":\"string\"}"
#define FLAG "{\"type\":\"boolean\"}"
#define TEXT_CELL "{\"type\":[\"string\",\"null\"]}"
#define OBJECT(required_, properties_)                                                             \
    "{\"type\":\"object\",\"properties\":{" properties_                                            \
    "},\"additionalProperties\":false,\"required\":[" required_ "]}"
#define ROW(properties_)                                                                           \
    "{\"type\":\"object\",\"properties\":{" properties_ "},\"additionalProperties\":false}"
#define MAP(of_) "{\"type\":\"object\",\"additionalProperties\":" of_ "}"

START_TEST(values_have_their_types)
{
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "a", 1.5, "b", "text", "c", (bool)true, "d", (double)NAN, "e", FRAME_NONE,
                    "f", FRAME_ABSENT);
    document_note(d, "a note");
    document_heading(d, "a heading");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse("{\"x\": 1}");
    document_tree(d, "g", tree);
    schema_is(d, OBJECT("\"a\",\"b\",\"c\",\"d\",\"e\",\"g\"",
                        "\"a\":" NUMBER ",\"b\":" STRING ",\"c\":" FLAG
                        ",\"d\":{},\"e\":{},\"g\":{\"type\":\"object\"}"));
}
END_TEST

/* Eight numbers, defined or not, are a map; seven are not, nor nine of which one is a text. */
START_TEST(many_numbers_are_a_map)
{
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "a", 1.0, "b", 2.0, "c", 3.0, "d", 4.0, "e", 5.0, "f", (double)NAN, "g", 7);
    schema_is(d, OBJECT("\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"",
                        "\"a\":" NUMBER ",\"b\":" NUMBER ",\"c\":" NUMBER ",\"d\":" NUMBER
                        ",\"e\":" NUMBER ",\"f\":{},\"g\":" NUMBER));
    document_note(d, "a note");
    DOCUMENT_VALUES(d, "h", 8.0);
    schema_is(d, MAP(NUMBER));
    DOCUMENT_VALUES(d, "i", "text");
    schema_is(d,
              OBJECT("\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"",
                     "\"a\":" NUMBER ",\"b\":" NUMBER ",\"c\":" NUMBER ",\"d\":" NUMBER
                     ",\"e\":" NUMBER ",\"f\":{},\"g\":" NUMBER ",\"h\":" NUMBER ",\"i\":" STRING));
}
END_TEST

START_TEST(documents_are_objects_and_arrays)
{
    struct document *d = document_new();
    struct document *in = document_within(d, "in");
    DOCUMENT_VALUES(in, "x", 1.0);
    struct document *list = document_array(d, "list");
    DOCUMENT_VALUES(list, NULL, "first");
    DOCUMENT_VALUES(document_within(list, NULL), "y", (bool)false);
    (void)document_within(d, NULL); /* for people */
    schema_is(
        d, OBJECT("\"in\",\"list\"",
                  "\"in\":" OBJECT(
                      "\"x\"", "\"x\":" NUMBER) ",\"list\":{\"type\":\"array\",\"items\":[" STRING
                                                "," OBJECT("\"y\"", "\"y\":" FLAG) "]}"));
    struct document *alone = document_new();
    document_note(alone, "a note");
    DOCUMENT_VALUES(document_array(alone, ""), NULL, 2.0);
    schema_is(alone, "{\"type\":\"array\",\"items\":[" NUMBER "]}");
}
END_TEST

static const struct frame_column columns[] = {
    {.name = "key", .kind = FRAME_TEXT},
    {.name = "n", .title = "how many", .unit = "1"},
    {.name = "text", .kind = FRAME_TEXT, .title = ""},
    {.name = "in.flag", .kind = FRAME_FLAG},
    {.name = "in.deep.x", .unit = "s"},
    {.name = "shown", .kind = FRAME_TEXT, .only_text = true},
    {.name = "any", .kind = FRAME_ANY},
    {.name = "none", .kind = FRAME_ANY},
};

#define COLUMNS                                                                                    \
    "\"n\":{\"type\":[\"number\",\"null\"],\"title\":\"how many\",\"unit\":\"1\"},"                \
    "\"text\":" TEXT_CELL                                                                          \
    ",\"in\":" ROW("\"flag\":{\"type\":[\"boolean\",\"null\"]},\"deep\":" ROW(                     \
        "\"x\":{\"type\":[\"number\",\"null\"],\"unit\":"                                          \
        "\"s\"}")) ",\"any\":{\"type\":[\"number\",\"string\",\"boolean\",\"null\"]},\"none\":{}"

static void fill(struct frame *f)
{
    FRAME_ROW(f, "a", 1.0, "t", (bool)true, 2.0, "s", 1.5, FRAME_NONE);
    FRAME_ROW(f, "b", 1.0, "t", (bool)true, 2.0, "s", "word", FRAME_NONE);
    FRAME_ROW(f, "c", 1.0, "t", (bool)true, 2.0, "s", (bool)false, FRAME_NONE);
}

START_TEST(tables_are_arrays_of_rows)
{
    struct document *d = document_new();
    fill(DOCUMENT_FRAME(d, "rows", 0, columns));
    schema_is(d, OBJECT("\"rows\"", "\"rows\":{\"type\":\"array\",\"items\":" ROW(
                                        "\"key\":" TEXT_CELL "," COLUMNS) "}"));
    struct document *alone = document_new();
    fill(DOCUMENT_FRAME(alone, "", 1, columns));
    schema_is(alone, MAP(ROW(COLUMNS)));
}
END_TEST

#define FLAG_CELL "{\"type\":[\"boolean\",\"null\"]}"
#define TITLED "{\"type\":[\"string\",\"null\"],\"title\":\"t\"}"
#define CELLS "\"cells\":" MAP(MAP(TITLED))
#define ROWS "\"rows\":" MAP(ROW("\"x\":" NUMBER ",\"y\":" FLAG_CELL))

/* Keys name objects; a row of one column without a name is its cell. */
START_TEST(keys_are_maps)
{
    static const struct frame_column pairs[] = {{.name = "a", .kind = FRAME_TEXT},
                                                {.name = "b", .kind = FRAME_TEXT},
                                                {.name = "", .kind = FRAME_TEXT, .title = "t"}};
    static const struct frame_column two[] = {
        {.name = "a", .kind = FRAME_TEXT}, {.name = "x"}, {.name = "y", .kind = FRAME_FLAG}};
    struct document *d = document_new();
    FRAME_ROW(DOCUMENT_FRAME(d, "cells", 2, pairs), "k", "l", "m");
    FRAME_ROW(DOCUMENT_FRAME(d, "rows", 1, two), "k", 1.0, (bool)true);
    FRAME_ROW(DOCUMENT_FRAME(d, NULL, 0, two), "k", 1.0, (bool)true); /* for people */
    schema_is(d, OBJECT("\"cells\",\"rows\"", CELLS "," ROWS));
}
END_TEST

static const struct suite_row rows[] = {
    CASE("schemas"),
    TEST(values_have_their_types),
    TEST(many_numbers_are_a_map),
    TEST(documents_are_objects_and_arrays),
    TEST(tables_are_arrays_of_rows),
    TEST(keys_are_maps),
};
SUITE_MAIN("schemas of documents", rows)

/* Output formats of results. A format is a function, a row of `forms`, and an option. */
#include "experiments/shell/document_impl.h"
#include "sim/base/json.h"

static void put_text(const struct document *d, FILE *out)
{
    document_put_people(d, &people_text, out);
}

/* Puts empty lines around tables of Markdown. A table ends only at one, or the text after it would
 * be a row. Some readers need one before it, too. */
static void put_apart(const char *text, bool begins, FILE *out)
{
    bool apart = begins;
    int table = -1; /* whether the line before is a row; -1: unknown */
    for (const char *p = text; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        int row = *p == '|' ? 1 : 0;
        (void)fprintf(out, "%s%.*s\n", n > 0 && !apart && row != table ? "\n" : "", (int)n, p);
        apart = n == 0;
        table = row;
        p += n + (p[n] == '\n');
    }
}

static void put_markdown(const struct document *d, FILE *out)
{
    OWNED char *text = NULL;
    size_t size = 0;
    FILE *whole = open_memstream(&text, &size);
    SIM_REQUIRE(whole != NULL, "memory");
    document_put_people(d, &people_markdown, whole);
    (void)fclose(whole);
    put_apart(text, d->told == 0, out);
}

static void put_latex(const struct document *d, FILE *out)
{
    document_put_people(d, &people_latex, out);
}

static void put_json(const struct document *d, FILE *out)
{
    json_print(document_json(d), out);
}

static const struct form {
    const char *name;
    void (*put)(const struct document *d, FILE *out);
    bool people; /* may be printed in parts */
} forms[] = {
    {"text", put_text, true},
    {"json", put_json, false},
    {"csv", document_put_csv, false},
    {"markdown", put_markdown, true},
    {"latex", put_latex, true},
    {"junit", document_put_junit, false},
    {"schema", document_put_schema, false},
};

static int take_form(void *target, const struct option_row *row, const char *arg UNUSED,
                     struct err *e UNUSED)
{
    struct option_output *o = target;
    o->form = row->name;
    return 0;
}

#define FORM(name_, help_)                                                                         \
    {                                                                                              \
        .name = (name_), .help = (help_), .kind = OPTION_KIND_OWN, .take = take_form,              \
        .aside = true                                                                              \
    }
#define JSON FORM("json", "print results as JSON")
/* For docs/schemas/make.py. Users read the schemas in docs/schemas. */
#define SCHEMA                                                                                     \
    {                                                                                              \
        .name = "schema", .kind = OPTION_KIND_OWN, .take = take_form, .aside = true,               \
        .hidden = true, .help = "the JSON Schema of --json"                                        \
    }
#define QUIET                                                                                      \
    {                                                                                              \
        .name = "quiet", .letter = 'q', .kind = OPTION_KIND_FLAG, .aside = true,                   \
        .offset = offsetof(struct option_output, quiet), .help = "print no progress and no notes"  \
    }

static const struct option_row output_rows[] = {
    JSON,
    FORM("csv", "print results as CSV: one table, or name,value"),
    FORM("markdown", "print results as Markdown"),
    FORM("latex", "print results as LaTeX tables, and the rest as comments"),
    SCHEMA,
    QUIET,
};
static const struct option_row json_rows[] = {JSON, SCHEMA, QUIET};
static const struct option_row quiet_rows[] = {QUIET};
const struct option_table option_output_table = OPTION_TABLE("Output", output_rows);
const struct option_table option_json_table = OPTION_TABLE("Output", json_rows);
const struct option_table option_quiet_table = OPTION_TABLE("Output", quiet_rows);

static const struct form *form_find(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(forms[i].name, name) == 0) {
            return &forms[i];
        }
    }
    SIM_REQUIRE(false, "no form is called %s", name);
    return NULL;
}

static const struct form *form_of(const struct option_output *o)
{
    return form_find(o->form != NULL ? o->form : "text");
}

bool output_is(const struct option_output *o, const char *form)
{
    return form_of(o) == form_find(form);
}

void document_put(const struct document *d, const char *form, FILE *out)
{
    form_find(form)->put(d, out);
}

void document_print_so_far(struct document *d, const struct option_output *o, FILE *out)
{
    if (form_of(o)->people) {
        form_of(o)->put(d, out);
        document_mark_told(d);
        (void)fflush(out);
    }
}

void document_print(struct document *d, const struct option_output *o, FILE *out)
{
    form_of(o)->put(d, out);
    document_mark_told(d);
}

void document_show(struct document *d, const struct option_output *o)
{
    document_print(d, o, stdout);
}

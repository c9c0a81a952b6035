/* Parses a command line with the command's tables. */
#include "experiments/shell/options.h"

#include "experiments/shell/cli.h"
#include "sim/base/nearest.h"
#include "sim/base/words.h"

#define NAME_BYTES 64

static const struct option_row help_row = {
    .name = "help", .help = "this text", .kind = OPTION_KIND_FLAG, .letter = 'h'};

/* An option on the command line: its row, and the child with its table. */
struct found {
    const struct option_child *child;
    const struct option_row *row;
};

static void full_name(const struct option_child *child, const struct option_row *row, char *buf)
{
    (void)snprintf(buf, NAME_BYTES, "%s%s", child != NULL && child->prefix ? child->prefix : "",
                   row->name);
}

void options_visit(const struct command *c,
                   void (*visit)(void *, const struct option_child *, const struct option_row *,
                                 const char *),
                   void *ctx)
{
    char name[NAME_BYTES];
    for (const struct option_child *k = c->children; k != NULL && k->table != NULL; k++) {
        for (size_t i = 0; i < k->table->n; i++) {
            full_name(k, &k->table->rows[i], name);
            visit(ctx, k, &k->table->rows[i], name);
        }
    }
    visit(ctx, NULL, &help_row, "help");
}

/* ---- finding ---- */

struct search {
    const char *word;
    size_t length;
    char letter;
    struct found exact, begins;
    unsigned n_begins;
    char plain[NAME_BYTES]; /* the word without its value */
    struct nearest near;    /* the most similar option */
};

static void look(void *ctx, const struct option_child *child, const struct option_row *row,
                 const char *name)
{
    struct search *s = ctx;
    if (s->letter != 0) {
        if (row->letter == s->letter && (child == NULL || child->prefix == NULL)) {
            s->exact = (struct found){child, row};
        }
        return;
    }
    if (strlen(name) == s->length && memcmp(name, s->word, s->length) == 0) {
        s->exact = (struct found){child, row};
    } else if (strncmp(name, s->word, s->length) == 0) {
        s->begins = (struct found){child, row};
        s->n_begins++;
    }
    nearest_look(&s->near, name);
}

static int unknown(const struct command *c, const struct search *s, const char *arg, struct err *e)
{
    const char *near = s->near.best;
    return near[0] != '\0' ? err_add(e,
                                     "%s: no such option; did you mean --%s? `xpusim %s --help` "
                                     "shows the options",
                                     arg, near, c->name)
                           : err_add(e, "%s: no such option; `xpusim %s --help` shows the options",
                                     arg, c->name);
}

/* Finds the option that `arg` ("--name=value", "-x", "-xVALUE") names, and its attached value. */
static int find(const struct command *c, const char *arg, struct found *out, const char **value,
                struct err *e)
{
    OWNED struct search *s = xcalloc(1, sizeof *s);
    *value = NULL;
    if (arg[1] == '-') {
        s->word = arg + 2;
        s->length = strcspn(s->word, "=");
        *value = s->word[s->length] == '=' ? s->word + s->length + 1 : NULL;
    } else {
        s->letter = arg[1];
        *value = arg[2] != '\0' ? arg + 2 : NULL;
    }
    (void)snprintf(s->plain, sizeof s->plain, "%.*s", (int)s->length,
                   s->word != NULL ? s->word : "");
    nearest_init(&s->near, s->plain);
    options_visit(c, look, s);
    int rc = 0;
    if (s->exact.row != NULL) {
        *out = s->exact;
    } else if (s->n_begins == 1) {
        *out = s->begins;
    } else if (s->n_begins > 1) {
        rc = err_add(e, "%s: the beginning of several options; `xpusim %s --help` shows them", arg,
                     c->name);
    } else {
        rc = unknown(c, s, arg, e);
    }
    return rc;
}

/* ---- values ---- */

void options_text_add(struct option_texts *list, const char *text)
{
    KEPT_ADD(list->v, list->n, text);
}

static int take_text(const struct option_row *row, const char *name, const char *arg,
                     struct option_texts *list, struct err *e)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->v[i], arg) == 0) {
            return err_add(e, "--%s %s: given twice", name, arg);
        }
    }
    if (row->max > 0.0 && list->n >= (uint32_t)row->max) {
        return err_add(e, "--%s: more than %g", name, row->max);
    }
    options_text_add(list, arg);
    return 0;
}

static int take_numbers(const struct option_row *row, const char *name, const char *arg,
                        struct option_numbers *list, struct err *e)
{
    size_t most = 1;
    for (const char *p = arg; *p != '\0'; p++) {
        most += *p == ',';
    }
    list->v = xkept(xmalloc(most * sizeof *list->v));
    return cli_number_list(name, arg, row->min, row->max, list->v, (uint32_t)most, &list->n, e);
}

static int take_choice(const struct option_row *row, const char *name, const char *arg,
                       const char **out, struct err *e)
{
    int i = words_find(row->choices, arg);
    if (i >= 0) {
        *out = row->choices[i];
        return 0;
    }
    struct nearest near;
    nearest_init(&near, arg);
    for (i = 0; row->choices[i] != NULL; i++) {
        nearest_look(&near, row->choices[i]);
    }
    OWNED char *all = words_list(row->choices, ", ");
    return err_add(e, "--%s %s: must be one of %s%s", name, arg, all, nearest_hint(&near));
}

static int take(const struct option_row *row, const char *name, const char *arg, char *base,
                struct err *e)
{
    void *at = base + row->offset;
    if (row->given > 0) {
        *(bool *)(void *)(base + row->given - 1) = true;
    }
    switch (row->kind) {
    case OPTION_KIND_FLAG:
        *(bool *)at = true;
        return 0;
    case OPTION_KIND_TEXT:
        *(const char **)at = arg;
        return 0;
    case OPTION_KIND_TEXTS:
        return take_text(row, name, arg, at, e);
    case OPTION_KIND_COUNT:
        return cli_count(name, arg, (uint32_t)row->min, (uint32_t)row->max, at, e);
    case OPTION_KIND_SEED:
        return cli_seed(name, arg, at, e);
    case OPTION_KIND_NUMBER:
        return cli_number(name, arg, row->min, row->max, at, e);
    case OPTION_KIND_NUMBERS:
        return take_numbers(row, name, arg, at, e);
    case OPTION_KIND_CHOICE:
        return take_choice(row, name, arg, at, e);
    case OPTION_KIND_OWN:
        return row->take(base, row, arg, e);
    }
    return -EINVAL;
}

static void set_up(const struct command *c, void *values)
{
    memset(values, 0, c->bytes);
    for (const struct option_child *k = c->children; k != NULL && k->table != NULL; k++) {
        char *base = (char *)values + k->offset;
        if (k->table->init != NULL) {
            k->table->init(base);
        }
        for (size_t i = 0; i < k->table->n && k->prefix == NULL && !k->bare; i++) {
            const struct option_row *row = &k->table->rows[i];
            SCOPED(err_fini) struct err e = ERR_INIT;
            if (row->preset != NULL) {
                struct option_row plain = *row;
                plain.given = 0;
                int rc = take(&plain, row->name, row->preset, base, &e);
                SIM_REQUIRE(rc == 0, "the default of --%s", row->name);
            }
        }
    }
}

/* ---- the command line for a repetition ---- */

static struct text command_line;

static void command_add(const char *text)
{
    OWNED char *word = xmalloc(4 * strlen(text) + 3);
    text_format(&command_line, " %s", cli_word(text, true, word));
}

const char *options_command(void)
{
    return text_end(&command_line);
}

/* Options of the last command line. */
static struct given {
    struct found *v; /* owned */
    uint32_t n;
} given;

/* Whether an option that takes one value is given again, which would silently drop the first. */
static bool is_second(const struct found *f)
{
    for (uint32_t i = 0; i < given.n; i++) {
        if (given.v[i].row == f->row && given.v[i].child == f->child) {
            return f->row->kind != OPTION_KIND_TEXTS && !f->row->repeats;
        }
    }
    LIST_ADD(given.v, given.n, *f);
    return false;
}

/* Whether a word of a text separated by spaces is `name`. */
static bool has_word(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *w = text; *w != '\0'; w += strspn(w, " ")) {
        size_t length = strcspn(w, " ");
        if (length == n && memcmp(w, name, n) == 0) {
            return true;
        }
        w += length;
    }
    return false;
}

/* Refuses the first option given that is one of `names`, or none of them. */
static int refuse(const char *task, const char *names, bool listed, struct err *e)
{
    for (uint32_t i = 0; i < given.n; i++) {
        const struct option_table *t = given.v[i].child->table;
        char name[NAME_BYTES];
        full_name(given.v[i].child, given.v[i].row, name);
        bool shows = t == &option_output_table || t == &option_json_table;
        if (!shows && has_word(names, name) == listed) {
            return err_add(e, "--%s: %s has no use for it", name, task);
        }
    }
    return 0;
}

int options_only(const char *task, const char *names, struct err *e)
{
    return refuse(task, names, false, e);
}

int options_without(const char *task, const char *names, struct err *e)
{
    return refuse(task, names, true, e);
}

/* Takes one argument that begins with a dash, and the next one if that is its value. Returns the
 * number of arguments used, 0 for --help, or -EINVAL for an unknown name. */
static int take_argument(const struct command *c, int left, char **argv, void *values,
                         struct err *e)
{
    struct found f = {NULL, NULL};
    const char *arg = NULL;
    if (find(c, argv[0], &f, &arg, e) != 0) {
        return -EINVAL;
    }
    if (f.child == NULL) {
        return 0;
    }
    char name[NAME_BYTES];
    full_name(f.child, f.row, name);
    bool flag = f.row->value == NULL;
    int used = 1;
    if (flag && arg != NULL) {
        (void)err_add(e, "--%s: takes no value", name);
        return used;
    }
    if (!flag && arg == NULL) {
        if (left < 2) {
            (void)err_add(e, "--%s: needs a value, %s", name, f.row->value);
            return used;
        }
        arg = argv[1];
        used = 2;
    }
    if (!flag && arg[0] == '\0' && !f.row->blank) {
        (void)err_add(e, "--%s: its value is empty; it needs %s", name, f.row->value);
        return used;
    }
    if (is_second(&f)) {
        (void)err_add(
            e, f.row->value == NULL ? "--%s: given twice" : "--%s: given twice; it takes one value",
            name);
        return used;
    }
    if (!f.row->aside) {
        OWNED char *option = xformat("--%s", name);
        command_add(option);
        if (arg != NULL) {
            command_add(arg);
        }
    }
    (void)take(f.row, name, arg, (char *)values + f.child->offset, e);
    return used;
}

static void take_operand(const struct command *c, const char *arg, void *values, struct err *e)
{
    if (arg[0] == '\0') {
        (void)err_add(e, "an argument is empty; `xpusim %s --help` shows what it takes", c->name);
        return;
    }
    if (c->operands.max == 0) {
        (void)err_add(e,
                      "%s: neither an option nor the value of one; `xpusim %s --help` shows them",
                      arg, c->name);
        return;
    }
    struct option_texts *list = (void *)((char *)values + c->operands.offset);
    if (list->n == c->operands.max) {
        (void)err_add(e, "%s: more than %u %s", arg, c->operands.max, c->operands.name);
        return;
    }
    command_add(arg);
    options_text_add(list, arg);
}

int options_parse(const struct command *c, int argc, char **argv, void *values, struct err *e)
{
    size_t before = e->n;
    bool only_operands = false;
    bool lost = false; /* the next argument may be the value of an unknown option */
    set_up(c, values);
    text_fini(&command_line);
    free(given.v);
    given = (struct given){NULL, 0};
    text_format(&command_line, "xpusim %s", c->name);
    for (int i = 1; i < argc;) {
        if (only_operands || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (!lost) {
                take_operand(c, argv[i], values, e);
            }
            lost = false;
            i++;
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
            i++;
        } else {
            int used = take_argument(c, argc - i, argv + i, values, e);
            if (used == 0) {
                options_help(c, stdout);
                return 1;
            }
            lost = used < 0;
            i += used < 0 ? 1 : used;
        }
    }
    if (e->n == before && c->operands.max > 0) {
        const struct option_texts *list = (void *)((char *)values + c->operands.offset);
        if (list->n < c->operands.min) {
            (void)err_add(e, "%s is missing; `xpusim %s --help` shows the usage", c->operands.name,
                          c->name);
        }
    }
    return e->n > before ? -EINVAL : 0;
}

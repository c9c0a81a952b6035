/* Reads a figure's specification. */
#include "experiments/figures/paper.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

const char *const paper_axis_keys[PAPER_AXES] = {"rows", "columns", "series", "x"};
static const char *const axis_words[PAPER_AXES] = {"row", "column", "series", "x"};

char *paper_path(const char *paper, const char *number)
{
    OWNED char *relative = xformat(PAPER_FOLDER "/%s-%s.json", paper, number);
    return xstrdup(datadir_path(relative));
}

/* ---- axes ---- */

/* Reads a number or text as a place: its title, and the value that it puts under `key`. */
static void read_plain(struct paper *p, struct paper_place *place, const cJSON *v, const char *key)
{
    place->title = cJSON_IsNumber(v) ? xkeep(xformat("%.10g", v->valuedouble)) : v->valuestring;
    place->number = cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
    if (key != NULL) {
        cJSON *put = cJSON_CreateObject();
        cJSON_AddItemToObject(put, key, cJSON_Duplicate(v, true));
        cJSON_AddItemToArray(p->made, put);
        place->put = put;
    }
}

static void read_place(struct paper *p, struct paper_place *place, struct json_obj *axis, int i,
                       const char *key)
{
    const cJSON *v = cJSON_GetArrayItem(json_member(axis->node, "values"), i);
    if (cJSON_IsNumber(v) || cJSON_IsString(v)) {
        read_plain(p, place, v, key);
        return;
    }
    struct json_obj o = json_array_object(axis, "values", i);
    place->title = json_get_string(&o, "title");
    place->number = (double)NAN;
    if (json_has(&o, "put")) {
        place->put = json_get_object(&o, "put").node;
    }
    json_done(&o);
}

static void read_axis(struct paper *p, enum paper_axis_kind kind, struct json_obj *root)
{
    struct paper_axis *a = &p->axes[kind];
    *a = (struct paper_axis){.title = "", .n = 1};
    a->v[0] = (struct paper_place){.title = "", .number = (double)NAN};
    if (!json_has(root, paper_axis_keys[kind])) {
        return;
    }
    struct json_obj o = json_get_object(root, paper_axis_keys[kind]);
    a->title = json_string_or(&o, "title", "");
    const char *key = json_string_or(&o, "key", NULL);
    a->value = kind == PAPER_X ? json_string_or(&o, "value", NULL) : NULL;
    a->log = kind == PAPER_X && json_flag(&o, "log");
    a->n = (uint32_t)json_get_array_size(&o, "values", 1, PAPER_MAX_PLACES);
    for (uint32_t i = 0; i < a->n; i++) {
        read_place(p, &a->v[i], &o, (int)i, key);
    }
    a->n = a->n == 0 ? 1 : a->n;
    json_done(&o);
}

/* ---- published values ---- */

/* Index of the place with a title. -1: there is no such key, or no such place, which is an error.
 */
static int place_of(const struct paper *p, enum paper_axis_kind kind, struct json_obj *o,
                    const char *key)
{
    if (!json_has(o, key)) {
        return -1;
    }
    bool number = cJSON_IsNumber(json_member(o->node, key));
    OWNED char *name = number ? xformat("%.10g", json_get_number(o, key, -1e15, 1e15))
                              : xstrdup(json_get_string(o, key));
    int found = -1;
    for (uint32_t i = 0; i < p->axes[kind].n; i++) {
        found = strcmp(p->axes[kind].v[i].title, name) == 0 ? (int)i : found;
    }
    if (found < 0) {
        json_refuse(o, key, "no place of %s is called \"%s\"", paper_axis_keys[kind], name);
    }
    return found;
}

static void read_mark(struct paper *p, struct paper_mark *m, struct json_obj *o)
{
    static const char *const sources[] = {"text", "drawing", NULL};
    for (int k = 0; k < PAPER_AXES; k++) {
        m->at[k] = place_of(p, (enum paper_axis_kind)k, o, axis_words[k]);
    }
    bool one = json_has(o, "value");
    m->low = json_get_number(o, one ? "value" : "low", -1e15, 1e15);
    m->high = one ? m->low : json_get_number(o, "high", m->low, 1e15);
    m->as = json_string_or(o, "as", NULL);
    m->ours = json_string_or(o, "ours", NULL);
    m->of = place_of(p, PAPER_SERIES, o, "of");
    m->of_x = place_of(p, PAPER_X, o, "of_x");
    m->crossing = json_number_or(o, "crossing", -1e15, 1e15, (double)NAN);
    bool needs = !isnan(m->crossing) || (m->as != NULL && strstr(m->as, "of") != NULL);
    if (needs != (m->of >= 0)) {
        json_refuse(o, "of", "goes with `crossing`, or with `of` in `as`");
    }
    if (m->of < 0 && (m->of_x >= 0 || m->ours != NULL)) {
        json_refuse(o, m->ours != NULL ? "ours" : "of_x", "goes with `of`");
    }
    m->read_off = json_get_choice(o, "from", sources) == 1;
    m->where = json_get_string(o, "where");
    m->claim = json_string_or(o, "claim", NULL);
    json_done(o);
}

/* ---- the whole ---- */

static void read_lines(struct paper *p, struct json_obj *root)
{
    p->n_lines = json_has(root, "lines")
                     ? (uint32_t)json_get_array_size(root, "lines", 1, PAPER_MAX_LINES)
                     : 0;
    for (uint32_t i = 0; i < p->n_lines; i++) {
        struct json_obj o = json_array_object(root, "lines", (int)i);
        p->lines[i] = (struct paper_line){json_get_number(&o, "at", -1e15, 1e15),
                                          json_get_string(&o, "title")};
        json_done(&o);
    }
}

static void read_grid(struct paper *p, struct json_obj *root)
{
    static const char *const draws[] = {"lines", "points", "bars", "stacked", "table", NULL};
    for (int k = 0; k < PAPER_AXES; k++) {
        read_axis(p, (enum paper_axis_kind)k, root);
    }
    p->draw = (enum paper_draw)json_get_choice(root, "draw", draws);
    p->value = json_get_string(root, "value");
    p->y_title = "";
    if (json_has(root, "y")) {
        struct json_obj y = json_get_object(root, "y");
        p->y_title = json_get_string(&y, "title");
        p->y_log = json_flag(&y, "log");
        json_done(&y);
    }
    read_lines(p, root);
    p->n_marks = json_has(root, "published")
                     ? (uint32_t)json_get_array_size(root, "published", 0, PAPER_MAX_MARKS)
                     : 0;
    for (uint32_t i = 0; i < p->n_marks; i++) {
        struct json_obj o = json_array_object(root, "published", (int)i);
        read_mark(p, &p->marks[i], &o);
    }
    struct json_obj q = json_get_object(root, "quantities");
    if (cJSON_GetArraySize(q.node) < 1 || cJSON_GetArraySize(q.node) > PAPER_MAX_QUANTITIES) {
        (void)err_add(root->err, "%s: quantities: must hold 1 to %d of them", p->file,
                      PAPER_MAX_QUANTITIES);
    }
}

static void read_schedule(struct paper *p, struct json_obj *root)
{
    p->n_commands = (uint32_t)json_get_array_size(root, "commands", 1, PAPER_MAX_COMMANDS);
    for (uint32_t i = 0; i < p->n_commands; i++) {
        struct json_obj o = json_array_object(root, "commands", (int)i);
        p->commands[i] =
            (struct paper_command){json_get_string(&o, "run"), json_string_or(&o, "to", NULL)};
        json_done(&o);
    }
    p->plot = json_get_string(root, "plot");
}

/* Sets a key of the figure's put by "KEY=VALUE". The put must have it. */
static void put_one(struct paper *p, const char *text, struct err *e)
{
    size_t n = strcspn(text, "=");
    OWNED char *key = xformat("%.*s", (int)n, text);
    if (text[n] == '\0' || json_member(p->put, key) == NULL) {
        OWNED char *keys = p->put != NULL ? json_text(p->put, false) : NULL;
        (void)err_add(e, "--put %s: must be KEY=VALUE with a key of %s: put, which is %s", text,
                      p->file, keys != NULL ? keys : "empty");
    } else {
        char *end;
        double v = strtod(text + n + 1, &end);
        cJSON *value = *end == '\0' && end > text + n + 1 ? cJSON_CreateNumber(v)
                                                          : cJSON_CreateString(text + n + 1);
        cJSON_ReplaceItemInObjectCaseSensitive(p->put, key, value);
    }
}

int paper_read(struct paper *p, const char *file, const char *const *puts, uint32_t n_puts,
               struct err *e)
{
    *p = (struct paper){.file = file, .made = cJSON_CreateArray()};
    p->tree = json_read_file(file, e);
    if (p->tree == NULL) {
        return -EINVAL;
    }
    struct json_obj root = json_root(p->tree, file, e);
    p->paper = json_get_string(&root, "paper");
    p->number = json_get_string(&root, "number");
    p->title = json_get_string(&root, "title");
    p->says = json_get_string(&root, "says");
    p->setup = json_string_or(&root, "setup", NULL);
    p->n_claims = json_get_strings(&root, "claims", 0, PAPER_MAX_CLAIMS, p->claims);
    if (json_has(&root, "put")) {
        p->put = json_member(p->tree, json_get_object(&root, "put").node->string);
    }
    if (json_has(&root, "commands")) {
        read_schedule(p, &root);
    } else {
        read_grid(p, &root);
    }
    json_done(&root);
    for (uint32_t i = 0; i < n_puts; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strncmp(puts[i], puts[k], strcspn(puts[i], "=") + 1) == 0) {
                (void)err_add(e, "--put %s: the key has a value already", puts[i]);
            }
        }
        put_one(p, puts[i], e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- places and their puts ---- */

struct paper_point *paper_at(const struct paper *p, const uint32_t at[PAPER_AXES])
{
    size_t i = 0;
    for (int k = 0; k < PAPER_AXES; k++) {
        i = i * p->axes[k].n + at[k];
    }
    return &p->points[i];
}

bool paper_mark_is_of(const struct paper_mark *m, const struct paper_point *point)
{
    bool is = true;
    for (int k = 0; k < PAPER_AXES; k++) {
        is = is && (m->at[k] < 0 || (uint32_t)m->at[k] == point->at[k]);
    }
    return is;
}

/* The value that a point, or else the figure, puts under a key of n letters. NULL: none. */
static const cJSON *put_of(const struct paper *p, const struct paper_point *point, const char *key,
                           size_t n)
{
    static const enum paper_axis_kind order[] = {PAPER_SERIES, PAPER_X, PAPER_COLUMN, PAPER_ROW};
    OWNED char *name = xformat("%.*s", (int)n, key);
    const cJSON *found = NULL;
    for (int i = 0; i < PAPER_AXES && found == NULL && point != NULL; i++) {
        const struct paper_axis *a = &p->axes[order[i]];
        found = json_member(a->v[point->at[order[i]]].put, name);
    }
    return found != NULL ? found : json_member(p->put, name);
}

/* Length of a key whose opening brace is at `at`. 0: no key is there. */
static size_t key_at(const char *at)
{
    size_t n = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return at[0] == '{' && at[n + 1] == '}' ? n : 0;
}

#define PUT_DEPTH 4 /* values may contain keys themselves */

/* Replaces keys once. *replaced: whether there were any. */
static char *put_round(const struct paper *p, const struct paper_point *point, const char *text,
                       bool *replaced, struct err *e)
{
    struct text out = {0};
    *replaced = false;
    for (const char *at = text; *at != '\0';) {
        size_t n = key_at(at);
        const cJSON *v = n > 0 ? put_of(p, point, at + 1, n) : NULL;
        if (v == NULL) {
            if (n > 0 && !(n == 4 && strncmp(at + 1, "rate", 4) == 0)) {
                (void)err_add(e, "%s: \"%s\": nothing puts {%.*s}", p->file, text, (int)n, at + 1);
            }
            text_char(&out, *at++);
        } else {
            OWNED char *word = cJSON_IsString(v) ? xstrdup(v->valuestring)
                               : cJSON_IsBool(v) ? xstrdup(cJSON_IsTrue(v) ? "true" : "false")
                                                 : xformat("%.10g", v->valuedouble);
            text_string(&out, word);
            *replaced = true;
            at += n + 2;
        }
    }
    return text_end(&out);
}

char *paper_put(const struct paper *p, const struct paper_point *point, const char *text,
                struct err *e)
{
    char *out = xstrdup(text);
    size_t before = e->n;
    bool again = true;
    for (int i = 0; again && i < PUT_DEPTH && e->n == before; i++) {
        char *next = put_round(p, point, out, &again, e);
        free(out);
        out = next;
    }
    if (e->n > before) {
        free(out);
        return NULL;
    }
    return out;
}

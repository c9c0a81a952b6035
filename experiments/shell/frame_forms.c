/* A document as text, JSON, CSV and Markdown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/frame_impl.h"
#include "experiments/shell/table.h"
#include "experiments/shell/term.h"
#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/base/json.h"

#define CELL_BYTES 64

static const struct frame_cell *cell_at(const struct frame *f, uint32_t row, size_t column)
{
    return &f->cells[row * f->n_columns + column];
}

/* What a cell is for people. Returns buf, or the cell's own text. */
static const char *cell_text(const struct frame_column *c, const struct frame_cell *v, char *buf)
{
    if (v->missing) {
        return c->missing != NULL ? c->missing : "-";
    }
    if (c->kind == FRAME_TEXT) {
        return v->text;
    }
    if (c->kind == FRAME_FLAG) {
        return v->number != 0.0 ? "yes" : "no";
    }
    /* The format is the column's, a literal of the program with one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(buf, CELL_BYTES, c->format != NULL ? c->format : "%.4g", v->number);
#pragma GCC diagnostic pop
    return buf;
}

static const char *column_title(const struct frame_column *c)
{
    return c->title != NULL ? c->title : c->name;
}

/* ---- text ---- */

static void put_frame_text(const struct frame *f, FILE *out)
{
    char align[TABLE_MAX_COLUMNS + 1] = "";
    size_t n = 0;
    bool titled = false;
    for (size_t i = 0; i < f->n_columns && n < TABLE_MAX_COLUMNS; i++) {
        if (!f->columns[i].only_data) {
            align[n++] = f->columns[i].kind == FRAME_NUMBER ? 'r' : 'l';
            titled = titled || f->columns[i].title == NULL || f->columns[i].title[0] != '\0';
        }
    }
    struct table t;
    table_init(&t, align);
    char buf[CELL_BYTES];
    for (size_t i = 0; titled && i < f->n_columns; i++) {
        if (!f->columns[i].only_data) {
            table_cell(&t, "%s", column_title(&f->columns[i]));
        }
    }
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        for (size_t i = 0; i < f->n_columns; i++) {
            if (!f->columns[i].only_data) {
                table_cell(&t, "%s", cell_text(&f->columns[i], cell_at(f, r, i), buf));
            }
        }
    }
    table_print(&t, out, 0);
    table_fini(&t);
}

static void put_labelled(const struct document_entry *e, FILE *out)
{
    if (e->label == NULL) {
        return;
    }
    if (e->kind == DOCUMENT_IS_TEXT) {
        (void)fprintf(out, "%s: %s\n", e->label, e->text);
        return;
    }
    struct frame_column c = {.kind = FRAME_NUMBER, .format = e->format};
    struct frame_cell v = {.number = e->number, .missing = !isfinite(e->number)};
    char buf[CELL_BYTES];
    (void)fprintf(out, "%s: %s\n", e->label, cell_text(&c, &v, buf));
}

/* ---- Markdown ---- */

static void put_escaped(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        (void)fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
    }
}

static void put_frame_markdown(const struct frame *f, FILE *out)
{
    char buf[CELL_BYTES];
    for (size_t i = 0; i < f->n_columns; i++) {
        if (!f->columns[i].only_data) {
            (void)fputs("| ", out);
            put_escaped(column_title(&f->columns[i]), out);
            (void)fputc(' ', out);
        }
    }
    (void)fputs("|\n", out);
    for (size_t i = 0; i < f->n_columns; i++) {
        if (!f->columns[i].only_data) {
            (void)fputs(f->columns[i].kind == FRAME_NUMBER ? "|---:" : "|---", out);
        }
    }
    (void)fputs("|\n", out);
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        for (size_t i = 0; i < f->n_columns; i++) {
            if (!f->columns[i].only_data) {
                (void)fputs("| ", out);
                put_escaped(cell_text(&f->columns[i], cell_at(f, r, i), buf), out);
                (void)fputc(' ', out);
            }
        }
        (void)fputs("|\n", out);
    }
}

static void put_people(const struct document *d, bool markdown, FILE *out)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        switch (e->kind) {
        case DOCUMENT_IS_TEXT:
        case DOCUMENT_IS_NUMBER:
            put_labelled(e, out);
            break;
        case DOCUMENT_IS_FLAG:
            break;
        case DOCUMENT_IS_NOTE:
            (void)fprintf(out, "%s\n", e->text);
            break;
        case DOCUMENT_IS_HEADING:
            if (markdown) {
                (void)fprintf(out, "\n## %s\n\n", e->text);
            } else {
                term_heading(out, e->text);
            }
            break;
        case DOCUMENT_IS_FRAME:
            (markdown ? put_frame_markdown : put_frame_text)(e->frame, out);
            break;
        case DOCUMENT_IS_DOCUMENT:
            put_people(e->within, markdown, out);
            break;
        }
    }
}

/* ---- CSV ---- */

static void put_csv_text(const char *text, FILE *out)
{
    if (strpbrk(text, ",\"\n\r") == NULL) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        (void)fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, out);
    }
    (void)fputc('"', out);
}

/* In as few digits as read back the same, 15 or 17, as in JSON. */
static void put_csv_number(double x, FILE *out)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.15g", x);
    if (strtod(text, NULL) != x) {
        (void)snprintf(text, sizeof text, "%.17g", x);
    }
    (void)fputs(text, out);
}

static void put_frame_csv(const struct frame *f, FILE *out)
{
    for (size_t i = 0; i < f->n_columns; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        put_csv_text(f->columns[i].name, out);
    }
    (void)fputc('\n', out);
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        for (size_t i = 0; i < f->n_columns; i++) {
            const struct frame_cell *v = cell_at(f, r, i);
            (void)fputs(i > 0 ? "," : "", out);
            if (v->missing) {
                continue;
            }
            if (f->columns[i].kind == FRAME_TEXT) {
                put_csv_text(v->text, out);
            } else if (f->columns[i].kind == FRAME_FLAG) {
                (void)fputs(v->number != 0.0 ? "true" : "false", out);
            } else {
                put_csv_number(v->number, out);
            }
        }
        (void)fputc('\n', out);
    }
}

static const struct frame *first_frame(const struct document *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct frame *f = d->v[i].frame;
        f = f == NULL && d->v[i].within != NULL ? first_frame(d->v[i].within) : f;
        if (f != NULL) {
            return f;
        }
    }
    return NULL;
}

/* ---- JSON ---- */

static cJSON *cell_json(const struct frame_column *c, const struct frame_cell *v)
{
    if (v->missing) {
        return cJSON_CreateNull();
    }
    return c->kind == FRAME_TEXT   ? cJSON_CreateString(v->text)
           : c->kind == FRAME_FLAG ? cJSON_CreateBool(v->number != 0.0)
                                   : cJSON_CreateNumber(v->number);
}

static cJSON *frame_json(const struct frame *f)
{
    cJSON *root = f->keys > 0 ? cJSON_CreateObject() : cJSON_CreateArray();
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        cJSON *at = root;
        for (uint32_t k = 0; k < f->keys; k++) {
            const char *key = cell_at(f, r, k)->text;
            cJSON *next = cJSON_GetObjectItemCaseSensitive(at, key);
            at = next != NULL ? next : cJSON_AddObjectToObject(at, key);
        }
        if (f->keys == 0) {
            at = cJSON_CreateObject();
            cJSON_AddItemToArray(root, at);
        }
        for (size_t i = f->keys; i < f->n_columns; i++) {
            cJSON_AddItemToObject(at, f->columns[i].name,
                                  cell_json(&f->columns[i], cell_at(f, r, i)));
        }
    }
    return root;
}

static cJSON *document_json(const struct document *d)
{
    cJSON *root = cJSON_CreateObject();
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        cJSON *item = NULL;
        switch (e->kind) {
        case DOCUMENT_IS_TEXT:
            item = cJSON_CreateString(e->text);
            break;
        case DOCUMENT_IS_NUMBER:
            item = isfinite(e->number) ? cJSON_CreateNumber(e->number) : cJSON_CreateNull();
            break;
        case DOCUMENT_IS_FLAG:
            item = cJSON_CreateBool(e->number != 0.0);
            break;
        case DOCUMENT_IS_FRAME:
            item = frame_json(e->frame);
            break;
        case DOCUMENT_IS_DOCUMENT:
            item = document_json(e->within);
            break;
        case DOCUMENT_IS_NOTE:
        case DOCUMENT_IS_HEADING:
            continue;
        }
        if (e->name == NULL) { /* the document is this alone */
            cJSON_Delete(root);
            return item;
        }
        cJSON_AddItemToObject(root, e->name, item);
    }
    return root;
}

void document_put(const struct document *d, enum document_form form, FILE *out)
{
    const struct frame *f;
    switch (form) {
    case DOCUMENT_TEXT:
    case DOCUMENT_MARKDOWN:
        put_people(d, form == DOCUMENT_MARKDOWN, out);
        return;
    case DOCUMENT_CSV:
        f = first_frame(d);
        SIM_REQUIRE(f != NULL, "a document with a frame");
        put_frame_csv(f, out);
        return;
    case DOCUMENT_JSON:
        json_print(document_json(d), out);
        return;
    }
}

void document_print(const struct document *d, const struct option_output *o, FILE *out)
{
    document_put(d,
                 o->json       ? DOCUMENT_JSON
                 : o->csv      ? DOCUMENT_CSV
                 : o->markdown ? DOCUMENT_MARKDOWN
                               : DOCUMENT_TEXT,
                 out);
}

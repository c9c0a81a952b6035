/* Writes a document as CSV: its main tables, its first one, or every value with its name. */
#include "experiments/shell/document_impl.h"
#include "sim/base/csv_record.h"
#include "sim/base/json.h"

/* Prints 15 digits, or 17 if the number does not read back from 15, as in JSON. */
static void put_csv_number(double x, FILE *out)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.15g", x);
    if (strtod(text, NULL) != x) {
        (void)snprintf(text, sizeof text, "%.17g", x);
    }
    (void)fputs(text, out);
}

static void put_cell_csv(const struct frame_cell *v, FILE *out)
{
    if (v->kind == FRAME_VALUE_TEXT) {
        csv_write_text(out, v->text, false);
    } else if (v->kind == FRAME_VALUE_FLAG) {
        (void)fputs(v->number != 0.0 ? "true" : "false", out);
    } else if (v->kind == FRAME_VALUE_NUMBER) {
        put_csv_number(v->number, out);
    }
}

/* Puts the first values of an array's element, or their names, each with a comma after it. Leaves
 * out names that its frame has, too. */
static void put_lead(const struct document *of, const struct frame *f, bool names, FILE *out)
{
    for (size_t i = 0; of != NULL && i < of->n; i++) {
        const struct document_entry *e = &of->v[i];
        if (e->kind == DOCUMENT_IS_NOTE || e->kind == DOCUMENT_IS_HEADING) {
            continue;
        }
        if (e->kind != DOCUMENT_IS_VALUE && e->kind != DOCUMENT_IS_TREE) {
            return;
        }
        if (frame_find(f, e->name) >= 0) {
            continue;
        }
        if (names) {
            csv_write_text(out, e->name, false);
        } else if (e->kind == DOCUMENT_IS_VALUE) {
            put_cell_csv(&e->value, out);
        } else {
            OWNED char *text = json_text(e->tree, false);
            csv_write_text(out, text, false);
        }
        (void)fputc(',', out);
    }
}

static void put_head_csv(const struct frame *f, const struct document *of, FILE *out)
{
    const char *comma = "";
    put_lead(of, f, true, out);
    for (size_t i = 0; i < f->n_columns; i++) {
        if (!f->columns[i].only_text) {
            (void)fputs(comma, out);
            csv_write_text(out, f->columns[i].name, false);
            comma = ",";
        }
    }
    (void)fputc('\n', out);
}

static void put_rows_csv(const struct frame *f, const struct document *of, FILE *out)
{
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        const char *comma = "";
        put_lead(of, f, false, out);
        for (size_t i = 0; i < f->n_columns; i++) {
            if (!f->columns[i].only_text) {
                (void)fputs(comma, out);
                put_cell_csv(frame_cell_at(f, r, i), out);
                comma = ",";
            }
        }
        (void)fputc('\n', out);
    }
}

/* Puts the leaves of a tree with their dotted paths. */
static void put_leaves(const cJSON *at, const char *path, FILE *out)
{
    const cJSON *child;
    int i = 0;
    cJSON_ArrayForEach (child, at) {
        OWNED char *number = xformat("%d", i++);
        const char *name = child->string != NULL ? child->string : number;
        OWNED char *below = xformat("%s%s%s", path, path[0] != '\0' ? "." : "", name);
        put_leaves(child, below, out);
    }
    if (cJSON_IsObject(at) || cJSON_IsArray(at)) {
        return;
    }
    csv_write_text(out, path, false);
    (void)fputc(',', out);
    if (cJSON_IsNumber(at)) {
        put_csv_number(at->valuedouble, out);
    } else if (cJSON_IsString(at)) {
        csv_write_text(out, at->valuestring, false);
    } else if (cJSON_IsBool(at)) {
        (void)fputs(cJSON_IsTrue(at) ? "true" : "false", out);
    }
    (void)fputc('\n', out);
}

/* Puts the main tables of a document. of: the array element that d is, or is in; NULL: none. any:
 * a table was put before. Returns `any` after this one. */
static bool put_main_csv(const struct document *d, const struct document *of, bool any, FILE *out)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct frame *f = d->v[i].frame;
        const struct document *within = d->v[i].within;
        if (f != NULL && f->main) {
            if (!any) {
                put_head_csv(f, of, out);
            }
            put_rows_csv(f, of, out);
            any = true;
        } else if (within != NULL) {
            any = put_main_csv(within, d->is_array ? within : of, any, out);
        }
    }
    return any;
}

void document_put_csv(const struct document *d, FILE *out)
{
    if (put_main_csv(d, NULL, false, out)) {
        return;
    }
    const struct frame *f = document_first_frame(d);
    if (f != NULL) {
        put_head_csv(f, NULL, out);
        put_rows_csv(f, NULL, out);
        return;
    }
    SCOPED(json_drop) cJSON *tree = document_json(d);
    (void)fputs("name,value\n", out);
    put_leaves(tree, "", out);
}

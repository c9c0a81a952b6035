/* Makes documents. Their output formats are in forms.c. */
#include "experiments/shell/document.h"

#include <cjson/cJSON.h>

#include "experiments/shell/document_impl.h"

struct document *document_new(void)
{
    return xkept(xcalloc(1, sizeof(struct document)));
}

static struct document_entry *add(struct document *d, enum document_kind kind, const char *name)
{
    d->v = xgrow(d->v, d->n, sizeof *d->v);
    struct document_entry *e = &d->v[d->n++];
    *e = (struct document_entry){.kind = kind, .name = name != NULL ? xstrdup(name) : NULL};
    return e;
}

void document_values(struct document *d, const struct document_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(d, DOCUMENT_IS_VALUE, v[i].name)->value = frame_cell_of(v[i].value);
    }
}

void document_tree(struct document *d, const char *name, const struct cJSON *tree)
{
    add(d, DOCUMENT_IS_TREE, name)->tree = cJSON_Duplicate(tree, true);
}

void document_members(struct document *d, const struct cJSON *object)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, object) {
        document_tree(d, member->string, member);
    }
}

void document_note(struct document *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(d, DOCUMENT_IS_NOTE, NULL)->text = text_visible(xvformat(fmt, args), "\n");
    va_end(args);
}

void document_heading(struct document *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(d, DOCUMENT_IS_HEADING, NULL)->text = xvformat(fmt, args);
    va_end(args);
}

const char *document_format(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = xkeep(xvformat(fmt, args));
    va_end(args);
    return text;
}

const char *document_short(double x)
{
    char buf[TEXT_SHORT_BYTES];
    return xkeep(xstrdup(text_short(buf, x)));
}

struct document *document_within(struct document *d, const char *name)
{
    struct document *within = document_new();
    add(d, DOCUMENT_IS_DOCUMENT, name)->within = within;
    return within;
}

struct document *document_array(struct document *d, const char *name)
{
    struct document *within = document_within(d, name);
    within->is_array = true;
    return within;
}

/* ---- frames ---- */

struct frame *document_frame(struct document *d, const char *name, uint32_t keys)
{
    struct frame *f = frame_new();
    f->keys = keys;
    add(d, DOCUMENT_IS_FRAME, name)->frame = f;
    return f;
}

void document_take_frame(struct document *d, const char *name, struct frame *f)
{
    add(d, DOCUMENT_IS_FRAME, name)->frame = f;
}

struct frame *document_frame_of(struct document *d, const char *name, uint32_t keys,
                                const struct frame_column *c, size_t n)
{
    struct frame *f = document_frame(d, name, keys);
    frame_columns(f, c, n);
    return f;
}

struct frame *document_data(struct document *d, const char *name, uint32_t keys, const char *names)
{
    struct frame *f = document_frame(d, name, keys);
    frame_data_columns(f, names);
    return f;
}

struct frame *document_table(struct document *d, int indent, const char *align, ...)
{
    struct frame *f = document_frame(d, NULL, 0);
    va_list titles;
    va_start(titles, align);
    const char *title = va_arg(titles, const char *);
    bool titled = title != NULL;
    for (const char *a = align; *a != '\0'; a++) {
        frame_columns(
            f, &(struct frame_column){.name = "", .title = titled ? title : "", .kind = FRAME_ANY},
            1);
        f->right[f->n_columns - 1] = *a == 'r';
        title = titled && a[1] != '\0' ? va_arg(titles, const char *) : NULL;
    }
    va_end(titles);
    f->indent = indent;
    return f;
}

struct frame *frame_indent(struct frame *f, int spaces)
{
    f->indent = spaces;
    return f;
}

void frame_caption(struct frame *f, const char *text)
{
    f->caption = text;
}

void frame_aside(struct frame *f)
{
    f->aside = true;
}

void frame_main(struct frame *f)
{
    f->main = true;
}

void frame_hide_row(struct frame *f)
{
    uint32_t n = frame_rows(f);
    f->hidden = xrealloc(f->hidden, n * sizeof *f->hidden);
    for (; f->n_hidden < n; f->n_hidden++) {
        f->hidden[f->n_hidden] = f->n_hidden + 1 == n;
    }
}

const struct frame *document_first_frame(const struct document *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct frame *f = d->v[i].name != NULL ? d->v[i].frame : NULL;
        f = f != NULL && f->aside ? NULL : f;
        f = f == NULL && d->v[i].within != NULL ? document_first_frame(d->v[i].within) : f;
        if (f != NULL) {
            return f;
        }
    }
    return NULL;
}

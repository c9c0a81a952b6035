/* Inputs of figures, and the data for gnuplot. */
#include "plots/figure.h"

#include <gsl/gsl_sort.h>

#include "plots/about.h"
#include "plots/palette.h"
#include "sim/base/memory.h"

const char *const *figure_metrics(const struct figure_request *q, const struct figure_data *d,
                                  size_t *n)
{
    const char *const *own = d->figure->metrics;
    *n = q->n_metrics;
    while (q->n_metrics == 0 && own[*n] != NULL) {
        ++*n;
    }
    return q->n_metrics > 0 ? q->metrics : own;
}

/* Uses the policy in the description, else the file's name. */
static void put_label(struct figure_input *in)
{
    const char *policy = about_fact(in->about, "policy");
    const char *base = text_base(in->path);
    const char *dot = strrchr(base, '.');
    int len = dot == NULL || dot == base ? (int)strlen(base) : (int)(dot - base);
    in->label = xkeep(policy[0] != '\0' ? xstrdup(policy) : xformat("%.*s", len, base));
}

static struct figure_input *next_input(struct figure_request *r, const char *text, struct err *e)
{
    if (r->n_inputs == FIGURE_MAX_INPUTS) {
        return err_null(e, "%s: more than %d inputs", text, FIGURE_MAX_INPUTS);
    }
    return &r->inputs[r->n_inputs++];
}

int figure_input_add(struct figure_request *r, const char *text, struct err *e)
{
    struct figure_input *in = next_input(r, text, e);
    if (in == NULL) {
        return -EINVAL;
    }
    size_t before = e->n;
    const char *eq = strchr(text, '=');
    const char *slash = strchr(text, '/');
    /* LABEL=FILE; an '=' after a slash is part of the path. */
    bool labelled = eq != NULL && eq > text && (slash == NULL || eq < slash);
    in->path = labelled ? eq + 1 : text;
    in->about = xkept(about_read(in->path, &in->tree, e));
    (void)xkept(in->tree);
    if (labelled) {
        in->label = xkeep(xformat("%.*s", (int)(eq - text), text));
    } else {
        put_label(in);
    }
    return e->n > before ? -EINVAL : 0;
}

int figure_input_take(struct figure_request *r, const char *name, cJSON *tree, struct err *e)
{
    struct figure_input *in = next_input(r, name, e);
    if (in == NULL) {
        cJSON_Delete(tree);
        return -EINVAL;
    }
    in->path = name;
    in->tree = xkept(tree);
    in->about = xkept(about_of(tree));
    put_label(in);
    return 0;
}

struct frame *figure_rows(const struct figure_input *in, const char *at, struct err *e)
{
    if (in->tree == NULL) {
        return frame_read_csv(in->path, e);
    }
    struct frame *f = frame_of_json(in->tree, at, in->path);
    if (frame_rows(f) == 0) {
        (void)err_add(e, "%s: no %s; `xpusim plot list` says what figures read", in->path, at);
        frame_free(f);
        return NULL;
    }
    return f;
}

/* ---- data ---- */

void figure_data_init(struct figure_data *d)
{
    *d = (struct figure_data){0};
    d->tsv = memory_stream(&d->tsv_text, &d->tsv_size);
    d->vars = memory_stream(&d->vars_text, &d->vars_size);
}

void figure_data_fini(struct figure_data *d)
{
    (void)fclose(d->tsv);
    (void)fclose(d->vars);
    free(d->tsv_text);
    free(d->vars_text);
    frame_free(d->values);
    *d = (struct figure_data){0};
}

struct frame *figure_values(struct figure_data *d, const struct frame_column *c, size_t n)
{
    SIM_ASSERT(d->values == NULL);
    d->values = frame_new();
    frame_columns(d->values, c, n);
    return d->values;
}

/* Replaces characters that would break a row: control characters, a quote, a comment sign. */
static void put_clean(FILE *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        (void)fputc(c < ' ' || c == '"' || c == '#' ? ' ' : c, out);
    }
}

void figure_block(struct figure_data *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    OWNED char *name = xvformat(fmt, ap);
    va_end(ap);
    /* Two empty lines end a block for gnuplot (`index`). A block's first line is its name, for
     * readers of the file. */
    (void)fputs(d->blocks > 0 ? "\n\n" : "", d->tsv);
    put_clean(d->tsv, name[0] == '\0' ? "-" : name);
    (void)fputc('\n', d->tsv);
    d->blocks++;
}

void figure_cells(struct figure_data *d, const struct frame_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fputs(d->in_row ? "\t" : "", d->tsv);
        d->in_row = true;
        if (v[i].text != NULL) {
            put_clean(d->tsv, v[i].text[0] == '\0' ? "-" : v[i].text);
        } else if (isfinite(v[i].number)) {
            (void)fprintf(d->tsv, "%.12g", v[i].number);
        } else {
            (void)fputs("NaN", d->tsv);
        }
    }
}

void figure_row_end(struct figure_data *d)
{
    (void)fputc('\n', d->tsv);
    d->in_row = false;
}

void figure_var(struct figure_data *d, const char *name, double v)
{
    if (isfinite(v)) {
        (void)fprintf(d->vars, "%s = %.12g\n", name, v);
    } else { /* gnuplot would take "nan" as a variable's name */
        (void)fprintf(d->vars, "%s = NaN\n", name);
    }
}

void figure_var_text(struct figure_data *d, const char *name, const char *text)
{
    (void)fprintf(d->vars, "%s = '", name);
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        /* In a gnuplot string, a single quote is written twice. A line break would end the string
         * and start a command, so a space replaces it. */
        (void)fprintf(d->vars, "%s%c", c == '\'' ? "'" : "", c < ' ' ? ' ' : c);
    }
    (void)fputs("'\n", d->vars);
}

void figure_texts_put(struct texts *l, const char *name, struct figure_data *d)
{
    /* One element more, because gnuplot has no empty arrays. */
    (void)fprintf(d->vars, "array %s[%zu]\n", name, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        OWNED char *at = xformat("%s[%zu]", name, i + 1);
        figure_var_text(d, at, l->v[i]);
    }
    (void)fprintf(d->vars, "n_%s = %zu\n", name, l->n);
    texts_fini(l);
}

#define BARS_OUTLIER 4.0 /* times the next shorter bar */

double figure_bars_end(const double *mean, const double *high, size_t n)
{
    OWNED double *v = xcalloc(n + 1, sizeof *v);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(mean[i])) {
            v[m++] = mean[i];
        }
    }
    gsl_sort(v, 1, m);
    double most = m > 0 ? v[m - 1] : 0.0; /* longest bar that is drawn whole */
    /* Start in the middle: at least half of the bars are drawn whole, and a cut bar is far above
     * the next shorter one, not merely long. */
    for (size_t kept = (m + 1) / 2; kept < m; kept++) {
        if (v[kept - 1] > 0.0 && v[kept] > BARS_OUTLIER * v[kept - 1]) {
            most = v[kept - 1];
            break;
        }
    }
    double end = most;
    for (size_t i = 0; i < n; i++) {
        bool whole = isfinite(mean[i]) && mean[i] <= most;
        /* Limits the room for intervals to that of the bars, so that a wide one does not flatten
         * them. */
        end = whole && isfinite(high[i]) ? fmax(end, fmin(high[i], 2.0 * most)) : end;
    }
    return most < (m > 0 ? end : 0.0) ? end : 1.05 * most;
}

void figure_tics_put(double *v, size_t n, struct figure_data *d)
{
    enum { MOST = 9 };
    char text[MOST * 32] = "";
    size_t at = 0;
    size_t different = 0;
    gsl_sort(v, 1, n);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && v[i] == v[i - 1]) {
            continue;
        }
        if (different++ == MOST) {
            figure_var_text(d, "xvalues", "");
            return;
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.10g", at > 0 ? " " : "", v[i]);
    }
    figure_var_text(d, "xvalues", text);
}

void figure_slots_put(const char *const *names, size_t n, struct figure_data *d)
{
    size_t longest = 0;
    (void)fprintf(d->vars, "array slot[%zu]\n", n + 1);
    for (size_t i = 0; i < n; i++) {
        longest = strlen(names[i]) > longest ? strlen(names[i]) : longest;
        (void)fprintf(d->vars, "slot[%zu] = %u\n", i + 1, palette_slot(names[i]));
    }
    figure_var(d, "longest", (double)longest); /* for the legend */
}

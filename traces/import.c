/* Imports request traces of other programs. A format is one table row in import_csv.c or
 * import_json.c. */
#include "traces/import.h"

#include "sim/base/hash.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "sim/base/words.h"
#include "traces/import_json.h"

#define MAX_FORMATS 24

static const struct import_format *const tables[] = {import_csv_formats, import_json_formats};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *trace_formats(void)
{
    static const char *names[MAX_FORMATS + 1];
    size_t n = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const struct import_format *f = tables[t]; f->name != NULL && n < MAX_FORMATS; f++) {
            names[n++] = f->name;
        }
    }
    qsort(names, n, sizeof *names, by_name);
    names[n] = NULL;
    return names;
}

static const struct import_format *named(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const struct import_format *f = tables[t]; f->name != NULL; f++) {
            if (strcmp(f->name, name) == 0) {
                return f;
            }
        }
    }
    return NULL;
}

/* Recognises a format by the head of a file: a line of CSV, perhaps after comments, or a JSON
 * value. A longer document is cut, so only its first keys are seen. */
static const struct import_format *recognised(const char *head)
{
    const char *text = head + strspn(head, " \t\r\n");
    while (*text == '#') {
        text += strcspn(text, "\n");
        text += strspn(text, " \t\r\n");
    }
    OWNED char *line = xstrdup(text);
    line[strcspn(line, "\r\n")] = '\0';
    SCOPED(json_drop)
    cJSON *first = *text == '{' || *text == '[' ? cJSON_ParseWithOpts(line, NULL, true) : NULL;
    const struct import_format *found = NULL;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const struct import_format *f = tables[t]; f->name != NULL && found == NULL; f++) {
            found = f->is(f, first, text) ? f : NULL;
        }
    }
    return found;
}

const char *trace_format_of(const char *path)
{
    SCOPED(err_fini) struct err none = ERR_INIT;
    OWNED char *head = xmalloc(INPUT_HEAD_BYTES);
    SCOPED(input_drop) FILE *in = input_open_any(path, head, &none);
    const struct import_format *f = in != NULL ? recognised(head) : NULL;
    return f != NULL ? f->name : NULL;
}

/* The format for reading: `asked`, unless the file clearly has another one. */
static const struct import_format *choose(const char *asked, const char *head, const char *path,
                                          struct err *e)
{
    OWNED char *names = words_list(trace_formats(), ", ");
    /* Checked even if a format was given: formats share columns, so a wrong one could be read
     * without an error. */
    const struct import_format *seen = recognised(head);
    const struct import_format *f = asked == NULL ? seen : named(asked);
    if (asked != NULL && f == NULL) {
        (void)err_add(e, "format \"%s\": known ones are %s", asked, names);
    } else if (f == NULL && head[strspn(head, " \t\r\n")] == '\0') {
        (void)err_add(e, "%s: empty", path);
    } else if (f == NULL && input_utf16_hint(head, strlen(head))[0] != '\0') {
        (void)err_add(e, "%s: not a text file%s", path, input_utf16_hint(head, 2));
    } else if (f == NULL && strncmp(head, "# xpusim-trace", 14) == 0) {
        (void)err_add(e, "%s: is an xpusim trace already: --trace takes it as it is", path);
    } else if (f == NULL) {
        (void)err_add(
            e,
            "%s: not a format that is known (%s); a CSV with the columns arrival_s, "
            "input_tokens and output_tokens is read as plain (--format plain says what it "
            "lacks)",
            path, names);
    } else if (seen != NULL && seen != f) {
        (void)err_add(e, "%s: not %s: it begins as %s does", path, f->name, seen->name);
        f = NULL;
    }
    return f;
}

uint64_t import_key(const char *name)
{
    uint64_t key = hash_string(HASH_INIT, name);
    /* 0 means no key. */
    return key != 0 ? key : 1;
}

void import_add(struct import *im, const struct import_row *row)
{
    /* A request without an answer failed at its source. Its intended length is unknown. */
    im->lost.failed += row->output == 0;
    im->lost.promptless += row->output > 0 && row->input == 0;
    if (row->output == 0 || row->input == 0) {
        return;
    }
    LIST_ADD(im->rows, im->n, *row);
    im->lost.input_tokens += row->input;
}

void import_add_node(struct import *im, const struct import_row *row,
                     const struct import_node *node)
{
    im->nodes = xgrow(im->nodes, im->n, sizeof *im->nodes);
    im->nodes[im->n] = *node;
    im->rows = xgrow(im->rows, im->n, sizeof *im->rows);
    im->rows[im->n] = *row;
    im->lost.empty += row->output == 0;
    im->rows[im->n].output += row->output == 0;
    im->lost.input_tokens += row->input;
    im->n++;
}

void import_blocks(struct import *im, const cJSON *ids, struct import_row *row,
                   const struct import_place *p)
{
    row->block = im->n_blocks;
    bool known = ids == NULL || cJSON_IsNull(ids) || cJSON_IsArray(ids);
    const cJSON *id;
    cJSON_ArrayForEach (id, ids) {
        known = known && (cJSON_IsNumber(id) || cJSON_IsString(id));
        im->blocks = xgrow(im->blocks, im->n_blocks, sizeof *im->blocks);
        /* a text's key, as a double can hold it */
        im->blocks[im->n_blocks++] =
            cJSON_IsString(id) ? (double)(import_key(id->valuestring) >> 11) : id->valuedouble;
    }
    row->n_blocks = im->n_blocks - row->block;
    if (!known) {
        import_refuse(p, "hash_ids", "must be a list of numbers or texts");
    }
}

int64_t import_begin(struct import *im, uint64_t index, const struct import_place *p)
{
    struct rng r;
    rng_init(&r, rng_key(im->options->seed, RNG_ARRIVAL_REACTIVE, index, 0));
    im->clock_s += rng_exponential(&r, 60.0 / im->options->rate_per_min);
    if (im->clock_s > IMPORT_MAX_S) {
        (void)err_add(p->e, "%s:%s%llu: --rate-per-min: its session begins after %g s", p->path,
                      p->what, p->number, IMPORT_MAX_S);
        return 0;
    }
    return units_ns_from_s(im->clock_s);
}

/* The options that were given but had no effect, "--share, --history"; or NULL. */
static const char *without_effect(const struct import *im)
{
    const struct trace_import_options *o = im->options;
    bool chains = im->nodes == NULL; /* a graph has its own links and start times */
    bool blocks = chains && im->n_blocks > 0;
    const struct {
        bool given, used;
        const char *name;
    } all[] = {
        {o->link, blocks, "--link"},
        {o->share, blocks, "--share"},
        {o->history, chains && im->n_blocks == 0 && im->lost.turns > 0, "--history"},
        {o->block_tokens > 0, blocks && im->block_tokens == o->block_tokens, "--block-tokens"},
        {o->rate_per_min > 0.0, im->lost.no_times, "--rate-per-min"},
    };
    struct text t = {0};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].given && !all[i].used) {
            text_item(&t, ", ", all[i].name);
        }
    }
    return t.n > 0 ? xkeep(text_end(&t)) : NULL;
}

int trace_import(const struct trace_import_options *o, const char *path, struct trace *out,
                 struct trace_import_losses *lost, struct err *e)
{
    *out = (struct trace){0};
    size_t before = e->n;
    struct import im = {.options = o, .history = o->history};
    OWNED char *head = xmalloc(INPUT_HEAD_BYTES);
    FILE *in = input_open_any(path, head, e);
    if (in != NULL) {
        const struct import_format *f = choose(o->format, head, path, e);
        if (f != NULL) {
            im.lost.format = f->name;
            f->read(&im, f, in, path, e);
        } else {
            (void)fclose(in);
        }
    }
    size_t left_out = im.lost.failed + im.lost.promptless + im.lost.uncounted;
    if (e->n == before && im.n == 0 && left_out > 0) {
        (void)err_add(
            e, "%s: no requests: all %zu failed at their source or lack prompt or output tokens",
            path, left_out);
    }
    int rc = -EINVAL;
    if (e->n == before) {
        rc =
            im.nodes != NULL ? import_graph(&im, path, out, e) : import_sessions(&im, path, out, e);
    }
    im.lost.without_effect = without_effect(&im);
    for (size_t i = 0; im.nodes != NULL && i < im.n; i++) {
        free(im.nodes[i].parents);
    }
    free(im.nodes);
    free(im.rows);
    free(im.blocks);
    map_fini(&im.names);
    im.lost.rows = im.n;
    if (lost != NULL) {
        *lost = im.lost;
    }
    return rc;
}

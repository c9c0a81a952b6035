#include "experiments/commands/list.h"

#include <unistd.h>

#include "experiments/run/config_files.h"
#include "experiments/run/folder.h"
#include "experiments/run/interval.h"
#include "experiments/run/models.h"
#include "experiments/validation/catalog.h"
#include "hwmodels/soc.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "traces/traces.h"

#define SOURCE_WIDTH 60

static int each_file(const char *folder, struct frame *f, struct err *e,
                     void (*put)(void *f, const char *path, const char *name, struct err *e))
{
    return folder_each(datadir_path(folder), put, f, e);
}

/* ---- the numbers of one file ---- */

static const struct frame_column number_columns[] = {
    {.name = "path", .title = "number", .kind = FRAME_TEXT},
    {.name = "value", .format = "%.6g"},
    {.name = "unit", .title = "", .kind = FRAME_TEXT},
    {.name = "low"},
    {.name = "high"},
    {.name = "kind", .kind = FRAME_TEXT},
    {.name = "", .title = "source", .kind = FRAME_TEXT, .only_text = true},
    {.name = "source", .kind = FRAME_TEXT, .only_data = true},
};

static struct frame_value number_of(const cJSON *o, const char *key)
{
    const cJSON *c = json_member(o, key);
    return cJSON_IsNumber(c) ? FRAME_VALUE(c->valuedouble) : FRAME_NONE;
}

static void put_quantity(struct frame *f, const char *path, const cJSON *q)
{
    const char *source = json_string(q, "source");
    const char *brief = strlen(source) <= SOURCE_WIDTH
                            ? source
                            : document_format("%.*s...", SOURCE_WIDTH - 3, source);
    FRAME_ROW(f, path, number_of(q, "value"), document_format("%s", json_string(q, "unit")),
              number_of(q, "low"), number_of(q, "high"),
              document_format("%s", json_string(q, "kind")), brief, document_format("%s", source));
}

/* Puts the quantities below node, depth first. A quantity has a value and a unit. */
static void put_numbers(struct document *d, struct frame *f, const char *path, const cJSON *node)
{
    int index = 0;
    const cJSON *c;
    cJSON_ArrayForEach (c, node) {
        OWNED char *label = json_label(c);
        const char *below = document_format("%s.%s", path,
                                            c->string != NULL ? c->string
                                            : label != NULL   ? label
                                                              : document_format("%d", index));
        bool quantity = cJSON_HasObjectItem(c, "value") && cJSON_HasObjectItem(c, "unit");
        /* about the file and its fit, not the machine */
        bool aside = c->string != NULL &&
                     (strcmp(c->string, "fit") == 0 || strcmp(c->string, "format") == 0);
        if (quantity) {
            put_quantity(f, below, c);
        } else if (cJSON_IsNumber(c) && !aside) {
            FRAME_ROW(f, below, c->valuedouble, "", FRAME_NONE, FRAME_NONE, "", "", "");
        } else if (!aside) {
            put_numbers(d, f, below, c);
        }
        index++;
    }
}

/* Notes the expected errors of devices whose numbers are a similar chip's. */
static int put_transfers(const struct soc *soc, struct document *d, struct err *e)
{
    if (soc->like[0] == '\0') {
        return 0;
    }
    const struct conformal *t = interval_table(e);
    for (uint32_t i = 0; t != NULL && i < soc->machine.n_devices; i++) {
        if (interval_is_transfer(soc, (uint8_t)i)) {
            OWNED char *text = interval_transfer_text(t, soc, (uint8_t)i);
            document_note(d, "%s", text);
        }
    }
    return t != NULL ? 0 : -EINVAL;
}

char *list_llm_text(const struct llm *m)
{
    return xformat("%.4g weights a token, %.3g GB with embedding, %.4g kB of KV a token; %u-bit "
                   "weights of %g bytes",
                   m->body_weights + m->head_weights, m->weight_bytes / 1e9,
                   m->kv_bytes_per_token / 1e3, m->weight_bits, m->body_bytes_per_weight);
}

/* Lists the numbers of a file, named as for --soc or --llm. */
static int list_numbers(const char *what, const char *name, struct document *d, struct err *e)
{
    const bool llm = strcmp(what, "llm") == 0;
    struct llm model;
    OWNED struct soc *soc = xmalloc(sizeof *soc);
    SCOPED(json_drop) cJSON *tree = cJSON_CreateObject();
    OWNED char *path = llm ? models_add_files(tree, name, e) : xstrdup(soc_path(name));
    if (!llm) {
        config_add_file(tree, what, name, path, json_read_file, e);
    } else if (strchr(name, ',') != NULL) {
        return err_add(e, "list llm %s: one model at a time", name);
    }
    const cJSON *root = json_member(tree, what);
    /* Refuses a file that a run would refuse. */
    if (root == NULL || e->n > 0 ||
        (llm ? llm_parse(root, path, &model, e) : soc_parse(root, path, soc, e)) != 0) {
        return -EINVAL;
    }
    const char *about = json_string(root, "note");
    about = about[0] != '\0' ? about : json_string(root, "source");
    document_note(d, "%s: %s%s", json_string(root, "name"), about, llm ? "" : "\n");
    if (llm) {
        OWNED char *sums = list_llm_text(&model);
        document_note(d, "%s\n", sums);
    } else if (put_transfers(soc, d, e) != 0) {
        return -EINVAL;
    }
    struct frame *f = DOCUMENT_FRAME(d, "", 0, number_columns);
    put_numbers(d, f, what, root);
    return 0;
}

/* ---- machines and models ---- */

/* Adds the machines of a table of points. Only these tables of the folder have a column `metric`.
 */
static void add_points(void *ctx, const char *path, const char *name UNUSED, struct err *e)
{
    struct texts *socs = ctx;
    SCOPED(frame_drop) struct frame *f = frame_read_csv(path, e);
    for (uint32_t i = 0; f != NULL && frame_find(f, "metric") >= 0 && i < frame_rows(f); i++) {
        texts_add(socs, frame_text(f, i, "soc"));
    }
}

struct soc_list {
    struct frame *f;
    struct texts rows; /* machines of all rows in hwmodels/points */
};

static void put_soc(void *ctx, const char *path, const char *name, struct err *e)
{
    const struct soc_list *l = ctx;
    OWNED struct soc *soc = calloc(1, sizeof *soc);
    SCOPED(json_drop) cJSON *root = soc == NULL ? NULL : json_read_file(path, e);
    if (root != NULL && soc_parse(root, path, soc, e) == 0) {
        const struct machine *m = &soc->machine;
        SCOPED(text_fini) struct text devices = {0};
        double measured = 0.0;
        for (uint32_t i = 0; i < m->n_devices; i++) {
            text_item(&devices, ", ", m->devices[i].name);
            text_format(&devices, " %.3g", soc->devices[i].peak_flop_per_s / 1e12);
        }
        for (size_t i = 0; i < l->rows.n; i++) {
            measured += catalog_same(l->rows.v[i], m->name);
        }
        FRAME_ROW(l->f, name, text_end(&devices), m->ddr_peak_bytes_per_s / 1e9,
                  m->memory_bytes / 1e9, measured, soc->note);
    }
}

int list_socs(const char *name, struct document *d, struct err *e)
{
    static const struct frame_column columns[] = {
        {.name = "name", .kind = FRAME_TEXT},
        {.name = "devices", .title = "devices, peak TFLOP/s", .kind = FRAME_TEXT},
        {.name = "ddr_gb_per_s", .title = "DDR, GB/s", .unit = "GB/s"},
        {.name = "memory_gb", .title = "GB", .unit = "GB"},
        {.name = "measured_rows", .title = "measured rows", .unit = "1"},
        {.name = "description", .title = "", .kind = FRAME_TEXT, .only_data = true},
    };
    if (name != NULL) {
        return list_numbers("soc", name, d, e);
    }
    struct soc_list l = {.f = DOCUMENT_FRAME(d, "", 0, columns)};
    int rc = folder_each(datadir_path("hwmodels/points"), add_points, &l.rows, e);
    rc = rc != 0 ? rc : folder_each(datadir_path("hwmodels/soc"), put_soc, &l, e);
    texts_fini(&l.rows);
    document_note(d, "\nmeasured rows: published times of the machine in hwmodels/points. `xpusim "
                     "list soc NAME` shows every number with its source, and `xpusim validate "
                     "--points TABLE --soc NAME` how far the rows are off.");
    return rc;
}

static void put_llm(void *f, const char *path, const char *name, struct err *e)
{
    SCOPED(json_drop) cJSON *root = json_read_file(path, e);
    struct llm m;
    if (root != NULL && llm_parse(root, path, &m, e) == 0) {
        FRAME_ROW(f, name, (m.body_weights + m.head_weights) / 1e9, (double)m.n_layers,
                  (double)m.hidden, (double)m.weight_bits, m.weight_bytes / 1e9,
                  m.kv_bytes_per_token / 1e3, json_string(root, "source"));
    }
}

int list_llms(const char *name, struct document *d, struct err *e)
{
    static const struct frame_column columns[] = {
        {.name = "name", .kind = FRAME_TEXT},
        {.name = "weights_1e9", .title = "1e9 weights a token", .unit = "1e9"},
        {.name = "layers"},
        {.name = "hidden"},
        {.name = "weight_bits", .title = "bits"},
        {.name = "weight_gb", .title = "GB", .unit = "GB"},
        {.name = "kv_kb_per_token", .title = "KV, kB a token", .unit = "kB"},
        {.name = "description", .title = "", .kind = FRAME_TEXT, .only_data = true},
    };
    if (name != NULL) {
        return list_numbers("llm", name, d, e);
    }
    return each_file("hwmodels/llm", DOCUMENT_FRAME(d, "", 0, columns), e, put_llm);
}

/* ---- data sets ---- */

/* The description of a data set: the comments after its format line. */
static char *describe_csv(const char *path)
{
    struct text about = {0};
    struct input_line line = {0};
    SCOPED(err_fini)
    struct err none = ERR_INIT; /* the reader of the rows reports errors */
    SCOPED(input_drop) FILE *f = input_try(path);
    while (f != NULL && input_next(f, path, &line, &none) > 0 && line.text[0] == '#') {
        line.text[strcspn(line.text, "\r\n")] = '\0';
        const char *text = line.text + strspn(line.text, "# ");
        if (strncmp(text, "xpusim-", 7) != 0) {
            text_item(&about, "; ", text);
        }
    }
    free(line.text);
    return text_end(&about);
}

/* The licence in "...; licence MIT; measured" or "licence of this file: CC0; ...". */
static char *licence_of(const char *about)
{
    const char *at = strstr(about, "licence ");
    at = at == NULL ? "" : at + strlen("licence ");
    at += strncmp(at, "of this file: ", 14) == 0 ? 14 : 0;
    return xformat("%.*s", (int)strcspn(at, ";"), at);
}

static void put_dataset(void *f, const char *path, const char *name, struct err *e UNUSED)
{
    OWNED char *about = describe_csv(path);
    OWNED char *licence = licence_of(about);
    struct dataset data;
    SCOPED(err_fini)
    struct err none = ERR_INIT; /* recorded arrivals may lack lengths */
    if (dataset_load(path, &data, &none) == 0) {
        double input = 0.0;
        double output = 0.0;
        for (size_t i = 0; i < data.n; i++) {
            input += data.rows[i].input_tokens;
            output += data.rows[i].output_tokens;
        }
        FRAME_ROW(f, name, (double)data.n, FRAME_IF(data.n_sessions > 0, (double)data.n_sessions),
                  input / (double)data.n, output / (double)data.n, licence, about);
        dataset_fini(&data);
    } else {
        FRAME_ROW(f, name, FRAME_NONE, FRAME_ABSENT, FRAME_NONE, FRAME_NONE, licence, about);
    }
}

int list_datasets(const char *name, struct document *d, struct err *e)
{
    static const struct frame_column columns[] = {
        {.name = "name", .kind = FRAME_TEXT},
        {.name = "rows", .format = "%.0f"},
        {.name = "sessions", .format = "%.0f", .missing = ""},
        {.name = "input_tokens_mean", .title = "mean input", .format = "%.0f"},
        {.name = "output_tokens_mean", .title = "mean output", .format = "%.0f"},
        {.name = "licence", .kind = FRAME_TEXT},
        {.name = "description", .title = "", .kind = FRAME_TEXT, .only_data = true},
    };
    if (name != NULL) {
        OWNED char *relative = xformat("traces/datasets/%s.csv", name);
        const char *path = datadir_path(relative);
        OWNED char *about = describe_csv(path);
        if (about[0] == '\0') {
            (void)err_add(e, "no data set is called %s; `xpusim list dataset` shows them", name);
        } else {
            document_note(d, "%s: %s\n", name, about);
            put_dataset(DOCUMENT_FRAME(d, "", 0, columns), path, name, e);
        }
        return e->n > 0 ? -EINVAL : 0;
    }
    return each_file("traces/datasets", DOCUMENT_FRAME(d, "", 0, columns), e, put_dataset);
}

/* ---- workloads ---- */

static void put_workload(void *f, const char *path, const char *name, struct err *e)
{
    SCOPED(json_drop) cJSON *root = json_read_file(path, e);
    SCOPED(trace_fini) struct trace t = {0};
    if (root == NULL || trace_generate(name, 1, 1.0, &t, e) != 0) {
        return;
    }
    double of_class[REQUEST_CLASS_COUNT] = {0};
    for (size_t i = 0; i < t.n; i++) {
        of_class[t.rows[i].cls]++;
    }
    struct trace_graph_stats graph = {0};
    SCOPED(text_fini) struct text models = {0};
    if (t.graph != NULL) {
        trace_graph_stats(&t, &graph);
        for (uint32_t i = 0; i < t.graph->n_models; i++) {
            text_item(&models, ", ", t.graph->models[i].name);
        }
    }
    FRAME_ROW(f, name, json_number(root, "duration_s"), of_class[REQUEST_CLASS_REACTIVE],
              of_class[REQUEST_CLASS_PROACTIVE],
              graph.jobs > 0 ? (double)graph.jobs : (double)t.n_first, text_end(&models),
              json_string(root, "description"));
}

int list_workloads(const char *name, struct document *d, struct err *e)
{
    static const struct frame_column columns[] = {
        {.name = "name", .kind = FRAME_TEXT},
        {.name = "duration_s", .title = "s", .format = "%.0f"},
        {.name = "reactive_requests", .title = "reactive", .format = "%.0f"},
        {.name = "proactive_requests", .title = "proactive", .format = "%.0f"},
        {.name = "jobs", .format = "%.0f"},
        {.name = "models", .kind = FRAME_TEXT},
        {.name = "description", .title = "", .kind = FRAME_TEXT, .only_data = true},
    };
    struct frame *f = DOCUMENT_FRAME(d, "", 0, columns);
    if (name == NULL) {
        int rc = each_file("traces/workloads", f, e, put_workload);
        document_note(d,
                      "requests and jobs with seed 1; `xpusim list workload NAME` says what it is, "
                      "and `xpusim trace gen --help` has mixed, w1 and tasks");
        return rc;
    }
    const char *path = datadir_named(name, "traces/workloads", ".json");
    if (access(path, R_OK) != 0) {
        return err_add(e, "no workload file is called %s; `xpusim list workload` shows them", name);
    }
    SCOPED(json_drop) cJSON *root = json_read_file(path, e);
    if (root != NULL) {
        document_note(d, "%s: %s\n", name, json_string(root, "description"));
        put_workload(f, path, name, e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

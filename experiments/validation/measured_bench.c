/* Files of measured rows: points, and reports of llm_bench of openvino.genai. */
#include "experiments/validation/catalog.h"
#include "experiments/validation/measured_impl.h"
#include "sim/base/csvfile.h"
#include "sim/base/input.h"
#include "sim/base/json.h"

#define MAX_TOKENS 1e8
#define MAX_MS 1e9

/* ---- points ---- */

static int read_points(struct measured_sink *s)
{
    struct points points;
    if (points_read(s->path, &points, s->e) != 0) {
        return -EINVAL;
    }
    size_t n = 0;
    for (size_t i = 0; i < points.n; i++) {
        if (catalog_same(points.v[i].soc, s->keys->soc)) {
            measured_add(s->out, s->keys, &points.v[i],
                         xkeep(xformat("%s:%llu", s->path, (unsigned long long)points.v[i].line)));
            n++;
        }
    }
    return n > 0 ? 0 : err_add(s->e, "%s: no row is about %s", s->path, s->keys->soc);
}

/* ---- llm_bench ---- */

/* One prompt of one model. */
struct prompt {
    double index, tokens;
    double first_ms, next_ms; /* sums over iterations; an answer of one token has no next */
    size_t n, n_next;
    const char *place;
};

struct prompts {
    struct prompt *v; /* owned */
    size_t n;
    struct point row; /* values common to all */
};

/* Adds an iteration. The first is a warm-up, and only counts if there is no other. */
static void add_iteration(struct prompts *p, double iteration, const struct prompt *x)
{
    size_t i = 0;
    while (i < p->n && (p->v[i].index != x->index || p->v[i].tokens != x->tokens)) {
        i++;
    }
    if (i == p->n) {
        KEPT_ADD(p->v, p->n, *x);
        p->v[i].n = iteration > 0.0; /* the next iteration replaces a warm-up */
    } else if (p->v[i].n == 0) {
        p->v[i] = *x;
        p->v[i].n = 1;
    } else if (iteration > 0.0) {
        p->v[i].first_ms += x->first_ms;
        p->v[i].next_ms += x->next_ms;
        p->v[i].n_next += x->n_next;
        p->v[i].n++;
    }
}

static void put_prompts(struct measured_sink *s, struct prompts *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct prompt *x = &p->v[i];
        double n = x->n > 0 ? (double)x->n : 1.0;
        /* The size of an input is that of all prompts of the batch. */
        double tokens = x->tokens / p->row.batch;
        measured_put(s, &p->row, POINT_TTFT_MS, tokens, x->first_ms / n, x->place);
        if (x->n_next > 0) {
            double next_ms = x->next_ms / (double)x->n_next;
            measured_put(s, &p->row, POINT_TPOT_MS, tokens, next_ms, x->place);
        }
    }
}

/* Sets the device: "GPU" and "GPU.0" are the integrated one. */
static void set_device(struct point *p, const char *device)
{
    p->device = strncmp(device, "NPU", 3) == 0   ? "npu"
                : strncmp(device, "CPU", 3) == 0 ? "cpu"
                                                 : "igpu";
}

static void check_beams(struct measured_sink *s, double beams, const char *place)
{
    if (beams != 1.0) {
        (void)err_add(s->e, "%s: num_beams %g: only 1 is a decode that is modelled", place, beams);
    }
}

static int read_llm_bench_json(struct measured_sink *s, const cJSON *root)
{
    size_t before = s->e->n;
    struct json_obj o = json_root(root, s->path, s->e);
    struct json_obj meta = json_get_object(&o, "metadata");
    struct json_obj perf = json_get_object(&o, "perfdata");
    struct prompts p = {0};
    p.row.model = xkeep(xstrdup(json_get_string(&meta, "model")));
    set_device(&p.row, json_get_string(&meta, "device"));
    p.row.weight_bits = measured_bits(json_get_string(&meta, "precision"));
    p.row.batch = json_get_u32(&meta, "batch_size", 1, 65536);
    check_beams(s, json_get_number(&meta, "num_beams", 1, 1000), s->path);
    int n = json_get_array_size(&perf, "results", 1, 1000000);
    for (int i = 0; i < n && s->e->n == before; i++) {
        struct json_obj r = json_array_object(&perf, "results", i);
        struct prompt x = {.index = json_get_number(&r, "prompt_idx", 0, 1e9),
                           .tokens = json_get_number(&r, "input_size", 1, MAX_TOKENS),
                           .first_ms = json_get_number(&r, "first_latency", 1e-6, MAX_MS)};
        double next_ms = json_get_number(&r, "second_avg_latency", -1.0, MAX_MS);
        x.next_ms = fmax(next_ms, 0.0);
        x.n_next = next_ms > 0.0;
        x.place = xkeep(xformat("%s: perfdata.results[%d]", s->path, i));
        add_iteration(&p, json_get_number(&r, "iteration", 0, 1e9), &x);
    }
    if (s->e->n > before) {
        return -EINVAL;
    }
    put_prompts(s, &p);
    return s->e->n > before ? -EINVAL : 0;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool same_report(const struct point *a, const struct point *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->device, b->device) == 0 &&
           a->weight_bits == b->weight_bits && a->batch == b->batch;
}

static int read_llm_bench_csv(struct measured_sink *s, struct csvfile *f)
{
    static const char *const names[] = {
        "iteration",           "model",     "device",     "input_size", "1st_latency(ms)",
        "2nd_avg_latency(ms)", "precision", "prompt_idx", "num_beams",  "batch_size"};
    enum { ITERATION, MODEL, DEVICE, INPUT, FIRST, NEXT, PRECISION, PROMPT, BEAMS, BATCH, N };
    size_t before = s->e->n;
    int at[N];
    for (int i = 0; i < N; i++) {
        at[i] = csvfile_require(f, names[i], s->e);
    }
    struct prompts p = {0};
    while (s->e->n == before && csvfile_next(f, s->e) > 0) {
        if (!is_number(csvfile_text(f, at[ITERATION]))) {
            continue; /* averages and their legend */
        }
        struct prompt x = {.index = csvfile_number(f, at[PROMPT], 0, 1e9, s->e),
                           .tokens = csvfile_number(f, at[INPUT], 1, MAX_TOKENS, s->e),
                           .first_ms = csvfile_number(f, at[FIRST], 1e-6, MAX_MS, s->e)};
        if (strcmp(csvfile_text(f, at[NEXT]), "NA") != 0) {
            x.next_ms = csvfile_number(f, at[NEXT], 1e-6, MAX_MS, s->e);
            x.n_next = 1;
        }
        x.place = xkeep(xformat("%s:%llu", s->path, (unsigned long long)csvfile_line(f)));
        struct point row = {.model = xkeep(xstrdup(csvfile_text(f, at[MODEL])))};
        set_device(&row, csvfile_text(f, at[DEVICE]));
        row.weight_bits = measured_bits(csvfile_text(f, at[PRECISION]));
        row.batch = (uint32_t)csvfile_u64(f, at[BATCH], 1, 65536, s->e);
        if (p.n > 0 && !same_report(&row, &p.row)) {
            (void)err_add(s->e,
                          "%s: another model, device, precision or batch_size than in the rows "
                          "before: give each report as a file of its own",
                          x.place);
        }
        p.row = row;
        check_beams(s, csvfile_number(f, at[BEAMS], 1, 1000, s->e), x.place);
        add_iteration(&p, csvfile_number(f, at[ITERATION], 0, 1e9, s->e), &x);
    }
    if (s->e->n > before) {
        return -EINVAL;
    }
    put_prompts(s, &p);
    return s->e->n > before ? -EINVAL : 0;
}

/* ---- recognition ---- */

static int read_json(struct measured_sink *s)
{
    SCOPED(json_drop) cJSON *root = json_read_file(s->path, s->e);
    return root == NULL          ? -EINVAL
           : cJSON_IsArray(root) ? measured_llama_json(s, root)
           : cJSON_HasObjectItem(root, "perfdata")
               ? read_llm_bench_json(s, root)
               : err_add(s->e, "%s: neither a report of llm_bench nor of llama-bench", s->path);
}

/* Whether it is JSON lines, as from llama-bench -o jsonl: the first line is a complete object. */
static bool is_lines(const char *head)
{
    size_t n = strcspn(head, "\r\n");
    const char *rate = strstr(head, "\"avg_ts\"");
    return n > 0 && head[0] == '{' && head[n - 1] == '}' && rate != NULL && rate < head + n;
}

static int read_lines(struct measured_sink *s, FILE *f)
{
    SCOPED(json_drop) cJSON *all = cJSON_CreateArray();
    struct input_line line = {0};
    int rc = 0;
    while (rc == 0 && input_next(f, s->path, &line, s->e) > 0) {
        cJSON *one = cJSON_Parse(line.text);
        if (one != NULL) {
            cJSON_AddItemToArray(all, one);
        } else if (line.text[strspn(line.text, " \t\r\n")] != '\0') {
            rc = err_add(s->e, "%s:%llu: malformed JSON", s->path, (unsigned long long)line.number);
        }
    }
    free(line.text);
    return rc == 0 ? measured_llama_json(s, all) : rc;
}

static int read_csv(struct measured_sink *s)
{
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_open(s->path, s->e);
    if (f == NULL) {
        return -EINVAL;
    }
    bool llm_bench = csvfile_column(f, "1st_latency(ms)") >= 0;
    bool llama = csvfile_column(f, "avg_ts") >= 0;
    int rc = llm_bench ? read_llm_bench_csv(s, f) : llama ? measured_llama_csv(s, f) : 0;
    return llm_bench || llama ? rc : read_points(s);
}

int measured_read_file(const char *path, const struct measured_keys *k, struct measured *out,
                       struct err *e)
{
    struct measured_sink s = {path, k, out, e};
    OWNED char *head = xmalloc(INPUT_HEAD_BYTES);
    FILE *f = input_open_any(path, head, e);
    if (f == NULL) {
        return -EINVAL;
    }
    char first = head[strspn(head, " \t\r\n")];
    bool table = first == '|' || strstr(head, "\n|") != NULL;
    bool lines = is_lines(head);
    int rc = table ? measured_llama_markdown(&s, f) : lines ? read_lines(&s, f) : 0;
    (void)fclose(f);
    return table || lines ? rc : first == '{' || first == '[' ? read_json(&s) : read_csv(&s);
}

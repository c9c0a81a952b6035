/* Output of benchmarks as rows: llm_bench of openvino.genai, llama-bench of llama.cpp, points. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/catalog.h"
#include "experiments/validation/measured_impl.h"
#include "sim/base/arena.h"
#include "sim/base/csvfile.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/text.h"

#define MAX_TOKENS 1e8
#define MAX_MS 1e9
#define MAX_RATE 1e9

/* Where a file's rows go. */
struct sink {
    const char *path;
    const struct measured_keys *keys;
    struct measured *out;
    struct err *e;
};

static void put(struct sink *s, struct point *p, enum point_metric metric, double tokens,
                double value, const char *place)
{
    static const char *const names[] = {[POINT_TTFT_MS] = "ttft_ms",
                                        [POINT_TPOT_MS] = "tpot_ms",
                                        [POINT_PREFILL_TOK_S] = "prefill_tok_s",
                                        [POINT_DECODE_TOK_S] = "decode_tok_s"};
    p->metric = metric;
    measured_text(p->metric_name, sizeof p->metric_name, names[metric]);
    p->input_tokens = (uint32_t)tokens;
    p->value = value;
    measured_add(s->out, s->keys, p, place);
}

/* ---- points ---- */

static int read_points(struct sink *s)
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
    points_fini(&points);
    return n > 0 ? 0 : err_add(s->e, "%s: no row is about %s", s->path, s->keys->soc);
}

/* ---- llm_bench ---- */

/* One prompt of one model. */
struct prompt {
    double index, tokens;
    double first_ms, next_ms; /* sums over iterations */
    size_t n;
    const char *place;
};

struct prompts {
    struct prompt *v; /* owned */
    size_t n;
    struct point row; /* what is the same for all */
};

/* The first iteration warms up. It counts where there is no other. */
static void add_iteration(struct prompts *p, double iteration, const struct prompt *x)
{
    size_t i = 0;
    while (i < p->n && p->v[i].index != x->index) {
        i++;
    }
    if (i == p->n) {
        p->v = xgrow(p->v, p->n, sizeof *p->v);
        p->v[p->n++] = *x;
        p->v[i].n = iteration > 0.0; /* a warm-up is replaced by the next one */
    } else if (p->v[i].n == 0) {
        p->v[i] = *x;
        p->v[i].n = 1;
    } else if (iteration > 0.0) {
        p->v[i].first_ms += x->first_ms;
        p->v[i].next_ms += x->next_ms;
        p->v[i].n++;
    }
}

static void put_prompts(struct sink *s, struct prompts *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct prompt *x = &p->v[i];
        double n = x->n > 0 ? (double)x->n : 1.0;
        put(s, &p->row, POINT_TTFT_MS, x->tokens, x->first_ms / n, x->place);
        if (x->next_ms > 0.0) {
            put(s, &p->row, POINT_TPOT_MS, x->tokens, x->next_ms / n, x->place);
        }
    }
    free(p->v);
}

/* "GPU" and "GPU.0" are the integrated one. */
static void set_device(struct point *p, const char *device)
{
    const char *name = strncmp(device, "NPU", 3) == 0   ? "npu"
                       : strncmp(device, "CPU", 3) == 0 ? "cpu"
                                                        : "igpu";
    measured_text(p->device, sizeof p->device, name);
}

static void check_beams(struct sink *s, double beams, const char *place)
{
    if (beams != 1.0) {
        (void)err_add(s->e, "%s: num_beams %g: only 1 is a decode that is modelled", place, beams);
    }
}

static int read_llm_bench_json(struct sink *s, const cJSON *root)
{
    size_t before = s->e->n;
    struct json_obj o = json_root(root, s->path, s->e);
    struct json_obj meta = json_get_object(&o, "metadata");
    struct json_obj perf = json_get_object(&o, "perfdata");
    struct prompts p = {0};
    measured_text(p.row.model, sizeof p.row.model, json_get_string(&meta, "model"));
    set_device(&p.row, json_get_string(&meta, "device"));
    p.row.weight_bits = measured_bits(json_get_string(&meta, "precision"));
    p.row.batch = json_get_u32(&meta, "batch_size", 1, 65536);
    check_beams(s, json_get_number(&meta, "num_beams", 1, 1000), s->path);
    int n = json_get_array_size(&perf, "results", 1, 1000000);
    for (int i = 0; i < n && s->e->n == before; i++) {
        struct json_obj r = json_array_object(&perf, "results", i);
        struct prompt x = {.index = json_get_number(&r, "prompt_idx", 0, 1e9),
                           .tokens = json_get_number(&r, "input_size", 1, MAX_TOKENS),
                           .first_ms = json_get_number(&r, "first_latency", 1e-6, MAX_MS),
                           .next_ms = json_get_number(&r, "second_avg_latency", -1.0, MAX_MS)};
        x.place = xkeep(xformat("%s: perfdata.results[%d]", s->path, i));
        add_iteration(&p, json_get_number(&r, "iteration", 0, 1e9), &x);
    }
    if (s->e->n == before) {
        put_prompts(s, &p);
    } else {
        free(p.v);
    }
    return s->e->n > before ? -EINVAL : 0;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static int read_llm_bench_csv(struct sink *s, struct csvfile *f)
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
            continue; /* averages, and the legend below them */
        }
        struct prompt x = {.index = csvfile_number(f, at[PROMPT], 0, 1e9, s->e),
                           .tokens = csvfile_number(f, at[INPUT], 1, MAX_TOKENS, s->e),
                           .first_ms = csvfile_number(f, at[FIRST], 1e-6, MAX_MS, s->e)};
        if (strcmp(csvfile_text(f, at[NEXT]), "NA") != 0) {
            x.next_ms = csvfile_number(f, at[NEXT], 1e-6, MAX_MS, s->e);
        }
        x.place = xkeep(xformat("%s:%llu", s->path, (unsigned long long)csvfile_line(f)));
        measured_text(p.row.model, sizeof p.row.model, csvfile_text(f, at[MODEL]));
        set_device(&p.row, csvfile_text(f, at[DEVICE]));
        p.row.weight_bits = measured_bits(csvfile_text(f, at[PRECISION]));
        p.row.batch = (uint32_t)csvfile_u64(f, at[BATCH], 1, 65536, s->e);
        check_beams(s, csvfile_number(f, at[BEAMS], 1, 1000, s->e), x.place);
        add_iteration(&p, csvfile_number(f, at[ITERATION], 0, 1e9, s->e), &x);
    }
    if (s->e->n == before) {
        put_prompts(s, &p);
    } else {
        free(p.v);
    }
    return s->e->n > before ? -EINVAL : 0;
}

/* ---- llama-bench ---- */

/* "Vulkan" is llama.cpp-vulkan; of "Metal,BLAS" the first decides; CPU is llama.cpp alone. */
static void set_backend(struct point *p, const char *backends)
{
    char name[32];
    size_t n = 0;
    for (; backends[n] != '\0' && backends[n] != ',' && n + 1 < sizeof name; n++) {
        name[n] = (char)tolower((unsigned char)backends[n]);
    }
    name[n] = '\0';
    bool cpu = n == 0 || strcmp(name, "cpu") == 0 || strcmp(name, "blas") == 0;
    (void)snprintf(p->runtime, sizeof p->runtime, "llama.cpp%s%s", cpu ? "" : "-", cpu ? "" : name);
    measured_text(p->device, sizeof p->device, cpu ? "cpu" : "igpu");
}

/* "llama 7B Q4_K - Medium" is llama-7b at 4 bits: the format is the last word with a width. */
static void set_type(struct point *p, const char *type)
{
    measured_text(p->model, sizeof p->model, type);
    for (char *q = p->model + strlen(p->model); q-- > p->model && p->weight_bits == 0;) {
        p->weight_bits = *q == ' ' ? measured_bits(q) : 0;
        if (p->weight_bits > 0) {
            *q = '\0';
        }
    }
}

/* "dir/llama-2-7b.Q4_0.gguf" is llama-2-7b: a file's name says more than the type. */
static void set_file(struct point *p, const char *path)
{
    const char *base = strrchr(path, '/');
    base = base != NULL ? base + 1 : path;
    measured_text(p->model, sizeof p->model, base);
    char *end = strstr(p->model, ".gguf");
    if (end != NULL) {
        *end = '\0';
    }
    for (char *q = p->model + strlen(p->model); q-- > p->model;) {
        if ((*q == '.' || *q == '-') && measured_bits(q) > 0 && !isdigit((unsigned char)q[1])) {
            *q = '\0';
            return;
        }
    }
}

struct llama_test {
    double n_prompt, n_gen, n_depth, tokens_per_s;
};

/* A prompt behind a context, and a prompt with a generation, are not of one phase. */
static bool put_test(struct sink *s, struct point *p, const struct llama_test *t, const char *place)
{
    bool prefill = t->n_gen == 0.0 && t->n_prompt > 0.0 && t->n_depth == 0.0;
    bool decode = t->n_prompt == 0.0 && t->n_gen > 0.0;
    if (prefill) {
        put(s, p, POINT_PREFILL_TOK_S, t->n_prompt, t->tokens_per_s, place);
    } else if (decode) {
        put(s, p, POINT_DECODE_TOK_S, t->n_depth, t->tokens_per_s, place);
    }
    return prefill || decode;
}

static int none(struct sink *s, size_t before)
{
    return s->e->n > before        ? -EINVAL
           : s->out->points.n == 0 ? err_add(s->e, "%s: holds no test of one phase", s->path)
                                   : 0;
}

static int read_llama_json(struct sink *s, const cJSON *root)
{
    size_t before = s->e->n;
    for (int i = 0; i < cJSON_GetArraySize(root); i++) {
        struct json_obj o = {.node = cJSON_GetArrayItem(root, i), .file = s->path, .err = s->e};
        o.path = xkeep(xformat("[%d]", i));
        struct point p = {.batch = 1};
        set_type(&p, json_get_string(&o, "model_type"));
        set_file(&p, json_get_string(&o, "model_filename"));
        set_backend(&p, json_get_string(&o, "backends"));
        struct llama_test t = {.n_prompt = json_get_number(&o, "n_prompt", 0, MAX_TOKENS),
                               .n_gen = json_get_number(&o, "n_gen", 0, MAX_TOKENS),
                               .n_depth = json_has(&o, "n_depth")
                                              ? json_get_number(&o, "n_depth", 0, MAX_TOKENS)
                                              : 0.0,
                               .tokens_per_s = json_get_number(&o, "avg_ts", 1e-6, MAX_RATE)};
        if (s->e->n == before) {
            (void)put_test(s, &p, &t, xkeep(xformat("%s: [%d]", s->path, i)));
        }
    }
    return none(s, before);
}

static int read_llama_csv(struct sink *s, struct csvfile *f)
{
    size_t before = s->e->n;
    int type = csvfile_require(f, "model_type", s->e);
    int file = csvfile_require(f, "model_filename", s->e);
    int backends = csvfile_require(f, "backends", s->e);
    int n_prompt = csvfile_require(f, "n_prompt", s->e);
    int n_gen = csvfile_require(f, "n_gen", s->e);
    int rate = csvfile_require(f, "avg_ts", s->e);
    int depth = csvfile_column(f, "n_depth");
    while (s->e->n == before && csvfile_next(f, s->e) > 0) {
        struct point p = {.batch = 1};
        set_type(&p, csvfile_text(f, type));
        set_file(&p, csvfile_text(f, file));
        set_backend(&p, csvfile_text(f, backends));
        struct llama_test t = {.n_prompt = csvfile_number(f, n_prompt, 0, MAX_TOKENS, s->e),
                               .n_gen = csvfile_number(f, n_gen, 0, MAX_TOKENS, s->e),
                               .n_depth =
                                   depth >= 0 ? csvfile_number(f, depth, 0, MAX_TOKENS, s->e) : 0.0,
                               .tokens_per_s = csvfile_number(f, rate, 1e-6, MAX_RATE, s->e)};
        (void)put_test(s, &p, &t,
                       xkeep(xformat("%s:%llu", s->path, (unsigned long long)csvfile_line(f))));
    }
    return none(s, before);
}

/* ---- Markdown of llama-bench ---- */

#define MAX_CELLS 32

/* Cells of "| a | b |" in place, without the blanks around them; 0: no such line. */
static int split(char *line, char **cell)
{
    int n = 0;
    char *p = line + strspn(line, " \t");
    char *end;
    if (*p++ != '|') {
        return 0;
    }
    while (n < MAX_CELLS && (end = strchr(p, '|')) != NULL) {
        char *next = end + 1;
        p += strspn(p, " \t");
        while (end > p && (end[-1] == ' ' || end[-1] == '\t')) {
            end--;
        }
        *end = '\0';
        cell[n++] = p;
        p = next;
    }
    return n;
}

static int find(char *const *cell, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(cell[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* "pp512", "tg128", "tg128 @ d4096"; false: another test. */
static bool take_test(const char *text, struct llama_test *t)
{
    char *end;
    bool prompt = strncmp(text, "pp", 2) == 0;
    if (!prompt && strncmp(text, "tg", 2) != 0) {
        return false;
    }
    double n = strtod(text + 2, &end);
    *(prompt ? &t->n_prompt : &t->n_gen) = n;
    if (strncmp(end, " @ d", 4) == 0) {
        t->n_depth = strtod(end + 4, &end);
    }
    return n > 0.0 && *end == '\0';
}

static void take_line(struct sink *s, char *const *cell, const int *at, const char *place)
{
    enum { MODEL, BACKEND, TEST, RATE };
    struct point p = {.batch = 1};
    struct llama_test t = {0};
    set_type(&p, cell[at[MODEL]]);
    set_backend(&p, cell[at[BACKEND]]);
    char *end;
    t.tokens_per_s = strtod(cell[at[RATE]], &end); /* "512.3 ± 4.1" */
    if (end == cell[at[RATE]] || !(t.tokens_per_s > 0.0)) {
        (void)err_add(s->e, "%s: column t/s: '%s' is not a rate", place, cell[at[RATE]]);
    } else if (take_test(cell[at[TEST]], &t)) {
        (void)put_test(s, &p, &t, place);
    }
}

static int read_llama_markdown(struct sink *s, FILE *f)
{
    static const char *const names[] = {"model", "backend", "test", "t/s"};
    size_t before = s->e->n;
    struct input_line line = {0};
    char *cell[MAX_CELLS];
    int at[4] = {-1, -1, -1, -1};
    int columns = 0;
    while (s->e->n == before && input_next(f, s->path, &line, s->e) > 0) {
        int n = split(line.text, cell);
        if (n == 0 || strncmp(cell[0], "--", 2) == 0 || strncmp(cell[0], ":-", 2) == 0) {
            continue;
        }
        const char *place = xkeep(xformat("%s:%llu", s->path, (unsigned long long)line.number));
        if (columns == 0) {
            columns = n;
            for (int i = 0; i < 4; i++) {
                at[i] = find(cell, n, names[i]);
                if (at[i] < 0) {
                    (void)err_add(s->e, "%s: no column '%s': not a table of llama-bench", place,
                                  names[i]);
                }
            }
        } else if (n != columns) {
            (void)err_add(s->e, "%s: %d cells where the head has %d", place, n, columns);
        } else {
            take_line(s, cell, at, place);
        }
    }
    free(line.text);
    return none(s, before);
}

/* ---- which ---- */

static int read_json(struct sink *s)
{
    cJSON *root = json_read_file(s->path, s->e);
    int rc = root == NULL          ? -EINVAL
             : cJSON_IsArray(root) ? read_llama_json(s, root)
             : cJSON_HasObjectItem(root, "perfdata")
                 ? read_llm_bench_json(s, root)
                 : err_add(s->e, "%s: neither a report of llm_bench nor of llama-bench", s->path);
    cJSON_Delete(root);
    return rc;
}

static int read_csv(struct sink *s)
{
    struct csvfile *f = csvfile_open(s->path, s->e);
    if (f == NULL) {
        return -EINVAL;
    }
    bool llm_bench = csvfile_column(f, "1st_latency(ms)") >= 0;
    bool llama = csvfile_column(f, "avg_ts") >= 0;
    int rc = llm_bench ? read_llm_bench_csv(s, f) : llama ? read_llama_csv(s, f) : 0;
    csvfile_close(f);
    return llm_bench || llama ? rc : read_points(s);
}

int measured_read_file(const char *path, const struct measured_keys *k, struct measured *out,
                       struct err *e)
{
    struct sink s = {path, k, out, e};
    char *head = xmalloc(INPUT_HEAD_BYTES);
    FILE *f = input_open_any(path, head, e);
    if (f == NULL) {
        free(head);
        return -EINVAL;
    }
    char first = head[strspn(head, " \t\r\n")];
    bool table = first == '|' || strstr(head, "\n|") != NULL;
    int rc = table ? read_llama_markdown(&s, f) : 0;
    (void)fclose(f);
    free(head);
    return table ? rc : first == '{' || first == '[' ? read_json(&s) : read_csv(&s);
}

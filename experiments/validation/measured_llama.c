/* Reads output of llama.cpp's llama-bench as rows. */
#include <ctype.h>

#include "experiments/validation/measured_impl.h"
#include "sim/base/input.h"
#include "sim/base/json.h"

#define MAX_TOKENS 1e8
#define MAX_RATE 1e9
#define MAX_WEIGHTS 1e15
#define MAX_BYTES 1e16
#define MAX_BYTES_PER_WEIGHT 8.0 /* larger than in any format */

struct llama_test {
    double n_prompt, n_gen, n_depth, tokens_per_s;
    bool moved; /* a GPU may compute prompts although all layers are on the CPU */
};

/* Sets the runtime. "Vulkan" is llama.cpp-vulkan; in "Metal,BLAS" the first counts; CPU is
 * llama.cpp. Without layers on the GPU, the CPU decodes. */
static void set_backend(struct point *p, const char *backends, bool no_layers, struct llama_test *t)
{
    char *name = xformat("%.*s", (int)strcspn(backends, ","), backends);
    for (char *q = name; *q != '\0'; q++) {
        *q = (char)tolower((unsigned char)*q);
    }
    bool cpu = *name == '\0' || strcmp(name, "cpu") == 0 || strcmp(name, "blas") == 0;
    t->moved = !cpu && no_layers;
    cpu = cpu || no_layers;
    p->runtime = cpu ? "llama.cpp" : xkeep(xformat("llama.cpp-%s", name));
    p->device = cpu ? "cpu" : "igpu";
    free(name);
}

/* Sets the runtime's version to the build that wrote the file; 0: not stated. */
static void set_build(struct point *p, double build)
{
    p->runtime = build > 0.0 ? xkeep(xformat("%s-%.0f", p->runtime, build)) : p->runtime;
}

/* Sets bytes per weight from the file's size; "Q4_K - Medium" is vague. 0 bytes: not stated. */
static void set_size(struct point *p, double bytes)
{
    double each = p->weights > 0.0 ? bytes / p->weights : 0.0;
    p->bytes_per_weight = each <= MAX_BYTES_PER_WEIGHT ? each : 0.0;
}

/* Sets the model: "llama 7B Q4_K - Medium" is llama-7b at 4 bits, the last word with a width. */
static void set_type(struct point *p, const char *type)
{
    size_t n = strlen(type);
    for (const char *q = type + n; q-- > type && p->weight_bits == 0;) {
        p->weight_bits = *q == ' ' ? measured_bits(q) : 0;
        n = p->weight_bits > 0 ? (size_t)(q - type) : n;
    }
    p->model = xkeep(xformat("%.*s", (int)n, type));
}

/* Sets the model from the file's name: "dir/llama-2-7b.Q4_0.gguf" is llama-2-7b. */
static void set_file(struct point *p, const char *path)
{
    const char *base = text_base(path);
    const char *end = strstr(base, ".gguf");
    char *name = xformat("%.*s", (int)(end != NULL ? (size_t)(end - base) : strlen(base)), base);
    for (char *q = name + strlen(name); q-- > name;) {
        if ((*q == '.' || *q == '-') && measured_bits(q) > 0 && !isdigit((unsigned char)q[1])) {
            *q = '\0';
            break;
        }
    }
    p->model = xkeep(name);
}

/* Adds a test. Ignores prompts after a context, and prompts with generation, which have no single
 * phase. */
static bool put_test(struct measured_sink *s, struct point *p, const struct llama_test *t,
                     const char *place)
{
    bool prefill = t->n_gen == 0.0 && t->n_prompt > 0.0 && t->n_depth == 0.0 && !t->moved;
    bool decode = t->n_prompt == 0.0 && t->n_gen > 0.0;
    if (prefill) {
        measured_put(s, p, POINT_PREFILL_TOK_S, t->n_prompt, t->tokens_per_s, place);
    } else if (decode) {
        measured_put(s, p, POINT_DECODE_TOK_S, t->n_depth, t->tokens_per_s, place);
    }
    return prefill || decode;
}

static int none(struct measured_sink *s, size_t before)
{
    return s->e->n > before        ? -EINVAL
           : s->out->points.n == 0 ? err_add(s->e, "%s: holds no test of one phase", s->path)
                                   : 0;
}

int measured_llama_json(struct measured_sink *s, const cJSON *root)
{
    size_t before = s->e->n;
    for (int i = 0; i < cJSON_GetArraySize(root); i++) {
        struct json_obj o = {.node = cJSON_GetArrayItem(root, i), .file = s->path, .err = s->e};
        o.path = xkeep(xformat("[%d]", i));
        struct point p = {.batch = 1};
        set_type(&p, json_get_string(&o, "model_type"));
        set_file(&p, json_get_string(&o, "model_filename"));
        p.weights = json_number_or(&o, "model_n_params", 0, MAX_WEIGHTS, 0.0);
        set_size(&p, json_number_or(&o, "model_size", 0, MAX_BYTES, 0.0));
        struct llama_test t = {.n_prompt = json_get_number(&o, "n_prompt", 0, MAX_TOKENS),
                               .n_gen = json_get_number(&o, "n_gen", 0, MAX_TOKENS),
                               .n_depth = json_number_or(&o, "n_depth", 0, MAX_TOKENS, 0.0),
                               .tokens_per_s = json_get_number(&o, "avg_ts", 1e-6, MAX_RATE)};
        double layers = json_number_or(&o, "n_gpu_layers", -1.0, MAX_TOKENS, -1.0);
        set_backend(&p, json_get_string(&o, "backends"), layers == 0.0, &t);
        set_build(&p, json_number_or(&o, "build_number", 0, MAX_TOKENS, 0.0));
        if (s->e->n == before) {
            (void)put_test(s, &p, &t, xkeep(xformat("%s: [%d]", s->path, i)));
        }
    }
    return none(s, before);
}

int measured_llama_csv(struct measured_sink *s, struct csvfile *f)
{
    size_t before = s->e->n;
    int type = csvfile_require(f, "model_type", s->e);
    int file = csvfile_require(f, "model_filename", s->e);
    int backends = csvfile_require(f, "backends", s->e);
    int n_prompt = csvfile_require(f, "n_prompt", s->e);
    int n_gen = csvfile_require(f, "n_gen", s->e);
    int rate = csvfile_require(f, "avg_ts", s->e);
    int depth = csvfile_column(f, "n_depth");
    int layers = csvfile_column(f, "n_gpu_layers");
    int build = csvfile_column(f, "build_number");
    int weights = csvfile_column(f, "model_n_params");
    int size = csvfile_column(f, "model_size");
    while (s->e->n == before && csvfile_next(f, s->e) > 0) {
        struct point p = {.batch = 1};
        set_type(&p, csvfile_text(f, type));
        set_file(&p, csvfile_text(f, file));
        p.weights = weights >= 0 ? csvfile_number(f, weights, 0, MAX_WEIGHTS, s->e) : 0.0;
        set_size(&p, size >= 0 ? csvfile_number(f, size, 0, MAX_BYTES, s->e) : 0.0);
        struct llama_test t = {.n_prompt = csvfile_number(f, n_prompt, 0, MAX_TOKENS, s->e),
                               .n_gen = csvfile_number(f, n_gen, 0, MAX_TOKENS, s->e),
                               .n_depth =
                                   depth >= 0 ? csvfile_number(f, depth, 0, MAX_TOKENS, s->e) : 0.0,
                               .tokens_per_s = csvfile_number(f, rate, 1e-6, MAX_RATE, s->e)};
        bool none = layers >= 0 && strcmp(csvfile_text(f, layers), "0") == 0;
        set_backend(&p, csvfile_text(f, backends), none, &t);
        set_build(&p, build >= 0 ? csvfile_number(f, build, 0, MAX_TOKENS, s->e) : 0.0);
        (void)put_test(s, &p, &t,
                       xkeep(xformat("%s:%llu", s->path, (unsigned long long)csvfile_line(f))));
    }
    return none(s, before);
}

/* ---- Markdown ---- */

#define MAX_CELLS 32

/* Splits "| a | b |" in place into cells without surrounding blanks; 0: not such a line. */
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

/* Parses "pp512", "tg128", "tg128 @ d4096"; false: another test. */
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

/* Parses "7.62 B" and "494.03 M"; 0: another text. */
static double weights_of(const char *text)
{
    char *end;
    double n = strtod(text, &end);
    return strcmp(end, " B") == 0 ? n * 1e9 : strcmp(end, " M") == 0 ? n * 1e6 : 0.0;
}

/* Parses "3.56 GiB" and "675.71 MiB"; 0: another text. */
static double size_of(const char *text)
{
    char *end;
    double n = strtod(text, &end);
    return strcmp(end, " GiB") == 0 ? n * 0x1p30 : strcmp(end, " MiB") == 0 ? n * 0x1p20 : 0.0;
}

static void take_line(struct measured_sink *s, char *const *cell, const int *at, const char *place)
{
    enum { MODEL, BACKEND, TEST, RATE, LAYERS, PARAMS, SIZE };
    struct point p = {.batch = 1};
    struct llama_test t = {0};
    set_type(&p, cell[at[MODEL]]);
    p.weights = at[PARAMS] >= 0 ? weights_of(cell[at[PARAMS]]) : 0.0;
    set_size(&p, at[SIZE] >= 0 ? size_of(cell[at[SIZE]]) : 0.0);
    set_backend(&p, cell[at[BACKEND]], at[LAYERS] >= 0 && strcmp(cell[at[LAYERS]], "0") == 0, &t);
    char *end;
    t.tokens_per_s = strtod(cell[at[RATE]], &end); /* "512.3 ± 4.1" */
    if (end == cell[at[RATE]] || !(t.tokens_per_s > 0.0)) {
        (void)err_add(s->e, "%s: column t/s: '%s' is not a rate", place, cell[at[RATE]]);
    } else if (take_test(cell[at[TEST]], &t)) {
        (void)put_test(s, &p, &t, place);
    }
}

/* "build: e6f3a1b (7210)" follows the rows, and applies to them if the user states no runtime. */
static void take_build(struct measured_sink *s, size_t first, const char *line)
{
    const char *number = strncmp(line, "build: ", 7) == 0 ? strchr(line, '(') : NULL;
    for (size_t i = first; number != NULL && s->keys->runtime == NULL && i < s->out->points.n;
         i++) {
        set_build(&s->out->points.v[i], strtod(number + 1, NULL));
    }
}

int measured_llama_markdown(struct measured_sink *s, FILE *f)
{
    static const char *const names[] = {"model", "backend", "test", "t/s", "ngl", "params", "size"};
    enum { NEEDED = 4, NAMES = sizeof names / sizeof names[0] };
    size_t before = s->e->n;
    size_t first = s->out->points.n;
    struct input_line line = {0};
    char *cell[MAX_CELLS];
    int at[NAMES];
    int columns = 0;
    while (s->e->n == before && input_next(f, s->path, &line, s->e) > 0) {
        take_build(s, first, line.text);
        int n = split(line.text, cell);
        if (n == 0 || strncmp(cell[0], "--", 2) == 0 || strncmp(cell[0], ":-", 2) == 0) {
            continue;
        }
        const char *place = xkeep(xformat("%s:%llu", s->path, (unsigned long long)line.number));
        if (columns == 0 || strcmp(cell[0], names[0]) == 0) { /* a file may have several tables */
            first = s->out->points.n;
            columns = n;
            for (int i = 0; i < NAMES; i++) {
                at[i] = find(cell, n, names[i]);
                if (at[i] < 0 && i < NEEDED) {
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

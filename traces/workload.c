/* Makes a trace from a workload spec, the text after --workload. `mixed` is in mixed.c. */
#include <unistd.h>

#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "sim/base/words.h"
#include "traces/agents.h"
#include "traces/mixed.h"
#include "traces/spec_keys.h"
#include "traces/tasks.h"
#include "traces/traces.h"

#define SHIPPED                                                                                    \
    "coding-agent, coding-sessions, copilot-sessions, desktop-assistant, leader-subagents, "       \
    "rag-pipeline, flows"

/* Rates and duration are those of the mixed load in the Agent.xpu papers. Think and tool times and
 * activity are assumed values, to be varied: no recording has them for a personal device (the
 * annotators' gaps of MTRAG include editing). */
static const struct spec_key numbers[MIXED_NUMBERS] = {
    {"reactive_per_min", 3, 0, 1e6, false, "rate of reactive sessions (first turns), per minute"},
    {"proactive_per_min", 6, 0, 1e6, false, "rate of proactive sessions, per minute"},
    {"duration_s", 900, 1e-3, 1e8, false, "first turns arrive in [0, duration), s"},
    {"output_scale", 1, 1e-3, 1e3, false, "factor on output lengths, rounded, at least 1 token"},
    {"cv", 2, 0.05, 50, false, "arrival=gamma: coefficient of variation of the gaps"},
    {"think_s", 30, 0, 1e6, false, "mean think time before a later turn (exponential), s"},
    {"tool_s", 2, 0, 1e6, false, "mean tool time before a turn that follows a tool call, s"},
    {"sessions", 0, 0, 1, true, "1: whole conversations with prefixes, where the dataset has them"},
    {"users", 1, 1, 1e4, true, "arrival=closed: reactive users, one request at a time each"},
    {"burst", 1, 1, 1e3, false, "activity: rate while active over mean rate, both classes; 1 off"},
    {"active_share", 0.5, 0.001, 1, false, "activity: share of time active; burst * share <= 1"},
    {"activity_period_s", 300, 1e-3, 1e7, false, "activity: mean active plus idle time, s"},
    {"reactive_input_scale", 1, 1e-3, 1e3, false, "factor on reactive prompts, rounded"},
    {"proactive_input_scale", 1, 1e-3, 1e3, false, "factor on proactive prompts, rounded"},
    {"reactive_output_scale", 1, 1e-3, 1e3, false, "factor on reactive outputs, on output_scale"},
    {"proactive_output_scale", 1, 1e-3, 1e3, false, "factor on proactive outputs, on output_scale"},
    {"input_cap", 0, 0, 1e8, true, "longest prompt, tokens; longer ones are cut; 0: none"},
};
static const char *const texts[MIXED_TEXTS + 1] = {"reactive", "proactive", "arrival", "events",
                                                   NULL};
static const char *const text_defaults[MIXED_TEXTS] = {"reactive_mixed", "proactive_mixed",
                                                       "poisson", "proactivebench_events"};
static const char *const arrival_kinds[] = {"poisson", "gamma", "replay", "closed", NULL};

/* Factors on numbers in files with clients, and the duration. */
enum {
    FACTOR_RATE,
    FACTOR_TURNS,
    FACTOR_PROMPT,
    FACTOR_ANSWER,
    FACTOR_GAP,
    FACTOR_DURATION,
    FACTORS
};
static const struct spec_key factors[FACTORS] = {
    [FACTOR_RATE] = {"rate", 1, 1e-3, 1e3, false,
                     "factor on how often jobs start: think_s, every_s"},
    [FACTOR_TURNS] = {"turns", 1, 1e-3, 1e3, false, "factor on the turns of jobs, rounded"},
    [FACTOR_PROMPT] = {"prompt", 1, 1e-3, 1e3, false,
                       "factor on prompt_tokens, growth_tokens and new_tokens"},
    [FACTOR_ANSWER] = {"answer", 1, 1e-3, 1e3, false, "factor on answer_tokens"},
    [FACTOR_GAP] = {"gap", 1, 1e-3, 1e3, false, "factor on gap_s"},
    [FACTOR_DURATION] = {"duration_s", 0, 0, 1e8, false, "instead of the file's; 0: the file's"},
};

static void factors_take(struct agents *a, const double x[FACTORS])
{
    a->factor[AGENTS_THINK] = 1.0 / x[FACTOR_RATE];
    a->factor[AGENTS_EVERY] = 1.0 / x[FACTOR_RATE];
    a->factor[AGENTS_TURNS] = x[FACTOR_TURNS];
    a->factor[AGENTS_PROMPT] = x[FACTOR_PROMPT];
    a->factor[AGENTS_GROWTH] = x[FACTOR_PROMPT];
    a->factor[AGENTS_NEW] = x[FACTOR_PROMPT];
    a->factor[AGENTS_ANSWER] = x[FACTOR_ANSWER];
    a->factor[AGENTS_GAP] = x[FACTOR_GAP];
    a->duration_s = x[FACTOR_DURATION] > 0.0 ? x[FACTOR_DURATION] : a->duration_s;
}

static struct spec_keys mixed_default(struct mixed *m, uint64_t seed)
{
    *m = (struct mixed){.seed = seed};
    struct spec_keys k = {numbers, MIXED_NUMBERS, texts, m->v, m->t, 0};
    spec_keys_init(&k);
    for (int i = 0; i < MIXED_TEXTS; i++) {
        m->t[i] = text_defaults[i];
    }
    return k;
}

/* Takes over the tree. */
static void parse_json(struct spec_keys *k, cJSON *root, const char *path, struct err *e)
{
    if (!cJSON_IsObject(root)) {
        err_add(e, "%s: must be an object {...}", path);
    }
    for (const cJSON *c = cJSON_IsObject(root) ? root->child : NULL; c != NULL; c = c->next) {
        char text[64];
        const char *value = text;
        if (cJSON_IsNumber(c)) {
            (void)snprintf(text, sizeof text, "%.17g", c->valuedouble);
        } else if (cJSON_IsString(c)) {
            value = datadir_next_to(path, c->valuestring);
        } else {
            err_add(e, "%s: %s: must be a number or text", path, c->string);
            continue;
        }
        if (strcmp(c->string, "generator") != 0) {
            spec_keys_set(k, path, c->string, value, e);
        } else if (strcmp(value, "mixed") != 0) {
            err_add(e, "%s: generator: must be mixed", path);
        }
    }
    cJSON_Delete(root);
}

/* Checks keys against each other, sets the arrival kind and scales the rates. */
static void mixed_check(struct mixed *m, const char *spec, double rate_scale, struct err *e)
{
    int kind = words_find(arrival_kinds, m->t[MIXED_ARRIVAL]);
    if (kind < 0) {
        err_add(e, "workload \"%s\": arrival: must be poisson, gamma, replay or closed", spec);
        return;
    }
    m->arrival = (enum arrival_kind)kind;
    m->v[MIXED_REACTIVE_PER_MIN] *= rate_scale;
    m->v[MIXED_PROACTIVE_PER_MIN] *= rate_scale;
    double per_min = m->v[MIXED_REACTIVE_PER_MIN] + m->v[MIXED_PROACTIVE_PER_MIN];
    if (per_min <= 0.0 && m->arrival != ARRIVAL_CLOSED) {
        err_add(e, "workload \"%s\": reactive_per_min and proactive_per_min: both rates are zero",
                spec);
    }
    double expected = per_min / 60.0 * m->v[MIXED_DURATION_S];
    if (expected > TRACE_MAX_ROWS / 2.0) {
        err_add(e, "workload \"%s\": duration_s: %.0f requests expected, at most %u are taken",
                spec, expected, TRACE_MAX_ROWS / 2);
    }
    if (m->v[MIXED_BURST] > 1.0 && m->v[MIXED_BURST] * m->v[MIXED_ACTIVE_SHARE] > 1.0 + 1e-12) {
        err_add(e, "workload \"%s\": burst: burst * active_share must be at most 1", spec);
    }
    if (m->v[MIXED_BURST] > 1.0 && m->v[MIXED_DURATION_S] / m->v[MIXED_ACTIVITY_PERIOD_S] > 1e7) {
        err_add(e, "workload \"%s\": activity_period_s: over 1e7 periods in duration_s", spec);
    }
}

/* ---- w1 ---- */

#define W1_PER_S 2.0
#define W1_INPUT_TOKENS 512
#define W1_OUTPUT_TOKENS 64

/* 512 in, 64 out, Poisson 2/s from splitmix64(42): the load for timing simulators. The seed is part
 * of its definition. */
static int w1_generate(const char *spec, const char *list, double rate_scale, struct trace *out,
                       struct err *e)
{
    const char *digits = strncmp(list, "n=", 2) == 0 ? list + 2 : "";
    size_t len = strspn(digits, "0123456789");
    unsigned long n = len > 0 && len < 9 && digits[len] == '\0' ? strtoul(digits, NULL, 10) : 0;
    if (n == 0 || n > TRACE_MAX_ROWS) {
        return err_add(e, "workload \"%s\": must be w1:n=N with N from 1 to %u", spec,
                       TRACE_MAX_ROWS);
    }
    int64_t *arrivals_ns = xmalloc(n * sizeof *arrivals_ns);
    uint64_t state = 42;
    double t_s = 0.0;
    for (unsigned long i = 0; i < n; i++) {
        /* The top 53 bits give a number below 1, so that its logarithm is finite. */
        double u = (double)(rng_mix64(state) >> 11) * 0x1.0p-53;
        state += 0x9E3779B97F4A7C15ULL;
        t_s += -log1p(-u) / (W1_PER_S * rate_scale);
        arrivals_ns[i] = units_ns_from_s(t_s);
    }
    *out = (struct trace){.n = n,
                          .n_first = n,
                          .like = {.input_tokens = W1_INPUT_TOKENS,
                                   .output_tokens = W1_OUTPUT_TOKENS,
                                   .max_output_tokens = trace_default_limit(W1_OUTPUT_TOKENS),
                                   .next = TRACE_NO_ROW},
                          .arrivals_ns = arrivals_ns};
    out->hash = trace_hash(out);
    return 0;
}

int trace_generate(const char *spec, uint64_t seed, double rate_scale, struct trace *out,
                   struct err *e)
{
    int rc = trace_generate_packed(spec, seed, rate_scale, out, e);
    trace_unpack(out);
    return rc;
}

/* The file of a spec, a path or a shipped workload; NULL for other specs. *keys: the text after its
 * colon, or NULL. The caller frees the path. */
static char *file_of(const char *spec, const char **keys)
{
    const char *json = strstr(spec, ".json:");
    *keys = json != NULL ? json + 6 : NULL;
    if (json != NULL || text_ends(spec, ".json")) {
        return json != NULL ? xformat("%.*s.json", (int)(json - spec), spec) : xstrdup(spec);
    }
    size_t n = strcspn(spec, ":");
    OWNED char *name = xformat("%.*s", (int)n, spec);
    char *path = NULL;
    if (n > 0 && !datadir_is_path(name)) {
        const char *shipped = datadir_named(name, "traces/workloads", ".json");
        path = access(shipped, R_OK) == 0 ? xstrdup(shipped) : NULL;
    }
    *keys = spec[n] == ':' ? spec + n + 1 : NULL;
    return path;
}

bool trace_workload_has_factors(const char *spec)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    const char *keys = NULL;
    OWNED char *path = file_of(spec, &keys);
    SCOPED(json_drop) cJSON *tree = path != NULL ? json_read_file(path, &e) : NULL;
    return json_member(tree, "clients") != NULL;
}

static int agents_make(cJSON *tree, const char *path, const char *spec, const char *keys,
                       uint64_t seed, double rate_scale, struct trace *out, struct err *e)
{
    SCOPED(agents_fini) struct agents a;
    double x[FACTORS];
    struct spec_keys k = {factors, FACTORS, NULL, x, NULL, 0};
    size_t before = e->n;
    spec_keys_init(&k);
    if (keys != NULL) {
        spec_keys_parse(&k, spec, keys, e);
    }
    int rc = agents_read(tree, path, &a, e);
    factors_take(&a, x);
    return rc == 0 && e->n == before
               ? agents_generate(&a, seed, rate_scale, AGENTS_MAX_ROWS, out, e)
               : -EINVAL;
}

static int mixed_make(struct mixed *m, const char *spec, double rate_scale, size_t before,
                      struct trace *out, struct err *e)
{
    if (e->n == before) {
        mixed_check(m, spec, rate_scale, e);
    }
    return e->n == before ? mixed_generate(m, spec, out, e) : -EINVAL;
}

/* Makes the requests and machine events of a file. */
static int file_make(const char *path, const char *spec, const char *keys, uint64_t seed,
                     double rate_scale, struct trace *out, struct err *e)
{
    size_t before = e->n;
    cJSON *tree = json_read_file(path, e);
    SCOPED(json_drop) cJSON *machine = cJSON_DetachItemFromObjectCaseSensitive(tree, "machine");
    int rc = -EINVAL;
    if (json_member(tree, "clients") != NULL) {
        rc = agents_make(tree, path, spec, keys, seed, rate_scale, out, e);
    } else if (tree != NULL && keys != NULL) {
        rc = err_add(e, "workload \"%s\": keys behind a file are for one with clients", spec);
        cJSON_Delete(tree);
    } else if (tree != NULL) {
        struct mixed m;
        struct spec_keys k = mixed_default(&m, seed);
        parse_json(&k, tree, path, e);
        rc = mixed_make(&m, spec, rate_scale, before, out, e);
    }
    if (rc == 0 && machine != NULL) {
        cJSON *own = cJSON_CreateObject();
        cJSON_AddItemToObject(own, "machine", machine);
        struct json_obj o = json_root(own, path, e);
        rc = machine_events_get(&o, out);
        machine = own;
    }
    return rc;
}

int trace_generate_packed(const char *spec, uint64_t seed, double rate_scale, struct trace *out,
                          struct err *e)
{
    *out = (struct trace){0};
    size_t before = e->n;
    if (strncmp(spec, "w1:", 3) == 0) {
        return w1_generate(spec, spec + 3, rate_scale, out, e);
    }
    if (task_known(spec)) {
        return task_generate(spec, seed, out, e);
    }
    const char *keys = NULL;
    char *path = file_of(spec, &keys);
    if (path != NULL) {
        int rc = file_make(path, spec, keys, seed, rate_scale, out, e);
        free(path);
        return rc;
    }
    if (strcmp(spec, "mixed") != 0 && strncmp(spec, "mixed:", 6) != 0) {
        return err_add(e,
                       "workload \"%s\": must be mixed[:key=value,...], w1:n=N, a task "
                       "(summary, rag, ui, tweet, texts), a shipped workload (%s) or FILE.json%s",
                       spec, SHIPPED,
                       strstr(spec, ".csv") != NULL ? "; a recorded trace goes with --trace" : "");
    }
    struct mixed m;
    struct spec_keys k = mixed_default(&m, seed);
    spec_keys_parse(&k, spec, spec[5] == ':' ? spec + 6 : "", e);
    return mixed_make(&m, spec, rate_scale, before, out, e);
}

static void mixed_read(struct spec_keys *k, const char *spec, struct err *e)
{
    const char *keys = NULL;
    OWNED char *path = file_of(spec, &keys);
    if (path == NULL) {
        bool mixed = strncmp(spec, "mixed:", 6) == 0;
        spec_keys_parse(k, spec, mixed ? spec + 6 : "", e);
        return;
    }
    cJSON *tree = json_read_file(path, e);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, "machine");
    parse_json(k, tree, path, e);
}

char *trace_workload_unread(const char *spec)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct mixed m;
    struct spec_keys k = mixed_default(&m, 0);
    if (trace_workload_has_factors(spec)) {
        return NULL;
    }
    mixed_read(&k, spec, &e);
    int arrival = words_find(arrival_kinds, m.t[MIXED_ARRIVAL]);
    bool turns = m.v[MIXED_SESSIONS] > 0.0;
    bool burst = m.v[MIXED_BURST] > 1.0;
    const struct {
        int key;
        bool read;
        const char *with;
    } rules[] = {
        {MIXED_CV, arrival == ARRIVAL_GAMMA, "arrival=gamma"},
        {MIXED_THINK_S, turns || arrival == ARRIVAL_CLOSED, "sessions=1 or arrival=closed"},
        {MIXED_TOOL_S, turns, "sessions=1"},
        {MIXED_USERS, arrival == ARRIVAL_CLOSED, "arrival=closed"},
        {MIXED_ACTIVE_SHARE, burst, "burst above 1"},
        {MIXED_ACTIVITY_PERIOD_S, burst, "burst above 1"},
        {MIXED_NUMBERS + MIXED_EVENTS, arrival == ARRIVAL_REPLAY, "arrival=replay"},
    };
    struct text out = {0};
    for (size_t i = 0; e.n == 0 && i < sizeof rules / sizeof rules[0]; i++) {
        if ((k.seen & 1ULL << rules[i].key) != 0 && !rules[i].read) {
            int text = rules[i].key - MIXED_NUMBERS;
            text_item(&out, ", ", text < 0 ? numbers[rules[i].key].name : texts[text]);
            text_format(&out, " (needs %s)", rules[i].with);
        }
    }
    char *list = out.n > 0 ? xstrdup(text_end(&out)) : NULL;
    text_fini(&out);
    return list;
}

bool trace_workload_default(const char *key, double *value)
{
    struct mixed m;
    struct spec_keys k = mixed_default(&m, 0);
    int i = spec_keys_find(&k, key);
    bool number = i >= 0 && i < MIXED_NUMBERS;
    *value = number ? m.v[i] : *value;
    return number;
}

void trace_generator_help(FILE *out)
{
    (void)fputs(
        "FILE.json             clients with jobs, turns and subagents: docs/concepts/agents.md\n"
        "NAME                  such a file that is shipped: " SHIPPED "\n"
        "NAME:key=value,...    or FILE.json:key=value,...: one with factors on its numbers\n",
        out);
    spec_keys_help(factors, FACTORS, out);
    (void)fputs("mixed:key=value,...   reactive and proactive requests; a .json file has the same "
                "keys\n",
                out);
    spec_keys_help(numbers, MIXED_NUMBERS, out);
    (void)fputs(
        "  reactive, proactive  datasets: shipped names (xpusim list dataset) or CSV paths\n"
        "  arrival              poisson, gamma, replay (gaps of `events`, scaled to the rates), "
        "or\n"
        "                       closed: reactive requests come from `users`, think_s after each\n"
        "                       answer (no reactive_per_min); proactive ones are Poisson\n"
        "  events               recorded arrivals for replay: proactivebench_events,\n"
        "                       azure_conv_2023, azure_code_2023, or a CSV path\n"
        "w1:n=N                the common speed load: 512 in, 64 out, Poisson 2/s; fixed seed\n",
        out);
    task_help(out);
}

/* Reads the file of an agent workload. */
#include "sim/api/request.h"
#include "sim/base/words.h"
#include "traces/agents.h"
#include "traces/traces.h"

#define MAX_TOKENS 1e8
#define MAX_S 1e8
#define MAX_DEPTH 8 /* nested subagents */

enum { OF_CLIENT = 1, OF_SUBAGENT = 2, OF_BOTH = 3, NEEDED = 4 };

static const struct row {
    struct draw_rule rule;
    int of;
} rows[AGENTS_NUMBERS] = {
    [AGENTS_TURNS] = {{"turns", 1, UINT16_MAX, true}, OF_BOTH},
    [AGENTS_PROMPT] = {{"prompt_tokens", 1, MAX_TOKENS, true}, OF_BOTH | NEEDED},
    [AGENTS_GROWTH] = {{"growth_tokens", 1, MAX_TOKENS, true}, OF_BOTH},
    [AGENTS_NEW] = {{"new_tokens", 1, MAX_TOKENS, true}, OF_BOTH},
    [AGENTS_ANSWER] = {{"answer_tokens", 1, MAX_TOKENS, true}, OF_BOTH | NEEDED},
    [AGENTS_GAP] = {{"gap_s", 0, MAX_S, false}, OF_BOTH},
    [AGENTS_START] = {{"start_s", 0, MAX_S, false}, OF_BOTH},
    [AGENTS_PRIORITY] = {{"priority", 0, 1e6, true}, OF_BOTH},
    [AGENTS_TTFT_SLO] = {{"ttft_slo_s", 0, MAX_S, false}, OF_BOTH},
    [AGENTS_DEADLINE] = {{"deadline_s", 0, MAX_S, false}, OF_BOTH},
    [AGENTS_CANCEL] = {{"cancel_s", 0, MAX_S, false}, OF_BOTH},
    [AGENTS_THINK] = {{"think_s", 0, MAX_S, false}, OF_CLIENT},
    [AGENTS_EVERY] = {{"every_s", 1e-3, MAX_S, false}, OF_CLIENT},
    [AGENTS_JOBS] = {{"jobs", 1, 1e6, true}, OF_CLIENT},
    [AGENTS_COUNT] = {{"count", 0, 1e4, true}, OF_BOTH},
};
static const char *const gap_kinds[] = {"tool", "think", NULL};

struct reader {
    struct agents *a;
    const cJSON *shared_prompts;
};

/* Reads the index of a shared prompt, from 1, and its length; 0 without one. */
static void shared_prompt_read(const struct reader *r, struct json_obj *o, struct agents_job *j)
{
    if (!json_has(o, "shared_prompt")) {
        return;
    }
    const char *name = json_get_string(o, "shared_prompt");
    const cJSON *c = r->shared_prompts != NULL ? r->shared_prompts->child : NULL;
    for (uint32_t i = 1; c != NULL; c = c->next, i++) {
        if (strcmp(c->string, name) == 0) {
            j->prefix_group = i;
            j->shared_tokens = (uint32_t)c->valuedouble;
            return;
        }
    }
    json_refuse(o, "shared_prompt", "must be the name of one of shared_prompts");
}

static void on_turns_read(struct json_obj *o, struct agents_job *j)
{
    if (!json_has(o, "on_turns")) {
        return;
    }
    (void)json_get_array_size(o, "on_turns", 1, 1000);
    j->on_turns = json_member(o->node, "on_turns");
    const cJSON *c = NULL;
    cJSON_ArrayForEach (c, j->on_turns) {
        if (!cJSON_IsNumber(c) || !(c->valuedouble >= 1.0 && c->valuedouble <= UINT16_MAX) ||
            c->valuedouble != floor(c->valuedouble)) {
            json_refuse(o, "on_turns", "must be whole numbers from 1 on");
            return;
        }
    }
}

static void numbers_read(const struct reader *r, struct json_obj *o, int of, struct agents_job *j)
{
    size_t before = o->err->n;
    for (int i = 0; i < AGENTS_NUMBERS; i++) {
        if ((rows[i].of & of) == 0) {
            continue;
        }
        j->v[i] = draw_read(o, &rows[i].rule, &r->a->columns);
        if ((rows[i].of & NEEDED) != 0 && j->v[i].kind == DRAW_NONE && o->err->n == before) {
            json_refuse(o, rows[i].rule.key, "missing (a number or a distribution)");
        }
    }
    bool growth = j->v[AGENTS_GROWTH].kind != DRAW_NONE;
    bool added = j->v[AGENTS_NEW].kind != DRAW_NONE;
    if (o->err->n == before && growth && added) {
        json_refuse(o, "growth_tokens", "excludes new_tokens");
    } else if (o->err->n == before && j->v[AGENTS_TURNS].kind != DRAW_NONE && !growth && !added) {
        json_refuse(o, "turns", "needs growth_tokens or new_tokens");
    }
}

/* Reads the keys common to clients and subagents. */
static void job_read(const struct reader *r, struct json_obj *o, int of, struct agents_job *j)
{
    j->name = json_get_string(o, "name");
    (void)json_string_or(o, "description", "");
    if (json_has(o, "model")) {
        j->model = json_get_string(o, "model");
        j->model_key = xkeep(xformat("%s.model", o->path));
        if (!trace_model_is_name(j->model)) {
            json_refuse(o, "model", "must be a name of letters, digits and \"._-\"");
        }
    }
    j->cls = json_has(o, "class") ? json_get_choice(o, "class", words_classes) : -1;
    j->after_tool = !json_has(o, "gap_kind") || json_get_choice(o, "gap_kind", gap_kinds) == 0;
    shared_prompt_read(r, o, j);
    numbers_read(r, o, of, j);
}

static void jobs_free(struct agents_job *jobs, uint32_t n)
{
    for (uint32_t i = 0; jobs != NULL && i < n; i++) {
        jobs_free(jobs[i].subagents, jobs[i].n_subagents);
    }
    free(jobs);
}

/* Names must be unique, because they select streams of random numbers. */
static void names_check(const struct json_obj *o, const char *key, const struct agents_job *jobs,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n && o->err->n == 0; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(jobs[i].name, jobs[k].name) == 0) {
                OWNED char *name = xformat("%s[%u].name", key, i);
                json_refuse(o, name, "\"%s\" is there twice", jobs[i].name);
                return;
            }
        }
    }
}

static void subagents_read(const struct reader *r, struct json_obj *o, int depth,
                           struct agents_job *j);

static void subagent_read(const struct reader *r, struct json_obj *o, int depth,
                          struct agents_job *j)
{
    job_read(r, o, OF_SUBAGENT, j);
    j->background = json_flag(o, "background");
    j->before = json_flag(o, "before");
    j->with_context = json_flag(o, "with_context");
    j->ends_with_job = json_flag(o, "ends_with_job");
    j->probability = json_number_or(o, "probability", 0.0, 1.0, 1.0);
    on_turns_read(o, j);
    if (j->background && j->before) {
        json_refuse(o, "before", "a turn cannot wait for a subagent in the background");
    }
    if (j->with_context && j->prefix_group > 0) {
        json_refuse(o, "shared_prompt", "excludes with_context: a prompt begins with one text");
    }
    if (j->ends_with_job && !j->background) {
        json_refuse(o, "ends_with_job", "needs background: the job waits for other subagents");
    }
    subagents_read(r, o, depth + 1, j);
    json_done(o);
}

static void subagents_read(const struct reader *r, struct json_obj *o, int depth,
                           struct agents_job *j)
{
    if (!json_has(o, "subagents")) {
        return;
    }
    if (depth >= MAX_DEPTH) {
        json_refuse(o, "subagents", "more than 8 levels");
        return;
    }
    int n = json_get_array_size(o, "subagents", 1, 1000);
    j->subagents = xcalloc((size_t)n + 1, sizeof *j->subagents);
    for (j->n_subagents = 0; j->n_subagents < (uint32_t)n; j->n_subagents++) {
        struct json_obj sub = json_array_object(o, "subagents", (int)j->n_subagents);
        subagent_read(r, &sub, depth, &j->subagents[j->n_subagents]);
    }
    names_check(o, "subagents", j->subagents, j->n_subagents);
}

static void client_read(const struct reader *r, struct json_obj *o, struct agents_job *j)
{
    job_read(r, o, OF_CLIENT, j);
    j->probability = 1.0;
    j->same_session = json_flag(o, "same_session");
    subagents_read(r, o, 0, j);
    bool think = j->v[AGENTS_THINK].kind != DRAW_NONE;
    bool every = j->v[AGENTS_EVERY].kind != DRAW_NONE;
    bool jobs = j->v[AGENTS_JOBS].kind != DRAW_NONE;
    if (think && every) {
        json_refuse(o, "think_s",
                    "excludes every_s: a job starts after the last one, or by the clock");
    }
    if ((think || every) && !jobs && isinf(r->a->duration_s)) {
        json_refuse(o, "jobs", "missing (or duration_s at the top): the client would never stop");
    }
    if (jobs && !think && !every) {
        json_refuse(o, "jobs", "needs think_s or every_s");
    }
    if (j->same_session && !think) {
        json_refuse(o, "same_session", "needs think_s");
    }
    for (uint32_t i = 0; i < j->n_subagents && j->same_session; i++) {
        if (j->subagents[i].before) {
            json_refuse(o, "same_session", "excludes subagents with before");
        }
    }
    enum draw_kind count = j->v[AGENTS_COUNT].kind;
    if (count != DRAW_NONE && count != DRAW_CONSTANT) {
        json_refuse(o, "count", "must be a number: how many clients there are is not drawn");
    }
    json_done(o);
}

static void shared_prompts_read(struct reader *r, struct json_obj *o)
{
    if (!json_has(o, "shared_prompts")) {
        return;
    }
    struct json_obj sub = json_get_object(o, "shared_prompts");
    r->shared_prompts = sub.node;
    for (const cJSON *c = sub.node != NULL ? sub.node->child : NULL; c != NULL; c = c->next) {
        (void)json_get_u32(&sub, c->string, 1, (uint32_t)MAX_TOKENS);
    }
}

int agents_read(cJSON *tree, const char *path, struct agents *out, struct err *e)
{
    *out = (struct agents){.tree = tree, .path = path};
    for (int i = 0; i < AGENTS_NUMBERS; i++) {
        out->factor[i] = 1.0;
    }
    size_t before = e->n;
    struct reader r = {.a = out};
    struct json_obj o = json_root(tree, path, e);
    (void)json_string_or(&o, "description", "");
    out->duration_s = json_number_or(&o, "duration_s", 1e-3, MAX_S, (double)INFINITY);
    shared_prompts_read(&r, &o);
    int n = json_get_array_size(&o, "clients", 1, 1000); /* always read, so that it is known */
    if (e->n == before) {
        out->clients = xcalloc((size_t)n + 1, sizeof *out->clients);
        for (out->n_clients = 0; out->n_clients < (uint32_t)n; out->n_clients++) {
            struct json_obj c = json_array_object(&o, "clients", (int)out->n_clients);
            client_read(&r, &c, &out->clients[out->n_clients]);
        }
        names_check(&o, "clients", out->clients, out->n_clients);
    }
    json_done(&o);
    return e->n == before ? 0 : -EINVAL;
}

void agents_fini(struct agents *a)
{
    jobs_free(a->clients, a->n_clients);
    draw_columns_free(a->columns);
    cJSON_Delete(a->tree);
    *a = (struct agents){.tree = NULL};
}

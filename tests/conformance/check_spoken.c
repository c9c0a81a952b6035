/* Policies of other processes, without the process: a policy that acts at random
 * (tests/helpers/wild.h) does the same by lines of the protocol as by calls, and each message has
 * what changed, and nothing else. Rows are written here again from docs/policy-protocol.md. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/external/external_impl.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/wild.h"

enum { LOADS = 25, MAX_REQUESTS = 24, ROW = 256, MOST = 512 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

/* ---- the policy ---- */

/* A thing that rows are about, and its row when it was told last. */
struct thing {
    char kind; /* 'r', 'p', 'l' */
    uint32_t id;
    const void *of; /* NULL: it has ended, and `now` is its last row */
    char now[ROW], told[ROW];
    bool whole; /* its first row was told */
    bool seen;  /* in the message that is being read */
};

static struct {
    struct external external;
    struct policy_ops hooks; /* as they are */
    struct sched *real;
    struct sched lines; /* the same run, whose calls are lines */
    struct thing things[MOST];
    uint32_t n, n_passes, n_launches;
    char events[1 << 16]; /* since the last message */
    char answer[4096];
    bool nonsense; /* it was tried */
} mine;

static struct external_run *run_of(const struct sched *s)
{
    return s->state;
}

static void number(char *to, int64_t ns)
{
    if (ns == TIME_NEVER_NS) {
        (void)snprintf(to, 24, "null");
    } else {
        (void)snprintf(to, 24, "%lld", (long long)ns);
    }
}

static const char *yes(bool is)
{
    return is ? "true" : "false";
}

static uint32_t number_of(const struct pass *p)
{
    for (uint32_t i = 0; p != NULL && i < mine.n; i++) {
        if (mine.things[i].of == p) {
            return mine.things[i].id;
        }
    }
    return 0;
}

/* The row of a thing as it is now, without what is reported once. */
static void row_of(const struct thing *t, char row[ROW])
{
    static const char *const requests[] = {"queued", "decode", "finished", "shed"};
    static const char *const passes[] = {"ready", "running", "done", "cancelled"};
    static const char *const launches[] = {"queued", "running", "ended"};
    char at[3][24];
    if (t->kind == 'r') {
        const struct request *r = t->of;
        number(at[0], r->first_service_ns);
        number(at[1], r->first_token_ns);
        number(at[2], r->last_token_ns);
        (void)snprintf(row, ROW, "[%u,\"%s\",%u,%u,%u,%s,%s,%s,%u,%s,%s", r->id, requests[r->state],
                       r->kv_tokens, r->generated_tokens, number_of(r->pass), at[0], at[1], at[2],
                       r->preemptions, yes(r->kv_swapped), yes(r->calls_tool));
    } else if (t->kind == 'p') {
        const struct pass *p = t->of;
        (void)snprintf(row, ROW, "[%u,\"%s\",%u,%u,%u,%u,%u", t->id, passes[p->state], p->op,
                       p->rows_todo, p->rows_active, p->last_op_devices, p->n_launches);
    } else {
        const struct launch *l = t->of;
        number(at[0], l->start_ns);
        (void)snprintf(row, ROW, "[%u,\"%s\",%s,%s", t->id, launches[l->state],
                       yes(l->stop_requested), at[0]);
    }
}

static struct thing *add(char kind, uint32_t id, const void *of)
{
    ck_assert_uint_lt(mine.n, MOST);
    struct thing *t = &mine.things[mine.n++];
    *t = (struct thing){.kind = kind, .id = id, .of = of};
    return t;
}

/* What is reported once of a pass or a launch, behind its first row. */
static void once_of(const struct thing *t, char text[ROW])
{
    text[0] = '\0';
    if (t->kind == 'p') {
        const struct pass *p = t->of;
        const struct work_shape *w = &p->shape;
        (void)snprintf(text, ROW, ",%u,[%u,%u,%u,%u,%llu,%llu,%u,%u]", p->n_ops, w->rows,
                       w->logit_rows, w->sequences, w->prefill_rows,
                       (unsigned long long)w->attn_pairs, (unsigned long long)w->kv_read_tokens,
                       w->max_context_tokens, w->model);
    } else if (t->kind == 'l') {
        const struct launch *l = t->of;
        (void)snprintf(text, ROW, ",%u,%u,%u", l->op_begin, l->op_end, l->rows);
    }
}

/* ---- messages ---- */

/* A section has exactly the rows of things of this kind that changed. */
static void check_rows(const cJSON *section, char kind)
{
    ck_assert(cJSON_IsArray(section));
    uint32_t rows = 0;
    for (const cJSON *it = section->child; it != NULL; it = it->next, rows++) {
        OWNED char *row = json_text(it, false);
        row[strlen(row) - 1] = '\0'; /* without its bracket */
        struct thing *t = NULL;
        for (uint32_t i = 0; i < mine.n && t == NULL; i++) {
            bool it_is =
                mine.things[i].kind == kind && (double)mine.things[i].id == it->child->valuedouble;
            t = it_is ? &mine.things[i] : NULL;
        }
        ck_assert_msg(t != NULL && !t->seen, "a row of nothing, or twice: %s", row);
        ck_assert_msg(strcmp(row, t->now) == 0, "is %s, was told %s", t->now, row);
        t->seen = true;
    }
    uint32_t due = 0;
    for (uint32_t i = 0; i < mine.n; i++) {
        struct thing *t = &mine.things[i];
        bool news = t->kind == kind && (strcmp(t->now, t->told) != 0);
        due += news;
        ck_assert_msg(!news || t->seen, "was not told: %s (%s)", t->now, t->told);
    }
    ck_assert_uint_eq(due, rows);
}

/* Rows as they are now; a first one has what is reported once. */
static void look(void)
{
    for (uint32_t i = 0; i < mine.n; i++) {
        struct thing *t = &mine.things[i];
        if (t->of != NULL) {
            char once[ROW] = "";
            row_of(t, t->now);
            if (!t->whole) {
                once_of(t, once);
                ck_assert_uint_lt(strlen(t->now) + strlen(once), ROW);
                memcpy(t->now + strlen(t->now), once, strlen(once) + 1);
            }
        }
    }
}

static void told(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < mine.n; i++) {
        struct thing *t = &mine.things[i];
        if (t->seen && t->of != NULL) {
            t->whole = true;
            row_of(t, t->now);
        }
        memcpy(t->told, t->now, sizeof t->told);
        t->seen = false;
        mine.things[n] = *t;
        n += t->of != NULL; /* the end was told */
    }
    mine.n = n;
}

static void check_message(struct sched *s, const char *what)
{
    struct external_run *x = run_of(s);
    uint32_t refused = x->n_refusals;
    look();
    external_tell(s, x, what);
    text_char(&x->line, '\0');
    SCOPED(json_drop) cJSON *m = cJSON_Parse(x->line.p);
    ck_assert_msg(m != NULL && cJSON_GetArraySize(m) == 10, "%s", x->line.p);
    const cJSON *it = m->child;
    ck_assert_str_eq(it->valuestring, what);
    ck_assert_double_eq(it->next->valuedouble, (double)s->now_ns);
    ck_assert_double_eq(it->next->next->valuedouble, (double)s->epoch);
    it = it->next->next->next;
    ck_assert_double_eq(it->valuedouble, (double)sched_kv_free_tokens(s));
    it = it->next;
    ck_assert_int_eq(cJSON_GetArraySize(it), (int)s->machine->n_devices);
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        ck_assert_double_eq(cJSON_GetArrayItem(it, (int)d)->valuedouble,
                            sched_device_free_slots(s, (uint8_t)d));
    }
    it = it->next;
    OWNED char *events = json_text(it, false);
    char wanted[sizeof mine.events + 2];
    (void)snprintf(wanted, sizeof wanted, "[%s]", mine.events);
    ck_assert_str_eq(events, wanted);
    mine.events[0] = '\0';
    check_rows(it = it->next, 'r');
    check_rows(it = it->next, 'p');
    check_rows(it = it->next, 'l');
    ck_assert_int_eq(cJSON_GetArraySize(it->next), (int)refused);
    ck_assert_uint_eq(x->n_refusals, 0);
    told();
}

/* ---- the facts of a run ---- */

static void is(const cJSON *o, const char *name, double wanted)
{
    const cJSON *it = cJSON_GetObjectItemCaseSensitive(o, name);
    /* cJSON writes 15 digits where that is the number but for its last bit. */
    ck_assert_msg(cJSON_IsNumber(it) &&
                      fabs(it->valuedouble - wanted) <= DBL_EPSILON * fabs(wanted),
                  "%s", name);
}

static void is_text(const cJSON *o, const char *name, const char *wanted)
{
    const cJSON *it = cJSON_GetObjectItemCaseSensitive(o, name);
    ck_assert_msg(cJSON_IsString(it) && strcmp(it->valuestring, wanted) == 0, "%s", name);
}

static void is_flag(const cJSON *o, const char *name, bool wanted)
{
    const cJSON *it = cJSON_GetObjectItemCaseSensitive(o, name);
    ck_assert_msg(cJSON_IsBool(it) && cJSON_IsTrue(it) == wanted, "%s", name);
}

#define IS(o, of, member) is(o, #member, (double)(of)->member)

static void check_device(const cJSON *o, const struct device *d)
{
    static const char *const kinds[] = {"npu", "igpu", "cpu", "gpu"};
    is_text(o, "name", d->name);
    is_text(o, "kind", kinds[d->kind]);
    is_text(o, "sharing", d->sharing == DEVICE_SERIAL ? "serial" : "time_shared");
    is_flag(o, "static_attention", d->static_attention);
    is_flag(o, "can_withdraw", d->can_withdraw);
    is_flag(o, "can_reset", d->can_reset);
    is_flag(o, "can_suspend", d->can_suspend);
    IS(o, d, inflight_depth);
    IS(o, d, max_shared);
    IS(o, d, shared_efficiency_frac);
    IS(o, d, chunk_rows);
    IS(o, d, idle_watts);
    IS(o, d, decode_watts);
    IS(o, d, prefill_watts);
    IS(o, d, submit_ns);
    IS(o, d, completion_ns);
    IS(o, d, reset_ns);
    ck_assert_int_eq(cJSON_GetArraySize(o), 17);
}

static void check_machine(const cJSON *o, const struct machine *m)
{
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(o, "devices");
    ck_assert_int_eq(cJSON_GetArraySize(devices), (int)m->n_devices);
    for (uint32_t d = 0; d < m->n_devices; d++) {
        check_device(cJSON_GetArrayItem(devices, (int)d), &m->devices[d]);
    }
    is_text(o, "name", m->name);
    IS(o, m, ddr_peak_bytes_per_s);
    IS(o, m, ddr_cap_frac);
    IS(o, m, sync_ns);
    IS(o, m, schedule_ns);
    IS(o, m, sample_ns_per_token);
    IS(o, m, compile_fixed_ns);
    IS(o, m, compile_ns_per_token);
    IS(o, m, compile_watts);
    IS(o, m, loader_bytes_per_s);
    IS(o, m, loader_fixed_ns);
    IS(o, m, swap_bytes_per_s);
    IS(o, m, memory_bytes);
    IS(o, m, memory_usable_frac);
    IS(o, m, idle_watts);
    IS(o, m, poll_watts);
    ck_assert_int_eq(cJSON_GetArraySize(o), 17);
}

static void check_llm(const cJSON *o, const struct llm *m)
{
    static const char *const ops[] = {"qkv", "mha", "ffn", "head", "layer"};
    is_text(o, "name", m->name);
    IS(o, m, n_layers);
    IS(o, m, hidden);
    IS(o, m, heads);
    IS(o, m, kv_heads);
    IS(o, m, head_dim);
    IS(o, m, ffn_hidden);
    IS(o, m, vocab);
    is_flag(o, "gated_ffn", m->gated_ffn);
    is_flag(o, "tied_head", m->tied_head);
    IS(o, m, weight_bits);
    IS(o, m, act_bits);
    IS(o, m, body_weights);
    IS(o, m, head_weights);
    IS(o, m, body_bytes_per_weight);
    IS(o, m, head_bytes_per_weight);
    IS(o, m, kv_bytes_per_element);
    IS(o, m, weight_bytes);
    IS(o, m, kv_bytes_per_token);
    IS(o, m, n_experts);
    IS(o, m, experts_per_token);
    const cJSON *layer = cJSON_GetObjectItemCaseSensitive(o, "layer");
    ck_assert_int_eq(cJSON_GetArraySize(layer), (int)m->layer.n);
    for (uint32_t i = 0; i < m->layer.n; i++) {
        ck_assert_str_eq(cJSON_GetArrayItem(layer, (int)i)->valuestring, ops[m->layer.kind[i]]);
    }
    ck_assert_int_eq(cJSON_GetArraySize(o), 22);
}

static void check_init(struct sched *s)
{
    struct external_run *x = run_of(s);
    external_tell_init(s, x);
    ck_assert_int_eq(x->line.p[0], '{');
    ck_assert_int_eq(x->line.p[x->line.n - 1], '\n');
    text_char(&x->line, '\0');
    char seed[40];
    (void)snprintf(seed, sizeof seed, "\"seed\":%llu,", (unsigned long long)s->seed);
    ck_assert(strstr(x->line.p, seed) != NULL);
    SCOPED(json_drop) cJSON *root = cJSON_Parse(x->line.p);
    const cJSON *o = cJSON_GetObjectItemCaseSensitive(root, "init");
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(o, "params");
    is(params, "many", 3);
    is(params, "share", 0.25);
    is_flag(params, "flag", true);
    is_text(params, "word", "last");
    ck_assert_int_eq(cJSON_GetArraySize(params), 4); /* limit_s is not the program's */
    is(o, "kv_block_tokens", s->kv_block_tokens);
    is(o, "kv_capacity_tokens", (double)sched_kv_capacity_tokens(s));
    check_machine(cJSON_GetObjectItemCaseSensitive(o, "machine"), s->machine);
    check_llm(cJSON_GetObjectItemCaseSensitive(o, "llm"), s->llm);
    const cJSON *models = cJSON_GetObjectItemCaseSensitive(o, "models");
    ck_assert_int_eq(cJSON_GetArraySize(models), s->n_models > 1 ? (int)s->n_models : 0);
}

/* ---- actions as lines ---- */

static int error_of(const char *name)
{
    static const struct {
        const char *name;
        int rc;
    } errors[] = {{"busy", -EBUSY},       {"no_memory", -ENOMEM},    {"missing", -ENOENT},
                  {"already", -EALREADY}, {"not_permitted", -EPERM}, {"invalid", -EINVAL}};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (strcmp(errors[i].name, name) == 0) {
            return errors[i].rc;
        }
    }
    ck_abort_msg("refused as %s", name);
}

/* Does one action; what the call would return. */
static int speak(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int speak(const char *fmt, ...)
{
    struct external_run *x = run_of(mine.real);
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    SCOPED(json_drop) cJSON *actions = cJSON_Parse(text);
    uint32_t before = x->n_refusals;
    const char *wrong = external_act(mine.real, x, actions);
    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    if (x->n_refusals == before) {
        return 0;
    }
    ck_assert_uint_eq(x->n_refusals, before + 1);
    text_char(&x->refusals, '\0');
    x->refusals.n--;
    char name[32];
    const char *last = strrchr(x->refusals.p, '[');
    ck_assert_int_eq(sscanf(last, "[0,\"%31[a-z_]\"]", name), 1);
    return error_of(name);
}

static uint32_t launch_number(const struct launch *l)
{
    for (uint32_t i = 0; i < mine.n; i++) {
        if (mine.things[i].of == l) {
            return mine.things[i].id;
        }
    }
    ck_abort_msg("a launch without a number");
}

static int say_form(struct sched *s, const struct pass_spec *spec, struct pass **out)
{
    static const char *const roles[] = {"prefill", "decode", "verify"};
    char list[512];
    size_t used = 0;
    for (uint32_t i = 0; i < spec->n_segments; i++) {
        const struct segment *g = &spec->segments[i];
        used += (size_t)snprintf(list + used, sizeof list - used, "%s[%u,\"%s\",%u]",
                                 i > 0 ? "," : "", g->request->id, roles[g->role], g->n_tokens);
    }
    uint32_t id = ++mine.n_passes;
    int rc = speak("[[\"form\",%u,[%s]%s]]", id, list, spec->fused_layers ? ",true" : "");
    if (rc == 0) {
        *out = run_of(mine.real)->passes[run_of(mine.real)->n_passes - 1]->p;
        (void)add('p', id, *out);
    }
    (void)s;
    return rc;
}

/* An option that says what the rest of the pass would have is left out. */
static size_t option(char *to, size_t used, const char *name, uint32_t is, uint32_t usual)
{
    return is == usual ? used
                       : used + (size_t)snprintf(to + used, ROW - used, "%s\"%s\":%u",
                                                 used > 0 ? "," : "", name, is);
}

static int say_launch(struct sched *s, const struct launch_spec *l, const struct launch **out)
{
    static const char *const yields[] = {"kernel", "op", "layer", "pass"};
    const struct device *d = &s->machine->devices[l->device];
    uint32_t id = ++mine.n_launches;
    char options[ROW] = "";
    size_t used = option(options, 0, "n_ops", l->n_ops, l->pass->n_ops - l->pass->op);
    used = option(options, used, "rows", l->rows, l->pass->rows_todo);
    used = option(options, used, "chunk_rows", l->chunk_rows, d->chunk_rows);
    used = option(options, used, "graph", l->graph, 0);
    used = option(options, used, "graph_block", l->graph_block, 0);
    used = option(options, used, "inflight", l->inflight, 1);
    if (l->yield != YIELD_PASS) {
        (void)snprintf(options + used, ROW - used, "%s\"yield\":\"%s\"", used > 0 ? "," : "",
                       yields[l->yield]);
    }
    int rc =
        speak(options[0] == '\0' ? "[[\"launch\",%u,%u,%u%s]]" : "[[\"launch\",%u,%u,%u,{%s}]]", id,
              number_of(l->pass), l->device, options);
    if (rc == 0) {
        *out = run_of(mine.real)->launches[run_of(mine.real)->n_launches - 1].l;
        (void)add('l', id, *out);
    }
    return rc;
}

static int say_cancel(struct sched *s, struct pass *p)
{
    (void)s;
    return speak("[[\"cancel\",%u]]", number_of(p));
}

static int say_preempt(struct sched *s, const struct launch *l, struct preempt_spec how)
{
    (void)s;
    return speak("[[\"preempt\",%u,{\"now\":%s,\"discard\":%s,\"drain\":%s}]]", launch_number(l),
                 yes(how.now), yes(how.discard), yes(how.drain));
}

static int say_resident(const char *what, struct resident_key k)
{
    return speak("[[\"%s\",\"%s\",%u,%u]]", what,
                 k.kind == RESIDENT_GRAPH_BLOCK ? "graph_block" : "compiled_attention", k.a, k.b);
}

static int say_compile(struct sched *s, struct resident_key k)
{
    (void)s;
    return say_resident("compile", k);
}

static int say_drop(struct sched *s, struct resident_key k)
{
    (void)s;
    return say_resident("drop", k);
}

static int say_load(struct sched *s, struct resident_key k, double bytes)
{
    (void)s;
    return speak("[[\"load\",\"graph_block\",%u,%u,%.17g]]", k.a, k.b, bytes);
}

static int say_graph(struct sched *s, uint8_t version, struct graph_shape shape)
{
    (void)s;
    return speak("[[\"graph\",%u,%u,%u]]", version, shape.rows, shape.n_blocks);
}

static int say_kv(struct sched *s, struct kv_part part, enum kv_place to)
{
    static const char *const places[] = {"memory", "cache", "flash", "nowhere"};
    (void)s;
    ck_assert(!part.of_session);
    return speak("[[\"kv\",%u,\"%s\",%u]]", part.request->id, places[to], part.from_token);
}

static int say_timer(struct sched *s, int64_t at_ns)
{
    (void)s;
    return speak("[[\"timer\",%lld]]", (long long)at_ns);
}

/* ---- questions as lines ---- */

static const char *ask(const char *question)
{
    struct external_run *x = run_of(mine.real);
    SCOPED(json_drop) cJSON *list = cJSON_Parse(question);
    const char *wrong = external_answer(mine.real, x, list);
    ck_assert_msg(wrong == NULL, "%s: %s", question, wrong);
    ck_assert_uint_lt(x->line.n, sizeof mine.answer);
    memcpy(mine.answer, x->line.p, x->line.n);
    mine.answer[x->line.n] = '\0';
    return mine.answer;
}

static enum resident_state ask_resident(struct sched *s, struct resident_key k)
{
    static const char *const states[] = {"absent", "pending", "ready"};
    char text[128];
    (void)s;
    (void)snprintf(text, sizeof text, "[[\"resident\",\"%s\",%u,%u]]",
                   k.kind == RESIDENT_GRAPH_BLOCK ? "graph_block" : "compiled_attention", k.a, k.b);
    (void)ask(text);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(text, sizeof text, "[\"answers\",[\"%s\"]]\n", states[i]);
        if (strcmp(text, mine.answer) == 0) {
            return (enum resident_state)i;
        }
    }
    ck_abort_msg("%s", mine.answer);
}

/* Estimates of random shapes, also on a device too many, are those of the call. */
static void check_estimate(struct sched *s, struct rng *r)
{
    static const char *const ops[] = {"qkv", "mha", "ffn", "head", "layer"};
    struct work_shape w = {.rows = 1 + rng_below(r, 40), .logit_rows = rng_below(r, 2)};
    w.sequences = 1 + rng_below(r, 3);
    w.prefill_rows = w.rows * rng_below(r, 2);
    w.attn_pairs = w.rows * 100;
    w.kv_read_tokens = w.rows * 10;
    w.max_context_tokens = w.rows + 100;
    uint32_t op = rng_below(r, OP_KIND_COUNT);
    uint8_t device = (uint8_t)rng_below(r, s->machine->n_devices + 1);
    uint32_t rows = rng_below(r, 2) * w.rows;
    uint32_t chunk = rng_below(r, 3) * 128;
    uint32_t form = rng_below(r, 4); /* how many of the members that may be left out are there */
    char more[64] = "";
    if (form > 0) {
        (void)snprintf(more, sizeof more,
                       form == 1   ? ",%u"
                       : form == 2 ? ",%u,%u"
                                   : ",%u,%u,0",
                       rows, chunk);
    }
    struct estimate e = {0};
    int rc = form < 2 ? sched_estimate(s, &w, (enum op_kind)op, device, form == 0 ? 0 : rows, &e)
                      : sched_estimate_graph(s, &w, (enum op_kind)op, device, rows, chunk, 0, &e);
    char text[256];
    (void)snprintf(text, sizeof text, "[[\"estimate\",[%u,%u,%u,%u,%llu,%llu,%u%s],\"%s\",%u%s]]",
                   w.rows, w.logit_rows, w.sequences, w.prefill_rows,
                   (unsigned long long)w.attn_pairs, (unsigned long long)w.kv_read_tokens,
                   w.max_context_tokens, rng_below(r, 2) > 0 ? ",0" : "", ops[op], device, more);
    SCOPED(json_drop) cJSON *answer = cJSON_Parse(ask(text));
    const cJSON *it = answer->child->next->child;
    ck_assert_msg(cJSON_IsArray(it) == (rc == 0), "%s: %s, and %d", text, mine.answer, rc);
    if (rc != 0) {
        ck_assert_int_eq(error_of(it->valuestring), rc);
        return;
    }
    const double wanted[] = {(double)e.t_ns, e.bytes_per_s, e.flop_per_byte, e.watts};
    ck_assert_int_eq(cJSON_GetArraySize(it), 5);
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq(cJSON_GetArrayItem(it, i)->valuedouble, wanted[i]);
    }
    ck_assert_int_eq(cJSON_IsTrue(cJSON_GetArrayItem(it, 4)), e.memory_bound);
}

static void check_questions(struct sched *s, struct rng *r)
{
    struct machine_state now = sched_machine_state(s);
    SCOPED(json_drop) cJSON *answer = cJSON_Parse(ask("[[\"machine_state\"]]"));
    const cJSON *it = answer->child->next->child->child;
    const double wanted[] = {now.memory_taken_bytes, now.memory_free_bytes, now.power_limit_watts,
                             now.battery_frac};
    for (int i = 0; i < 4; i++, it = it->next) {
        ck_assert(!isfinite(wanted[i]) || it->valuedouble == wanted[i]);
    }
    ck_assert_int_eq(cJSON_IsTrue(it), now.on_battery);
    check_estimate(s, r);
    for (uint32_t i = 0; i < mine.n; i++) {
        if (mine.things[i].kind == 'r' && mine.things[i].of != NULL) {
            char text[64];
            char reply[64];
            (void)snprintf(text, sizeof text, "[[\"draft\",%u],[\"oracle\",%u]]", mine.things[i].id,
                           mine.things[i].id);
            (void)snprintf(reply, sizeof reply, "[\"answers\",[%u,\"not_permitted\"]]\n",
                           sched_draft_tokens(s, mine.things[i].of));
            ck_assert_str_eq(ask(text), reply);
        }
    }
    ck_assert_str_eq(ask("[[\"draft\",4000000000]]"), "[\"answers\",[\"gone\"]]\n");
}

/* ---- lines that make no sense, at both sides of every limit ---- */

static const struct {
    const char *action, *wrong; /* NULL: it has the form, and is refused or done */
} forms[] = {
    {"[\"occupy\",255,1]", NULL},
    {"[\"timer\",-1]", "when"},
    {"[\"timer\",0.5]", "when"},
    {"[\"timer\",9.1e18]", "when"},
    {"[\"timer\",null]", "when"},
    {"[\"timer\"]", "when"},
    {"[\"timer\",1,2]", "more than the action has"},
    {"[\"kv_rank\",4294967295,4294967295]", NULL},
    {"[\"kv_rank\",4294967296,1]", "which request"},
    {"[\"kv_rank\",1,4294967296]", "which rank"},
    {"[\"kv_rank\",1]", "which rank"},
    {"[\"kv\",4294967295,\"elsewhere\"]", "where to: memory, cache, flash or nowhere"},
    {"[\"kv\",4294967295,\"nowhere\"]", NULL},
    {"[\"kv\",4294967295,\"nowhere\",7]", NULL},
    {"[\"kv\",4294967295,\"nowhere\",-7]", "from which token"},
    {"[\"kv\",4294967295,\"nowhere\",7,7]", "more than the action has"},
    {"[\"load\",\"graph_block\",1,1,-1]", "bytes"},
    {"[\"load\",\"graph_block\",1,1]", "bytes"},
    {"[\"load\",\"graph_block\",1,1,1.1e15]", "bytes"},
    {"[\"drop\",\"compiled_attention\",4294967295]", NULL},
    {"[\"drop\",\"compiled_attention\",4294967295,0]", NULL},
    {"[\"drop\",\"attention\",1]", "what kind of resident"},
    {"[\"drop\",\"compiled_attention\"]", "which resident"},
    {"[\"drop\",\"compiled_attention\",1,\"x\"]", "which resident"},
    {"[\"cancel\",4294967295]", NULL},
    {"[\"cancel\",\"1\"]", "which pass"},
    {"[\"preempt\",4294967295,{\"now\":true}]", NULL},
    {"[\"preempt\",4294967295,{\"now\":1}]", "now"},
    {"[\"preempt\",4294967295,{\"soon\":true}]", "the action has no such option"},
    {"[\"preempt\",4294967295,true]", "options are an object"},
    {"[\"preempt\",4294967295,{},{}]", "more than the action has"},
    {"[\"form\",4000000000,[]]", "a pass has segments"},
    {"[\"form\",4000000000,7]", "a pass has segments"},
    {"[\"form\",0,[[4294967295,\"decode\",1]]]", "the number of what it makes is not new"},
    {"[\"form\",4000000000,[[4294967295,\"decode\",1]]]", NULL},
    {"[\"form\",4000000000,[[4294967295,\"decode\",1]],true]", NULL},
    {"[\"form\",4000000000,[[4294967295,\"decode\",1]],1]", "fused"},
    {"[\"form\",4000000000,[[4294967295,\"decode\"]]]", "the tokens of a segment"},
    {"[\"form\",4000000000,[[4294967295,\"encode\",1]]]", "the role of a segment"},
    {"[\"form\",4000000000,[[\"x\",\"decode\",1]]]", "the request of a segment"},
    {"[\"launch\",0,4294967295,0]", "the number of what it makes is not new"},
    {"[\"launch\",4000000000,4294967295,2]", NULL},
    {"[\"launch\",4000000000,4294967295,3]", "there is no such device"},
    {"[\"launch\",4000000000,4294967295,0,{\"n_ops\":4294967296}]", "n_ops"},
    {"[\"launch\",4000000000,4294967295,0,{\"graph\":256}]", "graph"},
    {"[\"launch\",4000000000,4294967295,0,{\"yield\":\"never\"}]", "yield"},
    {"[\"launch\",4000000000,4294967295,0,{\"pass\":1}]", "the action has no such option"},
    {"[\"note\",7,1]", "the name of a counter, and how many"},
    {"[\"note\",\"it\",-1]", "the name of a counter, and how many"},
    {"[\"note\",\"it\",9.1e15]", "the name of a counter, and how many"},
    {"[\"dance\"]", "no such action"},
    {"[]", "no such action"},
    {"7", "no such action"},
};

static const struct {
    const char *question, *wrong;
} questions[] = {
    {"7", "questions come in an array"},
    {"[7]", "a question is an array that begins with its name"},
    {"[[\"weather\"]]", "no such question"},
    {"[[\"machine_state\",1]]", "more than the question has"},
    {"[[\"resident\",\"graph_block\"]]", "which resident"},
    {"[[\"resident\",\"graph_block\",1,1,1]]", "more than the question has"},
    {"[[\"draft\",-1]]", "which request"},
    {"[[\"estimate\",[1,1,1,1,1,1],\"qkv\",0]]", "the numbers of a shape"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkc\",0]]", "which op"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",256]]", "which device"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\"]]", "which device"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,-1]]", "rows"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,1,-1]]", "chunk_rows"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,1,1,256]]", "graph"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,1,1,0,0]]", "more than the question has"},
    {"[[\"estimate\",[1,1,1,1,9.1e15,1,1],\"qkv\",0]]", "the numbers of a shape"},
};

static void check_nonsense(struct sched *s)
{
    struct external_run *x = run_of(s);
    char text[256];
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        (void)snprintf(text, sizeof text, "[%s]", forms[i].action);
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(text);
        const char *wrong = external_act(s, x, tree);
        bool same = forms[i].wrong == NULL ? wrong == NULL
                                           : wrong != NULL && strcmp(wrong, forms[i].wrong) == 0;
        ck_assert_msg(same, "%s: %s", text, wrong != NULL ? wrong : "taken");
    }
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(questions[i].question);
        const char *wrong = external_answer(s, x, tree);
        ck_assert_msg(wrong != NULL && strcmp(wrong, questions[i].wrong) == 0, "%s: %s",
                      questions[i].question, wrong != NULL ? wrong : "taken");
    }
    x->refusals.n = x->n_refusals = 0;
    mine.nonsense = true;
}

/* ---- hooks ---- */

static const struct sched_api lines = {
    .size = sizeof(struct sched_api),
    .resident_state = ask_resident,
    .pass_form = say_form,
    .pass_cancel = say_cancel,
    .launch = say_launch,
    .preempt = say_preempt,
    .compile = say_compile,
    .load = say_load,
    .resident_evict = say_drop,
    .graph = say_graph,
    .kv_move = say_kv,
    .set_timer = say_timer,
};

static void use(struct sched *s)
{
    mine.real = s;
    mine.lines = *s;
    mine.lines.api = &lines;
    mine.lines.state = (char *)s->state + sizeof(struct external_run);
}

static void event(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void event(const char *fmt, ...)
{
    size_t used = strlen(mine.events);
    va_list ap;
    va_start(ap, fmt);
    used += (size_t)snprintf(mine.events + used, sizeof mine.events - used, used > 0 ? "," : "");
    used += (size_t)vsnprintf(mine.events + used, sizeof mine.events - used, fmt, ap);
    va_end(ap);
    ck_assert_uint_lt(used, sizeof mine.events);
}

static int init(struct sched *s)
{
    struct external_run *x = run_of(s);
    x->process.to = x->process.from = -1; /* there is none */
    use(s);
    text_string(&x->line, "what was written before");
    check_init(s);
    return wild.init(&mine.lines);
}

static void arrived(struct sched *s, const struct request *r)
{
    char at[4][24];
    use(s);
    mine.hooks.request_arrived(s, r);
    struct thing *t = add('r', r->id, r);
    row_of(t, t->told); /* the event has all of it */
    t->whole = true;
    number(at[0], r->arrival_ns);
    number(at[1], r->ttft_slo_ns);
    number(at[2], r->tbt_slo_ns);
    number(at[3], r->deadline_ns);
    event("[\"arrived\",%u,%u,%u,%u,\"%s\",%d,%s,%u,%u,%s,%s,%s,%u,%u,%s,%u,%u,%u,%s,%u]", r->id,
          r->session_id, r->turn, r->client_id,
          r->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive", r->priority, at[0],
          r->input_tokens, r->max_output_tokens, at[1], at[2], at[3], r->reused_tokens,
          r->kv_tokens, yes(r->kv_swapped), r->job_id, r->depth, r->waiters, yes(r->background),
          r->model);
    wild.request_arrived(&mine.lines, r);
}

static void cancelled(struct sched *s, const struct request *r)
{
    use(s);
    mine.hooks.request_cancelled(s, r);
    event("[\"cancelled\",%u]", r->id);
    wild.request_cancelled(&mine.lines, r);
}

static void launch_done(struct sched *s, const struct launch *l)
{
    static const char *const outcomes[] = {"done", "yielded", "withdrawn", "reset"};
    mine.hooks.launch_done(s, l);
    event("[\"launch_done\",%u,\"%s\"]", launch_number(l), outcomes[l->outcome]);
}

static void pass_done(struct sched *s, const struct pass *p)
{
    char list[256] = "";
    size_t used = 0;
    mine.hooks.pass_done(s, p);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", i > 0 ? "," : "",
                                 p->segments[i].emitted_tokens);
    }
    event("[\"pass_done\",%u,[%s]]", number_of(p), list);
}

static void resident_ready(struct sched *s, struct resident_key k)
{
    mine.hooks.resident_ready(s, k);
    event("[\"resident_ready\",\"%s\",%u,%u]",
          k.kind == RESIDENT_GRAPH_BLOCK ? "graph_block" : "compiled_attention", k.a, k.b);
}

static void kv_moved(struct sched *s, const struct request *r)
{
    mine.hooks.kv_moved(s, r);
    event("[\"kv_moved\",%u]", r->id);
}

/* What has ended keeps its last row until that is told: the core uses its struct again. */
static void bury(struct sched *s)
{
    look();
    external_bury(run_of(s));
    for (uint32_t i = 0; i < mine.n; i++) {
        struct thing *t = &mine.things[i];
        const struct request *r = t->kind == 'r' ? t->of : NULL;
        const struct pass *p = t->kind == 'p' ? t->of : NULL;
        const struct launch *l = t->kind == 'l' ? t->of : NULL;
        bool ended =
            (r != NULL && (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED)) ||
            (p != NULL && (p->state == PASS_STATE_DONE || p->state == PASS_STATE_CANCELLED)) ||
            (l != NULL && l->state == LAUNCH_STATE_ENDED);
        t->of = ended ? NULL : t->of;
    }
}

static void schedule(struct sched *s)
{
    struct rng r;
    rng_init(&r, rng_key(s->epoch, RNG_TEST, 93, 0));
    use(s);
    check_message(s, "schedule");
    check_questions(s, &r);
    wild.schedule(&mine.lines);
    if (rng_below(&r, 3) == 0) { /* as of a sync, in the middle */
        check_message(s, "result");
    }
    bury(s);
}

/* ---- tests ---- */

static void spoken(const struct policy_ops *like)
{
    static const char *const words[] = {"first", "middle", "last", NULL};
    static const struct policy_param params[] = {POLICY_INT("many", 3, 0, 9, ""),
                                                 POLICY_NUMBER("share", 0.25, 0, 1, ""),
                                                 POLICY_BOOL("flag", 1, ""),
                                                 POLICY_CHOICE("word", 2, words, ""),
                                                 POLICY_NUMBER("limit_s", 0, 0, 60, ""),
                                                 {0}};
    struct policy_ops *o = &mine.external.ops;
    memset(&mine, 0, sizeof mine);
    mine.external.n_params = 4;
    memcpy(mine.external.params, params, sizeof params);
    external_hooks(&mine.hooks);
    *o = mine.hooks;
    o->contract = (struct policy_contract)POLICY_CONTRACT;
    o->name = like->name; /* what it draws follows from that */
    o->summary = like->summary;
    o->needs = like->needs;
    o->params = mine.external.params;
    o->state_size_bytes = mine.hooks.state_size_bytes + like->state_size_bytes;
    o->init = init;
    o->request_arrived = arrived;
    o->request_cancelled = cancelled;
    o->launch_done = launch_done;
    o->pass_done = pass_done;
    o->resident_ready = resident_ready;
    o->kv_moved = kv_moved;
    o->schedule = schedule;
}

static void schedule_nonsense(struct sched *s)
{
    if (!mine.nonsense) {
        check_nonsense(s);
    }
    schedule(s);
}

START_TEST(what_is_malformed_is_told_by_what_lacks_at_both_sides_of_a_limit)
{
    uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, 500);
    wild_calls = 0;
    spoken(&wild);
    mine.external.ops.schedule = schedule_nonsense;
    scenario_policy(&sc, &mine.external.ops, "");
    ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
    ck_assert(mine.nonsense);
    scenario_fini(&sc);
}
END_TEST

START_TEST(a_policy_does_the_same_by_lines_as_by_calls)
{
    static struct scenario_record by_calls[MAX_REQUESTS];
    static struct sim_result result;
    const struct policy_ops *like = _i % 2 == 0 ? &wild : &wild_loads;
    uint32_t n = 0;
    for (int lines_too = 0; lines_too < 2; lines_too++) {
        n = randomload_make(&sc, q, MAX_REQUESTS, 500 + (uint64_t)_i);
        sc.llm.n_layers += 1; /* of which its graphs take two blocks */
        wild_calls = 0;
        if (lines_too > 0) {
            spoken(like);
        }
        scenario_policy(&sc, lines_too > 0 ? &mine.external.ops : like, "");
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
        if (lines_too == 0) {
            memcpy(by_calls, sc.records, n * sizeof sc.records[0]);
            result = sc.result;
            scenario_fini(&sc);
        }
    }
    ck_assert_mem_eq(by_calls, sc.records, n * sizeof sc.records[0]);
    for (int i = 0; i < COUNTER_COUNT; i++) {
        ck_assert_msg(result.counters[i] == sc.result.counters[i] || i == COUNTER_ORACLE_REFUSED,
                      "%s", counter_names[i]);
    }
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("spoken", .timeout_s = 60),
    TEST(what_is_malformed_is_told_by_what_lacks_at_both_sides_of_a_limit),
    LOOP(a_policy_does_the_same_by_lines_as_by_calls, LOADS),
};
SUITE_MAIN("spoken", suite)

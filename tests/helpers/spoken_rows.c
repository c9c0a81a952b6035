#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "tests/helpers/spoken.h"
#include "tests/helpers/suite.h"

struct spoken spoken;

struct external_run *spoken_run(const struct sched *s)
{
    return s->state;
}

/* ---- rows ---- */

void spoken_time(char *to, int64_t ns)
{
    if (ns == TIME_NEVER_NS) {
        (void)snprintf(to, 24, "null");
    } else {
        (void)snprintf(to, 24, "%lld", (long long)ns);
    }
}

const char *spoken_yes(bool is)
{
    return is ? "true" : "false";
}

uint32_t spoken_pass_number(const struct pass *p)
{
    for (uint32_t i = 0; p != NULL && i < spoken.n; i++) {
        if (spoken.things[i].of == p) {
            return spoken.things[i].id;
        }
    }
    return 0;
}

void spoken_row(const struct spoken_thing *t, char row[SPOKEN_ROW])
{
    static const char *const requests[] = {"queued", "decode", "finished", "shed"};
    static const char *const passes[] = {"ready", "running", "done", "cancelled"};
    static const char *const launches[] = {"queued", "running", "ended"};
    char at[3][24];
    if (t->kind == 'r') {
        const struct request *r = t->of;
        spoken_time(at[0], r->first_service_ns);
        spoken_time(at[1], r->first_token_ns);
        spoken_time(at[2], r->last_token_ns);
        (void)snprintf(row, SPOKEN_ROW, "[%u,\"%s\",%u,%u,%u,%s,%s,%s,%u,%s,%s,%" PRIu64, r->id,
                       requests[r->state], r->kv_tokens, r->generated_tokens,
                       spoken_pass_number(r->pass), at[0], at[1], at[2], r->preemptions,
                       spoken_yes(r->kv_swapped), spoken_yes(r->calls_tool), r->kv_state_tokens);
    } else if (t->kind == 'p') {
        const struct pass *p = t->of;
        (void)snprintf(row, SPOKEN_ROW, "[%u,\"%s\",%u,%u,%u,%u,%u", t->id, passes[p->state], p->op,
                       p->rows_todo, p->rows_active, p->last_op_devices, p->n_launches);
    } else {
        const struct launch *l = t->of;
        spoken_time(at[0], l->start_ns);
        (void)snprintf(row, SPOKEN_ROW, "[%u,\"%s\",%s,%s", t->id, launches[l->state],
                       spoken_yes(l->stop_requested), at[0]);
    }
}

struct spoken_thing *spoken_add(char kind, uint32_t id, const void *of)
{
    ck_assert_uint_lt(spoken.n, SPOKEN_MOST);
    struct spoken_thing *t = &spoken.things[spoken.n++];
    *t = (struct spoken_thing){.kind = kind, .id = id, .of = of};
    return t;
}

/* Fields of a pass or a launch that are reported once, at the end of its first row. */
static void once_of(const struct spoken_thing *t, char text[SPOKEN_ROW])
{
    text[0] = '\0';
    if (t->kind == 'p') {
        const struct pass *p = t->of;
        const struct work_shape *w = &p->shape;
        (void)snprintf(text, SPOKEN_ROW, ",%u,[%u,%u,%u,%u,%llu,%llu,%u,%u,%llu,%llu]", p->n_ops,
                       w->rows, w->logit_rows, w->sequences, w->prefill_rows,
                       (unsigned long long)w->attn_pairs, (unsigned long long)w->kv_read_tokens,
                       w->max_context_tokens, w->model, (unsigned long long)w->far_pairs,
                       (unsigned long long)w->far_keys);
    } else if (t->kind == 'l') {
        const struct launch *l = t->of;
        (void)snprintf(text, SPOKEN_ROW, ",%u,%u,%u", l->op_begin, l->op_end, l->rows);
    }
}

/* ---- messages ---- */

/* Is it a pass of which a launch is reported for the first time? */
static bool is_launched(const struct spoken_thing *t)
{
    for (uint32_t i = 0; i < spoken.n; i++) {
        const struct spoken_thing *l = &spoken.things[i];
        if (l->kind == 'l' && !l->whole && l->of != NULL && t->of != NULL &&
            ((const struct launch *)l->of)->pass == t->of) {
            return true;
        }
    }
    return false;
}

/* A section has exactly the rows of things of this kind that changed, and of launched passes. */
static void check_rows(const cJSON *section, char kind)
{
    ck_assert(cJSON_IsArray(section));
    uint32_t rows = 0;
    for (const cJSON *it = section->child; it != NULL; it = it->next, rows++) {
        OWNED char *row = json_text(it, false);
        row[strlen(row) - 1] = '\0'; /* without its bracket */
        struct spoken_thing *t = NULL;
        for (uint32_t i = 0; i < spoken.n && t == NULL; i++) {
            bool it_is = spoken.things[i].kind == kind &&
                         (double)spoken.things[i].id == it->child->valuedouble;
            t = it_is ? &spoken.things[i] : NULL;
        }
        ck_assert_msg(t != NULL && !t->seen, "a row of nothing, or twice: %s", row);
        ck_assert_msg(strcmp(row, t->now) == 0, "is %s, was reported as %s", t->now, row);
        t->seen = true;
    }
    uint32_t due = 0;
    for (uint32_t i = 0; i < spoken.n; i++) {
        struct spoken_thing *t = &spoken.things[i];
        bool news = t->kind == kind && (strcmp(t->now, t->reported) != 0 || is_launched(t));
        due += news;
        ck_assert_msg(!news || t->seen, "was not reported: %s (%s)", t->now, t->reported);
    }
    ck_assert_uint_eq(due, rows);
}

void spoken_look(void)
{
    for (uint32_t i = 0; i < spoken.n; i++) {
        struct spoken_thing *t = &spoken.things[i];
        if (t->of != NULL) {
            char once[SPOKEN_ROW] = "";
            spoken_row(t, t->now);
            if (!t->whole) {
                once_of(t, once);
                ck_assert_uint_lt(strlen(t->now) + strlen(once), SPOKEN_ROW);
                memcpy(t->now + strlen(t->now), once, strlen(once) + 1);
            }
        }
    }
}

static void reported(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < spoken.n; i++) {
        struct spoken_thing *t = &spoken.things[i];
        if (t->seen && t->of != NULL) {
            t->whole = true;
            spoken_row(t, t->now);
        }
        memcpy(t->reported, t->now, sizeof t->reported);
        t->seen = false;
        spoken.things[n] = *t;
        n += t->of != NULL; /* the end was reported */
    }
    spoken.n = n;
}

void spoken_check_message(struct sched *s, const char *what)
{
    struct external_run *x = spoken_run(s);
    uint32_t refused = x->n_refusals;
    spoken_look();
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
    char wanted[sizeof spoken.events + 2];
    (void)snprintf(wanted, sizeof wanted, "[%s]", spoken.events);
    ck_assert_str_eq(events, wanted);
    spoken.events[0] = '\0';
    check_rows(it = it->next, 'r');
    check_rows(it = it->next, 'p');
    check_rows(it = it->next, 'l');
    ck_assert_int_eq(cJSON_GetArraySize(it->next), (int)refused);
    ck_assert_uint_eq(x->n_refusals, 0);
    reported();
}

/* ---- the facts of a run ---- */

static void is(const cJSON *o, const char *name, double wanted)
{
    const cJSON *it = cJSON_GetObjectItemCaseSensitive(o, name);
    ck_assert_msg(cJSON_IsNumber(it) && it->valuedouble == wanted, "%s", name);
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
    IS(o, d, ddr_weight);
    ck_assert_int_eq(cJSON_GetArraySize(o), 18);
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
    IS(o, m, swap_fixed_ns);
    IS(o, m, loader_evict_ns);
    IS(o, m, compile_evict_ns);
    ck_assert_int_eq(cJSON_GetArraySize(o), 20);
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
    IS(o, m, sliding_window);
    IS(o, m, sliding_layers);
    IS(o, m, max_context);
    IS(o, m, shared_ffn);
    IS(o, m, dense_layers);
    IS(o, m, dense_ffn);
    IS(o, m, kv_state_bytes);
    const cJSON *layer = cJSON_GetObjectItemCaseSensitive(o, "layer");
    ck_assert_int_eq(cJSON_GetArraySize(layer), (int)m->layer.n);
    for (uint32_t i = 0; i < m->layer.n; i++) {
        ck_assert_str_eq(cJSON_GetArrayItem(layer, (int)i)->valuestring, ops[m->layer.kind[i]]);
    }
    ck_assert_int_eq(cJSON_GetArraySize(o), 29);
}

void spoken_check_init(struct sched *s)
{
    struct external_run *x = spoken_run(s);
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
    const cJSON *drafts = cJSON_GetObjectItemCaseSensitive(o, "draft_model");
    ck_assert_uint_eq(drafts != NULL ? (uint32_t)drafts->valueint : 0, s->draft_model);
}

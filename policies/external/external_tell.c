/* What an external policy is told: the facts of a run once, then what changed. */
#include <stdlib.h>
#include <string.h>

#include "policies/external/external_impl.h"
#include "policies/params.h"
#include "sim/base/json.h"

/* ---- the facts of a run ---- */

static void add_time(cJSON *o, const char *key, int64_t ns)
{
    cJSON_AddNumberToObject(o, key, (double)ns);
}

static void add_device(cJSON *all, const struct device *d)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(all, o);
    cJSON_AddStringToObject(o, "name", d->name);
    cJSON_AddStringToObject(o, "kind", device_kind_names()[d->kind]);
    cJSON_AddStringToObject(o, "sharing", d->sharing == DEVICE_SERIAL ? "serial" : "time_shared");
    cJSON_AddNumberToObject(o, "inflight_depth", d->inflight_depth);
    cJSON_AddNumberToObject(o, "max_shared", d->max_shared);
    cJSON_AddNumberToObject(o, "shared_efficiency_frac", d->shared_efficiency_frac);
    cJSON_AddNumberToObject(o, "chunk_rows", d->chunk_rows);
    cJSON_AddBoolToObject(o, "static_attention", d->static_attention);
    cJSON_AddBoolToObject(o, "can_withdraw", d->can_withdraw);
    cJSON_AddBoolToObject(o, "can_reset", d->can_reset);
    cJSON_AddBoolToObject(o, "can_suspend", d->can_suspend);
    cJSON_AddNumberToObject(o, "idle_watts", d->idle_watts);
    cJSON_AddNumberToObject(o, "decode_watts", d->decode_watts);
    cJSON_AddNumberToObject(o, "prefill_watts", d->prefill_watts);
    add_time(o, "submit_ns", d->submit_ns);
    add_time(o, "completion_ns", d->completion_ns);
    add_time(o, "reset_ns", d->reset_ns);
}

static void add_machine(cJSON *root, const struct machine *m)
{
    cJSON *o = cJSON_AddObjectToObject(root, "machine");
    cJSON_AddStringToObject(o, "name", m->name);
    cJSON *all = cJSON_AddArrayToObject(o, "devices");
    for (uint32_t i = 0; i < m->n_devices; i++) {
        add_device(all, &m->devices[i]);
    }
    cJSON_AddNumberToObject(o, "ddr_peak_bytes_per_s", m->ddr_peak_bytes_per_s);
    cJSON_AddNumberToObject(o, "ddr_cap_frac", m->ddr_cap_frac);
    add_time(o, "sync_ns", m->sync_ns);
    add_time(o, "schedule_ns", m->schedule_ns);
    add_time(o, "sample_ns_per_token", m->sample_ns_per_token);
    add_time(o, "compile_fixed_ns", m->compile_fixed_ns);
    cJSON_AddNumberToObject(o, "compile_ns_per_token", m->compile_ns_per_token);
    cJSON_AddNumberToObject(o, "compile_watts", m->compile_watts);
    cJSON_AddNumberToObject(o, "loader_bytes_per_s", m->loader_bytes_per_s);
    add_time(o, "loader_fixed_ns", m->loader_fixed_ns);
    cJSON_AddNumberToObject(o, "swap_bytes_per_s", m->swap_bytes_per_s);
    cJSON_AddNumberToObject(o, "memory_bytes", m->memory_bytes);
    cJSON_AddNumberToObject(o, "memory_usable_frac", m->memory_usable_frac);
    cJSON_AddNumberToObject(o, "idle_watts", m->idle_watts);
    cJSON_AddNumberToObject(o, "poll_watts", m->poll_watts);
}

static void add_llm(cJSON *root, const struct llm *m)
{
    cJSON *o = cJSON_AddObjectToObject(root, "llm");
    cJSON_AddStringToObject(o, "name", m->name);
    cJSON_AddNumberToObject(o, "n_layers", m->n_layers);
    cJSON_AddNumberToObject(o, "hidden", m->hidden);
    cJSON_AddNumberToObject(o, "heads", m->heads);
    cJSON_AddNumberToObject(o, "kv_heads", m->kv_heads);
    cJSON_AddNumberToObject(o, "head_dim", m->head_dim);
    cJSON_AddNumberToObject(o, "ffn_hidden", m->ffn_hidden);
    cJSON_AddNumberToObject(o, "vocab", m->vocab);
    cJSON_AddBoolToObject(o, "gated_ffn", m->gated_ffn);
    cJSON_AddBoolToObject(o, "tied_head", m->tied_head);
    cJSON_AddNumberToObject(o, "weight_bits", m->weight_bits);
    cJSON_AddNumberToObject(o, "act_bits", m->act_bits);
    cJSON_AddNumberToObject(o, "body_weights", m->body_weights);
    cJSON_AddNumberToObject(o, "head_weights", m->head_weights);
    cJSON_AddNumberToObject(o, "body_bytes_per_weight", m->body_bytes_per_weight);
    cJSON_AddNumberToObject(o, "head_bytes_per_weight", m->head_bytes_per_weight);
    cJSON_AddNumberToObject(o, "kv_bytes_per_element", m->kv_bytes_per_element);
    cJSON_AddNumberToObject(o, "weight_bytes", m->weight_bytes);
    cJSON_AddNumberToObject(o, "kv_bytes_per_token", m->kv_bytes_per_token);
    cJSON_AddNumberToObject(o, "n_experts", m->n_experts);
    cJSON_AddNumberToObject(o, "experts_per_token", m->experts_per_token);
    cJSON *layer = cJSON_AddArrayToObject(o, "layer");
    for (uint32_t i = 0; i < m->layer.n; i++) {
        cJSON_AddItemToArray(layer, cJSON_CreateString(words_ops[m->layer.kind[i]]));
    }
}

static void add_param(cJSON *o, const struct policy_param *p, double value)
{
    switch (p->type) {
    case PARAM_CHOICE:
        cJSON_AddStringToObject(o, p->name, p->choices[(uint32_t)value]);
        return;
    case PARAM_BOOL:
        cJSON_AddBoolToObject(o, p->name, value != 0.0);
        return;
    case PARAM_INT:
    case PARAM_NUMBER:
        break;
    }
    cJSON_AddNumberToObject(o, p->name, value);
}

void external_tell_init(struct sched *s, struct external_run *x)
{
    const struct external *own = (const struct external *)(const void *)s->policy;
    cJSON *root = cJSON_CreateObject();
    cJSON *o = cJSON_AddObjectToObject(root, "init");
    cJSON *params = cJSON_AddObjectToObject(o, "params");
    /* Its own alone: limit_s behind them is for this side. */
    for (uint32_t i = 0; i < own->n_params; i++) {
        add_param(params, &own->params[i], s->params->v[i]);
    }
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    cJSON_AddItemToObject(o, "seed", cJSON_CreateRaw(seed)); /* all 64 bits of it */
    cJSON_AddNumberToObject(o, "kv_block_tokens", s->kv_block_tokens);
    cJSON_AddNumberToObject(o, "kv_capacity_tokens", (double)sched_kv_capacity_tokens(s));
    add_machine(o, s->machine);
    add_llm(o, s->llm);
    char *text = json_text(root, false);
    x->line.n = 0;
    text_string(&x->line, text);
    text_char(&x->line, '\n');
    cJSON_free(text);
    cJSON_Delete(root);
}

/* ---- what changed ---- */

/* A fact each behind the state: (u)nsigned, (t)ime, (b)ool. */
static const char request_forms[] = "uuutttubb";
static const char pass_forms[] = "uuuuu";
static const char launch_forms[] = "bt";

struct facts external_request_facts(const struct request *r)
{
    const struct told_pass *pass = r->pass != NULL ? r->pass->policy_data : NULL;
    return (struct facts){{r->state, r->kv_tokens, r->generated_tokens, pass != NULL ? pass->id : 0,
                           (uint64_t)r->first_service_ns, (uint64_t)r->first_token_ns,
                           (uint64_t)r->last_token_ns, r->preemptions, r->kv_swapped,
                           r->calls_tool}};
}

/* Begins a row where something has changed since it was told, or was never. */
static bool begin_row(struct text *t, uint32_t id, const char *const *states, const char *forms,
                      const struct facts *now, struct facts *told, bool news)
{
    /* Facts are all of one type and without gaps between them, so that bytes compare as values do.
     */
    if (!news && memcmp(now, told, sizeof *now) == 0) {
        return false;
    }
    *told = *now;
    text_string(t, t->n > 0 ? ",[" : "[");
    text_u64(t, id);
    text_string(t, ",\"");
    text_string(t, states[now->v[0]]);
    text_char(t, '"');
    for (size_t i = 1; forms[i - 1] != '\0'; i++) {
        text_char(t, ',');
        if (forms[i - 1] == 't') {
            text_ns(t, (int64_t)now->v[i]);
        } else if (forms[i - 1] == 'b') {
            text_bool(t, now->v[i] != 0);
        } else {
            text_u64(t, now->v[i]);
        }
    }
    return true;
}

static void request_changes(struct external_run *x, const struct request *r)
{
    struct facts now = external_request_facts(r);
    struct text *t = &x->changed_requests;
    if (begin_row(t, r->id, words_request_states, request_forms, &now, r->own, false)) {
        text_char(t, ']');
    }
}

static void pass_changes(struct external_run *x, struct told_pass *told)
{
    const struct pass *p = told->p;
    struct facts now = {
        {p->state, p->op, p->rows_todo, p->rows_active, p->last_op_devices, p->n_launches}};
    struct text *t = &x->changed_passes;
    if (!begin_row(t, told->id, words_pass_states, pass_forms, &now, &told->told, !told->whole)) {
        return;
    }
    if (!told->whole) {
        const struct work_shape *w = &p->shape;
        text_next_u64(t, p->n_ops);
        text_string(t, ",[");
        text_u64(t, w->rows);
        text_next_u64(t, w->logit_rows);
        text_next_u64(t, w->sequences);
        text_next_u64(t, w->prefill_rows);
        text_next_u64(t, w->attn_pairs);
        text_next_u64(t, w->kv_read_tokens);
        text_next_u64(t, w->max_context_tokens);
        text_char(t, ']');
        told->whole = true;
    }
    text_char(t, ']');
}

static void launch_changes(struct external_run *x, struct told_launch *told)
{
    const struct launch *l = told->l;
    struct facts now = {{l->state, l->stop_requested, (uint64_t)l->start_ns}};
    struct text *t = &x->changed_launches;
    if (!begin_row(t, told->id, words_launch_states, launch_forms, &now, &told->told,
                   !told->whole)) {
        return;
    }
    if (!told->whole) {
        text_next_u64(t, l->op_begin);
        text_next_u64(t, l->op_end);
        text_next_u64(t, l->rows);
        told->whole = true;
    }
    text_char(t, ']');
}

static void section(struct text *line, struct text *t)
{
    text_string(line, ",[");
    text_add(line, t->p, t->n);
    text_char(line, ']');
    t->n = 0;
}

/* Compared with what was told and not noted where it changes: the core changes these in dozens of
 * places, and only what lives is looked at. */
static void all_changes(struct external_run *x)
{
    for (uint32_t i = 0; i < x->n_requests; i++) {
        request_changes(x, x->requests[i]);
    }
    for (uint32_t i = 0; i < x->n_passes; i++) {
        pass_changes(x, x->passes[i]);
    }
    for (uint32_t i = 0; i < x->n_launches; i++) {
        launch_changes(x, &x->launches[i]);
    }
}

void external_tell(struct sched *s, struct external_run *x, const char *what)
{
    all_changes(x);
    struct text *t = &x->line;
    t->n = 0;
    text_string(t, "[\"");
    text_string(t, what);
    text_string(t, "\",");
    text_ns(t, s->now_ns);
    text_next_u64(t, s->epoch);
    text_next_u64(t, sched_kv_free_tokens(s));
    text_string(t, ",[");
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        text_string(t, d > 0 ? "," : "");
        text_u64(t, sched_device_free_slots(s, (uint8_t)d));
    }
    text_char(t, ']');
    section(t, &x->events);
    section(t, &x->changed_requests);
    section(t, &x->changed_passes);
    section(t, &x->changed_launches);
    section(t, &x->refusals);
    text_string(t, "]\n");
    x->n_refusals = 0;
}

/* After the call and not at the event: the program may name in its answer what ended just before
 * it, and is told of that in the same message. What ended is written down for the next message now,
 * because the core uses its structs again after this call. */
void external_bury(struct external_run *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_requests; i++) {
        const struct request *r = x->requests[i];
        bool dead = r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED;
        if (dead) {
            request_changes(x, r);
        } else {
            x->requests[n++] = r;
        }
    }
    x->n_requests = n;
    n = 0;
    for (uint32_t i = 0; i < x->n_launches; i++) {
        if (x->launches[i].l->state == LAUNCH_STATE_ENDED) {
            launch_changes(x, &x->launches[i]);
        } else {
            x->launches[n++] = x->launches[i];
        }
    }
    x->n_launches = n;
    n = 0;
    for (uint32_t i = 0; i < x->n_passes; i++) {
        struct told_pass *p = x->passes[i];
        if (p->p->state == PASS_STATE_DONE || p->p->state == PASS_STATE_CANCELLED) {
            pass_changes(x, p);
            free(p);
        } else {
            x->passes[n++] = p;
        }
    }
    x->n_passes = n;
}

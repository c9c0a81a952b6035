/* Messages to an external policy: first the facts of a run, then the changes. */
#include "policies/external/external_impl.h"

/* ---- fields of the messages ---- */

static const char *const words_device_kinds[] = {DEVICE_KINDS(DEVICE_KIND_NAME_) NULL};

/* Tables of the members that the lists of sim/api name. */
#define X(member) FIELD(ROW_OF, member, #member, NULL)
#define W(member, words) FIELD(ROW_OF, member, #member, words)
#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

#define ROW_OF device
static const struct field device_rows[] = {DEVICE_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF machine
static const struct field machine_rows[] = {MACHINE_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF llm
static const struct field llm_rows[] = {LLM_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF request
static const struct field arrival_rows[] = {REQUEST_ARRIVED_FIELDS(X, W)};
static const struct field request_rows[] = {REQUEST_CHANGED_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF pass
static const struct field pass_rows[] = {PASS_CHANGED_FIELDS(X, W)};
static const struct field formed_rows[] = {PASS_FORMED_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF launch
static const struct field launch_rows[] = {LAUNCH_CHANGED_FIELDS(X, W)};
static const struct field made_rows[] = {LAUNCH_MADE_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF work_shape
static const struct field shape_rows[] = {WORK_SHAPE_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF estimate
static const struct field estimate_rows[] = {ESTIMATE_FIELDS(X, W)};
#undef ROW_OF
#define ROW_OF machine_state
static const struct field machine_state_rows[] = {MACHINE_STATE_FIELDS(X, W)};
#undef ROW_OF

const struct fields external_arrival = {arrival_rows, N(arrival_rows)};
const struct fields external_shape = {shape_rows, N(shape_rows)};
const struct fields external_estimate = {estimate_rows, N(estimate_rows)};
const struct fields external_machine_state = {machine_state_rows, N(machine_state_rows)};
static const struct fields machine_fields = {machine_rows, N(machine_rows)};
static const struct fields device_fields = {device_rows, N(device_rows)};
static const struct fields llm_fields = {llm_rows, N(llm_rows)};
static const struct fields request_fields = {request_rows, N(request_rows)};
static const struct fields pass_fields = {pass_rows, N(pass_rows)};
static const struct fields formed_fields = {formed_rows, N(formed_rows)};
static const struct fields launch_fields = {launch_rows, N(launch_rows)};
static const struct fields made_fields = {made_rows, N(made_rows)};

/* ---- the facts of a run ---- */

/* cJSON may print 15 digits only. A program must get exactly the number that a policy in C has. */
static void add_number(cJSON *o, const char *name, double x)
{
    char digits[32];
    SIM_ASSERT(isfinite(x));
    (void)snprintf(digits, sizeof digits, "%.15g", x);
    if (strtod(digits, NULL) != x) {
        (void)snprintf(digits, sizeof digits, "%.17g", x);
    }
    cJSON_AddRawToObject(o, name, digits);
}

static void add_members(cJSON *o, const void *of, const struct fields *fields)
{
    for (uint32_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->rows[i];
        if (f->words != NULL) {
            cJSON_AddStringToObject(o, f->name, f->words[field_u64(of, f)]);
        } else if (f->type == FIELD_TEXT) {
            cJSON_AddStringToObject(o, f->name, (const char *)of + f->offset);
        } else if (f->type == FIELD_FLAG) {
            cJSON_AddBoolToObject(o, f->name, field_u64(of, f) != 0);
        } else if (f->type == FIELD_NUMBER) {
            add_number(o, f->name, field_number(of, f));
        } else {
            cJSON_AddNumberToObject(o, f->name, (double)(int64_t)field_u64(of, f));
        }
    }
}

static void add_machine(cJSON *root, const struct machine *m)
{
    cJSON *o = cJSON_AddObjectToObject(root, "machine");
    cJSON_AddStringToObject(o, "name", m->name);
    cJSON *all = cJSON_AddArrayToObject(o, "devices");
    for (uint32_t i = 0; i < m->n_devices; i++) {
        cJSON *device = cJSON_CreateObject();
        cJSON_AddItemToArray(all, device);
        add_members(device, &m->devices[i], &device_fields);
    }
    add_members(o, m, &machine_fields);
}

static void add_llm(cJSON *o, const struct llm *m)
{
    add_members(o, m, &llm_fields);
    cJSON *layer = cJSON_AddArrayToObject(o, "layer");
    for (uint32_t i = 0; i < m->layer.n; i++) {
        cJSON_AddItemToArray(layer, cJSON_CreateString(words_ops[m->layer.kind[i]]));
    }
}
const char *const external_param_types[] = {"number", "int", "bool", "choice", NULL};

void external_add_param(cJSON *o, const char *name, const struct policy_param *p, double value)
{
    switch (p->type) {
    case PARAM_CHOICE:
        cJSON_AddStringToObject(o, name, p->choices[(uint32_t)value]);
        return;
    case PARAM_BOOL:
        cJSON_AddBoolToObject(o, name, value != 0.0);
        return;
    case PARAM_INT:
    case PARAM_NUMBER:
        break;
    }
    add_number(o, name, value);
}

void external_tell_init(struct sched *s, struct external_run *x)
{
    const struct external *own = (const struct external *)(const void *)s->policy;
    SCOPED(json_drop) cJSON *root = cJSON_CreateObject();
    cJSON *o = cJSON_AddObjectToObject(root, "init");
    cJSON *params = cJSON_AddObjectToObject(o, "params");
    /* Without limit_s, which is for this side. */
    for (uint32_t i = 0; i < own->n_params; i++) {
        external_add_param(params, own->params[i].name, &own->params[i], s->params->v[i]);
    }
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    cJSON_AddItemToObject(o, "seed", cJSON_CreateRaw(seed)); /* all 64 bits */
    JSON_MEMBERS(o, "kv_block_tokens", s->kv_block_tokens, "kv_capacity_tokens",
                 (double)sched_kv_capacity_tokens(s));
    add_machine(o, s->machine);
    add_llm(cJSON_AddObjectToObject(o, "llm"), s->llm);
    cJSON *models = s->n_models > 1 ? cJSON_AddArrayToObject(o, "models") : NULL;
    for (uint32_t i = 0; models != NULL && i < s->n_models; i++) {
        cJSON *m = cJSON_CreateObject();
        cJSON_AddItemToArray(models, m);
        add_llm(m, s->models[i]);
    }
    if (s->draft_model > 0) {
        cJSON_AddNumberToObject(o, "draft_model", s->draft_model);
    }
    OWNED char *text = json_text(root, false);
    x->line.n = 0;
    text_string(&x->line, text);
    text_char(&x->line, '\n');
}

/* ---- what changed ---- */

static void write_value(struct text *t, const struct field *f, uint64_t v)
{
    if (f->words != NULL) {
        text_format(t, "\"%s\"", f->words[v]);
    } else if (f->type == FIELD_FLAG) {
        text_bool(t, v != 0);
    } else if (f->type == FIELD_NS || f->type == FIELD_I32) {
        text_ns(t, (int64_t)v);
    } else {
        text_u64(t, v);
    }
}

void external_write(struct text *t, const void *of, const struct fields *fields)
{
    for (uint32_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->rows[i];
        if (t->n > 0 && t->p[t->n - 1] != '[') {
            text_char(t, ',');
        }
        if (f->type == FIELD_NUMBER) {
            text_double(t, field_number(of, f));
        } else {
            write_value(t, f, field_u64(of, f));
        }
    }
}

static struct facts facts_of(const void *of, const struct fields *fields)
{
    struct facts now = {{0}};
    SIM_ASSERT(fields->n <= N(now.v));
    for (uint32_t i = 0; i < fields->n; i++) {
        now.v[i] = field_u64(of, &fields->rows[i]);
        if (fields->rows[i].type == FIELD_PASS) { /* the program's number; 0: none */
            const struct pass *p = (const struct pass *)(uintptr_t)now.v[i];
            now.v[i] = p != NULL ? ((const struct told_pass *)p->policy_data)->id : 0;
        }
    }
    return now;
}

struct facts external_request_facts(const struct request *r)
{
    return facts_of(r, &request_fields);
}

/* Begins a row if a field differs from the last sent one, or if this is the first row (news). */
static bool begin_row(struct text *t, uint32_t id, const void *of, const struct fields *fields,
                      struct facts *told, bool news)
{
    struct facts now = facts_of(of, fields);
    /* memcmp is sufficient, because facts have one type and no padding. */
    if (!news && memcmp(&now, told, sizeof now) == 0) {
        return false;
    }
    *told = now;
    text_string(t, t->n > 0 ? ",[" : "[");
    text_u64(t, id);
    for (uint32_t i = 0; i < fields->n; i++) {
        text_char(t, ',');
        write_value(t, &fields->rows[i], now.v[i]);
    }
    return true;
}

static void request_changes(struct external_run *x, const struct request *r)
{
    struct text *t = &x->changed_requests;
    if (begin_row(t, r->id, r, &request_fields, r->own, false)) {
        text_char(t, ']');
    }
}

static void pass_changes(struct external_run *x, struct told_pass *told)
{
    struct text *t = &x->changed_passes;
    if (!begin_row(t, told->id, told->p, &pass_fields, &told->told, !told->whole)) {
        return;
    }
    if (!told->whole) {
        external_write(t, told->p, &formed_fields);
        text_string(t, ",[");
        external_write(t, &told->p->shape, &external_shape);
        text_char(t, ']');
        told->whole = true;
    }
    text_char(t, ']');
}

static void launch_changes(struct external_run *x, struct told_launch *told)
{
    struct text *t = &x->changed_launches;
    if (!begin_row(t, told->id, told->l, &launch_fields, &told->told, !told->whole)) {
        return;
    }
    if (!told->whole) {
        external_write(t, told->l, &made_fields);
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

/* Compares with the last sent facts instead of recording changes: the core changes these fields in
 * dozens of places, and only live objects are compared. */
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

/* Removes ended objects after the call and not at their event, because the answer to the message
 * about an end may still name the object. Writes their last changes now, for the next message: the
 * core reuses their structs after this call. */
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

/* Named quantities: reads them, and finds the runs that they need. */
#include "experiments/claims/quantities.h"

#include "experiments/claims/quantities_impl.h"
#include "experiments/run/expr.h"
#include "experiments/run/runner.h"

/* ---- reading ---- */

static bool same_sets(const cJSON *a, const cJSON *b)
{
    return a == b || (a != NULL && b != NULL && cJSON_Compare(a, b, true));
}

static struct quantity_cell *cell_add(struct quantities *q, const struct quantity_place *place,
                                      const char *policy, const char *workload, const char *path)
{
    struct quantity_cell *c = xcalloc(1, sizeof *c);
    c->place = *place;
    c->policy = policy;
    c->workload = workload;
    c->path = path;
    LIST_ADD(q->cells, q->n_cells, c);
    return c;
}

/* Quantities may share a run. */
static void read_run(struct quantities *q, struct quantity_def *d, struct json_obj *o)
{
    struct quantity_place place = quantity_place_read(o);
    const char *policy = json_get_string(o, "policy");
    const char *workload = json_get_string(o, "workload");
    for (uint32_t i = 0; i < q->n_cells; i++) {
        const struct quantity_cell *c = q->cells[i];
        if (c->n_rates == 0 && strcmp(c->place.soc, place.soc) == 0 &&
            strcmp(c->place.llm, place.llm) == 0 && same_sets(c->place.sets, place.sets) &&
            strcmp(c->policy, policy) == 0 && strcmp(c->workload, workload) == 0) {
            d->cell = i;
            return;
        }
    }
    d->cell = q->n_cells;
    (void)cell_add(q, &place, policy, workload, o->path);
}

static void read_sustained(struct quantities *q, struct quantity_def *d, struct json_obj *o)
{
    struct quantity_place place = quantity_place_read(o);
    const char *policy = json_get_string(o, "policy");
    const char *workload = json_get_string(o, "workload");
    d->cell = q->n_cells;
    struct quantity_cell *c = cell_add(q, &place, policy, workload, o->path);
    d->metric = c->metric = json_get_string(o, "metric");
    c->at_most = json_get_number(o, "at_most", 0.0, 1e12);
    c->n_rates = (uint32_t)json_get_array_size(o, "rates", 2, QUANTITIES_MAX_RATES);
    const cJSON *rates = json_member(o->node, "rates");
    for (uint32_t i = 0; i < c->n_rates; i++) {
        const cJSON *r = cJSON_GetArrayItem(rates, (int)i);
        c->rates[i] = cJSON_IsNumber(r) ? r->valuedouble : 0.0;
        if (!(c->rates[i] > (i == 0 ? 0.0 : c->rates[i - 1])) ||
            strstr(workload, QUANTITY_RATE_MARK) == NULL) {
            json_refuse(o, NULL,
                        "must have a workload with " QUANTITY_RATE_MARK
                        " in it and rising positive rates");
            return;
        }
    }
}

/* Kinds that are computed when read. */
static const struct {
    const char *name;
    quantity_form *value;
} fixed_forms[] = {{"kernel", quantity_kernel},
                   {"corun", quantity_corun},
                   {"machine", quantity_machine},
                   {"amortized", quantity_amortized},
                   {"verification", quantity_verification},
                   {"graphs", quantity_graphs},
                   {"lengths", quantity_lengths},
                   {"drafts", quantity_drafts},
                   {"texts", quantity_texts}};

static bool read_fixed(struct quantity_def *d, struct json_obj *o)
{
    for (size_t i = 0; i < sizeof fixed_forms / sizeof fixed_forms[0]; i++) {
        if (json_has(o, fixed_forms[i].name)) {
            struct json_obj in = json_get_object(o, fixed_forms[i].name);
            d->form = QUANTITY_FIXED;
            d->fixed = fixed_forms[i].value(&in);
            json_done(&in);
            return true;
        }
    }
    return false;
}

static void read_one(struct quantities *q, struct quantity_def *d, struct json_obj *o)
{
    static const char *const forms[] = {"run", "sustained", "acceptance"};
    int form = -1;
    for (int i = 0; i < 3 && form < 0; i++) {
        form = json_has(o, forms[i]) ? i : -1;
    }
    if (form >= 0) {
        struct json_obj in = json_get_object(o, forms[form]);
        if (form == 0) {
            d->form = QUANTITY_RUN;
            read_run(q, d, &in);
        } else if (form == 1) {
            d->form = QUANTITY_SUSTAINED;
            read_sustained(q, d, &in);
        } else {
            d->form = QUANTITY_ACCEPTANCE;
            d->acceptance = quantity_acceptance(&in);
        }
        json_done(&in);
    } else if (!read_fixed(d, o)) {
        json_refuse(o, NULL,
                    "must hold one of run, sustained, kernel, corun, machine, acceptance, "
                    "amortized, verification, graphs, lengths, drafts, texts");
        return;
    }
    json_done(o);
}

/* Room for one more definition. */
static struct quantity_def *def_add(struct quantities *q, const char *name, uint32_t setup)
{
    q->v = xgrow(q->v, q->n, sizeof *q->v);
    struct quantity_def *d = &q->v[q->n++];
    *d = (struct quantity_def){.name = name, .setup = setup};
    return d;
}

int quantities_read(struct quantities *q, struct json_obj *o)
{
    *q = (struct quantities){.file = o->file, .definitions = *o, .seed = 1};
    size_t before = o->err->n;
    uint32_t n = (uint32_t)cJSON_GetArraySize(o->node);
    if (n > QUANTITIES_MAX) {
        return json_refuse(o, NULL, "more than %d quantities", QUANTITIES_MAX);
    }
    struct setup stated = {.set = {.n = 0}};
    (void)quantities_setup(q, &stated);
    const cJSON *item;
    cJSON_ArrayForEach (item, o->node) {
        struct quantity_def *d = def_add(q, item->string, 0);
        struct json_obj one = json_get_object(o, item->string);
        if (one.node != NULL) {
            read_one(q, d, &one);
        }
    }
    return o->err->n > before ? -EINVAL : 0;
}

void quantities_fini(struct quantities *q)
{
    for (uint32_t i = 0; i < q->n_cells; i++) {
        OWNED struct quantity_cell *c = q->cells[i];
        if (c->used) {
            config_fini(&c->config);
        }
        metric_list_fini(&c->names);
        machines_fini(&c->drawn);
        free(c->values);
    }
    for (uint32_t i = 0; i < q->n; i++) {
        free(q->v[i].acceptance);
    }
    for (uint32_t i = 0; i < q->n_setups; i++) {
        cJSON_Delete(q->copies[i]);
    }
    free(q->copies);
    free(q->setups);
    free(q->cells);
    free(q->v);
    *q = (struct quantities){.n = 0};
}

/* ---- set-ups ---- */

uint32_t quantities_setup(struct quantities *q, const struct setup *s)
{
    for (uint32_t i = 0; i < q->n_setups; i++) {
        if (setup_is_same(&q->setups[i], s)) {
            return i;
        }
    }
    q->setups = xgrow(q->setups, q->n_setups, sizeof *q->setups);
    q->copies = xgrow(q->copies, q->n_setups, sizeof(cJSON *));
    q->setups[q->n_setups] = *s;
    q->copies[q->n_setups] = cJSON_CreateObject();
    return q->n_setups++;
}

/* The quantity called the first n characters of name, or NULL. */
static struct quantity_def *find_under(const struct quantities *q, const char *name, size_t n,
                                       uint32_t setup)
{
    for (uint32_t i = 0; i < q->n; i++) {
        if (q->v[i].setup == setup && strlen(q->v[i].name) == n &&
            strncmp(q->v[i].name, name, n) == 0) {
            return &q->v[i];
        }
    }
    return NULL;
}

/* Reads a stated quantity again, under a set-up. NULL with a message if that fails. */
static struct quantity_def *define_under(struct quantities *q, const char *stated, uint32_t setup,
                                         char *message)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    const cJSON *item = json_member(q->definitions.node, stated);
    cJSON_AddItemToObject(q->copies[setup], stated, setup_apply(&q->setups[setup], item));
    struct json_obj o = q->definitions;
    o.node = q->copies[setup];
    o.err = &e;
    struct json_obj one = json_get_object(&o, stated);
    uint32_t at = q->n;
    read_one(q, def_add(q, one.node->string, setup), &one);
    (void)snprintf(message, EXPR_MESSAGE_BYTES, "%.180s", e.n > 0 ? e.lines[0] : "");
    bool good = e.n == 0;
    return good ? &q->v[at] : NULL;
}

/* ---- needed runs ---- */

static int cell_mark(struct quantities *q, uint32_t index, char *message)
{
    struct quantity_cell *c = q->cells[index];
    if (c->used) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "%.60s: as above", c->path);
        return c->loaded ? 0 : -1;
    }
    c->used = true;
    struct err e = ERR_INIT;
    int rc = quantity_options(&c->place, &c->options, &e);
    c->options.workload = c->workload;
    rc = rc == 0 ? config_load(&c->config, &c->options, &e) : rc;
    rc = rc == 0 ? config_policy_parse(&c->chosen, c->policy, &e) : rc;
    OWNED char *first = c->n_rates > 0 ? quantity_put_rate(c->workload, c->rates[0]) : NULL;
    c->options.workload = first != NULL ? first : c->workload;
    rc = rc == 0 ? config_trace_check(&c->options, q->seed, CONFIG_AS_WRITTEN, NULL, &e) : rc;
    c->options.workload = c->workload;
    if (rc != 0) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "%.60s: %.120s", c->path,
                       e.n > 0 ? e.lines[0] : "unknown error");
        err_fini(&e);
        return -1;
    }
    runner_metric_names(&c->config, false, &c->names);
    c->loaded = true;
    return 0;
}

/* Finds the quantity `name` up to its colon, and the metric, as replaced by the set-up. */
static struct quantity_def *find(const struct quantities *q, const char *name, uint32_t setup,
                                 const char **metric)
{
    size_t n = strcspn(name, ":");
    *metric = name[n] == ':' ? setup_metric(&q->setups[setup], name + n + 1) : NULL;
    return find_under(q, name, n, setup);
}

int quantities_mark(void *ctx, const char *name, double *out, char *message)
{
    const struct quantity_scope *scope = ctx;
    struct quantities *q = scope->q;
    const char *metric;
    struct quantity_def *d = find(q, name, scope->setup, &metric);
    *out = 1.0;
    if (d == NULL && scope->setup > 0) {
        const struct quantity_def *stated = find_under(q, name, strcspn(name, ":"), 0);
        d = stated != NULL ? define_under(q, stated->name, scope->setup, message) : NULL;
        if (stated != NULL && d == NULL) {
            return -1;
        }
    }
    if (d == NULL) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "no quantity is called %.60s", name);
        return -1;
    }
    if ((metric != NULL) != (d->form == QUANTITY_RUN)) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES,
                       "%.60s: a run is named with a metric (NAME:metric), other things without",
                       name);
        return -1;
    }
    metric = d->form == QUANTITY_SUSTAINED ? d->metric : metric;
    bool runs = d->form == QUANTITY_RUN || d->form == QUANTITY_SUSTAINED;
    if (runs && cell_mark(q, d->cell, message) != 0) {
        return -1;
    }
    if (runs && metric_list_find(&q->cells[d->cell]->names, metric) == NULL) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "no metric is called %.80s", metric);
        return -1;
    }
    d->used = true;
    return 0;
}

int quantities_fixed(void *ctx, const char *name, double *out, char *message)
{
    const struct quantity_def *d = find_under(ctx, name, strcspn(name, ":"), 0);
    *out = 1.0;
    if (d == NULL || d->form != QUANTITY_FIXED) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "%.60s needs runs", name);
        return -1;
    }
    return 0;
}

/* ---- values ---- */

static double cell_value(const struct quantity_cell *c, const char *metric, uint32_t replication,
                         uint32_t replications)
{
    size_t k = 0;
    if (c->n_rates == 0) {
        k = (size_t)(metric_list_find(&c->names, metric) - c->names.v);
    }
    return c->values[k * replications + replication];
}

int quantities_value(void *ctx, const char *name, double *out, char *message)
{
    const struct quantity_reader *r = ctx;
    const char *metric;
    const struct quantity_def *d = find(r->q, name, r->setup, &metric);
    if (d == NULL) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "no quantity is called %.60s", name);
        return -1;
    }
    if (d->form == QUANTITY_FIXED) {
        *out = d->fixed;
    } else if (d->form == QUANTITY_ACCEPTANCE) {
        *out = quantity_acceptance_draw(d->acceptance, r->q->seed, r->replication);
    } else {
        *out = cell_value(r->q->cells[d->cell], metric, r->replication, r->q->replications);
    }
    return 0;
}

/* Claims files: reading, selection, evaluation. */
#include "experiments/claims/claims.h"

#include "experiments/run/expr.h"

#define MAX_CLAIMS 256
#define CLAIMS_MAX_READINGS 16
#define READING_STATED "stated"
#define DEFAULT_TOLERANCE_FRAC 0.1 /* the papers print at least two digits */

/* ---- reading ---- */

static void read_headline(struct json_obj *o, struct claim_check *k)
{
    k->headline = json_get_string(o, "says");
    k->decides = json_get_string(o, "decides");
    k->takes = json_get_string(o, "takes");
    json_done(o);
}

static void read_check(struct json_obj *o, struct claim_check *k)
{
    if (json_has(o, "headline")) {
        struct json_obj headline = json_get_object(o, "headline");
        read_headline(&headline, k);
    }
    k->name = json_get_string(o, "name");
    k->unit = json_string_or(o, "unit", "");
    k->value = json_get_string(o, "value");
    k->neutral = json_number_or(o, "neutral", -1e15, 1e15, (double)NAN);
    k->informative = json_flag(o, "informative");
    k->ours = json_flag(o, "ours");
    k->every_trace = json_flag(o, "every_trace");
    k->tolerance_frac = json_number_or(o, "tolerance_frac", 0.0, 1.0, DEFAULT_TOLERANCE_FRAC);
    int forms = json_has(o, "published") + json_has(o, "published_low") + json_has(o, "above") +
                json_has(o, "below");
    /* Exactly one kind of check, so that no verdict depends on a choice. */
    if (forms != 1) {
        json_refuse(o, NULL,
                    "must hold exactly one of published, published_low with "
                    "published_high, above, below");
        return;
    }
    if (k->every_trace && !json_has(o, "above") && !json_has(o, "below")) {
        json_refuse(o, "every_trace", "is for above and below only");
        return;
    }
    if (json_has(o, "above") || json_has(o, "below")) {
        k->kind = json_has(o, "above") ? CHECK_ABOVE : CHECK_BELOW;
        k->low = k->high =
            json_get_number(o, k->kind == CHECK_ABOVE ? "above" : "below", -1e15, 1e15);
    } else if (json_has(o, "published")) {
        k->low = k->high = json_get_number(o, "published", -1e15, 1e15);
    } else {
        k->low = json_get_number(o, "published_low", -1e15, 1e15);
        k->high = json_get_number(o, "published_high", k->low, 1e15);
    }
    json_done(o);
}

static void read_claim(struct json_obj *o, struct claim *c)
{
    c->reading = READING_STATED;
    c->id = json_get_string(o, "id");
    c->where = json_get_string(o, "where");
    c->statement = json_get_string(o, "statement");
    c->text_setup = json_string_or(o, "setup", NULL);
    c->set_by = json_string_or(o, "set_by", NULL);
    c->note = json_string_or(o, "note", NULL);
    c->not_modellable = json_string_or(o, "not_modellable", NULL);
    if (json_has(o, "checks") == (c->not_modellable != NULL)) {
        json_refuse(o, NULL, "must hold either checks or not_modellable");
    } else if (c->not_modellable == NULL) {
        c->n_checks = (uint32_t)json_get_array_size(o, "checks", 1, CLAIMS_MAX_CHECKS);
        for (uint32_t i = 0; i < c->n_checks; i++) {
            struct json_obj k = json_array_object(o, "checks", (int)i);
            read_check(&k, &c->checks[i]);
        }
    }
}

/* Adds a row of the same claim, under the named reading. */
static void read_reading(struct claims *c, uint32_t stated, struct json_obj *all, const char *name,
                         const struct json_obj *o)
{
    if (all->node == NULL || !json_has(all, name)) {
        json_refuse(o, "readings", "the file has no reading \"%s\"", name);
        return;
    }
    struct json_obj r = json_get_object(all, name);
    c->v = xgrow(c->v, c->n, sizeof *c->v);
    struct claim *one = &c->v[c->n++];
    *one = c->v[stated];
    one->reading = name;
    one->why = json_get_string(&r, "why");
    setup_read(&one->setup, &r);
    json_done(&r);
}

/* Reads a claim's list of readings, and the one that counts. */
static void read_readings(struct claims *c, uint32_t stated, struct json_obj *o,
                          struct json_obj *all)
{
    uint32_t n = json_has(o, "readings")
                     ? (uint32_t)json_get_array_size(o, "readings", 1, CLAIMS_MAX_READINGS)
                     : 0;
    const cJSON *list = json_member(o->node, "readings");
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *name = cJSON_GetArrayItem(list, (int)i);
        read_reading(c, stated, all, cJSON_IsString(name) ? name->valuestring : "", o);
    }
    const char *take = json_string_or(o, "take", READING_STATED);
    bool found = false;
    for (uint32_t i = stated; i < c->n; i++) {
        c->v[i].taken = strcmp(c->v[i].reading, take) == 0;
        found = found || c->v[i].taken;
    }
    if (!found) {
        json_refuse(o, "take", "\"%s\" is none of its readings", take);
    }
    json_done(o);
}

static int read_all(struct claims *c, const char *path, struct err *e)
{
    struct json_obj root = json_root(c->trees[c->n_books], path, e);
    const char *paper = json_get_string(&root, "paper");
    (void)json_get_string(&root, "source");
    struct json_obj q = json_get_object(&root, "quantities");
    if (q.node == NULL || quantities_read(&c->books[c->n_books], &q) != 0) {
        return -EINVAL;
    }
    struct json_obj readings = {.node = NULL};
    if (json_has(&root, "readings")) {
        readings = json_get_object(&root, "readings");
    }
    if (json_has(&root, "independent")) {
        struct json_obj machine = json_get_object(&root, "independent");
        (void)json_get_string(&machine, "why");
        setup_read(&c->independent[c->n_books], &machine);
        json_done(&machine);
    }
    uint32_t n = (uint32_t)json_get_array_size(&root, "claims", 1, MAX_CLAIMS);
    for (uint32_t i = 0; i < n; i++) {
        struct json_obj o = json_array_object(&root, "claims", (int)i);
        c->v = xgrow(c->v, c->n, sizeof *c->v);
        uint32_t stated = c->n++;
        c->v[stated] = (struct claim){.paper = paper, .book = c->n_books};
        read_claim(&o, &c->v[stated]);
        for (uint32_t k = 0; k < stated && c->v[stated].id != NULL; k++) {
            if (strcmp(c->v[k].id, c->v[stated].id) == 0) {
                (void)err_add(e, "%s: claims[%u].id: \"%s\" is there twice", path, i, c->v[k].id);
                break;
            }
        }
        read_readings(c, stated, &o, &readings);
    }
    json_done(&root);
    return e->n > 0 ? -EINVAL : 0;
}

int claims_read(struct claims *c, const char *path, struct err *e)
{
    if (c->n_books == CLAIMS_MAX_BOOKS) {
        return err_add(e, "%s: more than %d claims files", path, CLAIMS_MAX_BOOKS);
    }
    c->trees[c->n_books] = json_read_file(path, e);
    if (c->trees[c->n_books] == NULL) {
        return -EINVAL;
    }
    int rc = read_all(c, path, e);
    c->n_books++;
    return rc;
}

void claims_fini(struct claims *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        for (uint32_t k = 0; k < c->v[i].n_checks; k++) {
            free(c->v[i].checks[k].x);
        }
    }
    for (uint32_t i = 0; i < c->n_books; i++) {
        quantities_fini(&c->books[i]);
        cJSON_Delete(c->trees[i]);
    }
    free(c->v);
    *c = (struct claims){.n = 0};
}

int claims_select(struct claims *c, const char *const *ids, uint32_t n, struct err *e)
{
    if (n == 0) {
        return 0;
    }
    for (uint32_t k = 0; k < n; k++) {
        bool found = false;
        for (uint32_t i = 0; i < c->n; i++) {
            found = found || strcmp(c->v[i].id, ids[k]) == 0;
        }
        if (!found) {
            (void)err_add(e, "%s: no claim has this id; `xpusim claims --list` shows all", ids[k]);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool wanted = false;
        for (uint32_t k = 0; k < n; k++) {
            wanted = wanted || strcmp(c->v[i].id, ids[k]) == 0;
        }
        if (wanted) {
            c->v[kept++] = c->v[i];
        }
    }
    c->n = kept;
    return e->n > 0 ? -EINVAL : 0;
}

int claims_choose(struct claims *c, const char *reading, struct err *e)
{
    bool all = strcmp(reading, "all") == 0;
    bool taken = strcmp(reading, "taken") == 0;
    bool found = all || taken;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool named = strcmp(c->v[i].reading, reading) == 0;
        found = found || named;
        if (all || named || (taken && c->v[i].taken)) {
            c->v[kept++] = c->v[i];
        }
    }
    if (!found) {
        return err_add(e,
                       "--reading %s: no claim has this reading; `xpusim claims --list` shows "
                       "all",
                       reading);
    }
    c->n = kept;
    return 0;
}

int claims_change(struct claims *c, const struct setup *s, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < c->n && rc == 0; i++) {
        rc = setup_add(&c->v[i].setup, s, e);
    }
    return rc;
}

bool claims_counts(const struct claims *c, uint32_t at)
{
    uint32_t first = at;
    while (first > 0 && strcmp(c->v[first - 1].id, c->v[at].id) == 0) {
        first--;
    }
    for (uint32_t i = first; i < c->n && strcmp(c->v[i].id, c->v[at].id) == 0; i++) {
        if (c->v[i].taken) {
            return i == at;
        }
    }
    return first == at;
}

int claims_add_independent(struct claims *c, struct err *e)
{
    struct claim *all = xcalloc(2 * (size_t)c->n + 1, sizeof *all);
    uint32_t n = 0;
    int rc = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct setup *machine = &c->independent[c->v[i].book];
        all[n++] = c->v[i];
        if (claims_counts(c, i) && !setup_is_empty(machine)) {
            all[n] = c->v[i];
            all[n].independent = true;
            rc = rc == 0 ? setup_add(&all[n].setup, machine, e) : rc;
            n++;
        }
    }
    free(c->v);
    c->v = all;
    c->n = n;
    return rc;
}

void claims_set_by(struct claims *c, const char *id, const char *why)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct claim *one = &c->v[i];
        if (one->set_by == NULL && (id == NULL || strcmp(one->id, id) == 0)) {
            one->set_by = why;
        }
    }
}

/* ---- evaluating ---- */

static int mark(struct claims *c, struct err *e)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct claim *one = &c->v[i];
        struct quantities *book = &c->books[one->book];
        one->scope = quantities_setup(book, &one->setup);
        struct quantity_scope scope = {book, one->scope};
        struct expr_names names = {&scope, quantities_mark};
        for (uint32_t k = 0; k < one->n_checks; k++) {
            char message[EXPR_MESSAGE_BYTES];
            double v;
            if (expr_eval(one->checks[k].value, &names, &v, message) != 0) {
                (void)err_add(e, "%s: claim %s (%s), check \"%s\": %s", book->file, one->id,
                              one->reading, one->checks[k].name, message);
            }
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void fill_check(const struct quantities *q, uint32_t setup, struct claim_check *k)
{
    struct quantity_reader reader = {.q = q, .setup = setup};
    struct expr_names names = {&reader, quantities_value};
    k->x = xcalloc(q->replications + 1, sizeof *k->x);
    for (uint32_t r = 0; r < q->replications; r++) {
        char message[EXPR_MESSAGE_BYTES];
        reader.replication = r;
        (void)expr_eval(k->value, &names, &k->x[r], message); /* marked before: cannot fail */
    }
}

int claims_run(struct claims *c, const struct quantities_options *o, struct err *e)
{
    if (mark(c, e) != 0) {
        return -EINVAL;
    }
    /* All claims are evaluated together, so that shared runs are made once. */
    int rc = quantities_run(c->books, c->n_books, o, e);
    for (uint32_t i = 0; i < c->n; i++) {
        struct claim *one = &c->v[i];
        for (uint32_t k = 0; k < one->n_checks; k++) {
            fill_check(&c->books[one->book], one->scope, &one->checks[k]);
        }
        claim_judge(one, o->replications);
    }
    return rc;
}

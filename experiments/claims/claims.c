/* Claims files: reading, choosing, evaluating. */
#include "experiments/claims/claims.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/expr.h"
#include "sim/base/arena.h"

#define MAX_CLAIMS 256
#define DEFAULT_TOLERANCE_FRAC 0.1 /* two digits are what the papers print at least */

/* ---- reading ---- */

static const char *optional_string(struct json_obj *o, const char *key)
{
    return json_has(o, key) ? json_get_string(o, key) : NULL;
}

static double optional_number(struct json_obj *o, const char *key, double otherwise)
{
    return json_has(o, key) ? json_get_number(o, key, -1e15, 1e15) : otherwise;
}

static void read_check(struct json_obj *o, struct claim_check *k)
{
    k->name = json_get_string(o, "name");
    k->unit = json_has(o, "unit") ? json_get_string(o, "unit") : "";
    k->value = json_get_string(o, "value");
    k->neutral = optional_number(o, "neutral", (double)NAN);
    k->informative = json_has(o, "informative") && json_get_bool(o, "informative");
    k->tolerance_frac = json_has(o, "tolerance_frac")
                            ? json_get_number(o, "tolerance_frac", 0.0, 1.0)
                            : DEFAULT_TOLERANCE_FRAC;
    int forms = json_has(o, "published") + json_has(o, "published_low") + json_has(o, "above") +
                json_has(o, "below");
    if (forms != 1) {
        (void)err_add(o->err,
                      "%s: %s: must hold exactly one of published, published_low with "
                      "published_high, above, below",
                      o->file, o->path);
        return;
    }
    if (json_has(o, "above") || json_has(o, "below")) {
        k->kind = json_has(o, "above") ? CHECK_ABOVE : CHECK_BELOW;
        k->low = k->high = optional_number(o, k->kind == CHECK_ABOVE ? "above" : "below", 0.0);
    } else if (json_has(o, "published")) {
        k->low = k->high = optional_number(o, "published", 0.0);
    } else {
        k->low = optional_number(o, "published_low", 0.0);
        k->high = json_get_number(o, "published_high", k->low, 1e15);
    }
    json_done(o);
}

static void read_claim(struct json_obj *o, struct claim *c)
{
    c->id = json_get_string(o, "id");
    c->where = json_get_string(o, "where");
    c->statement = json_get_string(o, "statement");
    c->set_by = optional_string(o, "set_by");
    c->note = optional_string(o, "note");
    c->not_modellable = optional_string(o, "not_modellable");
    if (json_has(o, "checks") == (c->not_modellable != NULL)) {
        (void)err_add(o->err, "%s: %s: must hold either checks or not_modellable", o->file,
                      o->path);
    } else if (c->not_modellable == NULL) {
        c->n_checks = (uint32_t)json_get_array_size(o, "checks", 1, CLAIMS_MAX_CHECKS);
        for (uint32_t i = 0; i < c->n_checks; i++) {
            struct json_obj k = json_array_object(o, "checks", (int)i);
            read_check(&k, &c->checks[i]);
        }
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
    uint32_t n = (uint32_t)json_get_array_size(&root, "claims", 1, MAX_CLAIMS);
    c->v = xrealloc(c->v, (c->n + n) * sizeof *c->v);
    for (uint32_t i = 0; i < n; i++) {
        struct claim *one = &c->v[c->n + i];
        *one = (struct claim){.paper = paper, .book = c->n_books};
        struct json_obj o = json_array_object(&root, "claims", (int)i);
        read_claim(&o, one);
        for (uint32_t k = 0; k < c->n + i && one->id != NULL; k++) {
            if (strcmp(c->v[k].id, one->id) == 0) {
                (void)err_add(e, "%s: claims[%u].id: \"%s\" is there twice", path, i, one->id);
            }
        }
    }
    c->n += n;
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

/* ---- evaluating ---- */

static int mark(struct claims *c, struct err *e)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct claim *one = &c->v[i];
        struct expr_names names = {&c->books[one->book], quantities_mark};
        for (uint32_t k = 0; k < one->n_checks; k++) {
            char message[EXPR_MESSAGE_BYTES];
            double v;
            if (expr_eval(one->checks[k].value, &names, &v, message) != 0) {
                (void)err_add(e, "%s: claim %s, check \"%s\": %s", c->books[one->book].file,
                              one->id, one->checks[k].name, message);
            }
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void fill_check(const struct quantities *q, struct claim_check *k)
{
    struct quantity_reader reader = {.q = q};
    struct expr_names names = {&reader, quantities_value};
    k->x = xcalloc(q->replications + 1, sizeof *k->x);
    for (uint32_t r = 0; r < q->replications; r++) {
        char message[EXPR_MESSAGE_BYTES];
        reader.replication = r;
        (void)expr_eval(k->value, &names, &k->x[r], message); /* was marked: cannot fail */
    }
}

int claims_evaluate(struct claims *c, const struct quantities_options *o, struct err *e)
{
    if (mark(c, e) != 0) {
        return -EINVAL;
    }
    int rc = 0;
    for (uint32_t i = 0; i < c->n_books; i++) {
        int one = quantities_compute(&c->books[i], o, e);
        rc = one != 0 ? one : rc;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        struct claim *one = &c->v[i];
        for (uint32_t k = 0; k < one->n_checks; k++) {
            fill_check(&c->books[one->book], &one->checks[k]);
        }
        claim_judge(one, o->replications);
    }
    return rc;
}

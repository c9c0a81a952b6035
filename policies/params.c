#include "policies/params.h"

#include "sim/base/nearest.h"
#include "sim/base/words.h"

#define MAX_PARAMS (sizeof((struct policy_params *)NULL)->v / sizeof(double))

uint32_t policy_params_count(const struct policy_ops *ops)
{
    uint32_t n = 0;
    while (ops->params != NULL && ops->params[n].name != NULL) {
        n++;
    }
    SIM_REQUIRE(n <= MAX_PARAMS, "policy %s has %u parameters", ops->name, n);
    return n;
}

static int bad_value(const struct policy_ops *ops, const struct policy_param *p, const char *text,
                     struct err *e)
{
    char *names;
    switch (p->type) {
    case PARAM_CHOICE:
        names = words_list(p->choices, ", ");
        (void)err_add(e, "policy %s: %s=%s: must be one of %s", ops->name, p->name, text, names);
        free(names);
        return -EINVAL;
    case PARAM_BOOL:
        return err_add(e, "policy %s: %s=%s: must be true or false", ops->name, p->name, text);
    case PARAM_INT:
        return err_add(e, "policy %s: %s=%s: must be a whole number from %.15g to %.15g", ops->name,
                       p->name, text, p->min, p->max);
    case PARAM_NUMBER:
        break;
    }
    return err_add(e, "policy %s: %s=%s: must be a number from %.15g to %.15g", ops->name, p->name,
                   text, p->min, p->max);
}

static bool parse_bool(const char *text, double *out)
{
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool no = strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    *out = yes ? 1.0 : 0.0;
    return yes || no;
}

static bool parse_number(const struct policy_param *p, const char *text, double *out)
{
    char *end = NULL;
    double x = strtod(text, &end);
    /* strtod also takes leading blanks, "nan" and "infinity"; a parameter must be written as a
     * number. */
    bool starts = *text != '\0' && strchr("+-.0123456789", *text) != NULL;
    bool inf = strcmp(text, "inf") == 0 && isinf(p->max); /* a timeout of "never" */
    if ((!starts && !inf) || *end != '\0' || isnan(x) || x < p->min || x > p->max) {
        return false;
    }
    *out = x;
    return p->type != PARAM_INT || x == floor(x);
}

static int parse_value(const struct policy_ops *ops, const struct policy_param *p, const char *text,
                       double *out, struct err *e)
{
    bool ok;
    if (p->type == PARAM_CHOICE) {
        int i = words_find(p->choices, text);
        *out = i >= 0 ? i : *out;
        ok = i >= 0;
    } else {
        ok = p->type == PARAM_BOOL ? parse_bool(text, out) : parse_number(p, text, out);
    }
    return ok ? 0 : bad_value(ops, p, text, e);
}

static int unknown_key(const struct policy_ops *ops, const char *key, struct err *e)
{
    if (policy_params_count(ops) == 0) {
        return err_add(e, "policy %s: it has no parameters, so none is called %s", ops->name, key);
    }
    SCOPED(text_fini) struct text names = {0};
    struct nearest near;
    nearest_init(&near, key);
    for (size_t i = 0; ops->params[i].name != NULL; i++) {
        text_item(&names, ", ", ops->params[i].name);
        nearest_look(&near, ops->params[i].name);
    }
    return err_add(e, "policy %s: no parameter is called %s; there are %s%s", ops->name, key,
                   text_end(&names), nearest_hint(&near));
}

/* Parses one "key=value". given: bit set of the keys so far. */
static int parse_entry(const struct policy_ops *ops, char *entry, struct policy_params *out,
                       uint64_t *given, struct err *e)
{
    char *equals = strchr(entry, '=');
    if (equals == NULL || equals == entry) {
        return err_add(e, "policy %s: '%s': must be key=value", ops->name, entry);
    }
    *equals = '\0';
    for (uint32_t i = 0; i < out->n; i++) {
        if (strcmp(ops->params[i].name, entry) != 0) {
            continue;
        }
        if ((*given >> i & 1u) != 0) {
            return err_add(e, "policy %s: %s is given twice", ops->name, entry);
        }
        *given |= UINT64_C(1) << i;
        return parse_value(ops, &ops->params[i], equals + 1, &out->v[i], e);
    }
    return unknown_key(ops, entry, e);
}

/* Parses every "key=value" of a text. */
static int parse_entries(const struct policy_ops *ops, const char *text, struct policy_params *out,
                         struct err *e)
{
    int rc = 0;
    uint64_t given = 0;
    for (const char *p = text; p != NULL && *p != '\0';) {
        size_t len = strcspn(p, ",");
        OWNED char *entry = xformat("%.*s", (int)len, p);
        /* Continue after an error, so that all errors are reported. */
        if (parse_entry(ops, entry, out, &given, e) != 0) {
            rc = -EINVAL;
        }
        p += len + (p[len] == ',' ? 1 : 0);
    }
    return rc;
}

int policy_params_parse(const struct policy_ops *ops, const char *text, struct policy_params *out,
                        struct err *e)
{
    memset(out, 0, sizeof *out);
    out->n = policy_params_count(ops);
    for (uint32_t i = 0; i < out->n; i++) {
        out->v[i] = ops->params[i].def;
    }
    int rc = parse_entries(ops, text, out, e);
    if (rc != 0 || ops->presets == NULL) {
        return rc;
    }
    /* The choice is known now: apply its preset. */
    rc = parse_entries(ops, ops->presets[(uint32_t)out->v[0]], out, e);
    /* The user's values override the preset. */
    return rc == 0 ? parse_entries(ops, text, out, e) : rc;
}

void policy_param_add(struct text *t, const struct policy_param *p, double value)
{
    switch (p->type) {
    case PARAM_CHOICE:
        text_string(t, p->choices[(uint32_t)value]);
        return;
    case PARAM_BOOL:
        text_bool(t, value != 0.0);
        return;
    case PARAM_INT:
        text_format(t, "%" PRId64, (int64_t)value);
        return;
    case PARAM_NUMBER:
        break;
    }
    /* 15 digits reproduce every number that was written with at most 15. */
    text_format(t, "%.15g", value);
}

const char *policy_params_format(const struct policy_ops *ops, const struct policy_params *params)
{
    struct text t = {0};
    for (uint32_t i = 0; i < params->n; i++) {
        text_item(&t, ",", ops->params[i].name);
        text_char(&t, '=');
        policy_param_add(&t, &ops->params[i], params->v[i]);
    }
    return xkeep(text_end(&t));
}

char *policy_params_with(const char *defaults, const char *text)
{
    SCOPED(text_fini) struct text t = {0};
    for (const char *p = defaults; *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (text_list_key(text, p, strcspn(p, "=")) == NULL) {
            text_add(&t, p, n);
            text_char(&t, ',');
        }
        p += n;
    }
    text_string(&t, text);
    if (t.n > 0 && *text == '\0') {
        t.n--; /* drop the last comma */
    }
    return xstrdup(text_end(&t));
}

#include "traces/spec_keys.h"

#include "sim/base/nearest.h"
#include "sim/base/words.h"

void spec_keys_init(struct spec_keys *k)
{
    for (uint32_t i = 0; i < k->n_numbers; i++) {
        k->v[i] = k->numbers[i].def;
    }
    k->seen = 0;
}

int spec_keys_find(const struct spec_keys *k, const char *key)
{
    for (uint32_t i = 0; i < k->n_numbers; i++) {
        if (strcmp(key, k->numbers[i].name) == 0) {
            return (int)i;
        }
    }
    int text = k->texts != NULL ? words_find(k->texts, key) : -1;
    return text >= 0 ? (int)k->n_numbers + text : -1;
}

static void key_unknown(const struct spec_keys *k, const char *spec, const char *key, struct err *e)
{
    SCOPED(text_fini) struct text known = {0};
    struct nearest near;
    nearest_init(&near, key);
    for (uint32_t i = 0; i < k->n_numbers; i++) {
        text_item(&known, " ", k->numbers[i].name);
        nearest_look(&near, k->numbers[i].name);
    }
    for (uint32_t i = 0; k->texts != NULL && k->texts[i] != NULL; i++) {
        text_item(&known, " ", k->texts[i]);
        nearest_look(&near, k->texts[i]);
    }
    err_add(e, "workload \"%s\": unknown key \"%s\"%s (known: %s)", spec, key, nearest_hint(&near),
            text_end(&known));
}

void spec_keys_set(struct spec_keys *k, const char *spec, const char *key, const char *value,
                   struct err *e)
{
    int i = spec_keys_find(k, key);
    if (i < 0) {
        key_unknown(k, spec, key, e);
        return;
    }
    /* Silently using the later value would mislead readers of the spec. */
    if ((k->seen & 1ULL << i) != 0) {
        err_add(e, "workload \"%s\": %s is given twice", spec, key);
    }
    k->seen |= 1ULL << i;
    if (i >= (int)k->n_numbers) {
        if (value[0] == '\0') {
            err_add(e, "workload \"%s\": %s: needs a name", spec, key);
        } else {
            k->t[i - (int)k->n_numbers] = xkeep(xstrdup(value));
        }
        return;
    }
    const struct spec_key *n = &k->numbers[i];
    char *end = NULL;
    double v = strtod(value, &end);
    if (end == value || *end != '\0' || !(v >= n->min && v <= n->max) ||
        (n->whole && v != floor(v))) {
        err_add(e, "workload \"%s\": %s: \"%s\" must be a %snumber from %g to %g", spec, key, value,
                n->whole ? "whole " : "", n->min, n->max);
        return;
    }
    k->v[i] = v;
}

void spec_keys_parse(struct spec_keys *k, const char *spec, const char *list, struct err *e)
{
    OWNED char *copy = xstrdup(list);
    char *save = NULL;
    for (char *part = strtok_r(copy, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(part, '=');
        if (eq == NULL) {
            err_add(e, "workload \"%s\": \"%s\" must be key=value", spec, part);
            continue;
        }
        *eq = '\0';
        spec_keys_set(k, spec, part, eq + 1, e);
    }
}

void spec_keys_help(const struct spec_key *numbers, uint32_t n, FILE *out)
{
    for (uint32_t i = 0; i < n; i++) {
        (void)fprintf(out, "  %-20s %-8g %s\n", numbers[i].name, numbers[i].def, numbers[i].help);
    }
}

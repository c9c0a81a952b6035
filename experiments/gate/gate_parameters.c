/* The values of policies' parameters, as recorded in a baseline: "a=1,b=2". */
#include "experiments/gate/gate.h"

const char *gate_parameters_find(const struct gate_cells *c, const char *policy)
{
    for (uint32_t i = 0; i < c->n_parameters; i++) {
        if (strcmp(c->parameters[i].policy, policy) == 0) {
            return c->parameters[i].text;
        }
    }
    return NULL;
}

void gate_parameters_add(struct gate_cells *c, const char *policy, const char *text)
{
    if (gate_parameters_find(c, policy) == NULL) {
        KEPT_ADD(c->parameters, c->n_parameters,
                 (struct gate_parameters){xkept(xstrdup(policy)), xkept(xstrdup(text))});
    }
}

/* Appends the parameters of x that y lacks, or has with different values. */
static void put_changes(const char *x, const char *y, const char *lacking, struct text *to)
{
    while (*x != '\0') {
        size_t n = strcspn(x, ",");
        size_t value = strcspn(x, "=") + 1;
        const char *other = text_list_key(y, x, value - 1);
        size_t length = other != NULL ? strcspn(other, ",") : 0;
        const char *between = to->n > 0 ? ", " : "";
        if (other == NULL) {
            text_format(to, "%s%.*s %s", between, (int)n, x, lacking);
        } else if (length != n || strncmp(other, x, n) != 0) {
            text_format(to, "%s%.*s, was %.*s", between, (int)n, x, (int)(length - value),
                        other + value);
        }
        x += n + (x[n] == ',');
    }
}

const char *gate_parameters_changes(const char *was, const char *now)
{
    struct text changes = {0};
    put_changes(now, was, "is new", &changes);
    if (changes.n == 0) {
        put_changes(was, now, "is gone", &changes);
    }
    return xkeep(text_end(&changes));
}

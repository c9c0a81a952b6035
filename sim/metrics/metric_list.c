#include "sim/metrics/metrics.h"

void metric_list_put(struct metric_list *l, double value, const char *fmt, ...)
{
    l->v = xgrow(l->v, l->n, sizeof *l->v);
    struct metric *m = &l->v[l->n++];
    memset(m, 0, sizeof *m);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(m->name, sizeof m->name, fmt, ap);
    va_end(ap);
    m->value = value;
}

const struct metric *metric_list_find(const struct metric_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->v[i].name, name) == 0) {
            return &l->v[i];
        }
    }
    return NULL;
}

void metric_list_fini(struct metric_list *l)
{
    free(l->v);
    *l = (struct metric_list){0};
}

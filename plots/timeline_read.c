#include "plots/timeline_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_START "{\"ph\":\""

static const cJSON *args(const cJSON *o)
{
    return cJSON_GetObjectItemCaseSensitive(o, "args");
}

double timeline_number(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(v) && isfinite(v->valuedouble) ? v->valuedouble : 0.0;
}

double timeline_arg(const cJSON *o, const char *name)
{
    return timeline_number(args(o), name);
}

const char *timeline_text(const cJSON *o, const char *name)
{
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return v == NULL ? "" : v;
}

const char *timeline_arg_text(const cJSON *o, const char *name)
{
    return timeline_text(args(o), name);
}

int timeline_read(const char *path, const char *phases, void (*event)(void *ctx, const cJSON *o),
                  void *ctx, struct err *e)
{
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        return err_add(e, "%s: cannot read: %s", path, strerror(errno));
    }
    char *line = NULL;
    size_t cap = 0;
    size_t number = 0;
    size_t events = 0;
    int rc = 0;
    for (ssize_t len; rc == 0 && (len = getline(&line, &cap, in)) > 0;) {
        number++;
        if (number == 1 && strstr(line, "traceEvents") == NULL) {
            break;
        }
        size_t start = strlen(EVENT_START);
        if (strncmp(line, EVENT_START, start) != 0) {
            continue; /* the brackets around the events */
        }
        events++;
        if (line[start] == '\0' || strchr(phases, line[start]) == NULL) {
            continue;
        }
        cJSON *o = cJSON_Parse(line); /* what follows the object, a comma, is not read */
        if (o == NULL) {
            rc = err_add(e, "%s:%zu: not an event", path, number);
        } else {
            event(ctx, o);
        }
        cJSON_Delete(o);
    }
    free(line);
    (void)fclose(in);
    if (rc == 0 && events == 0) {
        rc = err_add(e, "%s: no timeline: expected what `xpusim run --timeline` writes", path);
    }
    return rc;
}

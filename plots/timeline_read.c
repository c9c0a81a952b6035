#include "plots/timeline_read.h"

#include "sim/base/input.h"
#include "sim/base/json.h"

#define EVENT_START "{\"ph\":\""

static const cJSON *args(const cJSON *o)
{
    return json_member(o, "args");
}

double timeline_number(const cJSON *o, const char *name)
{
    const cJSON *v = json_member(o, name);
    return cJSON_IsNumber(v) && isfinite(v->valuedouble) ? v->valuedouble : 0.0;
}

double timeline_arg(const cJSON *o, const char *name)
{
    return timeline_number(args(o), name);
}

const char *timeline_text(const cJSON *o, const char *name)
{
    const char *v = cJSON_GetStringValue(json_member(o, name));
    return v == NULL ? "" : v;
}

const char *timeline_arg_text(const cJSON *o, const char *name)
{
    return timeline_text(args(o), name);
}

int timeline_lines(const char *path, const char *phases,
                   bool (*take)(void *ctx, char phase, const char *line), void *ctx, struct err *e)
{
    SCOPED(input_drop) FILE *in = input_open_any(path, NULL, e);
    if (in == NULL) {
        return -EINVAL;
    }
    struct input_line l = {0};
    size_t events = 0;
    uint64_t last = 0;
    bool whole = false; /* the last line closes the brackets */
    int rc = 0;
    int got = 0;
    while (rc == 0 && (got = input_next(in, path, &l, e)) == 1) {
        const char *line = l.text;
        if (l.number == 1 && strstr(line, "traceEvents") == NULL) {
            break;
        }
        size_t start = strlen(EVENT_START);
        last = l.number;
        whole = strncmp(line, "]}", 2) == 0;
        if (strncmp(line, EVENT_START, start) != 0) {
            continue; /* brackets around the events */
        }
        events++;
        /* Every line begins with its phase, so lines of unneeded phases are skipped without
         * parsing: a timeline of an hour has hundreds of MB. */
        if (line[start] == '\0' || strchr(phases, line[start]) == NULL) {
            continue;
        }
        if (!take(ctx, line[start], line)) {
            rc = err_add(e, "%s:%llu: not an event", path, (unsigned long long)l.number);
        }
    }
    free(l.text);
    rc = got < 0 ? got : rc;
    if (rc == 0 && events == 0) {
        rc = err_add(e, "%s: no timeline: expected what `xpusim run --timeline` writes", path);
    } else if (rc == 0 && !whole) {
        rc = err_add(e, "%s:%llu: the timeline is cut short: no ]} at its end", path,
                     (unsigned long long)last);
    }
    return rc;
}

struct reading {
    const char *counter;
    void (*event)(void *ctx, const cJSON *o);
    void *ctx;
};

static bool take_event(void *ctx, char phase, const char *line)
{
    const struct reading *r = ctx;
    if (phase == 'C' && r->counter != NULL && strstr(line, r->counter) == NULL) {
        return true;
    }
    SCOPED(json_drop)
    cJSON *o = cJSON_Parse(line); /* ignores the comma after the object */
    if (o != NULL) {
        r->event(r->ctx, o);
    }
    return o != NULL;
}

int timeline_read(const char *path, const char *phases, const char *counter,
                  void (*event)(void *ctx, const cJSON *o), void *ctx, struct err *e)
{
    struct reading r = {counter, event, ctx};
    return timeline_lines(path, phases, take_event, &r, e);
}

/* Lists of machine events: in a workload, in a separate file, or in the first line of a trace file.
 * docs/concepts/machine.md describes them. */

#include "traces/traces.h"

#define MAX_S 1e8
#define MIB (1024.0 * 1024.0)

static const char *const sources[] = {"mains", "battery", NULL};
static const char *const windows[] = {"closed", "open", NULL};

static int64_t time_ns(struct json_obj *o, const char *key, double min)
{
    return units_ns_from_s(json_get_number(o, key, min, MAX_S));
}

static void times_read(struct json_obj *o, struct machine_event *out)
{
    out->at_ns = time_ns(o, "at_s", 0.0);
    out->until_ns = TRACE_LAST_NS;
    if (json_has(o, "every_s")) {
        out->every_ns = time_ns(o, "every_s", 1e-3);
    }
    if (json_has(o, "until_s")) {
        out->until_ns = time_ns(o, "until_s", 0.0);
        if (out->every_ns == 0) {
            json_refuse(o, "until_s", "needs every_s");
        } else if (out->until_ns < out->at_ns) {
            json_refuse(o, "until_s", "must not be before at_s");
        }
    }
}

/* Reads a number that the event may set; 0 without it. */
static double set_number(struct json_obj *o, const char *key, double max, uint32_t bit,
                         struct machine_event *out)
{
    if (!json_has(o, key)) {
        return 0.0;
    }
    out->sets |= bit;
    return json_get_number(o, key, 0.0, max);
}

static bool set_choice(struct json_obj *o, const char *key, const char *const *choices,
                       uint32_t bit, struct machine_event *out)
{
    if (!json_has(o, key)) {
        return false;
    }
    out->sets |= bit;
    return json_get_choice(o, key, choices) == 1;
}

static void battery_read(struct json_obj *o, struct machine_event *out)
{
    out->battery_j = set_number(o, "battery_j", 1e12, MACHINE_SETS_BATTERY, out);
    out->battery_full_j = out->battery_j;
    bool known = (out->sets & MACHINE_SETS_BATTERY) != 0;
    if (json_has(o, "battery_full_j")) {
        out->battery_full_j = json_get_number(o, "battery_full_j", 1e-3, 1e12);
        if (!known) {
            json_refuse(o, "battery_full_j", "needs battery_j");
        } else if (out->battery_full_j < out->battery_j) {
            json_refuse(o, "battery_full_j", "must be at least battery_j");
        }
    } else if (known && out->battery_j <= 0.0) {
        json_refuse(o, "battery_j", "0 needs battery_full_j");
    }
}

static void event_read(struct json_obj *o, struct machine_event *out)
{
    times_read(o, out);
    out->memory_bytes = MIB * set_number(o, "memory_mib", 1e9, MACHINE_SETS_MEMORY, out);
    out->power_limit_watts = set_number(o, "power_w", 1e6, MACHINE_SETS_POWER_LIMIT, out);
    out->frames_per_s = set_number(o, "frames_per_s", 1e4, MACHINE_SETS_FRAMES, out);
    out->on_battery = set_choice(o, "source", sources, MACHINE_SETS_SOURCE, out);
    out->background_window = set_choice(o, "window", windows, MACHINE_SETS_WINDOW, out);
    battery_read(o, out);
    if (out->sets == 0 && o->err->n == 0) {
        json_refuse(o, "at_s",
                    "the event sets nothing; it needs memory_mib, power_w, frames_per_s, source, "
                    "battery_j or window");
    }
    json_done(o);
}

/* Checks that running on battery has a charge, from the same event or an earlier one. */
static void charge_check(const struct json_obj *o, const struct machine_event *v, int n)
{
    for (int i = 0; i < n; i++) {
        bool known = (v[i].sets & MACHINE_SETS_SOURCE) == 0 || !v[i].on_battery;
        for (int k = 0; k < n && !known; k++) {
            known = (v[k].sets & MACHINE_SETS_BATTERY) != 0 &&
                    (v[k].at_ns < v[i].at_ns || (v[k].at_ns == v[i].at_ns && k <= i));
        }
        if (!known) {
            (void)err_add(o->err,
                          "%s: machine[%d].source: battery needs battery_j, here or in an earlier "
                          "event",
                          o->file, i);
        }
    }
}

int machine_events_get(struct json_obj *o, struct trace *t)
{
    size_t before = o->err->n;
    int n = json_get_array_size(o, "machine", 0, 10000);
    struct machine_event *v = xcalloc((size_t)n + 1, sizeof *v);
    for (int i = 0; i < n; i++) {
        struct json_obj event = json_array_object(o, "machine", i);
        event_read(&event, &v[i]);
    }
    if (o->err->n == before) {
        charge_check(o, v, n);
    }
    if (o->err->n > before) {
        free(v);
        return -EINVAL;
    }
    trace_set_machine(t, v, (uint32_t)n);
    return 0;
}

int machine_events_read(const char *path, struct trace *t, struct err *e)
{
    SCOPED(json_drop) cJSON *tree = json_read_file(path, e);
    if (tree == NULL) {
        return -EINVAL;
    }
    struct json_obj o = json_root(tree, path, e);
    return machine_events_get(&o, t);
}

int machine_events_of_text(const char *text, const char *path, struct trace *t, struct err *e)
{
    SCOPED(json_drop) cJSON *tree = cJSON_CreateObject();
    cJSON *list = cJSON_Parse(text);
    int rc = list != NULL ? 0 : err_add(e, "%s: 1: machine=: is no JSON", path);
    if (rc == 0) {
        cJSON_AddItemToObject(tree, "machine", list);
        struct json_obj o = json_root(tree, path, e);
        rc = machine_events_get(&o, t);
    }
    return rc;
}

static bool sets(const struct machine_event *v, uint32_t what)
{
    return (v->sets & what) != 0;
}

static void add_event(cJSON *list, const struct machine_event *v)
{
    bool ends = v->every_ns > 0 && v->until_ns < TRACE_LAST_NS;
    cJSON *o = JSON_MEMBERS(cJSON_CreateObject(), "at_s", units_s_from_ns(v->at_ns), "every_s",
                            FRAME_IF(v->every_ns > 0, units_s_from_ns(v->every_ns)), "until_s",
                            FRAME_IF(ends, units_s_from_ns(v->until_ns)));
    cJSON_AddItemToArray(list, o);
    JSON_MEMBERS(o, "memory_mib", FRAME_IF(sets(v, MACHINE_SETS_MEMORY), v->memory_bytes / MIB),
                 "power_w", FRAME_IF(sets(v, MACHINE_SETS_POWER_LIMIT), v->power_limit_watts),
                 "frames_per_s", FRAME_IF(sets(v, MACHINE_SETS_FRAMES), v->frames_per_s),
                 "battery_j", FRAME_IF(sets(v, MACHINE_SETS_BATTERY), v->battery_j),
                 "battery_full_j", FRAME_IF(sets(v, MACHINE_SETS_BATTERY), v->battery_full_j),
                 "source", FRAME_IF(sets(v, MACHINE_SETS_SOURCE), sources[v->on_battery]), "window",
                 FRAME_IF(sets(v, MACHINE_SETS_WINDOW), windows[v->background_window]));
}

char *machine_events_text(const struct trace *t)
{
    SCOPED(json_drop) cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < t->n_machine; i++) {
        add_event(list, &t->machine[i]);
    }
    return cJSON_PrintUnformatted(list);
}

void trace_set_machine(struct trace *t, struct machine_event *owned, uint32_t n)
{
    free(t->machine);
    t->machine = n > 0 ? owned : NULL;
    t->n_machine = n;
    if (n == 0) {
        free(owned);
    }
    t->hash = trace_hash(t);
}

void trace_copy_machine(struct trace *t, const struct trace *from)
{
    if (from->n_machine > 0) {
        struct machine_event *v = xmalloc(from->n_machine * sizeof *v);
        memcpy(v, from->machine, from->n_machine * sizeof *v);
        trace_set_machine(t, v, from->n_machine);
    }
}

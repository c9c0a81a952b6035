/* The track of the machine's conditions: a slice for the time between two events, named by the
 * conditions. */
#include "sim/metrics/timeline_impl.h"

/* "battery 25 % at 120 s, 20 W, 6.3 GB taken, window closed": conditions that differ from the
 * initial ones. The charge has its instant, because it changes until the next event. */
static void describe(int64_t now_ns, const struct machine_state *now, char *buf, size_t size)
{
    SCOPED(text_fini) struct text t = {0};
    if (now->on_battery || now->battery_frac < 1.0) {
        text_format(&t, "%s %.0f %%", now->on_battery ? "battery" : "mains, battery",
                    100.0 * now->battery_frac);
        if (now->on_battery) {
            text_format(&t, " at %.4g s", units_s_from_ns(now_ns));
        }
    } else {
        text_string(&t, "mains");
    }
    if (now->power_limit_watts > 0.0) {
        text_format(&t, ", %.3g W", now->power_limit_watts);
    }
    if (now->memory_taken_bytes > 0.0) {
        text_format(&t, ", %.3g GB taken", now->memory_taken_bytes / 1e9);
    }
    text_string(&t, now->background_window ? "" : ", window closed");
    (void)snprintf(buf, size, "%s", text_end(&t));
}

void timeline_conditions_end(struct timeline *t, int64_t now_ns)
{
    int64_t begin_ns = t->conditions_ns > t->o.from_ns ? t->conditions_ns : t->o.from_ns;
    if (t->conditions[0] == '\0' || now_ns <= begin_ns) {
        return;
    }
    if (!t->has_conditions) {
        trace_track_name(&t->out, TIMELINE_PID_MACHINE, TIMELINE_TID_CONDITIONS, "conditions",
                         TIMELINE_TID_CONDITIONS);
        t->has_conditions = true;
    }
    trace_event_span(&t->out, TIMELINE_PID_MACHINE, TIMELINE_TID_CONDITIONS, begin_ns, now_ns,
                     t->conditions);
    trace_event_end(&t->out);
}

void timeline_conditions(void *self, int64_t now_ns, const struct machine_state *now)
{
    struct timeline *t = timeline_at(self, now_ns);
    char says[sizeof t->conditions];
    describe(now_ns, now, says, sizeof says);
    if (strcmp(says, t->conditions) != 0) {
        timeline_conditions_end(t, now_ns);
        memcpy(t->conditions, says, sizeof says);
        t->conditions_ns = now_ns;
    }
}

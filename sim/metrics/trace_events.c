#include "sim/metrics/trace_events.h"

#define FLUSH_BYTES 65536

static void flush(struct trace_events *w)
{
    /* output_close reports errors */
    (void)fwrite(w->text.p, 1, w->text.n, output_stream(w->out));
    w->text.n = 0;
}

static void put_thousandths(struct text *t, int64_t v)
{
    uint64_t u = v < 0 ? (uint64_t)-v : (uint64_t)v;
    text_string(t, v < 0 ? "-" : "");
    text_u64(t, u / 1000);
    if (u % 1000 != 0) {
        text_char(t, '.');
        for (uint64_t unit = 100; unit > 0; unit /= 10) {
            text_char(t, (char)('0' + u / unit % 10));
        }
    }
}

/* Names come from files: replaces characters that JSON would escape by question marks. */
static void put_string(struct text *t, const char *s)
{
    text_char(t, '"');
    for (; *s != '\0'; s++) {
        text_char(t, (unsigned char)*s < 0x20 || *s == '"' || *s == '\\' ? '?' : *s);
    }
    text_char(t, '"');
}

static void put_key(struct trace_events *w, const char *key)
{
    text_string(&w->text, w->in_args && w->first_arg ? "\"" : ",\"");
    text_string(&w->text, key);
    text_string(&w->text, "\":");
    w->first_arg = false;
}

int trace_events_open(struct trace_events *w, const char *path, const char *other, struct err *e)
{
    *w = (struct trace_events){.out = output_open(path, e)};
    if (w->out == NULL) {
        return -EINVAL;
    }
    text_string(&w->text, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
    text_string(&w->text, other != NULL ? other : "{}");
    text_string(&w->text, ",\"traceEvents\":[");
    return 0;
}

int trace_events_close(struct trace_events *w, bool keep, struct err *e)
{
    if (w->out != NULL) {
        text_string(&w->text, "\n]}\n");
        flush(w);
    }
    int rc = output_close(w->out, keep, e);
    text_fini(&w->text);
    w->out = NULL;
    return rc;
}

static void put_name(struct trace_events *w, const char *name)
{
    text_string(&w->text, ",\"name\":");
    put_string(&w->text, name);
}

void trace_event_begin(struct trace_events *w, char phase, uint32_t pid, uint32_t tid,
                       int64_t ts_ns, const char *name)
{
    w->begin = w->text.n;
    text_string(&w->text, w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    w->any = w->any || !w->muted;
    text_char(&w->text, phase);
    text_string(&w->text, "\",\"pid\":");
    text_u64(&w->text, pid);
    text_string(&w->text, ",\"tid\":");
    text_u64(&w->text, tid);
    text_string(&w->text, ",\"ts\":");
    put_thousandths(&w->text, ts_ns);
    if (name != NULL) {
        put_name(w, name);
    }
}

void trace_event_span(struct trace_events *w, uint32_t pid, uint32_t tid, int64_t begin_ns,
                      int64_t end_ns, const char *name)
{
    trace_event_begin(w, 'X', pid, tid, begin_ns, NULL);
    text_string(&w->text, ",\"dur\":");
    put_thousandths(&w->text, end_ns - begin_ns);
    put_name(w, name);
}

void trace_text(struct trace_events *w, const char *key, const char *value)
{
    put_key(w, key);
    put_string(&w->text, value);
}

void trace_number(struct trace_events *w, const char *key, int64_t value)
{
    put_key(w, key);
    text_string(&w->text, value < 0 ? "-" : "");
    text_u64(&w->text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void trace_decimal(struct trace_events *w, const char *key, double value)
{
    put_key(w, key);
    put_thousandths(&w->text, (int64_t)llround(value * 1e3));
}

void trace_args_begin(struct trace_events *w)
{
    text_string(&w->text, ",\"args\":{");
    w->in_args = true;
    w->first_arg = true;
}

void trace_event_end(struct trace_events *w)
{
    text_string(&w->text, w->in_args ? "}}" : "}");
    w->in_args = false;
    if (w->muted) {
        w->text.n = w->begin;
    } else if (w->text.n > FLUSH_BYTES) {
        flush(w);
    }
}

void trace_track_name(struct trace_events *w, uint32_t pid, uint32_t tid, const char *name,
                      uint32_t order)
{
    trace_event_begin(w, 'M', pid, tid, 0, "thread_name");
    trace_args_begin(w);
    trace_text(w, "name", name);
    trace_event_end(w);
    trace_event_begin(w, 'M', pid, tid, 0, "thread_sort_index");
    trace_args_begin(w);
    trace_number(w, "sort_index", order);
    trace_event_end(w);
}

void trace_process_name(struct trace_events *w, uint32_t pid, const char *name)
{
    trace_event_begin(w, 'M', pid, 0, 0, "process_name");
    trace_args_begin(w);
    trace_text(w, "name", name);
    trace_event_end(w);
}

void trace_instant(struct trace_events *w, uint32_t pid, uint32_t tid, int64_t at_ns,
                   const char *name)
{
    trace_event_begin(w, 'i', pid, tid, at_ns, name);
    trace_text(w, "s", "t");
    trace_event_end(w);
}

#include "sim/metrics/trace_events.h"

static void flush(struct trace_events *w)
{
    (void)fwrite(w->buffer, 1, w->n, output_stream(w->out)); /* output_close says what failed */
    w->n = 0;
}

static void put(struct trace_events *w, const char *text, size_t n)
{
    if (w->muted) {
        return;
    }
    if (w->n + n > sizeof w->buffer) {
        flush(w);
    }
    memcpy(w->buffer + w->n, text, n); /* pieces are far shorter than the buffer */
    w->n += n;
}

static void put_text(struct trace_events *w, const char *text)
{
    put(w, text, strlen(text));
}

/* At least `width` digits, filled with zeros. */
static void put_digits(struct trace_events *w, uint64_t v, int width)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
        width--;
    } while (v > 0 || width > 0);
    put(w, digits + at, sizeof digits - at);
}

static void put_thousandths(struct trace_events *w, int64_t v)
{
    if (v < 0) {
        put_text(w, "-");
    }
    uint64_t u = v < 0 ? (uint64_t)-v : (uint64_t)v;
    put_digits(w, u / 1000, 1);
    if (u % 1000 != 0) {
        put_text(w, ".");
        put_digits(w, u % 1000, 3);
    }
}

/* Names come from files: what JSON does not take as it is becomes a question mark. */
static void put_string(struct trace_events *w, const char *s)
{
    put_text(w, "\"");
    for (; *s != '\0'; s++) {
        char c = (unsigned char)*s < 0x20 || *s == '"' || *s == '\\' ? '?' : *s;
        put(w, &c, 1);
    }
    put_text(w, "\"");
}

static void put_key(struct trace_events *w, const char *key)
{
    if (!w->in_args || !w->first_arg) {
        put_text(w, ",");
    }
    w->first_arg = false;
    put_text(w, "\"");
    put_text(w, key);
    put_text(w, "\":");
}

int trace_events_open(struct trace_events *w, const char *path, const char *other, struct err *e)
{
    memset(w, 0, sizeof *w);
    w->out = output_open(path, e);
    if (w->out == NULL) {
        return -EINVAL;
    }
    put_text(w, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
    put_text(w, other != NULL ? other : "{}");
    put_text(w, ",\"traceEvents\":[");
    return 0;
}

int trace_events_close(struct trace_events *w, bool keep, struct err *e)
{
    if (w->out != NULL) {
        w->muted = false;
        put_text(w, "\n]}\n");
        flush(w);
    }
    int rc = output_close(w->out, keep, e);
    w->out = NULL;
    return rc;
}

void trace_event_begin(struct trace_events *w, char phase, uint32_t pid, uint32_t tid,
                       int64_t ts_ns)
{
    put_text(w, w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    w->any = w->any || !w->muted;
    put(w, &phase, 1);
    put_text(w, "\",\"pid\":");
    put_digits(w, pid, 1);
    put_text(w, ",\"tid\":");
    put_digits(w, tid, 1);
    put_text(w, ",\"ts\":");
    put_thousandths(w, ts_ns);
}

void trace_event_duration(struct trace_events *w, int64_t duration_ns)
{
    put_text(w, ",\"dur\":");
    put_thousandths(w, duration_ns);
}

void trace_event_name(struct trace_events *w, const char *name)
{
    put_text(w, ",\"name\":");
    put_string(w, name);
}

void trace_text(struct trace_events *w, const char *key, const char *value)
{
    put_key(w, key);
    put_string(w, value);
}

void trace_number(struct trace_events *w, const char *key, int64_t value)
{
    put_key(w, key);
    if (value < 0) {
        put_text(w, "-");
    }
    put_digits(w, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void trace_decimal(struct trace_events *w, const char *key, double value)
{
    put_key(w, key);
    put_thousandths(w, (int64_t)llround(value * 1e3));
}

void trace_args_begin(struct trace_events *w)
{
    put_text(w, ",\"args\":{");
    w->in_args = true;
    w->first_arg = true;
}

void trace_event_end(struct trace_events *w)
{
    put_text(w, w->in_args ? "}}" : "}");
    w->in_args = false;
}

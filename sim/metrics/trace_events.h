/* A streaming writer of Chrome trace-event JSON, for Perfetto and chrome://tracing:
 * {"otherData":{...},"traceEvents":[{...},...]}, one event a line, instants in microseconds with up
 * to three decimals, so exact to the nanosecond.
 *
 * An event is built by calls: trace_event_begin or trace_event_span, any of the fields, arguments
 * between trace_args_begin and the end, trace_event_end. The file is complete or absent (output.h).
 * Constant memory; about 0.3 us per event. */
#pragma once

#include "sim/base/output.h"

struct trace_events {
    struct output *out; /* owned */
    struct text text;   /* not written yet */
    size_t begin;       /* offset of the event in `text` */
    bool any, in_args, first_arg;
    bool muted; /* set by the caller between events: discard events */
};

/* other: a JSON object on one line that viewers show as metadata, or NULL. Returns 0, or -EINVAL
 * with an error that names the path. */
int trace_events_open(struct trace_events *w, const char *path, const char *other, struct err *e);
/* Ends the document: completes the file if `keep` and there was no error, else removes it. Frees w,
 * even if it failed to open. Returns 0, or -EINVAL with an error. */
int trace_events_close(struct trace_events *w, bool keep, struct err *e);

/* The phases used: B and E begin and end a slice, X is a complete one, i an instant, C a counter,
 * s and f the two ends of an arrow, M a name. A track is (pid, tid). */
void trace_event_begin(struct trace_events *w, char phase, uint32_t pid, uint32_t tid,
                       int64_t ts_ns, const char *name); /* NULL: none */
/* Begins a complete slice. */
void trace_event_span(struct trace_events *w, uint32_t pid, uint32_t tid, int64_t begin_ns,
                      int64_t end_ns, const char *name);
/* A field of the event itself, or of its arguments after trace_args_begin. */
void trace_text(struct trace_events *w, const char *key, const char *value);
void trace_number(struct trace_events *w, const char *key, int64_t value);
void trace_decimal(struct trace_events *w, const char *key,
                   double value); /* up to three decimals */
void trace_args_begin(struct trace_events *w);
void trace_event_end(struct trace_events *w);
/* Whole events: the name of a track and its order, the name of a group of tracks, and an instant.
 */
void trace_track_name(struct trace_events *w, uint32_t pid, uint32_t tid, const char *name,
                      uint32_t order);
void trace_process_name(struct trace_events *w, uint32_t pid, const char *name);
void trace_instant(struct trace_events *w, uint32_t pid, uint32_t tid, int64_t at_ns,
                   const char *name);

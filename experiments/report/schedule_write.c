/* Writes the schedule as JSON (docs/schemas/view.json). */
#include "experiments/report/schedule_impl.h"

#define MAX_BLOCKERS 12 /* per request; the longest are kept */

static int64_t instant(int64_t ns)
{
    return ns == TIME_NEVER_NS ? -1 : ns;
}

static int64_t job_of(const struct trace *t, size_t row)
{
    return t->graph != NULL ? (int64_t)t->graph->job[row] : -1;
}

static void put_request(const struct schedule *s, size_t row, const struct left *l,
                        struct spool *requests, struct spool *blockers)
{
    const struct explanation *x = explain_find(s->explain, l->r.id);
    int64_t v[SPOOL_MAX_COLUMNS] = {
        l->r.id,
        l->r.session_id,
        l->r.turn,
        l->r.client_id,
        job_of(s->trace, row),
        l->r.cls,
        l->r.model,
        l->finished,
        l->r.input_tokens,
        l->r.generated_tokens,
        l->r.reused_tokens,
        l->r.preemptions,
        l->r.arrival_ns,
        instant(l->r.first_service_ns),
        instant(l->r.first_token_ns),
        l->end_ns,
        x != NULL ? (int64_t)x->n_blockers : 0,
    };
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        v[requests->width - EXPLAIN_CAUSE_COUNT + (size_t)i] = x != NULL ? x->ns[i] : 0;
    }
    spool_row(requests, v);
    for (size_t i = 0; x != NULL && i < x->n_blockers && i < MAX_BLOCKERS; i++) {
        const struct explain_blocker *b = &x->blockers[i];
        spool_row(blockers,
                  (const int64_t[]){l->r.id, b->request_id, b->tail_ns, b->queue_ns, b->shared_ns});
    }
}

static void write_requests(const struct schedule *s, FILE *out)
{
    char columns[1024] =
        "request_id session_id turn client_id job class model finished input_tokens output_tokens "
        "reused_tokens preemptions arrival_ns first_service_ns first_token_ns end_ns blockers";
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        (void)strcat(strcat(columns, " cause."), explain_cause_names[i]);
    }
    struct spool requests;
    struct spool blockers;
    spool_init(&requests, columns);
    spool_init(&blockers, "request_id blocker_id tail_ns queue_ns shared_ns");
    for (size_t i = 0; i < s->trace->n; i++) {
        const struct left *l = map_record(&s->left, trace_row_at(s->trace, (uint32_t)i).request_id);
        if (l != NULL) {
            put_request(s, i, l, &requests, &blockers);
        }
    }
    spool_write(&requests, "requests", out);
    (void)fputc(',', out);
    spool_write(&blockers, "blockers", out);
}

static void write_members(const struct schedule *s, FILE *out)
{
    struct spool members;
    spool_init(&members, "set request_id");
    size_t k = 0;
    for (uint32_t i = 0; i < s->sets.numbers.n; i++) {
        for (; k < s->sets.end[i]; k++) {
            spool_row(&members, (const int64_t[]){i, s->sets.ids[k]});
        }
    }
    (void)fputc(',', out);
    spool_write(&members, "members", out);
}

/* Writes means in whole units: MB/s, tokens, hundredths of a request, mW. */
static void write_cells(const struct schedule *s, FILE *out)
{
    static const double scale[] = {1e-6, 1e-6, 1.0, 100.0, 100.0};
    char columns[512] =
        "ddr_demand_mb_per_s ddr_carried_mb_per_s kv_tokens live_reactive_hundredths "
        "live_proactive_hundredths";
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        (void)strcat(strcat(strcat(columns, " "), s->machine->devices[d].name), "_mw");
    }
    (void)strcat(columns, " compiler_mw host_mw");
    struct spool cells;
    spool_init(&cells, columns);
    for (uint32_t i = 0; i < s->cells.n; i++) {
        int64_t v[SPOOL_MAX_COLUMNS];
        for (uint32_t k = 0; k < cells.width; k++) {
            uint32_t domain = k - WATTS < s->machine->n_devices
                                  ? k - WATTS
                                  : k - WATTS - s->machine->n_devices + OBSERVER_DOMAIN_COMPILER;
            double mean = cells_mean(&s->cells, i, k < WATTS ? k : WATTS + domain, s->end_ns);
            v[k] = llround(mean * (k < WATTS ? scale[k] : 1e3));
        }
        spool_row(&cells, v);
    }
    (void)fprintf(out, ",\"cell_ns\":%" PRId64 ",", s->cells.cell_ns);
    spool_write(&cells, "cells", out);
}

void schedule_write(struct schedule *s, FILE *out)
{
    bool joined = s->launches.n > SCHEDULE_MAX_LAUNCHES;
    (void)fprintf(out,
                  "{\"end_ns\":%" PRId64
                  ",\"ddr_peak_bytes_per_s\":%.17g,\"idle_watts\":%.17g,\"devices\":[",
                  s->end_ns, s->machine->ddr_peak_bytes_per_s, s->machine->idle_watts);
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        (void)fprintf(out, "%s\"%s\"", d > 0 ? "," : "", s->machine->devices[d].name);
    }
    (void)fputs("],\"causes\":{", out);
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        (void)fprintf(out, "%s\"%s\":\"%s\"", i > 0 ? "," : "", explain_cause_names[i],
                      explain_cause_texts[i]);
    }
    (void)fprintf(out, "},\"unfinished\":%" PRIu64 ",\"joined\":%s,", s->arrived - s->left.n,
                  joined ? "true" : "false");
    write_requests(s, out);
    write_members(s, out);
    (void)fputc(',', out);
    spool_write(joined ? &s->joined : &s->launches, "launches", out);
    (void)fprintf(out, ",\"kernels_from_ns\":%" PRId64 ",\"kernels_to_ns\":%" PRId64 ",",
                  s->o.from_ns, s->o.to_ns);
    spool_write(&s->kernels, "kernels", out);
    write_cells(s, out);
    (void)fputc('}', out);
}

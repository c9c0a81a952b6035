#include "tests/helpers/liverun.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "tests/helpers/liverun_impl.h"
#include "tests/helpers/wild.h"

/* ---- a run ---- */

static int execute(const struct sim_setup *setup, struct sim_result *result)
{
    return drive_run(&now.options, setup, result, &now.report);
}

/* After a hang an executor gives its memory up (drive.h): it is no leak that a tool should find. */
static void note_given_up(void)
{
    static const struct engine_kv **given_up;
    static size_t n;
    if (virtual_engine_seen.open > 0) {
        given_up = xgrow(given_up, n, sizeof *given_up);
        given_up[n++] = virtual_engine_seen.kv;
    }
}

static void run_main(void *arg)
{
    (void)arg;
    (void)scenario_again(&now.scenario);
}

static void run_interleaving(uint64_t interleaving)
{
    struct draw *d = &now.draw;
    struct scenario *sc = &now.scenario;
    now.interrupt = 0;
    wild_calls = 0;
    wild_dies_in = d->dies_in;
    virtual_engine_reset(&d->engine);
    virtual_engine_closing = liverun_look_inside;
    livewatch_init(&now.watch, &sc->machine, d->wall, d->host.jump_ns != 0);
    memset(&now.report, 0, sizeof now.report);
    memset(&sc->result, 0, sizeof sc->result);
    memset(sc->records, 0, sizeof sc->records);
    sc->n_kernels = 0;
    free(now.tokens);
    now.tokens = NULL;
    now.options.tokens = open_memstream(&now.tokens, &now.tokens_bytes);
    virtual_run(interleaving, &d->host, run_main, NULL, &now.host);
    (void)fclose(now.options.tokens);
    note_given_up();
    now.out->interleavings++;
    now.out->operations += now.host.operations;
    now.out->switches += now.host.switches;
    now.out->history = now.watch.history;
    now.out->status = sc->result.status;
    now.out->happened = virtual_engine_seen.fated || now.host.happened_ns >= 0;
    if (now.host.finding[0] != '\0') {
        liverun_finding("%s", now.host.finding);
    }
}

/* The seed's interleaving again is the same run. So is any other one where the clock is the
 * processor's, and nothing has a duration by another clock. */
static void check_again(void)
{
    bool any = !now.draw.wall && !now.draw.policy->compiles && now.draw.fault == LIVE_NONE &&
               now.report.n_residents == 0;
    uint64_t history = now.out->history;
    int status = now.out->status;
    drive_report_fini(&now.report);
    run_interleaving(any ? ~now.draw.seed : now.draw.seed);
    if (now.out->history != history || now.out->status != status) {
        liverun_finding("%s gives another run", any ? "another interleaving" : "the same seed");
    }
}

/* Requests, and kernels as they ran. */
static void show(void)
{
    const struct trace *t = &now.scenario.trace;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct trace_row *r = &t->rows[i];
        printf(
            "  request %u, session %u, turn %u: %u tokens of which %u before, %u out, at %" PRId64
            ", cancelled at %" PRId64 "\n",
            r->request_id, r->session_id, r->turn, r->input_tokens, r->prefix_tokens,
            r->output_tokens, r->arrival_ns, now.extras[i].cancel_ns);
    }
    for (size_t i = 0; i < now.report.n_kernels; i++) {
        const struct drive_kernel *k = &now.report.kernels[i];
        printf("  %9" PRId64 " + %6" PRId64
               ": launch %u on %u, op %u of layer %u, rows %u to %u of "
               "%u%s\n",
               k->begin_ns, k->ns, k->launch, k->device, k->op, k->layer, k->row0,
               k->row0 + k->rows, k->shape_rows, k->stopped ? ", stopped" : "");
    }
}

void liverun_run(uint64_t seed, struct liverun *out)
{
    *out = (struct liverun){0};
    now.out = out;
    liverun_draw(seed);
    out->fault = now.draw.fault;
    liverun_prepare();
    now.scenario.run = execute;
    now.scenario.setup.decision_log = getenv("XPUSIM_SHOW") != NULL ? stdout : NULL;
    run_interleaving(seed);
    liverun_check();
    if (getenv("XPUSIM_SHOW") != NULL) {
        show();
    }
    bool hung = now.draw.engine.fate == VIRTUAL_HANGS && virtual_engine_seen.fated;
    if (out->finding[0] == '\0' && !hung && (seed % 16 == 0 || !now.draw.wall)) {
        check_again();
    }
    drive_report_fini(&now.report);
    now.scenario.trace.extras = NULL;
    scenario_fini(&now.scenario);
}

/* ---- sums ---- */

void liverun_add(struct liverun_sums *s, const struct liverun *r)
{
    s->runs++;
    s->interleavings += r->interleavings;
    s->operations += r->operations;
    s->switches += r->switches;
    s->drawn[r->fault]++;
    s->happened[r->fault] += r->happened;
    s->failed[r->fault] += r->status != 0 ? 1 : 0;
}

void liverun_print(const struct liverun_sums *s)
{
    printf("%" PRIu64 " runs, %" PRIu64 " interleavings, %" PRIu64 " operations, %" PRIu64
           " switches\n",
           s->runs, s->interleavings, s->operations, s->switches);
    for (int f = 0; f < LIVE_FAULTS; f++) {
        printf("  %-14s %6" PRIu64 " drawn, %6" PRIu64 " happened, %6" PRIu64 " ended the run\n",
               liverun_fault_name((enum live_fault)f), s->drawn[f], s->happened[f], s->failed[f]);
    }
}

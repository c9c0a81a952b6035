/* Checks of every run. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/drive/drive_impl.h"
#include "tests/helpers/liverun_impl.h"

#define KNOWS_NS (50 * NS_PER_MS) /* until the host knows of an end, or a lane of a launch */
#define KNOWS_HANG_NS ((int64_t)((HANG_S + 0.5) * 1e9))
#define KNOWS_OPEN_NS ((int64_t)((COMPILE_S + 0.5) * 1e9))
#define RESETS_NS (150 * NS_PER_MS) /* engines that look do so after 100 ms at most */
#define MOST_CALLS 3                /* devices of the largest machine drawn; engines are fewer */
#define STOPS_NS (1100 * NS_PER_MS) /* "within a second" (drive.h), and how long threads pause */

void liverun_finding(const char *fmt, ...)
{
    if (now.out->finding[0] == '\0') {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(now.out->finding, sizeof now.out->finding, fmt, args);
        va_end(args);
    }
}

/* ---- when all threads but the host's have ended ---- */

static uint32_t passes_of(const struct real_pass *p, bool is_free)
{
    uint32_t n = 0;
    for (; p != NULL; p = is_free ? p->next_free : p->next) {
        n++;
    }
    return n;
}

/* A run that went to its end leaves nothing taken. */
void liverun_look_inside(void)
{
    const struct engine_kv *kv = virtual_engine_seen.kv;
    const struct drive *d =
        (const struct drive *)((const char *)kv - offsetof(struct drive, kv.view));
    const struct core *c = &d->core;
    if (c->result->status != 0 || now.interrupt != 0 || c->n_live > 0) {
        return;
    }
    if (passes_of(d->passes, false) != passes_of(d->free_passes, true)) {
        liverun_finding("%u passes were made, and %u are free", passes_of(d->passes, false),
                        passes_of(d->free_passes, true));
    }
    for (uint32_t i = 0; i < d->kv.n_slots; i++) {
        if (d->kv.holders[i] != 0) {
            liverun_finding("KV slot %u is held after the end", i);
        }
    }
    if (c->kv_blocks_free + c->kv_blocks_cold + c->kv_blocks_idle + c->kv_blocks_lent !=
        c->kv_blocks_total) {
        liverun_finding("KV: %" PRIu64 " blocks free, %" PRIu64 " cached, %" PRIu64
                        " lent of %" PRIu64,
                        c->kv_blocks_free, c->kv_blocks_cold + c->kv_blocks_idle, c->kv_blocks_lent,
                        c->kv_blocks_total);
    }
    for (uint32_t i = 0; i < d->machine->n_devices; i++) {
        if (d->devices[i].n_live > 0 || d->devices[i].lane.queue.head != NULL) {
            liverun_finding("device %u has work after the end", i);
        }
    }
}

/* ---- what must hold ---- */

/* A line per request, each once, with right tokens: all of them where it is whole. */
static void check_tokens(bool whole)
{
    const struct trace *t = &now.scenario.trace;
    uint32_t lines[MOST_REQUESTS] = {0};
    char *at = now.tokens;
    while (at != NULL && *at != '\0') {
        unsigned long id = strtoul(at, &at, 10);
        uint32_t row = 0;
        while (row < t->n && t->rows[row].request_id != id) {
            row++;
        }
        if (row == t->n || lines[row]++ > 0) {
            liverun_finding("tokens of request %lu are written twice, or there is none", id);
            return;
        }
        uint32_t n = 0;
        for (; *at == ' '; n++) {
            long token = strtol(at, &at, 10);
            if (n >= t->rows[row].output_tokens || now.right[row][n] != token) {
                liverun_finding("token %u of request %lu is %ld, not %d", n, id, token,
                                now.right[row][n]);
                return;
            }
        }
        if (whole && n != t->rows[row].output_tokens &&
            now.extras[row].cancel_ns == TIME_NEVER_NS) {
            liverun_finding("request %lu has %u of %u tokens", id, n, t->rows[row].output_tokens);
        }
        at += *at == '\n';
    }
    for (uint32_t row = 0; row < t->n; row++) {
        if (lines[row] != 1) {
            liverun_finding("request %u: %u lines of tokens", t->rows[row].request_id, lines[row]);
        }
    }
}

/* Kernels that were not lost are all rows of all ops of a pass, each once. */
static void check_rows(void)
{
    static uint32_t ran[LIVEWATCH_LAUNCHES];
    const struct livewatch *w = &now.watch;
    memset(ran, 0, sizeof ran);
    for (size_t i = 0; i < now.report.n_kernels; i++) {
        const struct drive_kernel *k = &now.report.kernels[i];
        ran[w->pass_of[k->launch % LIVEWATCH_LAUNCHES]] += k->stopped ? 0 : k->rows;
    }
    for (uint32_t pass = 1; pass < LIVEWATCH_LAUNCHES; pass++) {
        if (w->rows[pass] > 0 && ran[pass] != w->rows[pass]) {
            liverun_finding("pass %u has %u rows of ops, and %u ran", pass, w->rows[pass],
                            ran[pass]);
        }
    }
}

/* On the wall's clock the report has the submission of each launch that ran and met an idle device:
 * what others waited for is no cost of theirs. */
static void check_submissions(void)
{
    static bool counted[LIVEWATCH_LAUNCHES];
    uint64_t n = 0;
    memset(counted, 0, sizeof counted);
    for (size_t i = 0; i < now.report.n_kernels && now.draw.wall; i++) {
        uint32_t launch = now.report.kernels[i].launch % LIVEWATCH_LAUNCHES;
        n += now.watch.on_idle[launch] && !counted[launch];
        counted[launch] = true;
    }
    if (now.report.submit.n != n) {
        liverun_finding("%" PRIu64 " submissions are reported, not %" PRIu64, now.report.submit.n,
                        n);
    }
}

static void check_whole(void)
{
    const struct sim_audit *a = &now.scenario.result.audit;
    const struct livewatch *w = &now.watch;
    if (!a->clean || w->ends != 1 || w->arrived != now.draw.n_requests || w->left != w->arrived ||
        a->finished + a->shed != w->arrived) {
        liverun_finding("%u arrived of %u, %u left, %" PRIu64 " finished, %" PRIu64
                        " shed, %u ends",
                        w->arrived, now.draw.n_requests, w->left, a->finished, a->shed, w->ends);
    }
    for (uint32_t id = 1; id < LIVEWATCH_LAUNCHES && w->launches[id] != 0; id++) {
        if (w->launches[id] != 3) {
            liverun_finding("launch %u has not ended", id);
        }
    }
    check_rows();
    check_submissions();
    check_tokens(true);
    bool steady = now.draw.fault == LIVE_NONE || now.draw.fault == LIVE_DISK;
    if (steady && now.draw.wall &&
        (now.report.completion.max_ns > (double)KNOWS_NS ||
         now.report.submit.max_ns > (double)KNOWS_NS)) {
        liverun_finding("an end is known after %.0f ns, a launch begins after %.0f ns",
                        now.report.completion.max_ns, now.report.submit.max_ns);
    }
}

/* Below an octave of 2 ns there is nothing here but what went back. */
static void check_durations(void)
{
    const struct drive_report *r = &now.report;
    const struct drive_times *all[] = {&r->schedule, &r->submit, &r->completion, &r->tail,
                                       &r->reset,    r->stop,    r->stop + 1,    r->stop + 2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->octave[0].sum_ns < 0.0) {
            liverun_finding("duration %zu of the report is negative", i);
        }
    }
    if (now.draw.wall && now.draw.host.jump_ns == 0 && r->reset.max_ns > (double)RESETS_NS) {
        liverun_finding("a kernel is stopped %.0f ns after it was asked to", r->reset.max_ns);
    }
}

static bool says(const char *text)
{
    return strstr(now.scenario.result.message, text) != NULL;
}

static void must_fail(int status, const char *text)
{
    const struct sim_result *r = &now.scenario.result;
    if (r->status != status || !says(text)) {
        liverun_finding("status %d, \"%s\", not %d with \"%s\"", r->status, r->message, status,
                        text);
    }
}

static void check_stop(void)
{
    /* An engine may have been slow, and the run over before its signal: seed 37409. */
    int64_t took_ns = now.host.happened_ns < 0 ? 0 : now.host.end_ns - now.host.happened_ns;
    const struct virtual_engine_setup *e = &now.draw.engine; /* kernels stop, so nothing is lost */
    bool stops = e->fate == VIRTUAL_FINE || e->kind == VIRTUAL_KERNEL;
    /* An engine that closes its devices is waited for, one call after the other (drive.h); seed
     * 25382. */
    bool waits = e->fate == VIRTUAL_SLOW && e->kind == VIRTUAL_DEVICE_CLOSE;
    if (took_ns > STOPS_NS + (waits ? MOST_CALLS * e->slow_ns : 0)) {
        liverun_finding("the run ends %.3f s after the signal", 1e-9 * (double)took_ns);
    }
    if (now.out->status == 0 && now.watch.ends == 1 && now.report.interrupted) {
        check_tokens(false);
    } else if (now.out->status == 0) {
        check_whole(); /* it was over before */
    } else if (!now.report.interrupted || now.out->status != -EINTR || stops) {
        liverun_finding("status %d, \"%s\", after a signal", now.out->status,
                        now.scenario.result.message);
    }
}

/* The engine is closed, unless a thread hangs in it or a slow call was interrupted. */
static void check_engine(void)
{
    const struct virtual_engine_seen *s = &virtual_engine_seen;
    bool hangs = now.draw.engine.fate == VIRTUAL_HANGS && s->fated;
    bool given_up = now.draw.engine.fate == VIRTUAL_SLOW && now.interrupt != 0;
    if (!hangs && !given_up && (s->open > 0 || s->devices > 0)) {
        liverun_finding("%u engines and %u devices are open after the end", s->open, s->devices);
    }
}

void liverun_check(void)
{
    const struct draw *d = &now.draw;
    enum virtual_kind kind = d->engine.kind;
    check_engine();
    check_durations();
    bool closing = kind == VIRTUAL_DEVICE_CLOSE;
    switch (now.out->happened || d->fault >= LIVE_LIMIT ? d->fault : LIVE_NONE) {
    case LIVE_FAILS:
        if (kind == VIRTUAL_RESIDENT && now.out->status == 0) {
            check_whole(); /* it ended first */
        } else if (closing) {
            check_whole();
        } else {
            must_fail(kind == VIRTUAL_RESIDENT && now.out->status != -EIO ? now.out->status : -EIO,
                      "made to fail");
        }
        break;
    case LIVE_HANGS:
        if (closing || (kind == VIRTUAL_RESIDENT && now.out->status == 0)) {
            check_whole();
        } else {
            must_fail(-ETIMEDOUT, "come back");
            int64_t took_ns = now.host.end_ns - virtual_engine_seen.fated_ns;
            int64_t most_ns = kind == VIRTUAL_OPEN                         ? KNOWS_OPEN_NS
                              : kind == VIRTUAL_KERNEL && d->engine.n == 1 ? KNOWS_HANG_NS
                                                                           : INT64_MAX;
            if (kind == VIRTUAL_OPEN) {
                OWNED char *its = xformat("engine %s: opening it does not come back",
                                          now.options.devices[0].engine->name);
                must_fail(-ETIMEDOUT, its);
            }
            if (took_ns > most_ns) {
                liverun_finding("a hang is known after %.3f s", 1e-9 * (double)took_ns);
            }
        }
        break;
    case LIVE_STOP:
    case LIVE_STOP_SLOW:
        check_stop();
        break;
    case LIVE_LIMIT:
        if (d->limit_s == 0.0 && d->wall) {
            must_fail(-ETIMEDOUT, "given up after 600 s");
        } else if (now.out->status == 0) {
            check_whole();
        } else {
            must_fail(-ETIMEDOUT, "given up after");
        }
        break;
    case LIVE_DIES:
        if (now.out->status == 0) {
            check_whole();
        } else if (!says("was killed by signal 9")) {
            liverun_finding("status %d, \"%s\"", now.out->status, now.scenario.result.message);
        }
        break;
    case LIVE_DISK:
        if (now.out->status == 0) {
            check_whole();
        } else {
            must_fail(now.out->status, "swap file: ");
        }
        break;
    case LIVE_NO_FILE:
        must_fail(-ENOSPC, "no swap file in /tmp: No space left on device");
        break;
    case LIVE_NO_THREAD:
        must_fail(now.out->status, "no thread for ");
        break;
    case LIVE_SLOW:
    case LIVE_NONE:
    case LIVE_CLOCK_JUMPS:
    case LIVE_CLOCK_BACK:
    case LIVE_FAULTS:
        if (now.out->status != 0) {
            liverun_finding("status %d, \"%s\"", now.out->status, now.scenario.result.message);
        } else {
            check_whole();
        }
        break;
    }
}

#include "experiments/shell/progress.h"

#include "sim/base/clock.h"

#define CELLS 30
#define PAUSE_S 0.2
#define LINE_COLUMNS 100

void progress_start(struct progress *p, bool on, uint64_t total)
{
    *p = (struct progress){.on = on, .total = total, .start_s = clock_now_s()};
}

void progress_show(struct progress *p, uint64_t done)
{
    double now_s = p->on ? clock_now_s() : 0.0;
    if (!p->on || now_s - p->shown_s < PAUSE_S) {
        return;
    }
    p->shown_s = now_s;
    double rate = now_s > p->start_s ? (double)done / (now_s - p->start_s) : 0.0;
    char bar[CELLS + 1];
    uint64_t full = p->total > 0 ? done * CELLS / p->total : CELLS;
    for (uint64_t i = 0; i < CELLS; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[CELLS] = '\0';
    (void)fprintf(stderr, "\r[%s] %" PRIu64 " of %" PRIu64 " run%s, %.0f per s, %.0f s left   ",
                  bar, done, p->total, text_plural(p->total), rate,
                  rate > 0.0 ? (double)(p->total - done) / rate : 0.0);
    (void)fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->on && p->shown_s > 0.0) {
        (void)fprintf(stderr, "\r%*s\r", LINE_COLUMNS, "");
        (void)fflush(stderr);
    }
}

/* Intervals of the DDR, of one length and rate: they are counted before observers get them. */
#include <string.h>

#include "sim/engine/advance.h"

#define DDR_INTERVAL_BITS 8
struct ddr_interval {
    int64_t ns;
    double demand, share;
    uint64_t count; /* so many of this length */
};

struct intervals {
    struct ddr_interval of[1u << DDR_INTERVAL_BITS];
};

void intervals_init(struct engine *e)
{
    e->intervals = arena_alloc(&e->core.arena, sizeof *e->intervals);
}

static void report(struct engine *e, const struct ddr_interval *i)
{
    if (i->count > 0) {
        CORE_OBSERVE(&e->core, ddr, e->now_ns, i->count, i->ns, i->demand, i->share);
    }
}

/* Equal intervals come again and again: they are counted, and reported when others
 * take their place. Not where an observer wants the time line. */
void ddr_report(struct engine *e, uint64_t count, int64_t ns, double demand, double share)
{
    if (count == 0 || ns <= 0 || demand <= 0.0) {
        return;
    }
    const struct ddr_interval now = {ns, demand, share, count};
    if (!e->may_jump) {
        report(e, &now);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &demand, sizeof bits);
    uint64_t h = (bits ^ (uint64_t)ns * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;
    struct ddr_interval *i = &e->intervals->of[h >> (64 - DDR_INTERVAL_BITS)];
    if (i->ns == ns && i->demand == demand && i->share == share) {
        i->count += count;
        return;
    }
    report(e, i);
    *i = now;
}

void ddr_report_all(struct engine *e)
{
    for (uint32_t i = 0; i < 1u << DDR_INTERVAL_BITS; i++) {
        report(e, &e->intervals->of[i]);
        e->intervals->of[i].count = 0;
    }
}

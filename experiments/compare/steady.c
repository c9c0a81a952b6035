#include "experiments/compare/steady.h"

#include "sim/base/words.h"
#include "sim/stats/stats.h"
#include "sim/stats/stats_intervals.h"

#define LATENCIES 2

static const char *const latency_names[LATENCIES] = {"ttft_s", "e2e_s"};

struct point {
    int64_t arrival_ns;
    uint32_t id; /* tie-breaker */
    double latency[LATENCIES];
};

struct series {
    struct point *v; /* owned */
    size_t n;
};

struct steady {
    struct observer observer;
    struct series cls[REQUEST_CLASS_COUNT];
};

static void request_finished(void *self, int64_t now_ns, const struct request *r)
{
    struct series *s = &((struct steady *)self)->cls[r->cls];
    LIST_ADD(s->v, s->n,
             (struct point){.arrival_ns = r->arrival_ns,
                            .id = r->id,
                            .latency = {units_s_from_ns(r->first_token_ns - r->arrival_ns),
                                        units_s_from_ns(now_ns - r->arrival_ns)}});
}

struct steady *steady_new(void)
{
    struct steady *s = xkept(xcalloc(1, sizeof *s));
    s->observer = (struct observer){.self = s, .request_finished = request_finished};
    return s;
}

struct observer *steady_observer(struct steady *s)
{
    return &s->observer;
}

SORT_BY(by_arrival, struct point, SORT_UP(arrival_ns), SORT_UP(id))

/* Adds a class, from its points in order of arrival. */
static int put_class(const char *cls, const struct point *v, size_t n, bool overloaded,
                     struct frame *f, struct err *e)
{
    OWNED double *x = xmalloc(n * sizeof *x);
    size_t before = e->n;
    for (int k = 0; k < LATENCIES; k++) {
        for (size_t i = 0; i < n; i++) {
            x[i] = v[i].latency[k];
        }
        const char *name = document_format("%s.%s", cls, latency_names[k]);
        struct stats_steady s;
        /* Successive latencies of a run are correlated, so n of them have the information of fewer
         * independent values. The row prints that smaller number next to the mean. */
        if (stats_steady(name, x, n, overloaded, STATS_LEVEL_FRAC, &s, e) == 0) {
            FRAME_ROW(f, name, frame_shown(s.mean.mean, stats_format(&s.mean)), s.mean.low,
                      s.mean.high, s.n, s.dropped, s.batches, s.correlation_length,
                      document_format("%zu values, worth %.0f independent ones", s.n - s.dropped,
                                      (double)(s.n - s.dropped) / s.correlation_length));
        }
    }
    return e->n > before ? -EINVAL : 0;
}

int steady_document(const struct steady *s, bool overloaded, struct document *d, struct err *e)
{
    static const struct frame_column columns[] = {
        {.name = "metric", .kind = FRAME_TEXT, .title = ""},
        {.name = "mean", .title = "", .left = true},
        {.name = "low", .only_data = true},
        {.name = "high", .only_data = true},
        {.name = "n", .only_data = true},
        {.name = "dropped", .only_data = true},
        {.name = "batches", .only_data = true},
        {.name = "correlation_length", .only_data = true},
        {.name = "worth", .title = "", .kind = FRAME_TEXT, .only_text = true},
    };
    struct document *told = document_within(d, NULL);
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "steady", 1, columns), 2);
    int rc = 0;
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        size_t n = s->cls[c].n;
        if (n > 0) {
            OWNED struct point *v = xmalloc(n * sizeof *v);
            for (size_t i = 0; i < n; i++) {
                v[i] = s->cls[c].v[i];
            }
            /* Batch means need the order of arrival, but requests end in a different order. */
            qsort(v, n, sizeof *v, by_arrival);
            int failed = put_class(words_classes[c], v, n, overloaded, f, e);
            rc = failed != 0 ? failed : rc;
        }
    }
    if (frame_rows(f) > 0) {
        document_note(told, "\nsteady state, mean [95 %% interval]");
    }
    return rc;
}

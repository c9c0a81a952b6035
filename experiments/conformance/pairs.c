/* Runs a load twice, and compares the two runs. */
#include "experiments/conformance/conformance.h"
#include "policies/external/external.h"

const char *const conformance_pairs[] = {"", "collapsed", "repeated", "hidden", "confined", NULL};

/* DDR bytes of a run. The sum is exact, because intervals are integers. */
static uint64_t ddr_bytes;

static void on_ddr(void *self UNUSED, int64_t now_ns UNUSED, uint64_t count, int64_t duration_ns,
                   double demand UNUSED, double share)
{
    ddr_bytes += count * (uint64_t)llround(share * units_s_from_ns(duration_ns));
}

/* The results by which two runs are compared. */
struct seen {
    char *decisions; /* owned */
    struct scenario_record records[SCENARIO_MAX_REQUESTS];
    uint64_t kernels, ddr_bytes;
    double energy_j;
    int status;
    int64_t end_ns;
};

int conformance_run(struct scenario *sc, const struct trace *t)
{
    struct trace own = sc->trace;
    sc->trace = *t;
    int rc = scenario_again(sc);
    sc->trace = own;
    return rc;
}

static void see(struct scenario *sc, const struct trace *t, struct seen *out)
{
    size_t size = 0;
    FILE *log = open_memstream(&out->decisions, &size);
    SIM_REQUIRE(log != NULL, "memory");
    memset(sc->records, 0, sizeof sc->records);
    ddr_bytes = 0;
    sc->observer.ddr = on_ddr;
    sc->setup.decision_log = log;
    out->status = conformance_run(sc, t);
    sc->setup.decision_log = NULL;
    sc->observer.ddr = NULL;
    (void)fclose(log);
    memcpy(out->records, sc->records, sizeof out->records);
    out->kernels = sc->result.kernels;
    out->ddr_bytes = ddr_bytes;
    out->energy_j = sc->result.audit.energy_integral_j;
    out->end_ns = sc->result.end_ns;
}

/* Copies a trace, and changes all that a policy cannot know at t_ns: outputs of requests that have
 * not finished, and gaps or arrivals of those that have not arrived. A later turn is hidden while
 * its predecessor runs. */
static void change_what_is_hidden(const struct trace *from, const struct scenario_record *record,
                                  int64_t t_ns, struct trace *to)
{
    *to = *from;
    to->rows = xmalloc((from->n + 1) * sizeof *to->rows);
    memcpy(to->rows, from->rows, from->n * sizeof *to->rows);
    for (size_t i = 0; i < to->n; i++) {
        struct trace_row *row = &to->rows[i];
        const struct scenario_record *r = &record[row->request_id];
        if (r->finish_ns > t_ns && r->arrival_ns <= t_ns) {
            row->output_tokens += 5;
        }
        if (r->arrival_ns > t_ns) {
            row->arrival_ns += row->arrival_ns / 2 + 10 * NS_PER_MS;
            row->output_tokens = 1 + row->output_tokens / 2;
        }
    }
}

/* Returns the first difference between two logs of decisions up to an instant, or NULL. */
static const char *part(const char *a, const char *b, int64_t until_ns)
{
    static char text[512];
    while (*a != '\0' && *b != '\0') {
        size_t la = strcspn(a, "\n");
        size_t lb = strcspn(b, "\n");
        long long at = 0;
        (void)sscanf(a, "%*u %lld", &at);
        if (at > until_ns) {
            return NULL;
        }
        if (la != lb || memcmp(a, b, la) != 0) {
            (void)snprintf(text, sizeof text, "decisions differ: %.*s / %.*s",
                           la < 200 ? (int)la : 200, a, lb < 200 ? (int)lb : 200, b);
            return text;
        }
        a += la + (a[la] == '\n');
        b += lb + (b[lb] == '\n');
    }
    return *a == *b || until_ns < INT64_MAX ? NULL : "one run decides more than the other";
}

static const char *fails(const struct scenario *sc)
{
    return xkeep(xformat("a run fails: %s", sc->result.message));
}

static const char *compare(const struct seen *a, const struct seen *b, enum conformance_pair pair)
{
    const char *decisions = pair == CONFORMANCE_HIDDEN
                                ? part(a->decisions, b->decisions, a->end_ns / 3)
                                : part(a->decisions, b->decisions, INT64_MAX);
    if (decisions != NULL || pair == CONFORMANCE_HIDDEN) {
        return decisions;
    }
    return memcmp(a->records, b->records, sizeof a->records) != 0 ? "times of requests differ"
           : a->kernels != b->kernels                             ? "numbers of kernels differ"
           : a->ddr_bytes != b->ddr_bytes                         ? "DDR bytes differ"
           : a->energy_j != b->energy_j                           ? "energies differ"
                                                                  : NULL;
}

const char *conformance_differ(struct scenario *sc, const struct trace *t,
                               enum conformance_pair pair)
{
    static struct seen a;
    static struct seen b;
    bool collapse = sc->setup.collapse;
    struct trace changed = *t;
    sc->setup.collapse = pair == CONFORMANCE_COLLAPSED ? false : collapse;
    see(sc, t, &a);
    if (a.status != 0) { /* the request times of a failed run are incomplete */
        sc->setup.collapse = collapse;
        free(a.decisions);
        return fails(sc);
    }
    sc->setup.collapse = pair == CONFORMANCE_COLLAPSED ? true : collapse;
    if (pair == CONFORMANCE_HIDDEN) {
        change_what_is_hidden(t, a.records, a.end_ns / 3, &changed);
    }
    const struct policy_ops *here = sc->setup.policy;
    struct core_memory memory;
    if (pair == CONFORMANCE_CONFINED) {
        const struct arena_source *own = hosted_memory(sc->confined);
        memory = (struct core_memory){own[0], own[1]};
        sc->setup.policy = sc->confined;
        sc->setup.memory = &memory;
    }
    see(sc, &changed, &b);
    sc->setup.policy = here;
    sc->setup.memory = NULL;
    const char *differ = b.status != 0 ? fails(sc) : compare(&a, &b, pair);
    sc->setup.collapse = collapse;
    if (pair == CONFORMANCE_HIDDEN) {
        free(changed.rows);
    }
    free(a.decisions);
    free(b.decisions);
    return differ;
}

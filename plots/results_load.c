/* Reads inputs as points; parses `compare --json`. */
#include "plots/about.h"
#include "plots/results.h"
#include "sim/base/json.h"

/* The number of runs, and of OVERLOADED ones, of a row's policy at its load. */
static struct results_load load_of(const struct frame *f, uint32_t row,
                                   const struct frame *verdicts)
{
    double load = frame_get(f, row, "load");
    for (uint32_t i = 0; i < frame_rows(verdicts); i++) {
        double at = frame_get(verdicts, i, "load");
        double bad = frame_get(verdicts, i, "overloaded");
        double runs = bad + frame_get(verdicts, i, "stable") + frame_get(verdicts, i, "undecided");
        if (frame_is(verdicts, i, "policy", frame_text(f, row, "policy")) &&
            (at == load || isnan(load)) && isfinite(runs)) {
            return (struct results_load){(unsigned)runs, (unsigned)bad};
        }
    }
    return (struct results_load){0, 0};
}

/* Adds a point for a row of f: a policy at a load. */
static void add_policy(struct results *r, const struct figure_input *in, const struct frame *f,
                       uint32_t row, const struct frame *verdicts)
{
    results_begin_point(r, in);
    double load = frame_get(f, row, "load");
    double offered = load * frame_get(f, row, "capacity_req_per_min");
    results_put_axis(r, "policy", frame_value_text(frame_text(f, row, "policy")));
    results_put_axis(r, "soc", frame_value_text(about_fact(in->about, "soc")));
    results_put_axis(r, "llm", frame_value_text(about_fact(in->about, "llm")));
    results_put_axis(r, "workload", frame_value_text(frame_text(f, row, "workload")));
    results_put_axis(r, "load", FRAME_IF(isfinite(load), load));
    results_put_axis(r, "offered_req_per_min", FRAME_IF(isfinite(offered), offered));
    for (size_t c = (size_t)frame_find(f, "policy") + 1; c < frame_width(f); c++) {
        frame_set(r->points, frame_name(f, c), frame_at(f, row, c));
    }
    r->load[frame_rows(r->points) - 1] = load_of(f, row, verdicts);
}

static void put_failed(const struct figure_input *in)
{
    double failed = fmax(0.0, json_number(in->tree, "failed_runs")); /* NaN: unknown */
    const cJSON *load;
    cJSON_ArrayForEach (load, json_member(in->tree, "loads")) {
        failed += fmax(0.0, json_number(load, "failed_runs"));
    }
    results_put_failed(in, failed);
}

static int add_compare(struct results *r, const struct figure_input *in, struct err *e)
{
    static const char *const at[][2] = {{"policies/{policy}", "verdicts/{policy}"},
                                        {"loads/policies/{policy}", "loads/verdicts/{policy}"}};
    uint32_t before = frame_rows(r->points);
    put_failed(in);
    for (int k = 0; k < 2; k++) {
        SCOPED(frame_drop) struct frame *f = frame_of_json(in->tree, at[k][0], in->path);
        SCOPED(frame_drop) struct frame *verdicts = frame_of_json(in->tree, at[k][1], in->path);
        for (uint32_t row = 0; row < frame_rows(f); row++) {
            add_policy(r, in, f, row, verdicts);
        }
    }
    return frame_rows(r->points) > before
               ? 0
               : err_add(e, "%s: no comparison: expected what `xpusim compare --json` prints",
                         in->path);
}

const struct results *results_load(const struct figure_request *request, struct err *e)
{
    struct results *r = xkept(xcalloc(1, sizeof *r));
    *r = (struct results){.points = frame_new(), .request = request};
    int rc = 0;
    for (size_t i = 0; i < request->n_inputs && rc == 0; i++) {
        const struct figure_input *in = &request->inputs[i];
        rc = (in->tree != NULL ? add_compare : results_add_csv)(r, in, e);
    }
    return rc == 0 ? r : NULL;
}

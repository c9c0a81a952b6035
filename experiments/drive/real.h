/* A run on real inference backends: the backend of each device, the load of other processes during
 * the run, and the times of every request, for real and simulated runs. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/run/runner.h"
#include "sim/drive/drive.h"

#define REAL_DISTURBED_FRAC 0.10 /* more processor time used by others or stolen marks a run */

struct real_options {
    const char *engine;  /* "ggml", "openvino", "mixed": openvino on the NPU, else ggml */
    const char *clock;   /* "wall", "cpu" */
    const char *cores;   /* by device of the machine, "0,1"; or NULL */
    const char *devices; /* of the backend, "NPU,GPU", matched by kind; NULL: CPU */
    bool realtime;
    double limit_s, hang_s, compile_s;
};

struct request_time {
    bool finished;
    enum request_class cls;
    double ttft_s, tpot_s, e2e_s; /* tpot of one token: NaN */
};

struct request_times {
    struct request_time *v; /* owned; by position in the trace's rows */
    size_t n;
    struct observer observer;
};

void request_times_init(struct request_times *t, size_t n_rows);
void request_times_fini(struct request_times *t);

struct real_run {
    int status; /* of the run; 0: success */
    char message[512];
    struct request_times times;
    struct drive_report report;
    double foreign_frac, steal_frac; /* shares of all processor time; -1: unknown */
    double load_before;              /* 1-minute load average at its start; -1: unknown */
    double end_s;
    double package_joules; /* of the whole machine (RAPL); -1: unknown */
    double wall_s;         /* duration of that measurement */
    struct sim_result sim;
};

/* Resolves the options on a machine. Returns 0, or -EINVAL with errors: unknown backend, wrong
 * lists. */
int real_devices(const struct real_options *o, const struct machine *m, struct drive_options *out,
                 struct err *e);

/* Runs a policy for real. Returns out->status; real_run_fini in every case. opt: files and
 * observers of the run; this function sets its executor and series. result: metrics, or NULL. */
int real_execute(const struct drive_options *o, const struct config *c,
                 const struct config_policy *p, const struct trace *t, uint64_t seed,
                 struct runner_options *opt, struct runner_result *result, struct real_run *out,
                 struct err *e);
void real_run_fini(struct real_run *r);

static inline bool real_disturbed(const struct real_run *r)
{
    return r->foreign_frac + r->steal_frac > REAL_DISTURBED_FRAC;
}

/* Name of a kind of work outside the devices, and the unit of its size. */
struct real_work {
    const char *name, *unit;
};
extern const struct real_work real_works[DRIVE_WORKS];

void real_print_times(FILE *out, const char *what, const struct drive_times *t);
void real_print(const struct real_run *r, const struct machine *m, FILE *out);
/* New object, owned by the caller. */
cJSON *real_to_json(const struct drive_options *d, const struct machine *m,
                    const struct real_run *r);
int real_write_kernels(const char *path, const struct drive_report *r, const struct machine *m,
                       struct err *e);

/* "ggml 0.25.3 on CPU core 0, ..." for all devices. The caller frees it. */
char *real_describe(const struct drive_options *o, const struct machine *m);

#include "experiments/run/recordings.h"

#include <glob.h>
#include <sys/stat.h>

static void add(struct config_options *o, const char *path)
{
    KEPT_ADD(o->recordings, o->n_recordings, xkeep(xstrdup(path)));
    o->trace = o->recordings[0];
}

int recordings_add(struct config_options *o, const char *arg, struct err *e)
{
    struct stat s;
    const bool there = stat(arg, &s) == 0;
    const bool folder = there && S_ISDIR(s.st_mode);
    if (!folder && (there || strpbrk(arg, "*?[") == NULL)) {
        add(o, arg); /* the reader reports a missing file */
        return 0;
    }
    OWNED char *pattern = xformat("%s%s", arg, folder ? "/*.csv" : "");
    glob_t found;
    const int rc = glob(pattern, 0, NULL, &found);
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++) {
        add(o, found.gl_pathv[i]);
    }
    if (rc == 0) {
        globfree(&found);
    }
    return rc == 0 ? 0
                   : err_add(e, "--trace %s: %s", arg,
                             folder ? "the folder has no .csv file" : "no file matches");
}

uint32_t recordings_replications(const struct config_options *o, uint32_t asked)
{
    const bool bounded = o->trace != NULL && !o->resample;
    const uint32_t n = o->n_recordings > 0 ? o->n_recordings : 1;
    return bounded && asked > n ? n : asked;
}

const char *recordings_sample(const struct config_options *o)
{
    return o->trace == NULL      ? "generated"
           : o->resample_jobs    ? "redrawn jobs"
           : o->resample         ? "redrawn sessions"
           : o->n_recordings > 1 ? "recordings"
                                 : "one recording";
}

const char *recordings_note(const struct config_options *o)
{
    if (o->trace == NULL) {
        return NULL;
    }
    if (o->resample) {
        const char *note = xkeep(xformat("%s redrawn from one recording (block bootstrap): "
                                         "intervals are as good as the recording is typical",
                                         o->resample_jobs ? "jobs" : "sessions"));
        SCOPED(err_fini)
        struct err quiet = ERR_INIT; /* the file may be gone if runs are in a store */
        SCOPED(trace_fini) struct trace t = {0};
        size_t fixed = trace_read(o->trace, &t, &quiet) == 0 ? trace_resample_fixed(&t) : 0;
        return fixed == 0 ? note
                          : xkeep(xformat("%s; of %zu requests %zu, from the only client of a "
                                          "closed loop in its class, cannot be redrawn: "
                                          "intervals of that class are too narrow",
                                          note, t.n, fixed));
    }
    if (o->n_recordings > 1) {
        return xkeep(xformat("%u recordings, one per replication", o->n_recordings));
    }
    return "one recorded trace: one run per policy, and the result holds for this trace. Give "
           "several (--trace repeated, a folder, a pattern), or redraw its sessions, or the jobs "
           "of a request graph (compare --resample)";
}

/* Each replication has its own recording. Other seeds, for instance of tuning, get any of them. */
static const char *recording_of(const struct config_options *o, uint64_t seed)
{
    if (o->n_recordings == 0 || o->trace != o->recordings[0]) { /* not from the command line */
        return o->trace;
    }
    for (uint32_t k = 0; k < o->n_recordings; k++) {
        if (config_seed(o->seed, k) == seed) {
            return o->recordings[k];
        }
    }
    return o->recordings[seed % o->n_recordings];
}

int recordings_read(const struct config_options *o, uint64_t seed, struct trace *out, struct err *e)
{
    if (!o->resample) {
        return trace_read(recording_of(o, seed), out, e);
    }
    SCOPED(trace_fini) struct trace recorded = {0};
    int rc = trace_read(o->trace, &recorded, e);
    return rc == 0 ? trace_resample(&recorded, o->resample_jobs, seed, out, e) : rc;
}

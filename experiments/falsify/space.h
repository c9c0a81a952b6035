/* The scenarios of falsify: numbers of a workload and a machine that may vary, and their bounds.
 *
 *   workload  keys of the `mixed` generator, by their names. Bursts come with the share of time
 *             that makes them whole (nothing arrives between them). Of a workload of agents the
 *             factors on its numbers
 *   machine   factors on numbers of the SoC file and on the KV that memory leaves: 1 is the
 *             file's. The KV is no axis with several models
 *
 * A point has a coordinate from 0 to 1 for every axis, of the logarithm of the value where the axis
 * says so. Values are rounded to two digits, so that a result is easy to state. */
#pragma once

#include "experiments/run/config.h"

#define SPACE_MAX_AXES 16

struct space_axis {
    const char *name;
    bool machine, agents; /* agents: of workloads with clients; else of mixed */
    double low, high;
    bool logarithmic, whole;
    double nominal; /* what the options say, within [low, high] after widening */
    const char *help;
    bool given; /* in the workload's text */
};

/* A number of the SoC file that an axis multiplies. */
struct space_number {
    const char *path; /* nobody frees it */
    double value;
    uint32_t axis;
};

struct space {
    struct space_axis axis[SPACE_MAX_AXES];
    uint32_t n;
    const struct config_options *options; /* borrowed */
    const char *head;                     /* of the workload's text: "mixed"; nobody frees it */
    const char *keys; /* of the workload that are no axes, "a=b,c=d"; nobody frees it */
    struct space_number number[CONFIG_MAX_SETS];
    uint32_t n_numbers;
    double kv_tokens; /* what memory leaves */
};

struct space_point {
    double u[SPACE_MAX_AXES];
};

/* All axes there are, for help: the n-th, or NULL. */
const struct space_axis *space_axis_known(uint32_t n);

/* The axes of what `over` names ("workload,machine"), around the options. -EINVAL: another word, a
 * workload that no generator of theirs makes, or more numbers than can be set at once. */
int space_init(struct space *s, const struct config_options *o, const struct config *c,
               const char *over, struct err *e);
struct space_point space_nominal(const struct space *s);
/* Value of an axis at a point; the nominal one exactly where the coordinate is its. */
double space_value(const struct space *s, const struct space_point *p, uint32_t axis);
bool space_is_nominal(const struct space *s, const struct space_point *p, uint32_t axis);

/* The options of a point: the space's own, a workload and more settings. */
void space_options(const struct space *s, const struct space_point *p, struct config_options *out);
/* "--workload ... --set ..." as a shell takes it, in full. The caller frees it. */
char *space_command(const struct space *s, const struct space_point *p);

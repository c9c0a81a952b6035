/* The scenarios of falsify: the variable numbers of workload and machine, and their bounds.
 *
 *   workload  keys of the `mixed` generator, by name. Bursts have the time share with which nothing
 *             arrives between them. For workloads of agents, factors on their numbers
 *   machine   factors on numbers of the SoC file and on the KV capacity; 1 is unchanged. With
 *             several models, KV is no axis
 *
 * A point has a coordinate from 0 to 1 for every axis, linear in the value or in its logarithm.
 * Values are rounded to two digits, so that a result is easy to state. */
#pragma once

#include "experiments/run/config.h"

#define SPACE_MAX_AXES 16

struct space_axis {
    const char *name;
    bool machine, agents; /* agents: for workloads with clients; else for mixed */
    double low, high;
    bool logarithmic, whole;
    double nominal; /* by the options, within [low, high] after widening */
    const char *help;
    bool given; /* set in the workload's text */
};

/* A number of the SoC file that an axis multiplies. */
struct space_number {
    const char *path; /* kept */
    double value;
    uint32_t axis;
};

struct space {
    struct space_axis axis[SPACE_MAX_AXES];
    uint32_t n;
    const struct config_options *options; /* borrowed */
    const char *head;                     /* of the workload's text: "mixed"; kept */
    const char *keys;                     /* of the workload that are no axes, "a=b,c=d"; kept */
    struct space_number number[CONFIG_MAX_SETS];
    uint32_t n_numbers;
    double kv_tokens; /* capacity that memory leaves */
};

struct space_point {
    double u[SPACE_MAX_AXES];
};

/* The n-th of all known axes, or NULL; for help. */
const struct space_axis *space_axis_known(uint32_t n);

/* Fills the axes that `over` names ("workload,machine"), around the options. -EINVAL: an unknown
 * word, a workload of another generator, or more numbers than can be set at once. */
int space_init(struct space *s, const struct config_options *o, const struct config *c,
               const char *over, struct err *e);
struct space_point space_nominal(const struct space *s);
/* Value of an axis at a point; at the nominal coordinate exactly the nominal value. */
double space_value(const struct space *s, const struct space_point *p, uint32_t axis);
bool space_is_nominal(const struct space *s, const struct space_point *p, uint32_t axis);

/* The options of a point: those of the space, with its workload and settings. */
void space_options(const struct space *s, const struct space_point *p, struct config_options *out);
/* All options of a point, quoted for a shell: "--workload ... --set ...". The caller frees it. */
char *space_command(const struct space *s, const struct space_point *p);

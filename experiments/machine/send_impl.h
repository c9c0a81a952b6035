/* Internals of send-in: its steps (send_plan.c), and their execution (send.c). */
#pragma once

#include "experiments/machine/facts.h"
#include "experiments/machine/send.h"

#define SEND_MAX_STEPS 16
#define SEND_MAX_ARGS 40
#define SEND_TRACES 4

/* Its output goes to the file `to` unless that is NULL. It is complete if the file `makes` exists.
 */
struct step {
    const char *name, *makes, *to, *holds;
    double minutes;
    char *args[SEND_MAX_ARGS]; /* owned */
    size_t n_args;
    int status; /* of its last run; -1: not run */
    double seconds;
    bool drives; /* runs on devices that passed the probes; their words are added before it runs */
};

struct sending {
    const struct send_options *o;
    struct facts facts;
    struct step steps[SEND_MAX_STEPS];
    size_t n;
    char *folder; /* owned */
    bool tiny, openvino, ggml;
    char npu[16], gpu[16]; /* OpenVINO's names; "": none, or it cannot run a kernel */
    char *devices;         /* owned; of OpenVINO, separated by commas */
    struct err *e;
};

/* Shipped traces: the first calibrates, the others are compared. */
extern const char *const send_traces[SEND_TRACES];

/* Finds devices and fills the steps. */
void send_plan(struct sending *s);
/* Adds the words for the devices that passed the probes to a step that drives. */
void send_add_devices(const struct sending *s, struct step *t);

/* Inside send-in: its steps (send_plan.c), and their life (send.c). */
#pragma once

#include "experiments/machine/facts.h"
#include "experiments/machine/send.h"

#define SEND_MAX_STEPS 16
#define SEND_MAX_ARGS 40
#define SEND_TRACES 4

/* Its output goes to the file `to`, where that is not NULL; `makes` is there when it is done. */
struct step {
    const char *name, *makes, *to, *holds;
    double minutes;
    char *args[SEND_MAX_ARGS]; /* owned */
    size_t n_args;
    int status; /* of its last run; -1: it has not run */
    double seconds;
    bool drives; /* runs on the devices that the probes found fine: words are added when it runs */
};

struct sending {
    const struct send_options *o;
    struct facts facts;
    struct step steps[SEND_MAX_STEPS];
    size_t n;
    char *folder; /* owned */
    bool tiny, openvino, ggml;
    char npu[16], gpu[16]; /* OpenVINO's names; "": there is none, or it cannot run a kernel */
    char *devices;         /* owned: of OpenVINO, by commas */
    struct err *e;
};

/* Shipped traces: the first calibrates, the others are compared. */
extern const char *const send_traces[SEND_TRACES];

/* Finds devices and fills the steps. */
void send_plan(struct sending *s);
/* Adds the words of the devices to a step that drives, as the probes have left them. */
void send_add_devices(const struct sending *s, struct step *t);

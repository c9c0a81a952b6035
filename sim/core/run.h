/* Inputs and results of a run, for both executors. */
#pragma once

#include "sim/api/contention.h"
#include "sim/api/hwmodel.h"
#include "sim/api/observer.h"
#include "sim/api/policy.h"
#include "sim/api/trace.h"
#include "sim/base/base.h"
#include "sim/core/counters.h"
#include <stddef.h>

#define SIM_MAX_OBSERVERS 6
#define SIM_MAX_MODELS 8
#define SIM_MAX_POLICY_COUNTERS 16
#define SIM_MAX_REFUSALS 32
#define SIM_SCENE_BYTES 3072

/* Errors of the policy's estimates. estimate = truth * (1 + bias[op]) * exp(sigma * z - sigma^2 /
 * 2). The standard normal z depends only on (seed, shape, op, device, rows). So equal questions
 * have equal answers, for all policies. */
struct annotation_options {
    double bias_frac[OP_KIND_COUNT];
    double sigma_prefill; /* passes with prefill rows */
    double sigma_decode;
};

/* A periodic graphics user on a serial device. Its energy is the user's and not counted. */
struct sim_frames {
    double per_s; /* 0: none, until an event of the machine wants some */
    uint8_t device;
    int64_t device_ns; /* time of one frame, alone; 0: no device can draw any */
    double bytes;      /* DDR traffic of one frame */
};

/* A limit on the average power (throttle.c): a package's PL1, PL2 and time constant, or an RC
 * thermal model. */
struct sim_throttle {
    double limit_watts; /* of the average; 0: no limits at all */
    double burst_watts; /* at any instant; 0: none */
    double tau_s;       /* > 0: time constant of the average */
    double exponent;    /* > 0: watts above idle go as speed^exponent */
    double min_speed;   /* (0, 1]: nothing runs slower */
};

/* Memory of a device's kernels besides weights (sim/engine/buffers.c). */
struct sim_kernel_memory {
    double budget_bytes;       /* for all of them, set aside from the start; 0: not modelled */
    double instructions_bytes; /* of one kernel */
    double buffer_bytes;       /* per row that it is built for and column of the model's width */
    int64_t load_ns;           /* of the host, for one kernel that is not there */
};

/* Steps of frequency of a device, and the rule that chooses among them (sim/engine/governor.c). */
#define SIM_DVFS_MAX_STEPS 16
enum sim_dvfs_rule { SIM_DVFS_UTILISATION, SIM_DVFS_ENERGY };
struct sim_dvfs_step {
    double speed; /* (0, 1]: everything on the device takes 1 / speed as long */
    double power; /* [0, 1]: of its watts above idle */
};
struct sim_dvfs {
    uint32_t n;                                     /* 0: no steps, always at full speed */
    struct sim_dvfs_step steps[SIM_DVFS_MAX_STEPS]; /* speeds rise to 1 */
    enum sim_dvfs_rule rule;
    int64_t period_ns; /* > 0, of the rule utilisation: how often it looks, */
    double headroom;   /* and how much more than what was used it wants */
};

/* The battery gives watts / efficiency + rest where the machine draws watts. */
struct sim_supply {
    double efficiency_frac; /* (0, 1]; 1: what is drawn is what it gives */
    double rest_watts;
};

/* A model of the run, and the noise-free model of what its kernels take. */
struct sim_model {
    const struct llm *llm;
    const struct hwmodel *truth;
};

/* Memory for what a policy reads, and for what it writes. */
struct core_memory {
    struct arena_source shown, policys;
};

struct sim_setup {
    const struct machine *machine;
    const struct llm *llm; /* the default model, number 0 */
    const struct hwmodel *truth;
    const struct sim_model *more; /* models 1 to n_more; at most SIM_MAX_MODELS in all */
    uint32_t n_more;
    uint32_t draft_model;  /* of the models: who drafts for others; 0: none */
    bool weights_at_start; /* with several models: in memory from the beginning, while they fit */
    struct annotation_options annotation;
    double truth_sigma; /* per-launch noise of what kernels really take; 0: none */
    /* A share of the launches hangs: their kernels take this many times as long. A fault belongs to
     * the launch, so the same work launched again may run well. 0: none. */
    double hang_frac, hang_factor;
    const struct contention_ops *contention;
    const void *contention_params;
    const struct trace *trace;
    const struct policy_ops *policy;
    const struct policy_params *params;
    const void *policy_context; /* sched.context; borrowed */
    uint64_t seed;
    bool prefix_reuse; /* keep finished sessions' KV for later turns; same for all policies */
    uint64_t kv_capacity_tokens; /* 0: what memory leaves after weights */
    uint32_t kv_block_tokens;    /* allocation unit, >= 1 */
    uint32_t weight_copies; /* resident copies of the weights (one per runtime that cannot share) */
    double runtime_bytes;   /* held by the runtime next to weights and KV, for the whole run;
                             * budgets of kernels included */
    int64_t horizon_ns;     /* stop then; TIME_NEVER_NS drains. Set to the present by an observer
                             * that has seen enough, it ends the run after this instant */
    int64_t stall_ns;       /* watchdog: no token and no event that could bring one for so long */
    bool collapse;          /* pass ends of kernels between instants; otherwise each is an
                             * instant. Same results */
    struct sim_frames frames;
    struct sim_throttle throttle;
    struct sim_supply supply;
    struct sim_kernel_memory kernels[MACHINE_MAX_DEVICES];
    struct sim_dvfs dvfs[MACHINE_MAX_DEVICES];
    uint32_t caps; /* CAP_ bits of the executor; UINT32_MAX: all the simulator has */
    /* Speculative decoding: tokens a drafter offers for the next verification of a request
     * (policies may know them: they are there before the pass), and how many of them turn out right
     * (hidden). `text` is that of the request (hidden), or NULL; `step` counts the request's
     * verifications. Both are pure functions. NULL: no drafts. */
    uint32_t (*draft)(const void *params, uint64_t seed, const struct request *r,
                      const struct trace_text *text, uint64_t step);
    uint32_t (*accept)(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t step, uint32_t drafted);
    const void *speculation_params;
    const char *drafter;    /* what the policy calls it, for its decision log; NULL: nothing */
    bool drafts_on_texts;   /* the drafter wants a trace with texts */
    bool drafts_calibrated; /* ... and what the model expects after their tokens */
    struct observer *observers[SIM_MAX_OBSERVERS];
    uint32_t n_observers;
    FILE *decision_log;               /* one line per action, or NULL */
    const struct core_memory *memory; /* where a policy in another process finds what is shown;
                                         NULL: pages of this process */
};

/* Fills every field with its documented default: drain, collapse, prefix reuse on, 16-token blocks,
 * one weight copy, an hour of stall, no noise, a supply without losses. Pointers stay NULL. */
void sim_setup_defaults(struct sim_setup *s);

/* Do kernels take random times? Then none is like another. */
static inline bool sim_setup_is_random(const struct sim_setup *s)
{
    return s->truth_sigma > 0.0 || s->hang_frac > 0.0;
}

struct sim_audit {
    uint64_t arrived, finished, shed, running, queued; /* arrived = sum of the others */
    uint64_t future; /* not arrived at the horizon, or never: session over (until_ns) */
    uint64_t tokens_expected, tokens_produced; /* over finished requests */
    double energy_integral_j, energy_sum_j;    /* integral of power, and sum over devices */
    double littles_law_residual_frac; /* |integral of n(t) - sum of times in system| / the latter */
    double ddr_max_over_capacity;     /* largest share / peak of a kernel or move alone, share sum /
                                         capacity of several together; must be <= 1 + 1e-9 */
    uint64_t double_bookings;
    bool clean;
};

/* Actions that a policy asked for and did not get, those of one kind. Texts are static. */
struct sim_refusal {
    const char *action; /* "launch": as in the decision log */
    const char *hook; /* of policy_ops, that it was asked from: "schedule", where actions belong */
    const char *why;  /* one clause */
    enum counter counter;
    int status; /* -errno */
    uint64_t n;
    int64_t first_ns;
};

/* Kernels in memory, where the machine states what they take. */
struct sim_kernel_memory_use {
    bool known;
    uint64_t loads, evictions;
    int64_t load_ns; /* sum over loads */
    double peak_bytes;
};

/* Frequencies of the devices that have steps. */
struct sim_dvfs_use {
    bool known;
    uint64_t changes;
    int64_t busy_ns; /* sum over these devices */
    double speed_ns; /* its integral of their speeds */
};

/* The battery, in a run with events of the machine. */
struct sim_battery {
    bool known;      /* there is one */
    bool empty;      /* the run ended by that */
    double end_frac; /* state of charge at the end */
    double drawn_j;
};

struct sim_result {
    int status;        /* 0, or -errno of the violation that ended the run */
    char message[512]; /* names time, seed, event number, policy and request; "" when fine */
    /* The scene of a run that failed in its middle, in lines: waiting requests, residents, free KV,
     * devices, the last decisions, refused actions. "" when fine. */
    char scene[SIM_SCENE_BYTES];
    bool refused; /* the setup, before the first event: no run, but bad input */
    int64_t end_ns;
    uint64_t events;  /* that a policy can see: arrivals, ends of launches and passes, timers ... */
    uint64_t kernels; /* kernels run, each counted */
    uint64_t decisions; /* accepted actions */
    uint64_t counters[COUNTER_COUNT];
    struct sim_refusal refusals[SIM_MAX_REFUSALS]; /* in order of their first; more are counted only
                                                    */
    uint32_t n_refusals;
    char policy_counter_names[SIM_MAX_POLICY_COUNTERS][32];
    uint64_t policy_counters[SIM_MAX_POLICY_COUNTERS];
    uint32_t n_policy_counters;
    uint64_t kv_capacity_tokens, kv_peak_tokens; /* live + cold */
    double memory_peak_bytes;                    /* weights + KV + residents + runtime */
    /* With several models. A load begins when a request asks for it, and waits for the loader. */
    uint64_t model_loads, model_evictions;
    int64_t model_load_ns;
    double model_load_bytes;
    struct sim_kernel_memory_use kernel_memory;
    struct sim_dvfs_use dvfs;
    struct sim_battery battery;
    struct sim_audit audit;
};

/* Says in `why` what another contract differs in; NULL when it is this one, else `why`. Reads only
 * `size` unless that is of a policy_ops that begins with a contract, so anything may be asked about
 * that a policy of any version returned. */
const char *contract_mismatch(const struct policy_contract *other, char *why, size_t why_size);

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

/* Errors of the policy's estimates: estimate = truth * (1 + bias[op]) * exp(sigma * z - sigma^2 /
 * 2). The standard normal z depends only on (seed, shape, op, device, rows), so that all policies
 * get equal estimates. */
struct annotation_options {
    double bias_frac[OP_KIND_COUNT];
    double sigma_prefill; /* passes with prefill rows */
    double sigma_decode;
};

/* A screen that draws frames on a serial device. Their energy is not counted. */
struct sim_frames {
    double per_s; /* 0: none, until an event of the machine sets it */
    uint8_t device;
    int64_t device_ns; /* isolated time of one frame; 0: no device can draw */
    double bytes;      /* DDR traffic of one frame */
};

/* A limit on the average power (throttle.c): a package's PL1, PL2 and time constant, or an RC
 * thermal model. */
struct sim_throttle {
    double limit_watts; /* limit of the average; 0: no limits at all */
    double burst_watts; /* limit at any instant; 0: none */
    double tau_s;       /* > 0: time constant of the average */
    double exponent;    /* > 0: watts above idle are proportional to speed^exponent */
    double min_speed;   /* lowest speed, (0, 1] */
};

/* Memory of a device's kernels besides weights (sim/engine/buffers.c). */
struct sim_kernel_memory {
    double budget_bytes;       /* for all kernels, reserved from the start; 0: not modelled */
    double instructions_bytes; /* bytes of one kernel */
    double buffer_bytes; /* bytes per row of its static shape and column of the model's width */
    int64_t load_ns;     /* host time to load one kernel */
};

/* Steps of frequency of a device, and the rule that chooses among them (sim/engine/governor.c). */
#define SIM_DVFS_MAX_STEPS 16
enum sim_dvfs_rule { SIM_DVFS_UTILISATION, SIM_DVFS_ENERGY };
struct sim_dvfs_step {
    double speed; /* (0, 1]: work on the device takes 1 / speed as long */
    double power; /* [0, 1]: factor on its watts above idle */
};
struct sim_dvfs {
    uint32_t n;                                     /* 0: no steps, always at full speed */
    struct sim_dvfs_step steps[SIM_DVFS_MAX_STEPS]; /* speeds rise to 1 */
    enum sim_dvfs_rule rule;
    int64_t period_ns; /* > 0; SIM_DVFS_UTILISATION: period of its decisions */
    double headroom;   /* SIM_DVFS_UTILISATION: factor on the measured utilisation */
};

/* If the machine draws `watts`, the battery supplies watts / efficiency + rest. */
struct sim_supply {
    double efficiency_frac; /* (0, 1]; 1: no losses */
    double rest_watts;
};

/* A model of the run, and its noise-free kernel-time model. */
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
    uint32_t draft_model;  /* the model that drafts for others; 0: none */
    bool weights_at_start; /* with several models: load as many as fit before the run */
    struct annotation_options annotation;
    double truth_sigma; /* per-launch noise of true kernel times; 0: none */
    /* A share hang_frac of the launches hangs: their kernels take hang_factor times as long. Each
     * launch draws by itself, so a repeated launch of the same work may run well. 0: none. */
    double hang_frac, hang_factor;
    const struct contention_ops *contention;
    const void *contention_params;
    const struct trace *trace;
    const struct policy_ops *policy;
    const struct policy_params *params;
    const void *policy_context; /* sched.context; borrowed */
    uint64_t seed;
    bool prefix_reuse; /* keep finished sessions' KV for later turns; same for all policies */
    uint64_t kv_capacity_tokens; /* 0: what the weights leave of memory */
    uint32_t kv_block_tokens;    /* allocation unit, >= 1 */
    uint32_t weight_copies; /* resident copies of the weights (one per runtime that cannot share) */
    double runtime_bytes;   /* of the runtime, besides weights and KV, for the whole run; includes
                               budgets of kernels */
    int64_t horizon_ns; /* end of the run; TIME_NEVER_NS: run until all requests left. An observer
                           may set it to the present to end the run after this instant */
    int64_t stall_ns;   /* watchdog: fail after this time without progress towards a token */
    bool collapse; /* simulate ends of undisturbed kernels without an instant for each; results are
                      the same */
    struct sim_frames frames;
    struct sim_throttle throttle;
    struct sim_supply supply;
    struct sim_kernel_memory kernels[MACHINE_MAX_DEVICES];
    struct sim_dvfs dvfs[MACHINE_MAX_DEVICES];
    uint32_t caps; /* CAP_ bits that the executor may use; UINT32_MAX: all */
    /* Speculative decoding, two pure functions: tokens that a drafter offers for the next
     * verification (policies may see them), and how many of them are right (hidden). `text` is that
     * of the request (hidden), or NULL; `step` counts the request's verifications. NULL: no drafts.
     */
    uint32_t (*draft)(const void *params, uint64_t seed, const struct request *r,
                      const struct trace_text *text, uint64_t step);
    uint32_t (*accept)(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t step, uint32_t drafted);
    const void *speculation_params;
    const char *drafter;    /* the policy's parameter `drafter`, for the decision log, or NULL */
    bool drafts_on_texts;   /* the drafter needs a trace with texts */
    bool drafts_calibrated; /* the drafter needs their calibration, too */
    struct observer *observers[SIM_MAX_OBSERVERS];
    uint32_t n_observers;
    FILE *decision_log;               /* one line per action, or NULL */
    const struct core_memory *memory; /* for a policy in another process; NULL: private memory */
};

/* Fills every field with its documented default: drain, collapse, prefix reuse on, 16-token blocks,
 * one weight copy, an hour of stall, no noise, a supply without losses. Pointers stay NULL. */
void sim_setup_defaults(struct sim_setup *s);

/* Whether kernel times are random, so that no two kernels can be assumed equal. */
static inline bool sim_setup_is_random(const struct sim_setup *s)
{
    return s->truth_sigma > 0.0 || s->hang_frac > 0.0;
}

struct sim_audit {
    uint64_t arrived, finished, shed, running, queued; /* arrived = sum of the others */
    uint64_t future; /* not arrived by the horizon, or never because the session ended (until_ns) */
    uint64_t tokens_expected, tokens_produced; /* over finished requests */
    double energy_integral_j, energy_sum_j;    /* integral of power, and sum over devices */
    double littles_law_residual_frac; /* |integral of n(t) - sum of times in system| / the latter */
    double ddr_max_over_capacity; /* largest of share / peak for a single flow, and sum of shares /
                                     capacity for several; must be <= 1 + 1e-9 */
    uint64_t double_bookings;
    bool clean;
};

/* Refused actions of one kind. Texts are static. */
struct sim_refusal {
    const char *action; /* "launch": as in the decision log */
    const char *hook;   /* hook of policy_ops that called it; "schedule" is where actions belong */
    const char *why;    /* one clause */
    enum counter counter;
    int status; /* -errno */
    uint64_t n;
    int64_t first_ns;
};

/* Memory of kernels, if the machine states their sizes. */
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
    double speed_ns; /* integral of their speeds over that time */
};

/* The battery, in a run with events of the machine. */
struct sim_battery {
    bool known;      /* the machine has one */
    bool empty;      /* it ended the run */
    double end_frac; /* state of charge at the end */
    double drawn_j;
};

struct sim_result {
    int status;        /* 0, or -errno of the violation that ended the run */
    char message[512]; /* names time, seed, event number, policy and request; "" when fine */
    /* The state in which a run failed, as lines of text: waiting requests, residents, free KV,
     * devices, last decisions, refused actions. "" if it did not fail. */
    char scene[SIM_SCENE_BYTES];
    bool refused; /* the setup is bad input, so that there was no run */
    int64_t end_ns;
    uint64_t events;  /* events that a policy can see: arrivals, ends of launches and passes, timers
                         ... */
    uint64_t kernels; /* kernels run, each counted */
    uint64_t decisions; /* accepted actions */
    uint64_t counters[COUNTER_COUNT];
    struct sim_refusal refusals[SIM_MAX_REFUSALS]; /* by time of the first; some may lack */
    uint32_t n_refusals;
    char policy_counter_names[SIM_MAX_POLICY_COUNTERS][32];
    uint64_t policy_counters[SIM_MAX_POLICY_COUNTERS];
    uint32_t n_policy_counters;
    uint64_t kv_capacity_tokens, kv_peak_tokens; /* live + cold */
    double memory_peak_bytes;                    /* weights + KV + residents + runtime */
    /* With several models. A load time includes the wait for the loader. */
    uint64_t model_loads, model_evictions;
    int64_t model_load_ns;
    double model_load_bytes;
    struct sim_kernel_memory_use kernel_memory;
    struct sim_dvfs_use dvfs;
    struct sim_battery battery;
    struct sim_audit audit;
};

/* Compares a policy's contract with this one. Returns NULL if they are equal, else `why` with the
 * difference. Reads members after `size` only if that is the size of a policy_ops that begins with
 * a contract, so it is safe for policies of any version. */
const char *contract_mismatch(const struct policy_contract *other, char *why, size_t why_size);

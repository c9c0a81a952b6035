#include "experiments/conformance/randomload.h"

static double pick(struct rng *r, double low, double high)
{
    return low + (high - low) * rng_uniform(r);
}

static void costs(struct scenario *sc, struct rng *r)
{
    for (int d = 0; d < 3; d++) {
        double slow = pick(r, 0.5, 3.0);
        double gb = pick(r, 20, 90);
        scenario_cost(sc, d, OP_QKV, slow * 0.5, slow * 0.01, 0.1 * gb);
        scenario_cost(sc, d, OP_MHA, slow * 0.3, slow * 0.002, gb * 0.7);
        scenario_cost(sc, d, OP_FFN, slow * 0.8, slow * 0.02, 0.2 * gb);
        scenario_cost(sc, d, OP_HEAD, slow * 0.4, 0, gb);
        scenario_cost(sc, d, OP_LAYER, slow * 1.6, 0, gb);
    }
    sc->ridge_flop_per_byte = rng_below(r, 2) ? 1.0 : 3.0;
}

static void settings(struct scenario *sc, struct rng *r, uint32_t largest)
{
    static const char *const forms[] = {"max-min", "none", "proportional", "weighted"};
    struct machine *m = &sc->machine;
    sc->llm.n_layers = 1 + rng_below(r, 3);
    sc->llm.weight_bytes = 1e8;
    sc->setup.contention = contention_find(forms[rng_below(r, 4)]);
    sc->setup.seed = rng_u64(r);
    sc->setup.prefix_reuse = rng_below(r, 3) > 0;
    m->ddr_cap_frac = pick(r, 0.6, 1.0);
    m->compile_fixed_ns = units_ns_from_ms(pick(r, 0.1, 100));
    m->loader_fixed_ns = units_ns_from_ms(1);
    for (uint32_t d = 0; d < 3; d++) {
        m->devices[d].can_reset = rng_below(r, 2) > 0;
        m->devices[d].can_withdraw = rng_below(r, 2) > 0;
        m->devices[d].can_suspend = m->devices[d].can_withdraw;
        m->devices[d].reset_ns = units_ns_from_us(50);
    }
    m->devices[NPU].static_attention = rng_below(r, 2) > 0;
    if (rng_below(r, 2) > 0) {
        m->sync_ns = units_ns_from_us(50);
        m->schedule_ns = units_ns_from_us(2);
        m->sample_ns_per_token = units_ns_from_us(100);
        for (uint32_t d = 0; d < 3; d++) {
            m->devices[d].submit_ns = units_ns_from_us(10);
            m->devices[d].completion_ns = units_ns_from_us(5);
        }
    }
    if (rng_below(r, 2) > 0) {
        sc->setup.annotation.sigma_prefill = 0.3;
        sc->setup.annotation.sigma_decode = 0.2;
        sc->setup.truth_sigma = 0.1;
    }
    if (rng_below(r, 2) > 0) { /* tight memory, in blocks of 16 */
        sc->setup.kv_capacity_tokens = (largest / 16 + 3 + rng_below(r, 40)) * 16;
    }
}

uint32_t randomload_make(struct scenario *sc, struct scenario_request *q, uint32_t max,
                         uint64_t seed)
{
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_TEST, 0, 0));
    scenario_init(sc);
    uint32_t n = 4 + rng_below(&r, max - 4);
    uint32_t largest = 0;
    double t = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        /* Some arrive at the same instant. */
        t += rng_below(&r, 3) == 0 ? 0.0 : rng_exponential(&r, 0.08);
        q[i] = (struct scenario_request){
            .cls = rng_below(&r, 3) == 0 ? REQUEST_CLASS_REACTIVE : REQUEST_CLASS_PROACTIVE,
            .arrival_s = t,
            .input_tokens = 1 + rng_below(&r, rng_below(&r, 4) == 0 ? 1500 : 300),
            .output_tokens = 1 + rng_below(&r, 25),
        };
        if (i > 0 && rng_below(&r, 4) == 0) { /* a later turn of an earlier request's session */
            uint32_t j = rng_below(&r, i);
            if (q[j].session_id == 0) {
                q[j].session_id = 10 + j;
            }
            bool tail = true; /* whether j is the last turn so far, so that prefixes are valid */
            for (uint32_t k = j + 1; k < i; k++) {
                tail = tail && q[k].session_id != q[j].session_id;
            }
            if (tail) {
                q[i].session_id = q[j].session_id;
                q[i].cls = q[j].cls;
                q[i].arrival_s = rng_exponential(&r, 0.05);
                q[i].input_tokens += q[j].input_tokens + q[j].output_tokens;
                q[i].prefix_tokens = q[j].input_tokens;
            }
        }
        uint32_t total = q[i].input_tokens + q[i].output_tokens;
        largest = total > largest ? total : largest;
    }
    sc->gaps_are_tools = seed % 2 == 0;
    costs(sc, &r);
    settings(sc, &r, largest);
    if (rng_below(&r, 4) == 0) { /* a screen shows frames */
        sc->setup.frames = (struct sim_frames){.per_s = pick(&r, 10, 200),
                                               .device = IGPU,
                                               .device_ns = units_ns_from_ms(pick(&r, 0.1, 8)),
                                               .bytes = pick(&r, 1e4, 1e8)};
        struct sim_frames *f = &sc->setup.frames; /* no frame moves more than the DDR can */
        double most = sc->machine.ddr_peak_bytes_per_s * (double)f->device_ns * 1e-9;
        f->bytes = f->bytes < most ? f->bytes : most;
    }
    if (rng_below(&r, 4) == 0) { /* the package has a power limit */
        sc->setup.throttle = (struct sim_throttle){.limit_watts = pick(&r, 5, 40),
                                                   .burst_watts = pick(&r, 20, 80),
                                                   .tau_s = pick(&r, 0.01, 1),
                                                   .exponent = pick(&r, 1, 3),
                                                   .min_speed = 0.2};
    }
    return n;
}

double randomload_between(struct rng *r, double low, double high)
{
    return low * pow(high / low, rng_uniform(r));
}

const char *randomload_word(struct rng *r, const char *const *words)
{
    uint32_t n = 0;
    while (words[n] != NULL) {
        n++;
    }
    return words[rng_below(r, n)];
}

size_t randomload_param(char *out, size_t size, struct rng *r, const struct policy_param *p)
{
    if (p->type == PARAM_BOOL) {
        return (size_t)snprintf(out, size, "%s=%s", p->name, rng_below(r, 2) ? "true" : "false");
    }
    if (p->type == PARAM_CHOICE) {
        return (size_t)snprintf(out, size, "%s=%s", p->name, randomload_word(r, p->choices));
    }
    double low = p->min > 1e-6 ? p->min : 1e-3;
    double high = p->max < 1e6 ? p->max : 1e6;
    double v = p->def > 0.0 && rng_below(r, 3) > 0 ? p->def * randomload_between(r, 0.2, 5)
               : high > low                        ? randomload_between(r, low, high)
                                                   : p->max;
    v = v < p->min ? p->min : v > p->max ? p->max : v;
    const char *form = p->type == PARAM_INT ? "%s=%.0f" : "%s=%.4g";
    return (size_t)snprintf(out, size, form, p->name, p->type == PARAM_INT ? floor(v) : v);
}

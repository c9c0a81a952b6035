/* Makes a measured row from a list of keys or a benchmark's report. */
#include <ctype.h>

#include "experiments/validation/measured_impl.h"

#define DEFAULT_DEVICE "igpu"

static const char *first_of(const char *a, const char *b, const char *c)
{
    return a != NULL ? a : b != NULL ? b : c;
}

void measured_add(struct measured *m, const struct measured_keys *k, const struct point *p,
                  const char *place)
{
    m->points.v = xkept_grow(m->points.v, m->points.n, sizeof *m->points.v);
    m->place = xkept_grow(m->place, m->points.n, sizeof(const char *));
    m->place[m->points.n] = place;
    struct point *to = &m->points.v[m->points.n++];
    *to = *p;
    to->soc = k->soc;
    to->source = first_of(p->source, "", NULL);
    to->device = first_of(k->device, p->device, DEFAULT_DEVICE);
    to->runtime = first_of(k->runtime, p->runtime, "");
    to->model = first_of(k->model, p->model, "");
    to->weights = k->model != NULL ? 0.0 : p->weights; /* the user's model may differ */
    to->weight_bits = k->bits > 0 ? k->bits : p->weight_bits;
    to->batch = k->batch > 0 ? k->batch : p->batch > 0 ? p->batch : 1;
}

/* The width follows INT, Q, FP, F or W, or precedes BIT; for a mixed format it is the narrowest. */
uint32_t measured_bits(const char *format)
{
    uint32_t least = 0;
    for (const char *p = format; *p != '\0'; p++) {
        if (!isdigit((unsigned char)*p) || (p > format && isdigit((unsigned char)p[-1]))) {
            continue;
        }
        char *end;
        unsigned long bits = strtoul(p, &end, 10);
        bool after = p > format && strchr("TtQqPpFfWw", p[-1]) != NULL;
        bool before = (end[0] == 'b' || end[0] == 'B') && (end[1] == 'i' || end[1] == 'I');
        bool width = bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8 ||
                     bits == 16 || bits == 32;
        if ((after || before) && width && (least == 0 || bits < least)) {
            least = (uint32_t)bits;
        }
    }
    return least;
}

void measured_put(struct measured_sink *s, struct point *p, enum point_metric metric, double tokens,
                  double value, const char *place)
{
    static const char *const names[] = {[POINT_TTFT_MS] = "ttft_ms",
                                        [POINT_TPOT_MS] = "tpot_ms",
                                        [POINT_PREFILL_TOK_S] = "prefill_tok_s",
                                        [POINT_DECODE_TOK_S] = "decode_tok_s"};
    p->metric = metric;
    p->metric_name = names[metric];
    p->input_tokens = (uint32_t)tokens;
    p->value = value;
    measured_add(s->out, s->keys, p, place);
}

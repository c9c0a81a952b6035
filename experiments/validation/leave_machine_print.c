#include "experiments/validation/leave_machine.h"

#include "experiments/validation/accuracy.h"

enum part {
    PART_ALL,
    PART_AVERAGED,
    PART_WIDTH,
    PART_OTHER_WIDTH,
    PART_FAMILY,
    PART_OTHER_FAMILY,
    PART_SMALL,
    PART_OF_SMALL,
    PART_USUAL_WIDTH,
    PART_USUAL_OTHER_WIDTH
};
static const char *const part_names[] = {"all",
                                         "siblings averaged",
                                         "width measured",
                                         "width not measured",
                                         "sibling of the family",
                                         "sibling of another family",
                                         "measured model is small",
                                         "predicted model is small",
                                         "neither small, width measured",
                                         "neither small, width not measured"};
#define N_PARTS (sizeof part_names / sizeof part_names[0])

static bool is_of(const struct leave_row *r, enum part part)
{
    if (r->averaged || part == PART_AVERAGED) {
        return r->averaged && part == PART_AVERAGED;
    }
    switch (part) {
    case PART_WIDTH:
        return r->width_measured;
    case PART_OTHER_WIDTH:
        return !r->width_measured;
    case PART_FAMILY:
        return r->same_family;
    case PART_OTHER_FAMILY:
        return !r->same_family;
    case PART_SMALL:
        return r->small_measured;
    case PART_OF_SMALL:
        return r->small;
    case PART_USUAL_WIDTH:
        return !r->small && !r->small_measured && r->width_measured;
    case PART_USUAL_OTHER_WIDTH:
        return !r->small && !r->small_measured && !r->width_measured;
    case PART_AVERAGED:
    case PART_ALL:
        break;
    }
    return true;
}

static struct accuracy_class score_of(struct leave_row *const *row, size_t n, int way)
{
    OWNED struct accuracy_row *x = xcalloc(n + 1, sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i].ln_error = row[i]->ln_error[way];
        x[i].half = row[i]->half[way];
    }
    return accuracy_class_of(x, n);
}

#define PERCENT .scale = 100.0, .format = "%.1f"
#define ERROR_COLUMNS                                                                              \
    {.name = "phase", .title = "", .kind = FRAME_TEXT}, {.name = "n", .title = "rows"},            \
        {.name = "roofline_median_frac", .title = "roofline", PERCENT},                            \
        {.name = "roofline_p90_frac", .title = "P90", PERCENT},                                    \
        {.name = "sheet_median_frac", .title = "data sheet", PERCENT},                             \
        {.name = "sheet_p90_frac", .title = "P90", PERCENT},                                       \
        {.name = "scaled_median_frac", .title = "scaled", PERCENT},                                \
        {.name = "scaled_p90_frac", .title = "P90", PERCENT},                                      \
        {.name = "updated_median_frac", .title = "updated", PERCENT},                              \
        {.name = "updated_p90_frac", .title = "P90", PERCENT},                                     \
        {.name = "sheet_inside_frac", .title = "in 95 %: sheet", PERCENT},                         \
        {.name = "sheet_half", .title = "x", .format = "%.2f"},                                    \
        {.name = "updated_inside_frac", .title = "updated", PERCENT},                              \
    {                                                                                              \
        .name = "updated_half", .title = "x", .format = "%.2f"                                     \
    }
static const struct frame_column columns[] = {
    {.name = "device", .kind = FRAME_TEXT, .heading = true},
    {.name = "part", .title = "|error|, %", .kind = FRAME_TEXT},
    ERROR_COLUMNS,
};

static const struct frame_column pair_columns[] = {
    {.name = "soc", .title = "machine", .kind = FRAME_TEXT, .heading = true},
    {.name = "by", .title = "|error|, %, made from", .kind = FRAME_TEXT},
    ERROR_COLUMNS,
};

/* Puts the scores of n rows, from the column of the phase on. */
static void put_scores(struct leave_row *const *row, size_t n, struct frame *f)
{
    struct accuracy_class s[LEAVE_WAYS];
    FRAME_CELLS(f, conformal_phase_names[row[0]->phase], n);
    for (int way = 0; way < LEAVE_WAYS; way++) {
        s[way] = score_of(row, n, way);
        FRAME_CELLS(f, s[way].median_frac, s[way].p90_frac);
    }
    FRAME_CELLS(f, s[LEAVE_SHEET].inside_frac, s[LEAVE_SHEET].half, s[LEAVE_UPDATED].inside_frac,
                s[LEAVE_UPDATED].half);
}

static void put(const struct leave_rows *r, enum device_kind kind, enum part part,
                enum conformal_phase phase, struct frame *f)
{
    OWNED struct leave_row **row = xmalloc((r->n + 1) * sizeof(struct leave_row *));
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i].kind == kind && r->v[i].phase == phase && is_of(&r->v[i], part)) {
            row[n++] = &r->v[i];
        }
    }
    if (n > 0) {
        FRAME_CELLS(f, device_kind_names()[kind], part_names[part]);
        put_scores(row, n, f);
    }
}

/* Adds a row per pair. Rows of a machine made from one sibling are adjacent. */
static void put_pairs(const struct leave_rows *r, struct document *d)
{
    document_note(d, "%s", "");
    struct frame *f = DOCUMENT_FRAME(d, "pairs_of_machines", 0, pair_columns);
    OWNED struct leave_row **row = xmalloc((r->n + 1) * sizeof(struct leave_row *));
    for (size_t begin = 0, end; begin < r->n; begin = end) {
        const struct leave_row *first = &r->v[begin];
        end = begin;
        while (end < r->n && strcmp(r->v[end].by, first->by) == 0 &&
               strcmp(r->v[end].soc, first->soc) == 0 && r->v[end].kind == first->kind &&
               r->v[end].averaged == first->averaged) {
            end++;
        }
        for (int phase = CONFORMAL_PREFILL; phase <= CONFORMAL_DECODE; phase++) {
            size_t n = 0;
            for (size_t i = begin; i < end; i++) {
                if (r->v[i].phase == (enum conformal_phase)phase) {
                    row[n++] = &r->v[i];
                }
            }
            if (n > 0 && !first->averaged) {
                FRAME_CELLS(f, first->soc, first->by);
                put_scores(row, n, f);
            }
        }
    }
}

void leave_machine_document(const struct leave_rows *r, uint32_t measured, struct document *d)
{
    DOCUMENT_VALUES(d, "measured_models", measured, "machines", r->machines, "pairs", r->pairs);
    document_note(d,
                  "%zu machines, each made from its siblings (%zu pairs) and updated by %u "
                  "measured model%s\nrows: each row of its other models, once for each choice of "
                  "what was measured\n",
                  r->machines, r->pairs, measured, text_plural(measured));
    struct frame *f = DOCUMENT_FRAME(d, "left_out", 3, columns);
    for (int kind = 0; device_kind_names()[kind] != NULL; kind++) {
        for (size_t part = 0; part < N_PARTS; part++) {
            for (int phase = CONFORMAL_PREFILL; phase <= CONFORMAL_DECODE; phase++) {
                put(r, (enum device_kind)kind, (enum part)part, (enum conformal_phase)phase, f);
            }
        }
    }
    put_pairs(r, d);
}

/* Writes a table as JUnit XML. A row is a test case. */
#include "experiments/shell/document_impl.h"
#include "experiments/shell/markup.h"

/* The cell of a row with a part of a test case; NULL: none. */
static const struct frame_cell *junit_cell(const struct frame *f, uint32_t row,
                                           enum frame_junit part)
{
    for (size_t i = 0; i < f->n_columns; i++) {
        if (f->columns[i].junit == part && frame_cell_at(f, row, i)->kind < FRAME_VALUE_NULL) {
            return frame_cell_at(f, row, i);
        }
    }
    return NULL;
}

static bool has_failed(const struct frame *f, uint32_t row)
{
    const struct frame_cell *v = junit_cell(f, row, FRAME_JUNIT_FAILED);
    return v != NULL && v->number != 0.0;
}

static void put_case(const struct frame *f, uint32_t row, FILE *out)
{
    const struct frame_cell *class = junit_cell(f, row, FRAME_JUNIT_CLASS);
    const struct frame_cell *message = junit_cell(f, row, FRAME_JUNIT_MESSAGE);
    markup_format(out, "    <testcase classname=\"%s\" name=\"", class != NULL ? class->text : "");
    const char *between = "";
    for (size_t i = 0; i < f->n_columns; i++) {
        if (f->columns[i].junit == FRAME_JUNIT_NAME) {
            (void)fputs(between, out);
            markup_put(out, frame_cell_at(f, row, i)->text);
            between = " ";
        }
    }
    if (message == NULL) {
        (void)fputs("\"/>\n", out);
        return;
    }
    bool failed = has_failed(f, row);
    (void)fputs(failed ? "\">\n      <failure message=\"" : "\">\n      <system-out>", out);
    markup_put(out, message->text);
    (void)fputs(failed ? "\"/>\n    </testcase>\n" : "</system-out>\n    </testcase>\n", out);
}

void document_put_junit(const struct document *d, FILE *out)
{
    const struct frame *f = document_first_frame(d);
    SIM_REQUIRE(f != NULL, "a document with a frame");
    uint32_t failures = 0;
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        failures += has_failed(f, r) ? 1 : 0;
    }
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
                  "name=\"xpusim\" tests=\"%u\" failures=\"%u\">\n",
                  frame_rows(f), failures);
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        put_case(f, r, out);
    }
    (void)fputs("  </testsuite>\n</testsuites>\n", out);
}

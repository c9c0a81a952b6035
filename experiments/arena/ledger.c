#include "experiments/arena/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include "sim/base/frame.h"

static const char heading[] = "split,suite,policy,code,score,p,regressions,passes\n";

static bool is_same(const struct frame *f, uint32_t a, uint32_t b)
{
    return strcmp(frame_text(f, a, "policy"), frame_text(f, b, "policy")) == 0 &&
           strcmp(frame_text(f, a, "code"), frame_text(f, b, "code")) == 0;
}

static bool is_about(const struct frame *f, uint32_t row, const struct ledger_entry *l)
{
    OWNED char *code = xformat("%016" PRIx64 "h", l->code);
    return frame_is(f, row, "policy", l->policy) && frame_is(f, row, "code", code);
}

int ledger_read(const char *path, const struct ledger_entry *about, struct ledger_count *out,
                struct err *e)
{
    *out = (struct ledger_count){.candidates = 0};
    if (access(path, F_OK) != 0) {
        return 0;
    }
    SCOPED(frame_drop) struct frame *f = frame_read_csv(path, e);
    if (f == NULL || frame_require(f, "split suite policy code", e) != 0) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        bool sealed = frame_is(f, i, "split", "sealed");
        bool first = true;
        for (uint32_t k = 0; k < i && first; k++) {
            first = !is_same(f, i, k);
        }
        out->candidates += first ? 1 : 0;
        out->sealed += sealed ? 1 : 0;
        if (is_about(f, i, about)) {
            out->seen = true;
            out->seen_sealed =
                out->seen_sealed || (sealed && frame_is(f, i, "suite", about->suite));
        }
    }
    return 0;
}

/* Writes a cell of a CSV. */
static void put_cell(struct text *t, const char *s)
{
    text_char(t, '"');
    for (; *s != '\0'; s++) {
        text_string(t, *s == '"' ? "\"" : "");
        text_char(t, *s);
    }
    text_char(t, '"');
}

int ledger_append(const char *path, const struct ledger_entry *l, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        return err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, lseek(fd, 0, SEEK_END) == 0 ? heading : "");
    text_format(&t, "%s,%s,", l->sealed ? "sealed" : "public", l->suite);
    put_cell(&t, l->policy);
    /* With the letter no reader takes a hash of digits for a number. */
    text_format(&t, ",%016" PRIx64 "h,%.6g,%.6g,%" PRIu32 ",%s\n", l->code, l->score, l->p,
                l->regressions, l->passes ? "yes" : "no");
    /* One write, so that lines of several judges do not mix. */
    ssize_t n = write(fd, text_end(&t), t.n);
    return n == (ssize_t)t.n && close(fd) == 0
               ? 0
               : err_add(e, "%s: cannot write: %s", path, strerror(errno));
}

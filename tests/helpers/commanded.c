#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/helpers/commanded.h"

#include <check.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/shell/document.h"
#include "sim/base/input.h"
#include "sim/base/text.h"

#define MOST_BYTES ((size_t)64 << 20)
#define MOST_WORDS 64

static char *text_of(FILE *f)
{
    struct err e = ERR_INIT;
    rewind(f);
    char *text = input_text_of(f, "what was printed", MOST_BYTES, &e);
    ck_assert_msg(text != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    (void)fclose(f);
    return text;
}

void hearing_begin(struct hearing *h)
{
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        h->kept[i] = dup(1 + i);
        h->files[i] = tmpfile();
        ck_assert(h->kept[i] >= 0 && h->files[i] != NULL && dup2(fileno(h->files[i]), 1 + i) >= 0);
    }
}

struct said hearing_end(struct hearing *h)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    for (int i = 0; i < 2; i++) {
        ck_assert(dup2(h->kept[i], 1 + i) >= 0 && close(h->kept[i]) == 0);
    }
    struct said s = {.out = text_of(h->files[0])};
    s.err = text_of(h->files[1]);
    return s;
}

struct said commanded(const struct command *c, const char *const *words)
{
    char *argv[MOST_WORDS] = {xstrdup(c->name)};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        ck_assert_int_lt(argc, MOST_WORDS - 1);
        argv[argc] = xstrdup(words[argc - 1]);
    }
    struct hearing h;
    hearing_begin(&h);
    int status = command_main(c, argc, argv);
    struct said s = hearing_end(&h);
    s.status = status;
    while (argc > 0) {
        free(argv[--argc]);
    }
    return s;
}

void said_fini(struct said *s)
{
    free(s->out);
    free(s->err);
}

void said_is(const struct said *s, int status, const char *out, const char *err)
{
    if (err != NULL) {
        ck_assert_str_eq(s->err, err);
    }
    if (out != NULL) {
        ck_assert_str_eq(s->out, out);
    }
    ck_assert_msg(s->status == status, "%d, not %d: %s", s->status, status, s->err);
}

void said_refused(const struct said *s, const char *why)
{
    OWNED char *line = xformat("xpusim: error: %s\n", why);
    said_is(s, EXIT_BAD_INPUT, "", line);
}

char *squeezed(const char *text)
{
    char *all = xcalloc(strlen(text) + 1, 1);
    char *to = all;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == ' ' && (to == all || to[-1] == ' ' || to[-1] == '\n')) {
            continue;
        }
        to -= *p == '\n' && to > all && to[-1] == ' ';
        *to++ = *p;
    }
    *to = '\0';
    return all;
}

char *shown_text(const struct document *d, const char *form)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, form, f);
    (void)fclose(f);
    char *all = squeezed(text);
    free(text);
    return all;
}

static char folder[] = "/tmp/xpusim-check-XXXXXX";

void folder_enter(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

const char *folder_path(void)
{
    return folder;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void folder_leave(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void folder_put(const char *name, const char *text)
{
    FILE *f = fopen(name, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

char *folder_text(const char *name)
{
    struct err e = ERR_INIT;
    char *text = input_text(name, MOST_BYTES, &e);
    ck_assert_msg(text != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    return text;
}

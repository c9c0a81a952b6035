/* Every reader of outside input (tests/helpers/readers.c) against its corpus, which has the inputs
 * of earlier findings, and against thousands of damaged versions of it. A reader may accept or
 * refuse, with a message. It may never crash, hang or leak; the sanitizer builds run this too.
 *
 * Damage is drawn from fixed seeds, so a failure repeats. FUZZ_ROUNDS sets how often each reader is
 * tried (500 by default), and XPUSIM_FIRST other seeds (tests/unseen.sh). `make fuzz` searches
 * further, guided by coverage. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "sim/base/rng.h"
#include "tests/helpers/fuzz.h"
#include "tests/helpers/readers.h"
#include "tests/helpers/suite.h"

struct seed {
    char *text; /* owned */
    size_t n;
};
struct seeds {
    struct seed *v; /* owned */
    size_t n;
};

static void add(struct seeds *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *text = xmalloc(1 << 20);
    size_t n = fread(text, 1, 1 << 20, f);
    (void)fclose(f);
    s->v = xrealloc(s->v, (s->n + 1) * sizeof *s->v);
    s->v[s->n++] = (struct seed){text, n};
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void collect(struct seeds *s, const struct reader *r)
{
    char name[512];
    struct dirent **files = NULL;
    (void)snprintf(name, sizeof name, "tests/fuzz/corpus/%s", r->name);
    int n = scandir(datadir_path(name), &files, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (files[i]->d_name[0] != '.') {
            (void)snprintf(name, sizeof name, "tests/fuzz/corpus/%s/%.256s", r->name,
                           files[i]->d_name);
            add(s, datadir_path(name));
        }
        free(files[i]);
    }
    free(files);
    if (r->shipped != NULL) {
        add(s, datadir_path(r->shipped));
    }
    ck_assert_msg(s->n > 0, "%s: nothing to start from", r->name);
}

START_TEST(readers_survive_damage)
{
    const struct reader *r = &readers[_i];
    struct seeds s = {NULL, 0};
    struct rng rng;
    uint32_t refused = 0;
    collect(&s, r);
    rng_init(&rng, (uint64_t)_i + 1 + 1000003 * fuzz_first());
    for (size_t i = 0; i < s.n; i++) {
        (void)reader_try(r, s.v[i].text, s.v[i].n);
    }
    for (uint32_t i = 0; i < fuzz_rounds(); i++) {
        const struct seed *from = &s.v[rng_below(&rng, (uint32_t)s.n)];
        size_t n;
        char *bad = fuzz_mutate(&rng, from->text, from->n, &n);
        refused += reader_try(r, bad, n) != 0 ? 1 : 0;
        free(bad);
    }
    ck_assert_msg(refused > fuzz_rounds() / 20, "%s: %u refused", r->name,
                  refused); /* damage must reach the reader */
    for (size_t i = 0; i < s.n; i++) {
        free(s.v[i].text);
    }
    free(s.v);
    readers_fini();
}
END_TEST

static int readers_there(void)
{
    return (int)n_readers;
}

static const struct suite_row suite[] = {
    CASE("readers", .timeout_s = 300),
    LOOP_OVER(readers_survive_damage, readers_there),
};
SUITE_MAIN("fuzz", suite)

/* These parts of sim/base are used by others and have no test of their own: arenas, lists that
 * grow, maps, nearest names, lists of words, lines of input, errors. Each is compared with a plain
 * second way, or tested at both sides of its limits. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/base/base.h"
#include "sim/base/datadir.h"
#include "sim/base/hash.h"
#include "sim/base/input.h"
#include "sim/base/map.h"
#include "sim/base/memory.h"
#include "sim/base/nearest.h"
#include "sim/base/rng.h"
#include "sim/base/words.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

/* ---- memory ---- */

enum { PIECES = 600 };

static bool holds(const unsigned char *p, size_t n, unsigned char byte)
{
    return n == 0 || (p[0] == byte && memcmp(p, p + 1, n - 1) == 0);
}

/* Pieces of all sizes, large ones too, are zeroed, aligned, and do not touch each other. */
START_TEST(what_an_arena_gives_is_nobody_elses)
{
    struct rng r;
    rng_init(&r, rng_key(7, RNG_TEST, 0, 0));
    for (int fenced = 0; fenced < 2; fenced++) {
        struct arena a;
        unsigned char *p[PIECES];
        size_t n[PIECES];
        if (fenced) {
            arena_init(&a, &arena_fenced);
        } else {
            arena_init(&a, NULL);
        }
        for (int i = 0; i < PIECES; i++) {
            n[i] = i % 100 == 50 ? 3000000 : i % 50 == 0 ? 100000 : rng_below(&r, 700);
            p[i] = arena_alloc(&a, n[i]);
            ck_assert_uint_eq((uintptr_t)p[i] % 16, 0);
            ck_assert(holds(p[i], n[i], 0));
            memset(p[i], 1 + i % 255, n[i]);
        }
        for (int i = 0; i < PIECES; i++) {
            ck_assert(holds(p[i], n[i], (unsigned char)(1 + i % 255)));
        }
        arena_fini(&a);
        ck_assert_ptr_null(a.head);
        ck_assert_ptr_eq(a.source, fenced ? &arena_fenced : NULL);
    }
}
END_TEST

static size_t taken[64], given[64];
static uint32_t n_taken, n_given;

static void *take(void *ctx, size_t *bytes)
{
    (void)ctx;
    taken[n_taken++] = *bytes;
    return xlines(*bytes);
}

static void give(void *ctx, void *block, size_t bytes)
{
    (void)ctx;
    given[n_given++] = bytes;
    free(block);
}

/* Blocks are 64 KiB, then twice the one before, up to 4 MiB. A piece larger than the next block
 * would be has a block of its own, and later pieces still fill the present one. */
START_TEST(blocks_double_and_large_pieces_have_their_own)
{
    const struct arena_source source = {take, give, NULL};
    const size_t kib = 1024;
    struct arena a;
    arena_init(&a, &source);
    char *first = arena_alloc(&a, 64 * kib);
    (void)arena_alloc(&a, 1); /* the first is full to the byte */
    char *second = arena_alloc(&a, 1);
    (void)arena_alloc(&a, 4096 * kib + 1); /* of its own, in whole 16 bytes */
    char *third = arena_alloc(&a, 1);
    (void)arena_alloc(&a, 128 * kib - 48); /* the last of the second block */
    (void)arena_alloc(&a, 200 * kib);
    (void)arena_alloc(&a, 300 * kib);
    (void)arena_alloc(&a, 1000 * kib);
    (void)arena_alloc(&a, 1500 * kib);
    (void)arena_alloc(&a, 3000 * kib);
    (void)arena_alloc(&a, 3000 * kib);
    static const size_t want[] = {64, 128, 0, 256, 512, 1024, 2048, 4096, 4096};
    ck_assert_uint_eq(n_taken, 9);
    for (uint32_t i = 0; i < n_taken; i++) {
        ck_assert_uint_eq(taken[i], i == 2 ? 4096 * kib + 16 : want[i] * kib);
    }
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_eq(third, second + 16);
    arena_fini(&a);
    size_t sum = 0;
    for (uint32_t i = 0; i < n_given; i++) {
        sum += given[i];
    }
    ck_assert_uint_eq(n_given, 9);
    ck_assert_uint_eq(sum, (64 + 128 + 256 + 512 + 1024 + 2048 + 4096 + 4096 + 4096) * kib + 16);
}
END_TEST

/* xgrow has room for one more at every length, and doubles at powers of two; xroom at least
 * doubles, and begins with 32. */
START_TEST(lists_grow_by_doubling)
{
    uint32_t *v = NULL;
    for (uint32_t n = 0; n < 1000; n++) {
        uint32_t *before = v;
        v = xgrow(v, n, sizeof *v);
        ck_assert(v == before || (n & (n - 1)) == 0);
        v[n] = n; /* the sanitizers see one that is too small */
    }
    for (uint32_t n = 0; n < 1000; n++) {
        ck_assert_uint_eq(v[n], n);
    }
    free(v);
    static const struct {
        size_t n, cap;
    } rooms[] = {{0, 0}, {1, 32}, {32, 32}, {33, 64}, {64, 64}, {200, 200}, {201, 400}, {3, 400}};
    char *p = NULL;
    size_t cap = 0;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        p = xroom(p, rooms[i].n, &cap, 3);
        ck_assert_uint_eq(cap, rooms[i].cap);
    }
    memset(p, 1, 3 * cap);
    free(p);
    void *lines = xlines(65);
    ck_assert_uint_eq((uintptr_t)lines % CACHE_LINE_BYTES, 0);
    for (int i = 0; i < 128; i++) {
        ck_assert_int_eq(((char *)lines)[i], 0);
    }
    free(lines);
}
END_TEST

/* Length and size that changed places: nothing is there yet, and one is asked for more. The process
 * that does so ends. */
START_TEST(a_list_of_some_is_somewhere)
{
    double one = 1.0;
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)close(2);
            static const struct {
                size_t n, bytes;
            } asked[] = {{8, 0}, {3, 0}, {3, 8}, {4, 8}, {0, 0}};
            void *v = i == 1 ? &one : NULL;
            v = i % 2 == 0 ? xkept_grow(v, asked[i].n, asked[i].bytes)
                           : xgrow(v, asked[i].n, asked[i].bytes);
            _exit(v == NULL ? 1 : 0);
        }
        int status;
        ck_assert(waitpid(child, &status, 0) == child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}
END_TEST

START_TEST(texts_are_whole_and_kept_once)
{
    char *long_one = xformat("%0*d|%s", 5000, 7, "end");
    ck_assert_uint_eq(strlen(long_one), 5004);
    ck_assert_str_eq(long_one + 4999, "7|end");
    char *again = xstrdup(long_one);
    ck_assert_ptr_ne(again, long_one);
    ck_assert_str_eq(again, long_one);
    const char *kept = xkeep(long_one);
    ck_assert_ptr_eq(kept, long_one);
    ck_assert_ptr_eq(xkeep(again), kept);
    ck_assert_ptr_ne(xkeep(xstrdup("another")), kept);
    char *text = NULL;
    size_t size = 0;
    FILE *f = memory_stream(&text, &size);
    (void)fputs("abc", f);
    memory_stream_flush(f);
    ck_assert_str_eq(text, "abc");
    (void)fputs("de", f);
    memory_stream_close(f, &text);
    ck_assert_uint_eq(size, 5);
    ck_assert_str_eq(text, "abcde");
    free(text);
}
END_TEST

/* ---- maps ---- */

enum { IDS = 3000 };

struct record {
    uint64_t value;
    char rest[5];
};

/* Adds, removals and look-ups of ids that collide, against an array. */
START_TEST(a_map_is_an_array)
{
    static uint64_t want[IDS]; /* 0: it has none */
    struct rng r;
    struct map m = {.record_bytes = sizeof(struct record)};
    uint32_t n = 0;
    rng_init(&r, rng_key(8, RNG_TEST, 0, 0));
    for (int step = 0; step < 40000; step++) {
        /* Growing, then shrinking; ids far apart in steps that share their high bits. */
        bool add = rng_below(&r, 100) < (step < 20000 ? 65U : 35U);
        uint32_t at = rng_below(&r, IDS);
        uint32_t id = at * (at % 2 == 0 ? 1 : 0x40000001u);
        struct record *found = map_record(&m, id);
        ck_assert((found != NULL) == (want[at] != 0));
        ck_assert(found == NULL || (found->value == want[at] && found->rest[4] == 'e'));
        if (add) {
            struct record *v = map_add(&m, id);
            ck_assert_ptr_eq(v, map_record(&m, id));
            ck_assert_uint_eq(v->value, want[at]);
            ck_assert_int_eq(v->rest[4], want[at] != 0 ? 'e' : 0);
            n += want[at] == 0;
            want[at] = v->value = (uint64_t)step + 1;
            v->rest[4] = 'e';
        } else {
            n -= want[at] != 0;
            want[at] = 0;
            map_remove(&m, id);
        }
        ck_assert_uint_eq(m.n, n);
        ck_assert_uint_le(2 * (uint64_t)m.n, (uint64_t)m.cap);
    }
    uint32_t at = 0;
    uint64_t id = 0;
    uint32_t seen = 0;
    for (const struct record *v; (v = map_next(&m, &at, &id)) != NULL; seen++) {
        uint32_t i = (uint32_t)id & 0x3fffffffu; /* what it was made of */
        ck_assert_uint_lt(i, IDS);
        ck_assert_uint_eq(v->value, want[i]);
    }
    ck_assert_uint_eq(seen, n);
    map_fini(&m);
}
END_TEST

/* ---- names ---- */

/* Edits from one word to another, as the definition says it. */
static size_t edits(const char *a, const char *b)
{
    if (*a == '\0' || *b == '\0') {
        return strlen(a) + strlen(b);
    }
    if (*a == *b) {
        return edits(a + 1, b + 1);
    }
    size_t least = edits(a + 1, b + 1);
    size_t more = edits(a + 1, b);
    least = more < least ? more : least;
    more = edits(a, b + 1);
    return 1 + (more < least ? more : least);
}

/* The first of the nearest names is meant, if it is at most a third of the word's letters and one
 * more edit away. */
START_TEST(the_nearest_name_is_the_one_with_least_edits)
{
    struct rng r;
    rng_init(&r, rng_key(9, RNG_TEST, 0, 0));
    for (int trial = 0; trial < 400; trial++) {
        char words[6][8];
        for (int w = 0; w < 6; w++) {
            uint32_t n = 1 + rng_below(&r, 6);
            for (uint32_t i = 0; i < n; i++) {
                words[w][i] = (char)('a' + rng_below(&r, 3));
            }
            words[w][n] = '\0';
        }
        struct nearest near;
        nearest_init(&near, words[0]);
        size_t least = strlen(words[0]) / 3 + 2;
        char want[64] = "";
        for (int w = 1; w < 6; w++) {
            nearest_look(&near, words[w]);
            size_t d = edits(words[0], words[w]);
            if (d < least) {
                least = d;
                (void)snprintf(want, sizeof want, "; did you mean %s?", words[w]);
            }
        }
        ck_assert_str_eq(nearest_hint(&near), want);
    }
    struct nearest near;
    nearest_init(&near, "x");
    nearest_look(&near, "xy"); /* one edit: 1 / 3 + 2 is more */
    ck_assert_str_eq(nearest_hint(&near), "; did you mean xy?");
    nearest_init(&near, "EDF");
    nearest_look(&near, "edf"); /* no edit, where by letters it were three */
    ck_assert_str_eq(nearest_hint(&near), "; did you mean edf?");
}
END_TEST

START_TEST(words_are_found_and_listed)
{
    static const char *const three[] = {"one", "two", "three", NULL};
    static const char *const one[] = {"one", NULL};
    ck_assert_int_eq(words_find(three, "one"), 0);
    ck_assert_int_eq(words_find(three, "three"), 2);
    ck_assert_int_eq(words_find(three, "thre"), -1);
    ck_assert_int_eq(words_find(three, NULL), -1);
    char *list = words_list(three, " or ");
    ck_assert_str_eq(list, "one, two or three");
    free(list);
    list = words_list(one, " or ");
    ck_assert_str_eq(list, "one");
    free(list);
}
END_TEST

/* A path has a slash, or an ending of letters alone. */
START_TEST(names_and_paths_are_told_apart)
{
    static const struct {
        const char *name;
        bool path;
    } names[] = {{"rk3588", false},       {"llama-3.2-3b", false}, {"a/b", true},
                 {"machine.json", true},  {"model.j2", false},     {"x.", false},
                 {"two.parts.txt", true}, {"3.2", false},          {".json", true}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_msg(datadir_is_path(names[i].name) == names[i].path, "%s", names[i].name);
    }
    ck_assert_str_eq(datadir_named("m.json", "hwmodels/soc", ".json"), "m.json");
    ck_assert_int_eq(setenv("XPUSIM_DATA_DIR", "/no/such", 1), 0);
    ck_assert_str_eq(datadir_path("traces/x.csv"), "/no/such/traces/x.csv");
    ck_assert_str_eq(datadir_named("m", "hwmodels/soc", ".json"), "/no/such/hwmodels/soc/m.json");
    ck_assert_ptr_eq(datadir_path("traces/x.csv"), datadir_path("traces/x.csv"));
    struct err e = ERR_INIT;
    ck_assert_int_ne(datadir_check(&e), 0);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "no data in /no/such/: machines"));
    err_fini(&e);
    ck_assert_int_eq(unsetenv("XPUSIM_DATA_DIR"), 0);
    ck_assert_int_eq(datadir_check(&e), 0); /* next to this program, in a tree above it */
    ck_assert_int_eq(access(datadir_path("hwmodels/soc"), R_OK), 0);
}
END_TEST

/* ---- errors and hashes ---- */

/* Fifty lines are kept, the others counted; control characters are no part of a message. */
START_TEST(errors_are_kept_up_to_a_limit)
{
    struct err e = ERR_INIT;
    for (int i = 0; i < ERR_MAX_LINES; i++) {
        ck_assert_int_eq(err_add(&e, "line %d\x1b[1m", i), -EINVAL);
    }
    char *text = NULL;
    size_t size = 0;
    FILE *f = memory_stream(&text, &size);
    err_print(&e, f);
    memory_stream_flush(f);
    ck_assert_ptr_nonnull(strstr(text, "xpusim: error: line 49?[1m\n"));
    ck_assert_ptr_null(strstr(text, "more"));
    (void)err_add(&e, "one");
    (void)err_add(&e, "two");
    err_print(&e, f);
    memory_stream_close(f, &text);
    const char *end = text + strlen(text) - strlen("xpusim: error: and 2 more\n");
    ck_assert_str_eq(end, "xpusim: error: and 2 more\n");
    free(text);
    err_fini(&e);
    ck_assert_uint_eq(e.n, 0);
    (void)err_add(&e, "again");
    ck_assert_str_eq(e.lines[0], "again");
    err_fini(&e);
}
END_TEST

/* FNV-1a, byte by byte, as it is published; the hash of "a" with its NUL by the same. */
static uint64_t fnv(uint64_t h, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h ^= p[i];
        h *= 1099511628211ULL;
    }
    return h;
}

START_TEST(hashes_are_fnv_1a)
{
    ck_assert_uint_eq(HASH_INIT, 14695981039346656037ULL);
    ck_assert_uint_eq(hash_string(HASH_INIT, "abc"),
                      fnv(HASH_INIT, (const unsigned char *)"abc", 4));
    struct rng r;
    rng_init(&r, rng_key(10, RNG_TEST, 0, 0));
    for (int i = 0; i < 300; i++) {
        uint64_t x[3];
        uint64_t h = rng_u64(&r);
        uint64_t want = h;
        for (int k = 0; k < 3; k++) {
            unsigned char bytes[8];
            x[k] = rng_u64(&r) >> (8 * rng_below(&r, 9) % 64);
            x[k] = rng_below(&r, 9) == 0 ? 0 : x[k];
            for (int b = 0; b < 8; b++) {
                bytes[b] = (unsigned char)(x[k] >> (8 * b));
            }
            want = fnv(want, bytes, 8);
        }
        ck_assert_uint_eq(hash_u64(hash_u64(hash_u64(h, x[0]), x[1]), x[2]), want);
        struct hash_tail tail;
        hash_tail_init(&tail, x, 3);
        ck_assert_uint_eq(hash_tail(&tail, h), want);
    }
    const char *path = tempfile_make("");
    char text[9001];
    memset(text, 'x', 9000);
    text[9000] = '\0';
    tempfile_put(text);
    ck_assert_uint_eq(hash_file(path), fnv(HASH_INIT, (const unsigned char *)text, 9000));
    tempfile_remove();
    ck_assert_uint_eq(hash_file(path), 0);
    ck_assert_uint_eq(hash_file("/"), 0); /* it opens, and cannot be read */
}
END_TEST

/* ---- input ---- */

static const char *opened;

static void watch(void *ctx, const char *path)
{
    ck_assert_ptr_eq(ctx, &opened);
    opened = path;
}

START_TEST(lines_come_with_their_ends_and_numbers)
{
    const char *path = tempfile_make("");
    tempfile_put("one\r\n\nlast");
    struct err e = ERR_INIT;
    input_watch(watch, &opened);
    FILE *f = input_open(path, &e);
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_eq(opened, path);
    input_watch(NULL, NULL);
    struct input_line l = {0};
    static const char *const want[] = {"one\r\n", "\n", "last"};
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(input_next(f, path, &l, &e), 1);
        bytes += strlen(want[i]);
        ck_assert_str_eq(l.text, want[i]);
        ck_assert_uint_eq(l.n, strlen(want[i]));
        ck_assert_uint_eq(l.number, i + 1);
        ck_assert_uint_eq(l.bytes, bytes);
    }
    ck_assert_int_eq(input_next(f, path, &l, &e), 0);
    ck_assert_str_eq(l.text, "");
    (void)fclose(f);
    free(l.text);
    char *text = input_text(path, 10, &e);
    ck_assert_str_eq(text, "one\r\n\nlast");
    free(text);
    ck_assert_ptr_null(input_text(path, 9, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[0], ": too long; must be a text file of at most 9 bytes"));
    tempfile_remove();
    ck_assert_ptr_null(input_open(path, &e));
    ck_assert_ptr_null(input_text(path, 9, &e));
    ck_assert_uint_eq(e.n, 3);
    err_fini(&e);
}
END_TEST

static void put_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    (void)fwrite(bytes, 1, n, f);
    (void)fclose(f);
}

START_TEST(what_is_no_text_is_refused)
{
    const char *path = tempfile_make("");
    put_bytes(path, "ab\nc\0d\n", 7);
    struct err e = ERR_INIT;
    struct input_line l = {0};
    FILE *f = input_open(path, &e);
    ck_assert_int_eq(input_next(f, path, &l, &e), 1);
    ck_assert_int_eq(input_next(f, path, &l, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.lines[0], ":2: NUL byte: not a text file"));
    (void)fclose(f);
    ck_assert_ptr_null(input_text(path, 100, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[1], ": not text: a NUL byte in it; must be a text file"));
    put_bytes(path, "\xff\xfe{\0}\0", 6);
    ck_assert_ptr_null(input_text(path, 100, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[2], " bytes (it is UTF-16: `iconv"));
    l.number = 0;
    f = input_open(path, &e);
    ck_assert_int_eq(input_next(f, path, &l, &e), -EINVAL);
    ck_assert_ptr_nonnull(
        strstr(e.lines[3], ":1: NUL byte: not a text file (it is UTF-16: `iconv"));
    (void)fclose(f);
    /* A line may be so long, with its end, and no longer. */
    char *line = xmalloc(INPUT_LINE_BYTES + 1);
    memset(line, 'x', INPUT_LINE_BYTES + 1);
    for (size_t more = 0; more < 2; more++) {
        line[INPUT_LINE_BYTES - 1] = 'x';
        line[INPUT_LINE_BYTES - 1 + more] = '\n';
        put_bytes(path, line, INPUT_LINE_BYTES + more);
        f = input_open(path, &e);
        l.number = l.bytes = 0;
        ck_assert_int_eq(input_next(f, path, &l, &e), more == 0 ? 1 : -EINVAL);
        (void)fclose(f);
    }
    ck_assert_ptr_nonnull(strstr(e.lines[4], ":1: a line of over 16777216 bytes"));
    free(line);
    free(l.text);
    err_fini(&e);
    tempfile_remove();
}
END_TEST

/* Packed or not, with a byte order mark or not: the same text, whose begin is given twice. */
START_TEST(packed_and_marked_files_are_read_alike)
{
    char text[70001];
    for (int i = 0; i < 70000; i++) {
        text[i] = (char)('a' + i % 26);
    }
    text[70000] = '\0';
    struct err e = ERR_INIT;
    const char *path = tempfile_make(".gz");
    for (int form = 0; form < 4; form++) {
        bool marked = form % 2 > 0;
        for (size_t n = 0; n <= 70000; n += 35000) {
            gzFile out = form < 2 ? gzopen(path, "wbT") : gzopen(path, "wb");
            (void)gzwrite(out, "\xef\xbb\xbf", marked ? 3 : 0);
            (void)gzwrite(out, text, (unsigned)n);
            (void)gzclose(out);
            char head[INPUT_HEAD_BYTES];
            memset(head, '#', sizeof head);
            FILE *f = input_open_any(path, head, &e);
            ck_assert_ptr_nonnull(f);
            size_t shown = INPUT_HEAD_BYTES - 1 - (marked ? 3 : 0);
            shown = n < shown ? n : shown;
            ck_assert_uint_eq(strlen(head), shown);
            ck_assert_mem_eq(head, text, shown);
            char *all = input_text_of(f, path, 100000, &e);
            ck_assert_uint_eq(strlen(all), n);
            ck_assert_mem_eq(all, text, n);
            free(all);
            (void)fclose(f);
        }
    }
    ck_assert_uint_eq(e.n, 0);
    /* One that ends inside is refused. */
    char packed[4096];
    FILE *f = fopen(path, "rb");
    size_t n = fread(packed, 1, sizeof packed, f);
    (void)fclose(f);
    put_bytes(path, packed, n / 2);
    ck_assert_ptr_null(input_open_any(path, NULL, &e));
    tempfile_remove();
    ck_assert_ptr_null(input_open_any(path, NULL, &e));
    ck_assert_uint_eq(e.n, 2);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("base parts", .teardown = tempfile_remove),
    TEST(what_an_arena_gives_is_nobody_elses),
    TEST(blocks_double_and_large_pieces_have_their_own),
    TEST(lists_grow_by_doubling),
    TEST(a_list_of_some_is_somewhere),
    TEST(texts_are_whole_and_kept_once),
    TEST(a_map_is_an_array),
    TEST(the_nearest_name_is_the_one_with_least_edits),
    TEST(words_are_found_and_listed),
    TEST(names_and_paths_are_told_apart),
    TEST(errors_are_kept_up_to_a_limit),
    TEST(hashes_are_fnv_1a),
    TEST(lines_come_with_their_ends_and_numbers),
    TEST(what_is_no_text_is_refused),
    TEST(packed_and_marked_files_are_read_alike),
};
SUITE_MAIN("base_parts", suite)

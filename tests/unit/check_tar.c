/* Archives: what was written is read, `tar` reads it too, and damage is named with its place. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/base/arena.h"
#include "sim/base/tar.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

#define MOST 1000000

static struct err e;

static void setup(void)
{
    e = (struct err)ERR_INIT;
}

static void teardown(void)
{
    err_fini(&e);
    tempfile_remove();
}

/* Files have 0, 5 and 512 bytes: none, part of a block, one whole block. */
static const char *three_files(void)
{
    static const size_t sizes[] = {0, 5, 512};
    static const char *const names[] = {"empty", "five.csv", "block.json"};
    const char *path = tempfile_make(".tar.gz");
    struct tar t = {0};
    for (int i = 0; i < 3; i++) {
        char *data = xcalloc(1, sizes[i] + 1);
        memset(data, 'a' + i, sizes[i]);
        tar_add(&t, names[i], data, sizes[i]);
    }
    ck_assert_int_eq(tar_write(&t, path, &e), 0);
    tar_fini(&t);
    return path;
}

START_TEST(files_come_back)
{
    struct tar t;
    const char *path = three_files();
    ck_assert_int_eq(tar_read(&t, path, MOST, &e), 0);
    ck_assert_uint_eq(t.n, 3);
    ck_assert_uint_eq(tar_find(&t, "empty")->n, 0);
    ck_assert_str_eq(tar_find(&t, "five.csv")->data, "bbbbb");
    const struct tar_file *block = tar_find(&t, "block.json");
    ck_assert_uint_eq(block->n, 512);
    ck_assert_int_eq(block->data[511], 'c');
    ck_assert_int_eq(block->data[512], '\0');
    ck_assert_ptr_null(tar_find(&t, "other"));
    tar_fini(&t);
}
END_TEST

/* The archive has three headers, two bodies of a block (none for the empty file), and two blocks of
 * zeros: 512 (3 + 0 + 1 + 1 + 2). */
START_TEST(the_program_tar_reads_them)
{
    char command[512];
    char line[64] = "";
    const char *path = three_files();
    (void)snprintf(command, sizeof command, "tar tzf %s | tr '\\n' ' '", path);
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, p));
    ck_assert_int_eq(pclose(p), 0);
    ck_assert_str_eq(line, "empty five.csv block.json ");
    gzFile in = gzopen(path, "rb");
    static char all[8192];
    ck_assert_int_eq(gzread(in, all, sizeof all), 512 * 7);
    (void)gzclose(in);
}
END_TEST

/* Puts one byte at a place of the unpacked archive, or cuts it there. */
static void damage(const char *path, size_t at, int byte, bool cut)
{
    static char all[8192];
    gzFile in = gzopen(path, "rb");
    int n = gzread(in, all, sizeof all);
    (void)gzclose(in);
    all[at] = (char)byte;
    gzFile out = gzopen(path, "wb");
    (void)gzwrite(out, all, cut ? (unsigned)at : (unsigned)n);
    (void)gzclose(out);
}

/* The second header is at 512, its body at 1024; the third header at 1536. */
START_TEST(damage_is_named_with_its_place)
{
    static const struct {
        size_t at;
        int byte;
        bool cut;
        const char *message;
    } cases[] = {
        {512, 'X', false, "byte 512 of the unpacked archive: a damaged header: its sum is wrong"},
        {512 + 257, 'X', false, "byte 512 of the unpacked archive: no header of a tar file"},
        {512 + 156, '2', false, "byte 512 of the unpacked archive: a damaged header"},
        {1026, 0, true, "byte 1026 of the unpacked archive: it ends here, inside a file"},
        {1536, 0, true, "byte 1536 of the unpacked archive: it ends here, inside a file"},
    };
    struct tar t;
    const char *path = three_files();
    damage(path, cases[_i].at, cases[_i].byte, cases[_i].cut);
    ck_assert_int_ne(tar_read(&t, path, MOST, &e), 0);
    ck_assert_uint_eq(e.n, 1);
    ck_assert_msg(strstr(e.lines[0], cases[_i].message) != NULL &&
                      strncmp(e.lines[0], path, strlen(path)) == 0,
                  "%s", e.lines[0]);
    tar_fini(&t);
}
END_TEST

/* A header with a right sum that says what no such archive has. The sum is that of its bytes. */
static void put_header(const char *path, const char *name, char type)
{
    unsigned char h[512] = {0};
    unsigned sum = 0;
    (void)strcpy((char *)h, name);
    (void)strcpy((char *)h + 124, "00000000000");
    h[156] = (unsigned char)type;
    (void)strcpy((char *)h + 257, "ustar");
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++) {
        sum += h[i];
    }
    (void)snprintf((char *)h + 148, 8, "%06o", sum);
    gzFile out = gzopen(path, "wb");
    (void)gzwrite(out, h, sizeof h);
    (void)gzwrite(out, h, sizeof h);
    (void)gzclose(out);
}

START_TEST(no_folders_links_or_twins)
{
    static const struct {
        const char *name;
        char type;
        const char *message;
    } cases[] = {
        {"../etc", '0', "byte 0 of the unpacked archive: a file name that none here has"},
        {".hidden", '0', "byte 0 of the unpacked archive: a file name that none here has"},
        {"a\x1b[2J", '0', "byte 0 of the unpacked archive: a file name that none here has"},
        {"link", '2', "byte 0 of the unpacked archive: not a plain file"},
        {"twin", '0', "byte 512 of the unpacked archive: a file that was there before"},
    };
    struct tar t;
    const char *path = tempfile_make(".tar.gz");
    put_header(path, cases[_i].name, cases[_i].type);
    ck_assert_int_ne(tar_read(&t, path, MOST, &e), 0);
    ck_assert_msg(strstr(e.lines[0], cases[_i].message) != NULL, "%s", e.lines[0]);
    tar_fini(&t);
}
END_TEST

/* Flipped bits in the packed file: gzip's own sum finds them at the latest. */
START_TEST(gzip_damage_and_size)
{
    struct tar t;
    const char *path = three_files();
    ck_assert_int_ne(tar_read(&t, path, 600, &e), 0);
    ck_assert_msg(strstr(e.lines[0], "larger than such an archive is") != NULL, "%s", e.lines[0]);
    tar_fini(&t);
    FILE *f = fopen(path, "r+b");
    (void)fseek(f, -8, SEEK_END); /* the sum of the content */
    int byte = fgetc(f);
    (void)fseek(f, -8, SEEK_END);
    (void)fputc(byte ^ 1, f);
    (void)fclose(f);
    ck_assert_int_ne(tar_read(&t, path, MOST, &e), 0);
    ck_assert_uint_eq(e.n, 2);
    ck_assert_msg(strstr(e.lines[1], "damaged or cut off from here on") != NULL, "%s", e.lines[1]);
    tar_fini(&t);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .setup = setup, .teardown = teardown),
    TEST(files_come_back),
    TEST(the_program_tar_reads_them),
    LOOP(damage_is_named_with_its_place, 5),
    LOOP(no_folders_links_or_twins, 5),
    TEST(gzip_damage_and_size),
};
SUITE_MAIN("tar", suite)

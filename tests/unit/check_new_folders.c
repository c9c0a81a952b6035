/* Commands that write a folder or a file to begin with are tested by every file and line. They are
 * refused at both sides of their limits. Files are left in a known state where one of several
 * cannot be written. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/commands/new_file.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static const char *const started[] = {"RULES.md", "policy.py", "test.sh", "score.sh"};

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void is_copy(const char *path, const char *source)
{
    OWNED char *is = folder_text(path);
    OWNED char *want = folder_text(datadir_path(source));
    ck_assert_str_eq(is, want);
}

static const char *program(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    ck_assert_int_gt(n, 0);
    path[n] = '\0';
    return path;
}

/* ---- arena new ---- */

START_TEST(a_search_begins_with_four_files)
{
    SCOPED(said_fini) struct said s = COMMANDED(arena_new, "here");
    OWNED char *want = xformat("here/RULES.md\nhere/policy.py\nhere/test.sh\nhere/score.sh\n"
                               "does it serve everybody? XPUSIM=%s sh here/test.sh\n"
                               "its score: XPUSIM=%s sh here/score.sh\n",
                               program(), program());
    said_is(&s, EXIT_OK, want, "");
    for (size_t i = 0; i < sizeof started / sizeof started[0]; i++) {
        OWNED char *path = xformat("here/%s", started[i]);
        OWNED char *source = xformat("experiments/arena/start/%s", started[i]);
        is_copy(path, source);
    }
    /* A second time: the first file is there already, and none goes. */
    SCOPED(said_fini) struct said again = COMMANDED(arena_new, "here");
    said_refused(&again, "here/RULES.md: cannot write: File exists");
    for (size_t i = 0; i < sizeof started / sizeof started[0]; i++) {
        OWNED char *path = xformat("here/%s", started[i]);
        ck_assert(is_there(path));
    }
}
END_TEST

/* Each of the files in the way in turn: that one stays as it was, and of the others none is left;
 * the folder stays, since it was there. */
START_TEST(a_file_in_the_way_leaves_the_others_unwritten)
{
    const char *in_way = started[_i];
    ck_assert_int_eq(mkdir("here", 0777), 0);
    OWNED char *path = xformat("here/%s", in_way);
    folder_put(path, "mine");
    SCOPED(said_fini) struct said s = COMMANDED(arena_new, "here");
    OWNED char *why = xformat("%s: cannot write: File exists", path);
    said_refused(&s, why);
    for (size_t i = 0; i < sizeof started / sizeof started[0]; i++) {
        OWNED char *other = xformat("here/%s", started[i]);
        ck_assert_msg(is_there(other) == (strcmp(started[i], in_way) == 0), "%s", other);
    }
    OWNED char *text = folder_text(path);
    ck_assert_str_eq(text, "mine");
}
END_TEST

/* A folder that it made itself goes with its files; one that cannot be made is named. */
START_TEST(a_folder_made_in_vain_goes)
{
    struct err e = ERR_INIT;
    const char *const names[] = {"RULES.md", "policy.py", "no such file", NULL};
    ck_assert_int_eq(new_folder_copy("made", "experiments/arena/start", names, &e), -EINVAL);
    ck_assert_uint_eq(e.n, 1);
    ck_assert(!is_there("made"));
    err_fini(&e);
    SCOPED(said_fini) struct said s = COMMANDED(arena_new, "no/such");
    said_refused(&s, "no/such: cannot make this folder: No such file or directory");
    folder_put("file", "");
    SCOPED(said_fini) struct said f = COMMANDED(arena_new, "file");
    said_refused(&f, "file/RULES.md: cannot write: Not a directory");
}
END_TEST

/* ---- names and paths of files ---- */

START_TEST(names_of_files_have_their_letters)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ.abcdefghijklmnopqrstuvwxyz_0123456789+-";
    struct err e = ERR_INIT;
    for (const char *p = all; *p != '\0'; p++) { /* first, and behind another */
        char one[3] = {*p, '\0', '\0'};
        ck_assert_int_eq(new_file_name_check("new-x", one, &e), *p == '-' ? -EINVAL : 0);
        one[0] = 'a';
        one[1] = *p;
        ck_assert_int_eq(new_file_name_check("new-x", one, &e), 0);
    }
    ck_assert_uint_eq(e.n, 1);
    ck_assert_str_eq(e.lines[0], "new-x '-': letters, digits and . _ - + only, at most 63, none of "
                                 "the first a dash");
    for (int c = 1; c < 128; c++) {
        char two[3] = {'a', (char)c, '\0'};
        bool fine = strchr(all, c) != NULL;
        ck_assert_int_eq(new_file_name_check("x", two, &e), fine ? 0 : -EINVAL);
    }
    err_fini(&e);
    char name[65];
    memset(name, 'n', sizeof name);
    name[63] = '\0';
    ck_assert_int_eq(new_file_name_check("x", name, &e), 0);
    name[63] = 'n';
    name[64] = '\0';
    ck_assert_int_eq(new_file_name_check("x", name, &e), -EINVAL);
    ck_assert_int_eq(new_file_name_check("x", "", &e), -EINVAL);
    ck_assert_uint_eq(e.n, 2);
    err_fini(&e);
}
END_TEST

START_TEST(a_file_is_written_once_and_ends_in_json)
{
    struct err e = ERR_INIT;
    SCOPED(json_drop) cJSON *tree = cJSON_Parse("{\"a\": [1, \"b\"]}");
    OWNED char *plain = new_file_write(NULL, "name", tree, &e);
    ck_assert_str_eq(plain, "name.json");
    OWNED char *other = new_file_write("x.json", "name", tree, &e);
    ck_assert_str_eq(other, "x.json");
    ck_assert_uint_eq(e.n, 0);
    for (int i = 0; i < 2; i++) {
        OWNED char *text = folder_text(i == 0 ? plain : other);
        SCOPED(json_drop) cJSON *back = cJSON_Parse(text);
        ck_assert(cJSON_Compare(back, tree, true));
    }
    ck_assert_ptr_null(new_file_write(NULL, "name", tree, &e));
    ck_assert_str_eq(e.lines[0], "name.json: is there already; remove it, or give another -o");
    /* ".json" alone names nothing; a letter before it does. */
    ck_assert_ptr_null(new_file_write(".json", "name", tree, &e));
    ck_assert_str_eq(e.lines[1], "-o '.json': must be a path ending in .json");
    ck_assert_ptr_null(new_file_write("a.jsom", "name", tree, &e));
    ck_assert_str_eq(e.lines[2], "-o 'a.jsom': must be a path ending in .json");
    ck_assert(!is_there(".json") && !is_there("a.jsom"));
    OWNED char *least = new_file_write("a.json", "name", tree, &e);
    ck_assert_str_eq(least, "a.json");
    ck_assert_ptr_null(new_file_write("no/such.json", "name", tree, &e));
    ck_assert_uint_eq(e.n, 4);
    err_fini(&e);
}
END_TEST

/* ---- new-policy ---- */

/* Replaces the old name at every place of a text. It is an identifier behind "struct " and before
 * "_", and otherwise the name. */
static char *renamed(const char *text, const char *name, const char *identifier)
{
    char *out = xcalloc(2 * strlen(text) + 1, 1);
    size_t n = 0;
    for (size_t i = 0; text[i] != '\0';) {
        if (strncmp(text + i, "skeleton", 8) == 0) {
            bool type = i >= 7 && memcmp(text + i - 7, "struct ", 7) == 0;
            n += (size_t)sprintf(out + n, "%s", type || text[i + 8] == '_' ? identifier : name);
            i += 8;
        } else {
            out[n++] = text[i++];
        }
    }
    return out;
}

static void is_renamed(const char *path, const char *source, const char *name,
                       const char *identifier)
{
    OWNED char *relative = xformat("policies/skeleton/%s", source);
    OWNED char *text = folder_text(datadir_path(relative));
    OWNED char *want = renamed(text, name, identifier);
    OWNED char *is = folder_text(path);
    ck_assert_str_eq(is, want);
}

START_TEST(a_policy_begins_with_three_files)
{
    SCOPED(said_fini) struct said s = COMMANDED(cmd_new_policy, "a-2-b");
    said_is(
        &s, EXIT_OK,
        "a-2-b/a-2-b.c\na-2-b/Makefile\na-2-b/test.sh\n"
        "make -C a-2-b && xpusim check-policy ./a-2-b/a-2-b.so   # does it serve everybody, also "
        "with little memory?\n",
        "");
    is_renamed("a-2-b/a-2-b.c", "skeleton.c", "a-2-b", "my_a_2_b");
    is_renamed("a-2-b/Makefile", "Makefile", "a-2-b", "my_a_2_b");
    is_renamed("a-2-b/test.sh", "test.sh", "a-2-b", "my_a_2_b");
    SCOPED(said_fini) struct said o = COMMANDED(cmd_new_policy, "p", "-o", "a-2-b/q");
    said_is(&o, EXIT_OK,
            "a-2-b/q/p.c\na-2-b/q/Makefile\na-2-b/q/test.sh\n"
            "make -C a-2-b/q && xpusim check-policy a-2-b/q/p.so   # does it serve everybody, also "
            "with little memory?\n",
            "");
    /* Into the same folder: the Makefile is in the way, and the new source goes again. */
    SCOPED(said_fini) struct said again = COMMANDED(cmd_new_policy, "r", "-o", "a-2-b/q");
    said_refused(&again, "a-2-b/q/Makefile: cannot write: File exists");
    ck_assert(!is_there("a-2-b/q/r.c") && is_there("a-2-b/q/p.c") && is_there("a-2-b/q/test.sh"));
}
END_TEST

START_TEST(a_policy_has_a_name_of_its_own)
{
    static const char *const bad[] = {"2a", "-a", "Ab", "a_b", "a.b", "a/b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        SCOPED(said_fini) struct said s = COMMANDED(cmd_new_policy, "--", bad[i]);
        OWNED char *why =
            xformat("new-policy '%s': a name must be [a-z][a-z0-9-]*, up to 40 letters", bad[i]);
        said_refused(&s, why);
    }
    char name[42];
    memset(name, 'z', sizeof name);
    name[41] = '\0';
    SCOPED(said_fini) struct said long_one = COMMANDED(cmd_new_policy, name);
    ck_assert_int_eq(long_one.status, EXIT_BAD_INPUT);
    name[40] = '\0';
    SCOPED(said_fini) struct said most = COMMANDED(cmd_new_policy, name);
    ck_assert_int_eq(most.status, EXIT_OK);
    SCOPED(said_fini) struct said a = COMMANDED(cmd_new_policy, "a");
    ck_assert_int_eq(a.status, EXIT_OK);
    SCOPED(said_fini) struct said fcfs = COMMANDED(cmd_new_policy, "fcfs");
    said_refused(&fcfs, "new-policy fcfs: a built-in policy has that name");
    SCOPED(said_fini) struct said empty = COMMANDED(cmd_new_policy, "b", "-o", "");
    said_refused(&empty, "--output: its value is empty; it needs DIR");
    SCOPED(said_fini) struct said below = COMMANDED(cmd_new_policy, "b", "-o", "no/such");
    said_refused(&below, "no/such: cannot make this folder: No such file or directory");
}
END_TEST

/* ---- new-llm ---- */

/* A layer of 8 x 8 matrices: q, k, v and o have 64 weights each, the three of the network 8 x 16
 * each. Two layers and the head of 32 x 8 are what a token reads, and the embedding is stored, too:
 * 2 * (4 * 64 + 3 * 128) = 1280 and 256. A token keeps 2 * 2 * 8 values of KV of 2 bytes. */
START_TEST(a_model_is_told_with_its_numbers)
{
    folder_put("config.json",
               "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 16,"
               " \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"num_key_value_heads\": 2,"
               " \"vocab_size\": 32, \"torch_dtype\": \"float16\","
               " \"tie_word_embeddings\": false, \"max_position_embeddings\": 64}");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_new_llm, "m", "--hf", "config.json");
    said_is(&s, EXIT_OK,
            "m.json\n1536 weights a token, 3.58e-06 GB with embedding, 0.064 kB of KV a token; "
            "16-bit weights of 2 bytes\nnext: xpusim run --llm m.json\n",
            "");
    SCOPED(said_fini)
    struct said four =
        COMMANDED(cmd_new_llm, "m", "--hf", "config.json", "--bits", "8", "-o", "n.json");
    ck_assert_int_eq(four.status, EXIT_OK);
    ck_assert_ptr_nonnull(strstr(four.out, "; 8-bit weights of "));
    ck_assert_ptr_nonnull(strstr(four.out, "next: xpusim run --llm n.json\n"));
    SCOPED(said_fini) struct said none = COMMANDED(cmd_new_llm, "m");
    said_refused(&none,
                 "new-llm: --hf FILE, the config.json of the model, or --gguf FILE is needed");
    folder_put("other.json", "{\"a\": 1}");
    SCOPED(said_fini) struct said other = COMMANDED(cmd_new_llm, "k", "--hf", "other.json");
    said_refused(&other, "other.json: no config.json of Hugging Face: it has no model_type");
    ck_assert(!is_there("k.json"));
}
END_TEST

static const struct suite_row rows[] = {
    CASE("folders", .setup = folder_enter, .teardown = folder_leave),
    TEST(a_search_begins_with_four_files),
    LOOP(a_file_in_the_way_leaves_the_others_unwritten, sizeof started / sizeof started[0]),
    TEST(a_folder_made_in_vain_goes),
    TEST(names_of_files_have_their_letters),
    TEST(a_file_is_written_once_and_ends_in_json),
    TEST(a_policy_begins_with_three_files),
    TEST(a_policy_has_a_name_of_its_own),
    TEST(a_model_is_told_with_its_numbers),
};
SUITE_MAIN("new folders", rows)

/* `xpusim arena new DIR`: makes a folder for a search. */
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/new_file.h"
#include "experiments/shell/cli.h"

static const char *const files[] = {"RULES.md", "policy.py", "test.sh", "score.sh", NULL};

struct options {
    struct option_texts dirs;
};

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    const char *dir = o->dirs.v[0];
    if (new_folder_copy(dir, "experiments/arena/start", files, e) != 0) {
        return -1;
    }
    char program[4096] = "xpusim";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 6] = '\0';
    for (uint32_t i = 0; files[i] != NULL; i++) {
        (void)printf("%s/%s\n", dir, files[i]);
    }
    (void)printf("does it serve everybody? XPUSIM=%s sh %s/test.sh\n"
                 "its score: XPUSIM=%s sh %s/score.sh\n",
                 program, dir, program, dir);
    return EXIT_OK;
}

#define OPTIONS struct options

const struct command arena_new = {
    .name = "arena new",
    .summary = "write a folder to begin a search in: rules, baseline, test, score",
    .usage = "DIR",
    .about = "Writes RULES.md, policy.py, test.sh and score.sh into a folder, which is made when "
             "missing. score.sh judges policy.py on a suite and keeps the ledger. No file is "
             "written over.",
    .operands = {"DIR", 1, 1, offsetof(OPTIONS, dirs)},
    .children = (const struct option_child[]){{0}},
    .bytes = sizeof(OPTIONS),
    .run = run,
};

/* `xpusim help`: the options of a command; and, from the same tables, its man page and what a shell
 * completes. */
#include <stdio.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/help_forms.h"

struct options {
    struct option_texts words;
    const char *completion;
    bool man;
};

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

/* The command that one or two words name, as `compare` and `trace import`. */
static const struct command *named(const struct option_texts *words, struct err *e)
{
    const struct command *c = command_find(words->v[0], e);
    if (c == NULL || words->n == 1) {
        return c;
    }
    for (const struct command *const *s = c->subcommands; s != NULL && *s != NULL; s++) {
        if (strcmp(strrchr((*s)->name, ' ') + 1, words->v[1]) == 0) {
            return *s;
        }
    }
    (void)err_add(e, "no command is called %s %s; `xpusim help %s` shows what there is", c->name,
                  words->v[1], c->name);
    return NULL;
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    if (o->completion != NULL) {
        help_completion(o->completion, stdout);
        return EXIT_OK;
    }
    const struct command *c = o->words.n > 0 ? named(&o->words, e) : NULL;
    if (o->words.n > 0 && c == NULL) {
        return EXIT_BAD_INPUT;
    }
    if (o->man) {
        help_man(c, stdout);
    } else if (c != NULL) {
        options_help(c, stdout);
    } else {
        commands_usage(stdout);
    }
    return EXIT_OK;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_FLAG(OPTIONS, man, "man", "print a man page (roff), of xpusim when no command is named"),
    OPTION_CHOICE(OPTIONS, completion, "completion", "SHELL", NULL, shells,
                  "print the completions of commands and options for a shell, one of"),
};
static const struct option_child children[] = {OPTION_ROWS(NULL, rows), {0}};
const struct command cmd_help = {
    .name = "help",
    .summary = "print the options of a command, its man page, completions of a shell",
    .usage = "[COMMAND] [--man]\n--completion bash|zsh|fish",
    .about = "Prints the options of a command, or all commands. `make install` installs the man "
             "pages and completions that it makes.",
    .children = children,
    .operands = {"COMMAND", 0, 2, offsetof(OPTIONS, words)},
    .bytes = sizeof(OPTIONS),
    .run = run,
};

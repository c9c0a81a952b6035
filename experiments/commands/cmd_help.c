/* `xpusim help`: prints the options of a command, its man page, or shell completions. */
#include "experiments/commands/commands.h"
#include "experiments/shell/options.h"
#include "sim/base/version.h"

/* ---- man pages ---- */

/* Prints text with roff's special characters escaped. */
static void put_roff(const char *text, FILE *out)
{
    bool start = true;
    for (; *text != '\0'; text++) {
        if (start && (*text == '.' || *text == '\'')) {
            (void)fputs("\\&", out);
        }
        start = *text == '\n';
        if (*text == '\\') {
            (void)fputs("\\e", out);
        } else if (*text == '-') {
            (void)fputs("\\-", out);
        } else {
            (void)fputc(*text, out);
        }
    }
}

static void put_head(const char *name, const char *summary, FILE *out)
{
    (void)fprintf(out, ".TH \"XPUSIM%s%s\" 1 \"\" \"xpusim %s\" \"User Commands\"\n.SH NAME\n",
                  name[0] != '\0' ? "-" : "", name, XPUSIM_VERSION);
    (void)fprintf(out, "xpusim%s%s \\- %s\n", name[0] != '\0' ? "\\-" : "", name, summary);
}

static void put_row(void *ctx, const struct option_child *child, const struct option_row *row,
                    const char *name)
{
    FILE *out = ctx;
    if (row->hidden || (child != NULL && child->prefix != NULL)) {
        return;
    }
    (void)fputs(".TP\n", out);
    if (row->letter != 0) {
        (void)fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
    }
    (void)fputs("\\fB\\-\\-", out);
    put_roff(name, out);
    (void)fputs("\\fR", out);
    if (row->value != NULL) {
        (void)fputs(" \\fI", out);
        put_roff(row->value, out);
        (void)fputs("\\fR", out);
    }
    (void)fputc('\n', out);
    put_roff(row->help, out);
    const char *const *names = row->names != NULL ? row->names() : row->choices;
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        (void)fputs(i > 0 ? ", " : ": ", out);
        put_roff(names[i], out);
    }
    if (row->preset != NULL) {
        (void)fputs(" (default ", out);
        put_roff(row->preset, out);
        (void)fputc(')', out);
    }
    (void)fputc('\n', out);
}

static void put_command(const struct command *c, FILE *out)
{
    (void)fputs(".SH SYNOPSIS\n", out);
    const char *p = c->usage;
    do { /* a command without arguments has a line, too */
        size_t line = strcspn(p, "\n");
        (void)fprintf(out, ".B xpusim %s\n", c->name);
        OWNED char *text = xformat("%.*s", (int)line, p);
        put_roff(text, out);
        (void)fputs("\n.br\n", out);
        p += line + (p[line] == '\n');
    } while (*p != '\0');
    if (c->about != NULL) {
        (void)fputs(".SH DESCRIPTION\n.nf\n.fi\n", out);
        put_roff(c->about, out);
        (void)fputc('\n', out);
    }
    if (c->children != NULL) {
        (void)fputs(".SH OPTIONS\n", out);
        options_visit(c, put_row, out);
    }
    if (c->notes != NULL || c->print_notes != NULL) {
        (void)fputs(".SH NOTES\n.nf\n", out);
        if (c->notes != NULL) {
            put_roff(c->notes, out);
            (void)fputc('\n', out);
        }
        if (c->print_notes != NULL) {
            c->print_notes(out);
        }
        (void)fputs(".fi\n", out);
    }
}

/* Prints a man page of section 1. c: NULL: the page of xpusim, which lists the commands. */
static void help_man(const struct command *c, FILE *out)
{
    if (c != NULL) {
        put_head(c->name, c->summary, out);
        put_command(c, out);
        for (const struct command *const *s = c->subcommands; s != NULL && *s != NULL; s++) {
            put_command(*s, out);
        }
    } else {
        put_head("", "a simulator and testbed of LLM scheduling on NPU, iGPU and CPU machines",
                 out);
        (void)fputs(".SH SYNOPSIS\n.B xpusim\n.I COMMAND\n[options]\n.SH COMMANDS\n", out);
        for (const struct command *const *k = commands(); *k != NULL; k++) {
            (void)fprintf(out, ".TP\n.BR xpusim\\-%s (1)\n", (*k)->name);
            put_roff((*k)->summary, out);
            (void)fputc('\n', out);
        }
    }
    (void)fputs(".SH EXIT STATUS\n0 fine; 1 a run or check failed; 2 bad input; 3 out of memory.\n",
                out);
}

/* ---- completions ---- */

static void put_bash_name(void *ctx, const struct option_child *child UNUSED,
                          const struct option_row *row, const char *name)
{
    if (!row->hidden) {
        (void)fprintf(ctx, " --%s", name);
    }
}

/* Prints the words that complete a command: its options and subcommands. */
static void put_words(const struct command *c, FILE *out)
{
    options_visit(c, put_bash_name, out);
    for (const struct command *const *s = c->subcommands; s != NULL && *s != NULL; s++) {
        (void)fprintf(out, " %s", strrchr((*s)->name, ' ') + 1);
        options_visit(*s, put_bash_name, out);
    }
}

static void put_bash(FILE *out)
{
    (void)fputs("_xpusim() {\n    local word=${COMP_WORDS[COMP_CWORD]} "
                "before=${COMP_WORDS[COMP_CWORD-1]} words\n"
                "    case $before in\n"
                "    --policy|--baseline|--b-policy) words=$(xpusim list policy 2>/dev/null | cut "
                "-d' ' -f1) ;;\n"
                "    --soc|--b-soc) words=$(xpusim list soc 2>/dev/null | cut -d' ' -f1) ;;\n"
                "    --llm|--b-llm) words=$(xpusim list llm 2>/dev/null | cut -d' ' -f1) ;;\n"
                "    *) case ${COMP_WORDS[1]} in\n",
                out);
    for (const struct command *const *k = commands(); *k != NULL; k++) {
        (void)fprintf(out, "        %s) words=\"", (*k)->name);
        put_words(*k, out);
        (void)fputs("\" ;;\n", out);
    }
    (void)fputs(
        "        esac ;;\n    esac\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"", out);
    for (const struct command *const *k = commands(); *k != NULL; k++) {
        (void)fprintf(out, " %s", (*k)->name);
    }
    (void)fputs("\"\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                "complete -o default -F _xpusim xpusim\n",
                out);
}

struct fish {
    FILE *out;
    const char *command;
};

static void put_quoted(const char *text, FILE *out)
{
    (void)fputc('\'', out);
    for (; *text != '\0'; text++) {
        (void)fputs(*text == '\'' ? "\\'" : (char[]){*text, '\0'}, out);
    }
    (void)fputc('\'', out);
}

static void put_fish_row(void *ctx, const struct option_child *child UNUSED,
                         const struct option_row *row, const char *name)
{
    const struct fish *f = ctx;
    if (row->hidden) {
        return;
    }
    (void)fprintf(f->out, "complete -c xpusim -n '__fish_seen_subcommand_from %s' -l %s%s -d ",
                  f->command, name, row->value != NULL ? " -r" : "");
    put_quoted(row->help, f->out);
    (void)fputc('\n', f->out);
}

static void put_fish(FILE *out)
{
    for (const struct command *const *k = commands(); *k != NULL; k++) {
        (void)fprintf(out, "complete -c xpusim -n __fish_use_subcommand -a %s -d ", (*k)->name);
        put_quoted((*k)->summary, out);
        (void)fputc('\n', out);
        struct fish f = {out, (*k)->name};
        options_visit(*k, put_fish_row, &f);
    }
}

/* shell: "bash", "zsh" or "fish". */
static void help_completion(const char *shell, FILE *out)
{
    if (strcmp(shell, "fish") == 0) {
        put_fish(out);
        return;
    }
    if (strcmp(shell, "zsh") == 0) {
        (void)fputs("#compdef xpusim\nautoload -U +X bashcompinit && bashcompinit\n", out);
    }
    put_bash(out);
}

struct options {
    struct option_texts words;
    const char *completion;
    bool man;
};

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

/* The command that one or two words name, such as `compare` or `trace import`. */
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
    return err_null(e, "no command is called %s %s; `xpusim help %s` shows what there is", c->name,
                    words->v[1], c->name);
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    if (o->completion != NULL) {
        if (options_without("help --completion", "man", e) != 0) {
            return EXIT_BAD_INPUT;
        }
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
const struct command cmd_help = {
    .name = "help",
    .summary = "print the options of a command, its man page, completions of a shell",
    .usage = "[COMMAND] [--man]\n--completion bash|zsh|fish",
    .about = "Prints the options of a command, or all commands. `make install` installs the man "
             "pages and completions that it makes.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows)),
    .operands = {"COMMAND", 0, 2, offsetof(OPTIONS, words)},
    .run = run,
};

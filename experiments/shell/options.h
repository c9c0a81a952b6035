/* Command-line options as tables. Parsing, defaults, errors, --help, the man page and shell
 * completions use the same rows.
 *
 * A command has one struct of values. Its tables have the offset of each option's value in it.
 * Tables that several commands share are for embedded structs, such as struct config_options:
 *
 *     struct my_options { struct config_options config; uint32_t replications; };
 *     #define OPTIONS struct my_options
 *     static const struct option_row rows[] = {
 *         OPTION_COUNT(OPTIONS, replications, "replications", "N", "10", 1, 100000,
 *                      "runs per policy"),
 *     };
 *     const struct command cmd_my = {.name = "my", ...,
 *         COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(config_option_table,
 * config)), .run = run};
 *
 * The syntax is GNU's: --name VALUE, --name=VALUE, unique prefixes of names, -x for letters. `--`
 * ends the options; operands may be anywhere. All errors are collected, and none ends the process.
 */
#pragma once

#include "sim/base/base.h"

enum option_kind {
    OPTION_KIND_FLAG,    /* bool */
    OPTION_KIND_TEXT,    /* const char *, borrowed from argv */
    OPTION_KIND_TEXTS,   /* struct option_texts; may be repeated, each value once */
    OPTION_KIND_COUNT,   /* uint32_t, digits only, min to max */
    OPTION_KIND_SEED,    /* uint64_t, digits only */
    OPTION_KIND_NUMBER,  /* double, finite, min to max */
    OPTION_KIND_NUMBERS, /* struct option_numbers: "0.5,0.9", each min to max */
    OPTION_KIND_CHOICE,  /* const char *, one of row.choices */
    OPTION_KIND_OWN,     /* parsed by row.take */
};

struct option_texts {
    const char **v; /* the list is kept, the texts are borrowed */
    uint32_t n;
};

struct option_numbers {
    double *v; /* kept */
    uint32_t n;
};

struct option_row {
    const char *name;   /* without dashes */
    const char *value;  /* name of its value in help; NULL: a flag */
    const char *help;   /* one or more sentences without newlines; wrapped when printed */
    const char *preset; /* the default, parsed like a given value and shown in help; NULL: zero */
    size_t offset;      /* of the value in the table's struct */
    size_t given;       /* 1 + offset of a bool: it was on the command line; 0: no such member */
    double min, max;    /* of counts and numbers; max also bounds the length of a list of texts */
    const char *const *choices; /* NULL-terminated */
    const char *const *(*names)(
        void); /* NULL-terminated names that an OWN row accepts, for help; or NULL */
    /* OPTION_KIND_OWN: parses arg (NULL: a flag) into the table's struct. 0, or -EINVAL with an
     * error that names the option. */
    int (*take)(void *target, const struct option_row *row, const char *arg, struct err *e);
    enum option_kind kind;
    char letter;  /* -x; 0: none */
    bool repeats; /* an OWN option that may be repeated; others may not */
    bool blank;   /* '' is a valid value: none */
    bool hidden;  /* left out of help (a former spelling) */
    bool aside;   /* does not affect results: left out of options_command */
};

struct option_table {
    const char *title; /* heading in help; NULL: none */
    const struct option_row *rows;
    size_t n;
    void (*init)(void *target); /* before presets; NULL: nothing */
};

/* A table at an offset in the command's struct. With a prefix ("b-"), options are called
 * --PREFIXname and presets are not applied, because such a child overlays another. Lists end with a
 * zero entry. */
struct option_child {
    const struct option_table *table;
    size_t offset;
    const char *prefix;
    bool bare; /* presets are not applied, so the command has only given values */
};

/* The operands of a command: a struct option_texts at `offset`. */
struct option_operands {
    const char *name; /* "FILE" */
    uint32_t min, max;
    size_t offset;
};

struct command {
    const char *name;    /* "compare", "trace gen" */
    const char *summary; /* one line, for the list of commands */
    const char *usage;   /* text after the name, a line per variant */
    const char *about;   /* paragraphs, separated by an empty line; wrapped when printed */
    const char *notes;   /* printed unchanged after the options; or NULL */
    void (*print_notes)(FILE *out); /* prints generated notes; or NULL */
    const struct option_child *children;
    struct option_operands operands; /* max 0: none */
    size_t bytes;                    /* of the command's struct of values */
    /* Runs with the parsed values. Returns the exit status, or -errno for bad input. Errors added
     * to e are printed, and change exit status 0 to that of bad input. */
    int (*run)(void *values, struct err *e);
    const struct command *const *subcommands; /* NULL-terminated; instead of run and children */
};

/* Parses argv[1 ..] into values (command.bytes long, initialised here). Returns 0, 1 if --help was
 * printed to stdout, or -EINVAL. Lists are kept. Cost: rows x arguments. */
int options_parse(const struct command *c, int argc, char **argv, void *values, struct err *e);

/* The last command line of options_parse, quoted for a shell, without `aside` options. Results name
 * it as the command that repeats them, so it has no --jobs or --json. Valid until the next
 * options_parse; "" before the first. */
const char *options_command(void);

/* Refuses the first option of the last options_parse that a command's task ignores. `names`: those
 * that it has a use for, without dashes, separated by spaces; the output's options are always fine.
 * 0 or -EINVAL. */
int options_only(const char *task, const char *names, struct err *e);
/* Refuses the first one of `names`, which the task ignores. */
int options_without(const char *task, const char *names, struct err *e);

/* Executes a command: finds the subcommand, parses, runs, prints errors to stderr, frees. Returns
 * the exit status (shell/cli.h). */
int command_main(const struct command *c, int argc, char **argv);

/* Calls visit for every option of a command with its full name, in the order of help. */
void options_visit(const struct command *c,
                   void (*visit)(void *ctx, const struct option_child *child,
                                 const struct option_row *row, const char *name),
                   void *ctx);

/* Prints the text of --help. */
void options_help(const struct command *c, FILE *out);

/* Appends a text unless the list has it. */
void options_text_add(struct option_texts *list, const char *text);

/* ---- rows ---- */

/* The offset of a member, which must be of the given type. */
#define OPTION_AT(T, member, type)                                                                 \
    (offsetof(T, member) + 0 * sizeof(&((T *)0)->member == (type *)0))

/* A row of any kind, followed by further members such as .preset and .given. */
#define OPTION_ROW(kind_, T, member, type, name_, value_, help_, ...)                              \
    {                                                                                              \
        .name = (name_), .value = (value_), .help = (help_), .kind = OPTION_KIND_##kind_,          \
        .offset = OPTION_AT(T, member, type), __VA_ARGS__                                          \
    }
#define OPTION_FLAG(T, member, name_, help_)                                                       \
    OPTION_ROW(FLAG, T, member, bool, name_, NULL, help_, .preset = NULL)
#define OPTION_TEXT(T, member, name_, value_, preset_, help_)                                      \
    OPTION_ROW(TEXT, T, member, const char *, name_, value_, help_, .preset = (preset_))
/* -o: destination of the result. */
#define OPTION_OUTPUT(T, member, value_, preset_, help_)                                           \
    OPTION_ROW(TEXT, T, member, const char *, "output", value_, help_, .preset = (preset_),        \
               .letter = 'o')
/* A file to write in addition to the result. */
#define OPTION_FILE(T, member, name_, value_, help_)                                               \
    OPTION_ROW(TEXT, T, member, const char *, name_, value_, help_, .aside = true)
#define OPTION_TEXTS(T, member, name_, value_, max_, help_)                                        \
    OPTION_ROW(TEXTS, T, member, struct option_texts, name_, value_, help_, .max = (max_))
#define OPTION_COUNT(T, member, name_, value_, preset_, min_, max_, help_)                         \
    OPTION_ROW(COUNT, T, member, uint32_t, name_, value_, help_, .preset = (preset_),              \
               .min = (min_), .max = (max_))
#define OPTION_SEED(T, member, name_, preset_, help_)                                              \
    OPTION_ROW(SEED, T, member, uint64_t, name_, "N", help_, .preset = (preset_))
#define OPTION_NUMBER(T, member, name_, value_, preset_, min_, max_, help_)                        \
    OPTION_ROW(NUMBER, T, member, double, name_, value_, help_, .preset = (preset_),               \
               .min = (min_), .max = (max_))
#define OPTION_NUMBERS(T, member, name_, value_, min_, max_, help_)                                \
    OPTION_ROW(NUMBERS, T, member, struct option_numbers, name_, value_, help_, .min = (min_),     \
               .max = (max_))
#define OPTION_CHOICE(T, member, name_, value_, preset_, choices_, help_)                          \
    OPTION_ROW(CHOICE, T, member, const char *, name_, value_, help_, .preset = (preset_),         \
               .choices = (choices_))
#define OPTION_OWN(take_, name_, value_, help_)                                                    \
    {                                                                                              \
        .name = (name_), .value = (value_), .help = (help_), .kind = OPTION_KIND_OWN,              \
        .take = (take_)                                                                            \
    }
#define OPTION_OWN_LIST(take_, name_, value_, help_)                                               \
    {                                                                                              \
        .name = (name_), .value = (value_), .help = (help_), .kind = OPTION_KIND_OWN,              \
        .take = (take_), .repeats = true                                                           \
    }

/* A child: the command's own rows, for the start of its struct. */
#define OPTION_ROWS(title_, rows_)                                                                 \
    {                                                                                              \
        .table = &(const struct option_table)OPTION_TABLE(title_, rows_)                           \
    }
/* A child: a table for this member of the struct. */
#define OPTION_CHILD(table_, member_)                                                              \
    {                                                                                              \
        .table = &(table_), .offset = offsetof(OPTIONS, member_)                                   \
    }
/* The children of a command and the size of its struct OPTIONS. */
#define COMMAND_TAKES(...)                                                                         \
    .children = (const struct option_child[]){__VA_ARGS__, {0}}, .bytes = sizeof(OPTIONS)
#define OPTION_TABLE_INIT(title_, rows_, init_)                                                    \
    {                                                                                              \
        .title = (title_), .rows = (rows_), .n = sizeof(rows_) / sizeof(rows_)[0], .init = (init_) \
    }
#define OPTION_TABLE(title_, rows_) OPTION_TABLE_INIT(title_, rows_, NULL)

/* ---- rows that many commands share ---- */

/* The output format by its name in forms.c, by the last such option; NULL: text. The tables are in
 * forms.c, too. */
struct option_output {
    const char *form;
    bool quiet;
};
extern const struct option_table option_output_table; /* every format, --quiet */
extern const struct option_table option_json_table;   /* --json, --quiet; other formats are files */
extern const struct option_table option_quiet_table;  /* for commands whose result is a file */

#define _DEFAULT_SOURCE /* realpath */
/* Specifications of external policies: their end, their file, and the command line. */
#include <unistd.h>

#include "policies/external/external_impl.h"
#include "sim/base/datadir.h"
#include "sim/base/hash.h"

#define EXEC "exec:"
#define PYTHON "python:"
#define KEY_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

/* Whether the text begins with "key=". */
static bool is_params(const char *text)
{
    size_t n = strspn(text, KEY_LETTERS);
    return n > 0 && text[n] == '=';
}

size_t external_spec_length(const char *spec)
{
    if (text_begins(spec, EXEC)) {
        /* A command may contain colons: parameters follow the last one, if a key does. */
        const char *colon = strrchr(spec + strlen(EXEC) - 1, ':');
        bool params = colon > spec + strlen(EXEC) && (is_params(colon + 1) || colon[1] == '\0');
        return params ? (size_t)(colon - spec) : strlen(spec);
    }
    if (!text_begins(spec, PYTHON)) {
        return 0;
    }
    /* File names and classes have no colons. So all text after the second colon is parameters, even
     * if malformed, and errors name them as such. */
    size_t n = strlen(PYTHON) + strcspn(spec + strlen(PYTHON), ":"); /* the end of the file */
    return spec[n] == ':' ? n + 1 + strcspn(spec + n + 1, ":") : n;
}

char *external_file(const char *spec)
{
    bool python = text_begins(spec, PYTHON);
    const char *file = spec + strlen(python ? PYTHON : EXEC);
    size_t len = strcspn(file, python ? ":" : " :");
    /* found in PATH: part of the system, not of the experiment */
    bool of_system = !python && memchr(file, '/', len) == NULL;
    return of_system ? NULL : xformat("%.*s", (int)len, file);
}

char *external_real_name(const char *path)
{
    char *real = realpath(path, NULL);
    return real != NULL ? real : xstrdup(path);
}

uint64_t external_content(const struct external *x)
{
    OWNED char *path = x->hosted ? xstrdup(x->spec) : external_file(x->spec);
    return path != NULL ? hash_file(path) : 0;
}

int external_command(struct external *x, struct err *e)
{
    if (text_begins(x->spec, EXEC)) {
        const char *command = x->spec + strlen(EXEC);
        if (command[strspn(command, " ")] == '\0') {
            return err_add(e, "--policy %s: a command is missing: exec:./program arguments",
                           x->spec);
        }
        /* With exec the shell is replaced by the program, so that waiting and killing affect the
         * policy and not a shell that leaves it behind. */
        size_t first = strcspn(command, " ");
        char *word = xformat("%.*s", (int)first, command);
        if (text_begins(word, "python") && jail_works(NULL)) {
            char *real = external_interpreter(word);
            free(word);
            word = real;
        }
        char *line = xformat("exec %s%s", word, command + first);
        free(word);
        x->argv[0] = xstrdup("/bin/sh");
        x->argv[1] = xstrdup("-c");
        x->argv[2] = line;
        return 0;
    }
    const char *file = x->spec + strlen(PYTHON);
    x->python = true;
    const char *colon = strchr(file, ':');
    if (colon == NULL || colon == file || colon[1] == '\0') {
        return err_add(e, "--policy %s: must be python:FILE.py:CLASS", x->spec);
    }
    const char *python = getenv("XPUSIM_PYTHON");
    python = python != NULL && *python != '\0' ? python : "python3";
    x->argv[0] = jail_works(NULL) ? external_interpreter(python) : xstrdup(python);
    x->argv[1] = external_real_name(datadir_path("policies/python"));
    /* Check here, for an error about the specification instead of an interpreter's message. */
    OWNED char *program = external_file(x->spec);
    if (access(program, R_OK) != 0) {
        return err_add(e, "--policy %s: cannot read: %s", program, strerror(errno));
    }
    x->argv[2] = external_real_name(program);
    x->argv[3] = xstrdup(colon + 1);
    return 0;
}

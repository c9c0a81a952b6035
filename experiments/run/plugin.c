#define _GNU_SOURCE /* memfd_create */
#include "experiments/run/plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policies/external/external.h"
#include "policies/external/jail.h"
#include "policies/registry.h"
#include "sim/base/hash.h"
#include "sim/core/run.h"

#define SUFFIX ".so"
#define SYMBOL "xpusim_policy"
#define MAX_PARAMS (sizeof((struct policy_params *)NULL)->v / sizeof(double))
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define KEY_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

typedef const struct policy_ops *plugin_entry(void);

size_t plugin_path_length(const char *spec)
{
    if (external_spec_length(spec) > 0) {
        return external_spec_length(spec);
    }
    for (const char *p = spec; (p = strstr(p, SUFFIX)) != NULL; p++) {
        const char *end = p + strlen(SUFFIX);
        if (p > spec && (*end == '\0' || *end == ':')) {
            return (size_t)(end - spec);
        }
    }
    return 0;
}

bool plugin_is_code(const char *spec)
{
    return external_spec_length(spec) == 0 && plugin_path_length(spec) > 0;
}

static bool made_of(const char *text, const char *letters)
{
    return text[0] != '\0' && text[strspn(text, letters)] == '\0';
}

/* Whether the default is a valid value. */
static bool has_default(const struct policy_param *p)
{
    uint32_t n = 0;
    while (p->type == PARAM_CHOICE && p->choices[n] != NULL) {
        n++;
    }
    double max = p->type == PARAM_CHOICE ? (double)n - 1.0 : p->max;
    return p->def >= p->min && p->def <= max &&
           (p->type == PARAM_NUMBER || p->def == floor(p->def));
}

static int check_params(const char *path, const struct policy_ops *ops, struct err *e)
{
    for (uint32_t i = 0; ops->params != NULL && ops->params[i].name != NULL; i++) {
        const struct policy_param *p = &ops->params[i];
        if (i == MAX_PARAMS) {
            return err_add(e, "--policy %s: more than %zu parameters, or the table does not end",
                           path, MAX_PARAMS);
        }
        if (!made_of(p->name, KEY_LETTERS)) {
            return err_add(e, "--policy %s: parameter '%s': a name must be [a-z0-9_]+", path,
                           p->name);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(ops->params[k].name, p->name) == 0) {
                return err_add(e, "--policy %s: parameter %s: two have this name", path, p->name);
            }
        }
        if (p->help == NULL || p->type > PARAM_CHOICE ||
            (p->type == PARAM_CHOICE && p->choices == NULL)) {
            return err_add(e,
                           "--policy %s: parameter %s: it needs a help text, a known type and, "
                           "for a choice, the choices",
                           path, p->name);
        }
        if (!has_default(p)) {
            return err_add(e, "--policy %s: parameter %s: its default is none of its values", path,
                           p->name);
        }
    }
    return 0;
}

/* Check the contract first: with another one, other members are invalid. */
static int check_ops(const char *path, const struct policy_ops *ops, struct err *e)
{
    if (ops == NULL) {
        return err_add(e, "--policy %s: " SYMBOL "() returned no policy", path);
    }
    char why[256];
    if (contract_mismatch(&ops->contract, why, sizeof why) != NULL) {
        return err_add(e, "--policy %s: built for %s: build it again against its headers", path,
                       why);
    }
    if (ops->name == NULL || !made_of(ops->name, NAME_LETTERS)) {
        return err_add(e, "--policy %s: the policy's name '%s' must be [a-z0-9-]+", path,
                       ops->name == NULL ? "" : ops->name);
    }
    if (policy_find(ops->name) != NULL) {
        return err_add(e,
                       "--policy %s: its name '%s' is that of a built-in policy; results could "
                       "not tell them apart",
                       path, ops->name);
    }
    if (ops->summary == NULL) {
        return err_add(e, "--policy %s: policy %s has no summary", path, ops->name);
    }
    if (ops->request_arrived == NULL || ops->schedule == NULL) {
        return err_add(e, "--policy %s: policy %s lacks the hook %s", path, ops->name,
                       ops->schedule == NULL ? "schedule" : "request_arrived");
    }
    return check_params(path, ops, e);
}

/* Whether a file is truncated or still being written, so that its headers refer to bytes behind its
 * end. The linker would map these, and the first access would kill this process. The linker refuses
 * other kinds of files. */
static bool is_cut(int fd)
{
    ElfW(Ehdr) head;
    struct stat st;
    if (fstat(fd, &st) != 0 || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
        return false;
    }
    const uint64_t size = (uint64_t)st.st_size;
    bool cut =
        head.e_shoff > size || (uint64_t)head.e_shnum * sizeof(ElfW(Shdr)) > size - head.e_shoff;
    for (uint32_t i = 0; i < head.e_phnum && !cut; i++) {
        ElfW(Phdr) part;
        off_t at = (off_t)(head.e_phoff + i * sizeof part);
        cut = pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part || part.p_offset > size ||
              (part.p_type == PT_LOAD && part.p_filesz > size - part.p_offset);
    }
    return cut;
}

/* Loads a copy of the file, so that overwriting it (a build during a sweep) does not change the
 * code of a run. The copy is a memfd, which needs no folder and leaves nothing behind. NULL: see
 * dlerror, or an error was added. */
static void *open_copy(const char *path, struct err *e)
{
    char name[64];
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int copy = memfd_create("xpusim-policy", MFD_CLOEXEC);
    bool ok = from >= 0 && copy >= 0;
    char bytes[65536];
    for (ssize_t n = 1; ok && n > 0;) {
        n = read(from, bytes, sizeof bytes);
        ok = n >= 0 && (n == 0 || write(copy, bytes, (size_t)n) == n);
    }
    void *handle = NULL;
    if (!ok) {
        (void)err_add(e, "--policy %s: cannot read: %s", path, strerror(errno));
    } else if (is_cut(copy)) {
        (void)err_add(e, "--policy %s: it ends too soon: it was cut, or is being written", path);
    } else {
        (void)snprintf(name, sizeof name, "/proc/self/fd/%d", copy);
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (from >= 0) {
        (void)close(from);
    }
    if (copy >= 0 && handle == NULL) {
        (void)close(copy); /* kept open on success: the linker identifies a library by its file */
    }
    return handle;
}

static const struct policy_ops *load_external(const char *spec, struct err *e)
{
    const struct policy_ops *ops = external_load(spec, e);
    OWNED char *path = xformat("%.*s", (int)plugin_path_length(spec), spec);
    return ops != NULL && check_ops(path, ops, e) == 0 ? ops : NULL;
}

/* copied: false in a jail, where there is no /proc to name the copy. */
static const struct policy_ops *load_file(const char *path, bool copied, struct err *e)
{
    size_t before = e->n;
    struct stat st;
    if (stat(path, &st) != 0) { /* dlopen cannot distinguish a missing file from a bad one */
        return err_null(e, "--policy %s: cannot read: %s", path, strerror(errno));
    }
    void *handle = copied ? open_copy(path, e) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL && e->n > before) {
        return NULL;
    }
    if (handle == NULL) {
        const char *why = dlerror();
        /* The linker's message begins with the copy's name. */
        const char *after = strstr(why, ": ");
        return err_null(e, "--policy %s: cannot load: %s", path, after != NULL ? after + 2 : why);
    }
    void *symbol = dlsym(handle, SYMBOL);
    if (symbol == NULL) {
        (void)dlclose(handle);
        return err_null(e, "--policy %s: it has no function " SYMBOL " (sim/api/policy.h)", path);
    }
    /* ISO C cannot cast object pointers to functions; POSIX gives them one size. */
    plugin_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const struct policy_ops *ops = entry();
    return check_ops(path, ops, e) == 0 ? ops : NULL;
}

static bool confined;

void plugin_confine(void)
{
    confined = true;
}

/* Whether plug-ins are loaded by a process in a jail. */
static bool is_confined(void)
{
    static bool said;
    const char *set = getenv("XPUSIM_JAIL");
    const char *why = NULL;
    bool wanted = confined || (set != NULL && strcmp(set, "on") == 0);
    if (wanted && !jail_works(&why) && !said) {
        said = true;
        (void)fprintf(stderr, "xpusim: note: plug-ins run in this process, without a jail: %s\n",
                      why);
    }
    return wanted && why == NULL;
}

static const struct policy_ops *load_hosted(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return err_null(e, "--policy %s: cannot read: %s", path, strerror(errno));
    }
    const struct policy_ops *ops = hosted_load(path, e);
    return ops != NULL && check_ops(path, ops, e) == 0 ? ops : NULL;
}

int plugin_host(int argc, char **argv)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    /* Before the plug-in is loaded. */
    OWNED char *address = argc > 3 ? hosted_address(argv[3]) : NULL;
    const struct policy_ops *ops = argc > 2 ? load_file(argv[2], false, &e) : NULL;
    if (ops != NULL && address != NULL) {
        hosted_serve(ops, address);
    }
    hosted_describe(ops, &e, stdout);
    return EXIT_SUCCESS;
}

/* Adds "./" to names without a slash, which dlopen would only search in system folders. */
static char *path_of(const char *spec)
{
    int len = (int)plugin_path_length(spec);
    const char *here = memchr(spec, '/', (size_t)len) == NULL ? "./" : "";
    return xformat("%s%.*s", here, len, spec);
}

const struct policy_ops *plugin_load(const char *spec, struct err *e)
{
    if (external_spec_length(spec) > 0) {
        return load_external(spec, e);
    }
    OWNED char *path = path_of(spec);
    return is_confined() ? load_hosted(path, e) : load_file(path, true, e);
}

const struct policy_ops *plugin_load_confined(const char *spec, struct err *e)
{
    OWNED char *path = path_of(spec);
    return load_hosted(path, e);
}

uint64_t plugin_code_hash(const char *spec)
{
    size_t len = plugin_path_length(spec);
    OWNED char *path = external_spec_length(spec) > 0 ? external_file(spec)
                       : len > 0                      ? xformat("%.*s", (int)len, spec)
                                                      : NULL;
    return path != NULL ? hash_file(path) : 0;
}

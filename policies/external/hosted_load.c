/* Loads a plug-in as a policy that runs in another process, with memory for its runs. */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS, realpath */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policies/external/hosted_impl.h"

/* ---- memory ---- */

/* Addresses that Linux processes do not use, with 48 and with 39 address bits. */
static const uintptr_t places[] = {(uintptr_t)0x200000000000, (uintptr_t)0x2000000000, 0};

static char *address_space(size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        void *at = (void *)places[i]; /* NOLINT */
        void *p = mmap(at, bytes, PROT_NONE, flags | (at != NULL ? MAP_FIXED_NOREPLACE : 0), -1, 0);
        if (p != MAP_FAILED) {
            return p;
        }
    }
    out_of_memory(bytes);
}

/* Creates a region and maps it writable. only_read: later mappings cannot be writable. */
static int region_of(char *at, bool only_read)
{
    int fd = memfd_create("xpusim-run", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 64) : -1; /* above the descriptors of a child */
    if (fd >= 0) {
        (void)close(fd);
    }
    unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW | (only_read ? F_SEAL_FUTURE_WRITE : 0);
    if (high < 0 || ftruncate(high, (off_t)HOST_REGION_BYTES) != 0 ||
        mmap(at, HOST_REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, high, 0) !=
            at ||
        fcntl(high, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
        (void)fprintf(stderr, "xpusim: error: memory to share with a policy: %s\n",
                      strerror(errno));
        _exit(EXIT_NO_MEMORY);
    }
    return high;
}

static void open_regions(struct hosted *h)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    h->region = address_space(2 * HOST_REGION_BYTES);
    h->fd[0] = region_of(h->region, true);
    h->fd[1] = region_of(h->region + HOST_REGION_BYTES, false);
    h->used[0] = 0;
    h->used[1] = (sizeof(struct hosted_letter) + 4095) / 4096 * 4096;
    h->objects = mmap(NULL, HOST_REGION_BYTES / 16, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (h->objects == MAP_FAILED) {
        out_of_memory(HOST_REGION_BYTES / 16);
    }
}

static void close_regions(struct hosted *h)
{
    (void)munmap(h->region, 2 * HOST_REGION_BYTES);
    (void)munmap(h->objects, HOST_REGION_BYTES / 16);
    (void)close(h->fd[0]);
    (void)close(h->fd[1]);
    h->region = NULL;
}

static void *take(struct hosted *h, int which, size_t *bytes)
{
    if (h->region == NULL) {
        open_regions(h);
    }
    *bytes = (*bytes + 4095) / 4096 * 4096;
    if (HOST_REGION_BYTES - h->used[which] < *bytes) {
        out_of_memory(*bytes);
    }
    char *p = h->region + (which == 0 ? 0 : HOST_REGION_BYTES) + h->used[which];
    h->used[which] += *bytes;
    h->given++;
    return p;
}

static void *take_shown(void *ctx, size_t *bytes)
{
    return take(ctx, 0, bytes);
}

static void *take_policys(void *ctx, size_t *bytes)
{
    return take(ctx, 1, bytes);
}

/* All blocks of a run are freed together, at its end. */
static void give(void *ctx, void *block UNUSED, size_t bytes UNUSED)
{
    struct hosted *h = ctx;
    if (--h->given == 0) {
        close_regions(h);
    }
}

const struct arena_source *hosted_memory(const struct policy_ops *ops)
{
    struct external *x = external_loaded;
    while (x != NULL && &x->ops != ops) {
        x = x->next;
    }
    return x != NULL && x->hosted ? ((struct hosted *)(void *)x)->memory : NULL;
}

/* ---- description of a plug-in ---- */

static void add_texts(cJSON *o, const char *name, const char *const *texts, uint32_t n)
{
    cJSON *list = texts != NULL ? cJSON_AddArrayToObject(o, name) : NULL;
    for (uint32_t i = 0; list != NULL && (n > 0 ? i < n : texts[i] != NULL); i++) {
        cJSON_AddItemToArray(list, cJSON_CreateString(texts[i] != NULL ? texts[i] : ""));
    }
}

static void add_param(cJSON *list, const struct policy_param *p)
{
    cJSON *o = JSON_MEMBERS(cJSON_CreateObject(), "name", p->name, "type",
                            external_param_types[p->type], "help", p->help);
    cJSON_AddItemToArray(list, o);
    external_add_param(o, "default", p, p->def);
    if (p->type == PARAM_CHOICE) {
        add_texts(o, "choices", p->choices, 0);
    } else if (p->type != PARAM_BOOL) {
        JSON_MEMBERS(o, "min", p->min, "max", p->max);
    }
}

static uint32_t n_choices(const struct policy_ops *ops)
{
    uint32_t n = 0;
    const struct policy_param *p = ops->params;
    while (p != NULL && p->name != NULL && p->choices != NULL && p->choices[n] != NULL) {
        n++;
    }
    return n;
}

void hosted_describe(const struct policy_ops *ops, const struct err *e, FILE *out)
{
    SCOPED(json_drop) cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "protocol", EXTERNAL_PROTOCOL);
    if (ops == NULL) {
        cJSON_AddStringToObject(o, "error", e->n > 0 ? e->lines[0] : "it has no policy");
    } else {
        uint32_t hooks = 0;
#define HAS(name) hooks |= ops->name != NULL ? 1u << HOST_##name : 0;
        HOST_HOOKS(HAS)
        JSON_MEMBERS(o, "name", ops->name, "summary", ops->summary, "flag_bits", ops->flags,
                     "need_bits", ops->needs, "hooks", hooks, "state_bytes",
                     (double)ops->state_size_bytes, "request_state_bytes",
                     (double)ops->request_state_size_bytes);
        add_texts(o, "ablations", ops->ablations, 0);
        add_texts(o, "presets", ops->presets, n_choices(ops));
        cJSON *params = cJSON_AddArrayToObject(o, "params");
        for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
            add_param(params, p);
        }
    }
    char *line = json_text(o, false);
    (void)fprintf(out, "%s\n", line);
    cJSON_free(line);
}

/* ---- loading ---- */

const struct policy_ops *hosted_load(const char *path, struct err *e)
{
    const struct external *known = external_known(path, strlen(path));
    if (known != NULL) {
        return &known->ops;
    }
    struct hosted *h = xcalloc(1, sizeof *h);
    struct external *x = &h->external;
    h->memory[0] = (struct arena_source){take_shown, give, h};
    h->memory[1] = (struct arena_source){take_policys, give, h};
    x->hosted = x->confined = true;
    external_begin(x, xstrdup(path));
    x->argv[0] = external_real_name("/proc/self/exe");
    x->argv[1] = xstrdup(HOST_COMMAND);
    x->argv[2] = external_real_name(path);
    OWNED char *libraries =
        xformat("%.*s/../lib/xpusim", (int)(strrchr(x->argv[0], '/') - x->argv[0]),
                x->argv[0]); /* libraries in a Python wheel */
    const char *const reads[] = {x->argv[0], x->argv[2], libraries, NULL};
    x->jail = (struct jail){.reads = external_reads(reads), .folder = "/"};
    x->usable = external_ask(x, e) == 0;
    return x->usable ? &x->ops : NULL;
}

#include "plots/palette.h"

#include "sim/base/base.h"

/* Per colour; two are left to other names. Devices and policies never share a figure. */
static const char *const usual[PALETTE_COLOURS][3] = {
    {"openvino-cb", "igpu", NULL},
    {"agent-xpu-v2", "npu", NULL},
    {"agent-xpu-v1", "cpu", NULL},
    {"edf", "dsp", NULL},
    {NULL},
    {"vllm-v1", NULL},
    {"fcfs", NULL},
    {NULL},
};

static char *names[PALETTE_SLOTS]; /* per slot; NULL: free */

static bool is_usual(unsigned slot, const char *name, size_t n)
{
    for (const char *const *u = usual[slot % PALETTE_COLOURS]; *u != NULL; u++) {
        if (strlen(*u) == n && memcmp(*u, name, n) == 0) {
            return true;
        }
    }
    return false;
}

/* The colour of a policy's name without parameters. */
static unsigned colour_of(const char *name, size_t n)
{
    for (unsigned i = 0; i < PALETTE_COLOURS; i++) {
        if (is_usual(i, name, n)) {
            return i;
        }
    }
    for (unsigned i = 0; i < PALETTE_SLOTS; i++) {
        if (names[i] != NULL && strncmp(names[i], name, n) == 0 &&
            strchr(":,", names[i][n]) != NULL) { /* or the end of the name */
            return i % PALETTE_COLOURS;
        }
    }
    for (unsigned i = 0; i < PALETTE_SLOTS; i++) { /* the first free slot */
        bool taken = usual[i % PALETTE_COLOURS][0] != NULL && i < PALETTE_COLOURS;
        if (!taken && names[i] == NULL) {
            return i % PALETTE_COLOURS;
        }
    }
    return 0;
}

#define MAX_RENAMED 64u

static struct {
    char *from, *to; /* never freed */
} renamed[MAX_RENAMED];
static unsigned n_renamed;

void palette_rename(const char *from, const char *to)
{
    if (n_renamed < MAX_RENAMED) {
        renamed[n_renamed].from = xstrdup(from);
        renamed[n_renamed++].to = xstrdup(to);
    }
}

unsigned palette_slot(const char *name)
{
    for (unsigned i = 0; i < n_renamed; i++) {
        name = strcmp(renamed[i].to, name) == 0 ? renamed[i].from : name;
    }
    size_t n = strcspn(name, ":,");
    n = strncmp(name + n, ": ", 2) == 0 ? strlen(name) : n; /* "a: preemption" has no parameters */
    for (unsigned i = 0; i < PALETTE_COLOURS && name[n] == '\0'; i++) {
        if (is_usual(i, name, n)) {
            return i;
        }
    }
    for (unsigned i = 0; i < PALETTE_SLOTS; i++) {
        if (names[i] != NULL && strcmp(names[i], name) == 0) {
            return i;
        }
    }
    /* Variants of a policy share its colour and differ in the stroke, so that families are
     * visible. */
    unsigned colour = colour_of(name, n);
    bool own = usual[colour][0] != NULL; /* the plain slot belongs to the usual name */
    for (unsigned i = own ? colour + PALETTE_COLOURS : colour; i < PALETTE_SLOTS;
         i += PALETTE_COLOURS) {
        if (names[i] == NULL) {
            names[i] = xstrdup(name);
            return i;
        }
    }
    return PALETTE_SLOTS - PALETTE_COLOURS + colour; /* no slot left */
}

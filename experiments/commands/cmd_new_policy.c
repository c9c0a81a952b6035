/* `xpusim new-policy NAME`: a policy outside the tree that compiles and runs, to be changed. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "policies/registry.h"
#include "sim/base/err.h"

#define PATH_BYTES 4096
#define MAX_NAME_BYTES 40
#define N_FILES 3

/* In the texts @N stands for the name, @I for it as a C identifier, with a prefix so that no name
 * meets a keyword or a type of the contract. */

static const char policy_text[] =
    "/* @N: one request at a time, in arrival order, on one device. Say here what your order or\n"
    " * mechanism is, and where it comes from. The contract is sim/api/policy.h. */\n"
    "#include \"policies/common/place.h\"\n"
    "#include \"policies/common/reqq.h\"\n"
    "\n"
    "enum { PARAM_DEVICE }; /* indices into params */\n"
    "\n"
    "static const struct policy_param params[] = {\n"
    "    {\"device\", PARAM_CHOICE, 0, 0, 4, place_choices, \"device that runs all; auto: the "
    "iGPU\"},\n"
    "    {.name = NULL},\n"
    "};\n"
    "\n"
    "struct @I { /* zeroed before init; nothing may live in static variables */\n"
    "    struct reqq waiting;\n"
    "    const struct request *current; /* NULL when idle */\n"
    "    uint8_t device;\n"
    "};\n"
    "\n"
    "static int @I_init(struct sched *s)\n"
    "{\n"
    "    struct @I *p = s->state;\n"
    "    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));\n"
    "    p->device = (uint8_t)d;\n"
    "    return d < 0 ? d : 0;\n"
    "}\n"
    "\n"
    "static void @I_request_arrived(struct sched *s, const struct request *r)\n"
    "{\n"
    "    struct @I *p = s->state;\n"
    "    reqq_push(&p->waiting, r); /* your order goes here */\n"
    "}\n"
    "\n"
    "static void @I_pass_done(struct sched *s, const struct pass *done)\n"
    "{\n"
    "    struct @I *p = s->state;\n"
    "    enum request_state state = done->segments[0].request->state;\n"
    "    if (state == REQUEST_STATE_FINISHED || state == REQUEST_STATE_SHED) {\n"
    "        p->current = NULL;\n"
    "    }\n"
    "}\n"
    "\n"
    "static void @I_request_cancelled(struct sched *s, const struct request *r)\n"
    "{\n"
    "    (void)s;\n"
    "    reqq_remove(r);\n"
    "}\n"
    "\n";

static const char policy_text_end[] =
    "/* Called while it acts: all actions are here, none in the hooks above. */\n"
    "static void @I_schedule(struct sched *s)\n"
    "{\n"
    "    struct @I *p = s->state;\n"
    "    if (p->current == NULL) {\n"
    "        p->current = reqq_pop(&p->waiting);\n"
    "    }\n"
    "    const struct request *r = p->current;\n"
    "    if (r == NULL || r->pass != NULL) {\n"
    "        return;\n"
    "    }\n"
    "    struct segment segment = {.request = r, .role = SEGMENT_DECODE, .n_tokens = 1};\n"
    "    if (r->state == REQUEST_STATE_QUEUED) {\n"
    "        segment.role = SEGMENT_PREFILL;\n"
    "        segment.n_tokens = request_prefill_left(r);\n"
    "    }\n"
    "    struct pass_spec spec = {.segments = &segment,\n"
    "                             .n_segments = 1,\n"
    "                             .fused_layers = segment.role == SEGMENT_DECODE};\n"
    "    struct pass *pass;\n"
    "    if (sched_pass_form(s, &spec, &pass) == 0) {\n"
    "        (void)place_whole(s, pass, p->device, YIELD_PASS);\n"
    "    }\n"
    "}\n"
    "\n"
    "static const struct policy_ops ops = {\n"
    "    .name = \"@N\",\n"
    "    .summary = \"one request at a time, in arrival order (a skeleton)\",\n"
    "    .contract = POLICY_CONTRACT,\n"
    "    .state_size_bytes = sizeof(struct @I),\n"
    "    .params = params,\n"
    "    .init = @I_init,\n"
    "    .request_arrived = @I_request_arrived,\n"
    "    .pass_done = @I_pass_done,\n"
    "    .request_cancelled = @I_request_cancelled,\n"
    "    .schedule = @I_schedule,\n"
    "};\n"
    "\n"
    "const struct policy_ops *xpusim_policy(void)\n"
    "{\n"
    "    return &ops;\n"
    "}\n";

static const char makefile_text[] =
    "# make                          @N.so\n"
    "# make test XPUSIM=.../xpusim   runs it and compares it with fcfs\n"
    "#\n"
    "# XPUSIM_INCLUDE: a source tree of xpusim, or PREFIX/include/xpusim after its `make "
    "install`.\n"
    "XPUSIM_INCLUDE ?= /usr/local/include/xpusim\n"
    "XPUSIM ?= xpusim\n"
    "\n"
    "# No contraction of a * b + c, as in xpusim: results must not depend on the processor.\n"
    "CFLAGS ?= -O2 -g -Wall -Wextra\n"
    "PLUGIN_FLAGS = -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -shared\n"
    "\n"
    "@N.so: @N.c Makefile\n"
    "\t@test -f \"$(XPUSIM_INCLUDE)/sim/api/policy.h\" || { \\\n"
    "\t    echo \"no headers of xpusim in $(XPUSIM_INCLUDE): set XPUSIM_INCLUDE\" >&2; exit 1; }\n"
    "\t$(CC) $(PLUGIN_FLAGS) -I\"$(XPUSIM_INCLUDE)\" $(CFLAGS) $(LDFLAGS) -o $@ @N.c\n"
    "\n"
    "test: @N.so\n"
    "\tXPUSIM=\"$(XPUSIM)\" sh test.sh\n"
    "\n"
    "clean:\n"
    "\trm -f @N.so\n"
    "\n"
    ".PHONY: test clean\n";

static const char test_text[] =
    "#!/bin/sh\n"
    "# Runs @N twice (same bytes, clean audit), then compares it with fcfs on the same requests.\n"
    "set -eu\n"
    "x=${XPUSIM:-xpusim}\n"
    "plugin=$(dirname \"$0\")/@N.so\n"
    "load=mixed:reactive_per_min=2,proactive_per_min=2,duration_s=120\n"
    "dir=$(mktemp -d)\n"
    "trap 'rm -rf \"$dir\"' EXIT\n"
    "for i in 1 2; do # a run with an unclean audit exits 1\n"
    "    \"$x\" run --policy \"$plugin\" --workload \"$load\" --seed 1 --json >\"$dir/$i\"\n"
    "done\n"
    "cmp \"$dir/1\" \"$dir/2\"\n"
    "\"$x\" compare --policy fcfs --policy \"$plugin\" --baseline fcfs --workload \"$load\" \\\n"
    "    --replications 5 --quiet\n"
    "echo \"@N: ok\"\n";

struct skeleton {
    char name[MAX_NAME_BYTES + 1], identifier[MAX_NAME_BYTES + 8];
    char dir[PATH_BYTES];
    bool made_dir;
    char paths[N_FILES][PATH_BYTES + MAX_NAME_BYTES + 8];
    int n_made;
};

static int check_name(const char *name, struct err *e)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t len = strlen(name);
    if (len == 0 || len > MAX_NAME_BYTES || name[0] < 'a' || name[0] > 'z' ||
        strspn(name, letters) != len) {
        return err_add(e, "new-policy '%.80s': a name must be [a-z][a-z0-9-]*, up to %d letters",
                       name, MAX_NAME_BYTES);
    }
    if (policy_find(name) != NULL) {
        return err_add(e, "new-policy %s: a built-in policy has that name", name);
    }
    return 0;
}

/* A text with its marks replaced. */
static void put_text(FILE *f, const char *text, const struct skeleton *k)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '@' && (p[1] == 'N' || p[1] == 'I')) {
            (void)fputs(*++p == 'N' ? k->name : k->identifier, f);
        } else {
            (void)fputc(*p, f);
        }
    }
}

/* "x" refuses a file that is there, so none is ever overwritten, nor removed by undo. */
static int write_file(struct skeleton *k, const char *const *texts, struct err *e)
{
    const char *path = k->paths[k->n_made];
    FILE *f = fopen(path, "wx");
    if (f == NULL) {
        return err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    k->n_made++;
    for (; *texts != NULL; texts++) {
        put_text(f, *texts, k);
    }
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        return err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    return 0;
}

static void undo(struct skeleton *k)
{
    while (k->n_made > 0) {
        (void)unlink(k->paths[--k->n_made]);
    }
    if (k->made_dir) {
        (void)rmdir(k->dir);
    }
}

/* All files or none. */
static int write_skeleton(struct skeleton *k, struct err *e)
{
    static const char *const texts[N_FILES][3] = {
        {policy_text, policy_text_end, NULL}, {makefile_text, NULL}, {test_text, NULL}};
    k->made_dir = mkdir(k->dir, 0777) == 0;
    if (!k->made_dir && errno != EEXIST) {
        return err_add(e, "%s: cannot make this folder: %s", k->dir, strerror(errno));
    }
    (void)snprintf(k->paths[0], sizeof k->paths[0], "%s/%s.c", k->dir, k->name);
    (void)snprintf(k->paths[1], sizeof k->paths[1], "%s/Makefile", k->dir);
    (void)snprintf(k->paths[2], sizeof k->paths[2], "%s/test.sh", k->dir);
    for (int i = 0; i < N_FILES; i++) {
        if (write_file(k, texts[i], e) != 0) {
            undo(k);
            return -EINVAL;
        }
    }
    (void)printf("%s\n%s\n%s\n", k->paths[0], k->paths[1], k->paths[2]);
    return 0;
}

struct options {
    struct option_texts names;
    const char *dir;
};

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    struct skeleton k = {.n_made = 0};
    if (check_name(o->names.v[0], e) != 0) {
        return -EINVAL;
    }
    (void)snprintf(k.name, sizeof k.name, "%s", o->names.v[0]);
    (void)snprintf(k.identifier, sizeof k.identifier, "my_%s", k.name);
    for (char *p = k.identifier; (p = strchr(p, '-')) != NULL;) {
        *p = '_';
    }
    const char *dir = o->dir != NULL ? o->dir : k.name;
    if (dir[0] == '\0' || strlen(dir) >= sizeof k.dir) {
        return err_add(e, "-o '%.80s': must be a folder's path", dir);
    }
    (void)snprintf(k.dir, sizeof k.dir, "%s", dir);
    return write_skeleton(&k, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    {.name = "output",
     .letter = 'o',
     .value = "DIR",
     .kind = OPTION_KIND_TEXT,
     .offset = OPTION_AT(OPTIONS, dir, const char *),
     .help = "folder to write to, made when missing (default: NAME)"},
};
static const struct option_table own = OPTION_TABLE(NULL, rows);
static const struct option_child children[] = {
    {.table = &own},
    {0},
};
const struct command cmd_new_policy = {
    .name = "new-policy",
    .summary = "a policy plug-in to start from, with its Makefile and test",
    .usage = "NAME [-o DIR]",
    .about = "Writes a policy plug-in to start from: NAME.c, a Makefile that builds NAME.so, and "
             "test.sh, "
             "which runs it and compares it with fcfs. NAME is [a-z][a-z0-9-]*, up to 40 letters.",
    .operands = {"NAME", 1, 1, offsetof(OPTIONS, names)},
    .notes = "Then: make -C DIR XPUSIM_INCLUDE=FOLDER ; xpusim run --policy DIR/NAME.so\n"
             "FOLDER is a source tree, or PREFIX/include/xpusim after `make install`.",
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run,
};

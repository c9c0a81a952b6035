/* The process of a plug-in: receives and runs hooks. */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include <sys/mman.h>
#include <unistd.h>

#include "policies/external/hosted_child.h"
#include "sim/base/memory.h"

static void dump(struct sched *s)
{
    OWNED char *all = NULL;
    size_t n = 0;
    FILE *f = memory_stream(&all, &n);
    hosted_here.ops->dump(s, f);
    memory_stream_close(f, &all);
    hosted_text(all);
}

/* Also called if the policy has no such hook (POLICY_F_SLEEPS). */
static void launch_done(struct sched *s, const struct launch *l)
{
    if (hosted_here.ops->launch_done != NULL) {
        hosted_here.ops->launch_done(s, l);
    }
}

static void run_news(struct sched *s, uint32_t n)
{
    hosted_here.news = true;
    for (uint32_t i = 0; i < n && i < HOST_NEWS; i++) {
        struct hosted_news of = hosted_here.letter->news[i];
        hosted_here.hook = of.launch != NULL ? HOST_launch_done : HOST_pass_done;
        if (of.launch != NULL) {
            launch_done(s, of.launch);
        } else {
            hosted_here.ops->pass_done(s, of.pass);
        }
    }
    hosted_here.news = false;
}

static int run_hook(struct sched *s, const struct hosted_message *m)
{
    const struct policy_ops *o = hosted_here.ops;
    switch (m->what) {
    case HOST_init:
        return o->init != NULL ? o->init(s) : 0;
    case HOST_exit:
        if (o->exit != NULL) {
            o->exit(s);
        }
        break;
    case HOST_request_arrived:
        o->request_arrived(s, m->request);
        break;
    case HOST_launch_done:
        launch_done(s, m->launch);
        break;
    case HOST_pass_done:
        o->pass_done(s, m->pass);
        break;
    case HOST_resident_ready:
        o->resident_ready(s, m->key);
        break;
    case HOST_kv_moved:
        o->kv_moved(s, m->request);
        break;
    case HOST_request_cancelled:
        o->request_cancelled(s, m->request);
        break;
    case HOST_schedule:
        o->schedule(s);
        break;
    case HOST_dump:
        dump(s);
        break;
    default:
        _exit(EXIT_FAILURE);
    }
    return 0;
}

/* Maps the regions, descriptors 3 and 4. */
static char *map_regions(const char *address)
{
    const size_t bytes = HOST_REGION_BYTES;
    char *at = (char *)(uintptr_t)strtoull(address, NULL, 0); /* NOLINT */
    char *shown = mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, 3, 0);
    char *state =
        mmap(at + bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, 4, 0);
    if (shown != at || state != at + bytes) {
        (void)fprintf(stderr, "xpusim: error: the memory of the run cannot be mapped\n");
        _exit(EXIT_FAILURE);
    }
    (void)close(3);
    (void)close(4);
    return at;
}

char *hosted_address(const char *given)
{
    return strcmp(given, EXTERNAL_FORKS) == 0 ? zygote_serve() : xstrdup(given);
}

_Noreturn void hosted_serve(const struct policy_ops *ops, const char *address)
{
    hosted_here.ops = ops;
    hosted_here.letter = hosted_letter_of(map_regions(address));
    /* Output of the plug-in goes to standard error. The pipe stays open, so that the parent sees
     * whether this process lives. */
    hosted_here.parent = dup(STDIN_FILENO);
    hosted_here.open = dup(STDOUT_FILENO);
    (void)close(STDIN_FILENO);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    for (;;) {
        hosted_listen();
        struct hosted_message *m = &hosted_here.letter->m;
        const struct hosted_message now = *m; /* a copy, because calls of late hooks overwrite it */
        hosted_here.sched = *m->sched;
        hosted_here.sched.api = &hosted_calls;
        hosted_here.sched.policy = ops;
        hosted_here.sched.context = NULL;
        run_news(&hosted_here.sched, now.n_news);
        hosted_here.hook = now.what;
        m->result = run_hook(&hosted_here.sched, &now);
        m->what = HOST_DONE;
        hosted_give_turn(hosted_here.letter, HOST_PARENT);
        if (hosted_here.hook == HOST_exit) {
            _exit(EXIT_SUCCESS);
        }
    }
}

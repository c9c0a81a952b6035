#include "experiments/drive/probe.h"

#include <strings.h>
#include <unistd.h>

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/watchdog.h"
#include "hwmodels/engines/engines.h"

#define MAX_FACTS 16
#define LIMIT_S 600.0 /* to compile and run one kernel */

int probe_open(struct probe *p, struct err *e)
{
    char why[ENGINE_MESSAGE_BYTES] = "";
    OWNED char *cache = engine_cache();
    *p = (struct probe){.ops = engine_bench_find(e)};
    if (p->ops != NULL) {
        p->bench = p->ops->open((uint32_t)sysconf(_SC_NPROCESSORS_ONLN), cache, why);
    }
    if (p->ops != NULL && p->bench == NULL) {
        (void)err_add(e, "engine openvino: %s", why);
    }
    SIM_ASSERT(p->bench == NULL || p->ops != NULL); /* probe_close relies on this */
    return p->bench == NULL ? -EINVAL : 0;
}

void probe_close(struct probe *p)
{
    if (p->bench != NULL) {
        SIM_ASSERT(p->ops != NULL);
        p->ops->close(p->bench);
    }
}

/* Finds a device by its name, which ignores case, or adds an error. */
static int find(struct probe *p, const char *device, struct engine_bench_device *out, struct err *e)
{
    struct engine_bench_device all[BACKEND_MAX_DEVICES];
    SCOPED(text_fini) struct text has = {0};
    uint32_t n = p->ops->devices(p->bench, all, BACKEND_MAX_DEVICES);
    n = n < BACKEND_MAX_DEVICES ? n : BACKEND_MAX_DEVICES;
    bool found = false;
    for (uint32_t i = 0; i < n && !found; i++) {
        found = strcasecmp(all[i].name, device) == 0;
        *out = all[i];
        text_item(&has, ", ", all[i].name);
    }
    if (!found) {
        (void)err_add(
            e,
            "--probe %s: OpenVINO finds no such device here; it has %s. For an NPU or GPU "
            "its driver must be installed",
            device, n > 0 ? text_end(&has) : "none");
    }
    return found ? 0 : -EINVAL;
}

int probe_device(struct probe *p, const char *device, const struct llm *llm, uint32_t rows,
                 struct document *d, struct err *e)
{
    static const struct frame_column facts[] = {{.name = "fact", .kind = FRAME_TEXT},
                                                {.name = "value", .kind = FRAME_TEXT}};
    static const struct frame_column kernels[] = {
        {.name = "kernel", .kind = FRAME_TEXT},
        {.name = "result", .kind = FRAME_TEXT},
        {.name = "compiler", .kind = FRAME_TEXT},
        {.name = "cached", .kind = FRAME_FLAG},
        {.name = "compile_s", .title = "compile s", .unit = "s", .format = "%.3f"},
        {.name = "first_s", .title = "first ms", .unit = "s", .format = "%.3f", .scale = 1e3},
        {.name = "again_s", .title = "again ms", .unit = "s", .format = "%.3f", .scale = 1e3},
        {.name = "off_frac", .title = "off CPU %", .unit = "1", .format = "%.2f", .scale = 100.0},
        {.name = "why", .kind = FRAME_TEXT, .missing = ""}};
    struct engine_bench_device found;
    struct engine_fact fact[MAX_FACTS];
    if (find(p, device, &found, e) != 0) {
        return -EINVAL;
    }
    DOCUMENT_VALUES(d, "device", (const char *)found.name, "openvino", p->ops->version);
    struct frame *said = DOCUMENT_FRAME(d, "facts", 0, facts);
    uint32_t n = p->ops->facts(p->bench, found.name, fact, MAX_FACTS);
    SIM_ASSERT(n <= MAX_FACTS && strcasecmp(found.name, device) == 0);
    for (uint32_t i = 0; i < n; i++) {
        FRAME_ROW(said, (const char *)fact[i].name, (const char *)fact[i].value);
    }
    struct frame *ran = DOCUMENT_FRAME(d, "kernels", 0, kernels);
    int failed = 0;
    for (uint32_t step = 0; step < ENGINE_PROBE_STEPS; step++) {
        struct engine_probe k;
        (void)fprintf(stderr, "xpusim: %s: kernel %u of %d\n", found.name, step + 1,
                      ENGINE_PROBE_STEPS);
        watchdog_kick("the device's compiler, or its first inference,", LIMIT_S);
        p->ops->probe(p->bench, found.name, llm, rows, step, &k);
        failed += !k.ok;
        FRAME_ROW(ran, (const char *)k.what, k.ok ? "ok" : "failed",
                  k.by[0] != '\0' ? (const char *)k.by : NULL, k.cached, k.compile_s, k.first_s,
                  k.again_s, k.off_frac, k.ok ? NULL : (const char *)k.why);
    }
    watchdog_stop();
    SIM_ASSERT(failed <= ENGINE_PROBE_STEPS);
    return failed;
}

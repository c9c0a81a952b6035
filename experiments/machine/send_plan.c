#include "experiments/machine/send_impl.h"

#include "hwmodels/engines/engines.h"

#define MAX_DEVICES 16

const char *const send_traces[SEND_TRACES] = {"calibrate.csv", "held-out-1.csv", "held-out-2.csv",
                                              "sessions.csv"};

static struct step *add_step(struct sending *s, const char *name, const char *makes,
                             const char *holds, double minutes)
{
    SIM_REQUIRE(s->n < SEND_MAX_STEPS, "room for every step");
    struct step *t = &s->steps[s->n++];
    *t = (struct step){
        .name = name, .makes = makes, .holds = holds, .minutes = minutes, .status = -1};
    return t;
}

/* Adds the words of a command. */
static void take_args(struct step *t, const char *words)
{
    for (const char *at = words; *at != '\0';) {
        size_t n = strcspn(at, " ");
        SIM_REQUIRE(t->n_args + 1 < SEND_MAX_ARGS, "room for every word");
        if (n > 0) {
            t->args[t->n_args++] = xformat("%.*s", (int)n, at);
        }
        at += n + (at[n] == ' ');
    }
}

static void find_devices(struct sending *s)
{
    SCOPED(err_fini) struct err none = ERR_INIT;
    char why[ENGINE_MESSAGE_BYTES];
    s->ggml = engine_find("ggml", &none) != NULL;
    const struct engine_bench_ops *ops = engine_bench_find(&none);
    void *bench = ops == NULL ? NULL : ops->open(1, NULL, why);
    struct engine_bench_device devices[MAX_DEVICES];
    struct text list = {0};
    uint32_t n = bench == NULL ? 0 : ops->devices(bench, devices, MAX_DEVICES);
    for (uint32_t i = 0; i < n && i < MAX_DEVICES; i++) {
        text_item(&list, ",", devices[i].name);
        char *name = devices[i].kind == DEVICE_KIND_NPU    ? s->npu
                     : devices[i].kind == DEVICE_KIND_IGPU ? s->gpu
                                                           : NULL;
        if (name != NULL && name[0] == '\0') {
            (void)strcpy(name, devices[i].name);
        }
    }
    s->openvino = n > 0;
    s->devices = text_end(&list);
    if (bench != NULL) {
        ops->close(bench);
    }
}

/* Selects the NPU and GPU that passed their probes, and the CPU instead of a missing one. */
void send_add_devices(const struct sending *s, struct step *t)
{
    if (s->npu[0] != '\0' || s->gpu[0] != '\0') {
        take_args(t, "--engine openvino --devices");
        OWNED char *list = xformat("%s,%s", s->npu[0] != '\0' ? s->npu : "CPU",
                                   s->gpu[0] != '\0' ? s->gpu : "CPU");
        take_args(t, list);
    } else if (!s->ggml) {
        take_args(t, "--engine openvino");
    }
    take_args(t, s->tiny ? "--llm random-256 --clock cpu" : "--llm random-1024");
}

static void plan_drive(struct sending *s)
{
    static const char *const names[] = {"compare-1", "compare-2", "compare-3"};
    static const char *const files[] = {"compare-1.json", "compare-2.json", "compare-3.json"};
    const char *const repeat = s->tiny ? "--repeat 1" : "--repeat 2";
    struct step *t = add_step(s, "calibrate", "soc.json",
                              "machine file fitted to kernels of a small model", s->tiny ? 1 : 2);
    t->to = "calibrate.txt";
    take_args(t, "drive --calibrate calibrate.csv -o soc.json");
    take_args(t, repeat);
    t->drives = true;
    for (size_t i = 0; i < 3; i++) {
        t = add_step(s, names[i], files[i], "real against simulated latencies of one trace",
                     s->tiny ? 1 : 2);
        t->to = files[i];
        take_args(t, "drive --compare --json --soc soc.json --policy fcfs --policy agent-xpu-v2");
        take_args(t, s->tiny ? "" : "--policy openvino-cb --policy pd-static");
        take_args(t, repeat);
        take_args(t, "--trace");
        take_args(t, send_traces[i + 1]);
        t->drives = true;
    }
}

static void plan_probe(struct sending *s, const char *name, const char *makes, const char *device)
{
    struct step *t = add_step(s, name, makes, "do an FFN and an attention compile and run", 1);
    t->to = makes;
    take_args(t, "drive --json --probe");
    take_args(t, device);
}

static struct step *plan_measure(struct sending *s, const char *name, const char *makes,
                                 const char *holds, double minutes)
{
    struct step *t = add_step(s, name, makes, holds, s->tiny ? 1 : minutes);
    take_args(t, "measure --name this-machine --size");
    take_args(t, s->o->size);
    take_args(t, "-o");
    take_args(t, makes);
    take_args(t, s->tiny ? "--repetitions 1 --retries 0 --pool-mb 64 --window-s" : "");
    return t;
}

void send_plan(struct sending *s)
{
    struct step *t;
    find_devices(s);
    if (s->npu[0] != '\0') {
        plan_probe(s, "probe-npu", "probe-npu.json", s->npu);
    }
    if (s->gpu[0] != '\0') {
        plan_probe(s, "probe-gpu", "probe-gpu.json", s->gpu);
    }
    t = plan_measure(s, "measure", "rows.csv",
                     "times of single kernels, each device alone and in pairs", 10);
    take_args(t, s->tiny ? "0.002" : "");
    if (s->openvino) {
        take_args(t, "--backend openvino --devices");
        take_args(t, s->devices);
    }
    t = plan_measure(s, "pairs", "pairs.csv",
                     "who slows whom: each kind of kernel next to each other", 5);
    /* The pair is NPU and GPU, if there are both, because they share a laptop's work. With the
     * processor alone it is two of its cores. */
    bool chips = s->npu[0] != '\0' && s->gpu[0] != '\0';
    bool two = chips || strchr(s->devices, ',') != NULL;
    /* A pair needs five samples in which both kernels ran. OpenVINO's start later, so their window
     * is longer. Slow kernels extend a window anyway. */
    take_args(t, !s->tiny ? "" : two ? "0.005" : "0.002");
    take_args(t, "--pairs");
    if (two) {
        OWNED char *list = chips ? xformat("%s,%s", s->npu, s->gpu) : xstrdup(s->devices);
        take_args(t, "--backend openvino --devices");
        take_args(t, list);
    }
    if (s->ggml || s->openvino) {
        plan_drive(s);
    }
}

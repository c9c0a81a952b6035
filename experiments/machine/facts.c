#include "experiments/machine/facts.h"

#include <ctype.h>
#include <dirent.h>
#include <strings.h>
#include <unistd.h>

#include "hwmodels/engines/engines.h"
#include "sim/base/input.h"

#define REMOVED "removed"
#define MAX_DEVICES 16
#define MAX_FACTS 16
#define MIN_WORD 3 /* a shorter name would match too many words */

/* ---- one fact ---- */

static bool is_edge(char c)
{
    return !isalnum((unsigned char)c);
}

/* Replaces each occurrence as a whole word, in any case. Frees `text`, and returns a new one. */
static char *without_word(char *text, const char *word)
{
    struct text out = {0};
    size_t n = strlen(word);
    for (const char *at = text; *at != '\0';) {
        bool here =
            strncasecmp(at, word, n) == 0 && (at == text || is_edge(at[-1])) && is_edge(at[n]);
        text_add(&out, here ? REMOVED : at, here ? strlen(REMOVED) : 1);
        at += here ? n : 1;
    }
    free(text);
    return text_end(&out);
}

static char *without_names(const struct facts *f, char *text)
{
    for (size_t i = 0; i < sizeof f->words / sizeof f->words[0]; i++) {
        text = f->words[i] == NULL ? text : without_word(text, f->words[i]);
    }
    return text;
}

/* Adds a fact, and takes its text. An empty text is an unknown fact, which is left out. */
static void add(struct facts *f, const char *name, char *text, bool number)
{
    if (text == NULL || text[0] == '\0') {
        free(text);
        return;
    }
    f->v = xgrow(f->v, f->n, sizeof *f->v);
    struct fact *to = &f->v[f->n++];
    *to = (struct fact){.text = text_visible(without_names(f, text), ""), .number = number};
    (void)snprintf(to->name, sizeof to->name, "%s", name);
}

static void add_number(struct facts *f, const char *name, double value)
{
    if (value > 0.0) {
        add(f, name, xformat("%.15g", value), true);
    }
}

const char *facts_text(const struct facts *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->v[i].name, name) == 0) {
            return f->v[i].text;
        }
    }
    return "";
}

/* ---- files ---- */

static char *rooted(const char *path)
{
    const char *root = getenv("XPUSIM_ROOT");
    return xformat("%s%s", root == NULL ? "" : root, path);
}

/* The first line; the caller frees it. NULL: unreadable. */
static char *line_of(const char *path)
{
    OWNED char *full = rooted(path);
    SCOPED(input_drop) FILE *in = input_try(full);
    char line[256];
    if (in == NULL || fgets(line, sizeof line, in) == NULL) {
        return NULL;
    }
    line[strcspn(line, "\n")] = '\0';
    return xstrdup(line);
}

static double number_of(const char *path)
{
    OWNED char *text = line_of(path);
    return text == NULL ? 0.0 : strtod(text, NULL);
}

/* The value after `key` on the first line that begins with it, without quotes. NULL: none. */
static char *keyed(const char *path, const char *key)
{
    OWNED char *full = rooted(path);
    SCOPED(input_drop) FILE *in = input_try(full);
    char line[512];
    char *found = NULL;
    while (in != NULL && found == NULL && fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            char *value = line + strlen(key);
            value += strspn(value, " \t:=\"");
            value[strcspn(value, "\"\n")] = '\0';
            found = xstrdup(value);
        }
    }
    return found;
}

/* The last name in a link's target: the driver of a device. NULL: no link. */
static char *link_of(const char *path)
{
    OWNED char *full = rooted(path);
    char target[512];
    ssize_t n = readlink(full, target, sizeof target - 1);
    if (n <= 0) {
        return NULL;
    }
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    return xstrdup(slash == NULL ? target : slash + 1);
}

/* Calls visit for each entry of a folder, sorted by name. */
static void each(struct facts *f, const char *folder,
                 void (*visit)(struct facts *f, const char *path))
{
    OWNED char *full = rooted(folder);
    OWNED struct dirent **names = NULL;
    int n = scandir(full, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.') {
            OWNED char *path = xformat("%s/%s", folder, names[i]->d_name);
            visit(f, path);
        }
        free(names[i]);
    }
}

/* ---- what is read ---- */

/* The longest first, because a name inside a longer one would leave the rest of that. */
static int longest_first(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    size_t n = *x == NULL ? 0 : strlen(*x);
    size_t m = *y == NULL ? 0 : strlen(*y);
    return (n < m) - (n > m);
}

static void read_names(struct facts *f)
{
    const char *home = getenv("HOME");
    const char *home_name = home == NULL ? NULL : strrchr(home, '/');
    const char *user = getenv("USER");
    const char *login = getenv("LOGNAME");
    f->words[0] = line_of("/proc/sys/kernel/hostname");
    f->words[1] = user == NULL ? NULL : xstrdup(user);
    f->words[2] = login == NULL ? NULL : xstrdup(login);
    f->words[3] = home_name == NULL ? NULL : xstrdup(home_name + 1);
    for (size_t i = 0; i < sizeof f->words / sizeof f->words[0]; i++) {
        if (f->words[i] != NULL && strlen(f->words[i]) < MIN_WORD) {
            free(f->words[i]);
            f->words[i] = NULL;
        }
    }
    qsort(f->words, sizeof f->words / sizeof f->words[0], sizeof f->words[0], longest_first);
}

static const struct {
    const char *name, *path, *key; /* key NULL: the first line */
} lines[] = {
    {"processor", "/proc/cpuinfo", "model name"},
    {"kernel", "/proc/sys/kernel/osrelease", NULL},
    {"distribution", "/etc/os-release", "PRETTY_NAME"},
    {"vendor", "/sys/class/dmi/id/sys_vendor", NULL},
    {"product", "/sys/class/dmi/id/product_name", NULL},
    {"board", "/sys/class/dmi/id/board_name", NULL},
    {"bios_version", "/sys/class/dmi/id/bios_version", NULL},
    {"bios_date", "/sys/class/dmi/id/bios_date", NULL},
    {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", NULL},
    {"frequency_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", NULL},
    {"energy_preference", "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference",
     NULL},
    {"platform_profile", "/sys/firmware/acpi/platform_profile", NULL},
    {"npu_module_version", "/sys/module/intel_vpu/version", NULL},
};

/* udev's record of the memory modules. It also has their serial numbers, which are not read. */
#define UDEV_DMI "/run/udev/data/+dmi:id"
#define MAX_MODULES 64

/* A property of a memory module. NULL: unknown. */
static char *module_text(int i, const char *key)
{
    OWNED char *line = xformat("E:MEMORY_DEVICE_%d_%s=", i, key);
    return keyed(UDEV_DMI, line);
}

static double module_number(int i, const char *key)
{
    OWNED char *text = module_text(i, key);
    return text == NULL ? 0.0 : strtod(text, NULL);
}

static void read_memory(struct facts *f)
{
    OWNED char *total = keyed("/proc/meminfo", "MemTotal");
    add_number(f, "memory_bytes", total == NULL ? 0.0 : strtod(total, NULL) * 1024.0);
    double bits = 0.0;
    double speed = 0.0;
    int modules = 0;
    for (int i = 0; i < MAX_MODULES; i++) {
        if (module_number(i, "SIZE") <= 0.0) {
            continue;
        }
        double own = module_number(i, "CONFIGURED_SPEED_MTS");
        modules++;
        bits += module_number(i, "DATA_WIDTH");
        speed = own > 0.0 && (speed == 0.0 || own < speed) ? own : speed;
        if (modules == 1) {
            add(f, "memory_type", module_text(i, "TYPE"), false);
        }
    }
    add_number(f, "memory_modules", modules);
    add_number(f, "memory_bits", bits);
    add_number(f, "memory_mt_per_s", speed);
    add_number(f, "memory_peak_bytes_per_s", bits / 8.0 * speed * 1e6);
}

static void read_supply(struct facts *f, const char *path)
{
    OWNED char *type_path = xformat("%s/type", path);
    OWNED char *online_path = xformat("%s/online", path);
    OWNED char *type = line_of(type_path);
    if (type != NULL && strcmp(type, "Mains") == 0 && facts_text(f, "on_mains")[0] == '\0') {
        add(f, "on_mains", xstrdup(number_of(online_path) > 0.0 ? "yes" : "no"), false);
    } else if (type != NULL && strcmp(type, "Battery") == 0 &&
               facts_text(f, "battery")[0] == '\0') {
        add(f, "battery", xstrdup("yes"), false);
    }
}

/* Intel RAPL: constraint 0 is the long-term limit PL1, 1 the short-term PL2. */
static void read_limits(struct facts *f, const char *path)
{
    static const struct {
        const char *name, *file;
    } limits[] = {{"pl1_w", "constraint_0_power_limit_uw"},
                  {"pl1_window_s", "constraint_0_time_window_us"},
                  {"pl2_w", "constraint_1_power_limit_uw"}};
    OWNED char *name_path = xformat("%s/name", path);
    OWNED char *name = line_of(name_path);
    if (name != NULL && strcmp(name, "package-0") == 0 && facts_text(f, "pl1_w")[0] == '\0') {
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
            OWNED char *file = xformat("%s/%s", path, limits[i].file);
            add_number(f, limits[i].name, number_of(file) / 1e6);
        }
    }
}

static void read_driver(struct facts *f, const char *path, const char *kind)
{
    static const char *const parts[] = {"vendor", "device"};
    OWNED char *driver = xformat("%s/device/driver", path);
    OWNED char *name = xformat("%s_driver", kind);
    OWNED char *found = link_of(driver);
    if (found != NULL && facts_text(f, name)[0] == '\0') {
        for (size_t i = 0; i < 2; i++) {
            OWNED char *id = xformat("%s/device/%s", path, parts[i]);
            OWNED char *id_name = xformat("%s_%s_id", kind, parts[i]);
            add(f, id_name, line_of(id), false);
        }
        add(f, name, xstrdup(found), false);
    }
}

static void read_accelerator(struct facts *f, const char *path)
{
    read_driver(f, path, "npu");
}

static void read_card(struct facts *f, const char *path)
{
    read_driver(f, path, "gpu");
}

/* Adds the properties of OpenVINO's devices that the engine lists. */
static void read_devices(struct facts *f)
{
    SCOPED(err_fini) struct err none = ERR_INIT;
    char why[ENGINE_MESSAGE_BYTES];
    const struct engine_bench_ops *ops = engine_bench_find(&none);
    void *bench = ops == NULL ? NULL : ops->open(1, NULL, why);
    struct engine_bench_device devices[MAX_DEVICES];
    uint32_t n = bench == NULL ? 0 : ops->devices(bench, devices, MAX_DEVICES);
    if (bench != NULL) {
        add(f, "openvino", xstrdup(ops->version), false);
    }
    for (uint32_t i = 0; i < n && i < MAX_DEVICES; i++) {
        struct engine_fact facts[MAX_FACTS];
        uint32_t n_facts = ops->facts(bench, devices[i].name, facts, MAX_FACTS);
        for (uint32_t k = 0; k < n_facts; k++) {
            OWNED char *name = xformat("%s.%s", devices[i].name, facts[k].name);
            add(f, name, xstrdup(facts[k].value), false);
        }
    }
    if (bench != NULL) {
        ops->close(bench);
    }
}

void facts_read(struct facts *f)
{
    *f = (struct facts){0};
    read_names(f);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        add(f, lines[i].name,
            lines[i].key != NULL ? keyed(lines[i].path, lines[i].key) : line_of(lines[i].path),
            false);
    }
    add_number(f, "processors", (double)sysconf(_SC_NPROCESSORS_ONLN));
    read_memory(f);
    each(f, "/sys/class/power_supply", read_supply);
    each(f, "/sys/class/powercap", read_limits);
    each(f, "/sys/class/accel", read_accelerator);
    each(f, "/sys/class/drm", read_card);
    read_devices(f);
}

/* ---- out ---- */

void facts_document(const struct facts *f, struct document *d)
{
    static const struct frame_column columns[] = {{.name = "fact", .kind = FRAME_TEXT},
                                                  {.name = "value", .kind = FRAME_TEXT}};
    struct frame *t = DOCUMENT_FRAME(d, "facts", 0, columns);
    for (size_t i = 0; i < f->n; i++) {
        FRAME_ROW(t, (const char *)f->v[i].name, (const char *)f->v[i].text);
    }
}

cJSON *facts_json(const struct facts *f)
{
    cJSON *o = cJSON_CreateObject();
    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].number) {
            (void)cJSON_AddNumberToObject(o, f->v[i].name, strtod(f->v[i].text, NULL));
        } else {
            (void)cJSON_AddStringToObject(o, f->v[i].name, f->v[i].text);
        }
    }
    return o;
}

char *facts_scrub(const struct facts *f, const char *text)
{
    const char *home = getenv("HOME");
    size_t n_home = home == NULL ? 0 : strlen(home);
    struct text out = {0};
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        n += at[n] == '\n';
        OWNED char *line = xformat("%.*s", (int)n, at);
        line = line[0] == '#' ? without_names(f, line) : line;
        for (char *from = line; *from != '\0';) {
            bool here = n_home > 1 && strncmp(from, home, n_home) == 0;
            text_add(&out, here ? "~" : from, 1);
            from += here ? n_home : 1;
        }
        at += n;
    }
    return text_end(&out);
}

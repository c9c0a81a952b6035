#include "hwmodels/metered.h"

#include <errno.h>
#include <string.h>

#include "hwmodels/soc.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

const char *const *soc_meter_names(void)
{
    static const char *const names[] = {"unstated", "rail", "package", "board",
                                        "battery",  "wall", NULL};
    return names;
}

#define M struct metered
#define DEVICE(id, key, one)                                                                       \
    ,                                                                                              \
    {                                                                                              \
        JSON_QUANTITY(M, joules_per_byte[DEVICE_KIND_##id], key, "pJ/B", 0.0, 1e6, 1e-12,          \
                      "Energy above idle of a byte that such a device reads in decode."),          \
            JSON_DEFAULT(-1.0)                                                                     \
    }
static const struct json_field metered_rows[] = {
    {JSON_CHOICE(M, meter, "meter", soc_meter_names, "Meter that the numbers are of.")},
    {JSON_QUANTITY(M, idle_watts, "idle", "W", 0.0, 1e4, 1.0,
                   "Power at rest; by default the machine's idle_power."),
     JSON_DEFAULT(-1.0)} DEVICE_KINDS(DEVICE),
    {JSON_QUANTITY(M, factor, "factor", "1", 1e-2, 1e2, 1.0,
                   "This machine's readings over what the other numbers give."),
     JSON_DEFAULT(1.0)},
    {JSON_QUANTITY(M, spread_factor, "spread", "1", 1.0, 1e2, 1.0,
                   "Factor within which 95 % of readings are.")},
    {JSON_TEXT(M, machines, "machines", "Beginnings of the names of machines that share these."),
     JSON_DEFAULT(0.0)},
};
#undef M
const struct json_fields metered_fields = JSON_FIELDS(metered_rows, NULL);

static bool read_behind_the_package(const struct soc *soc)
{
    bool behind = false;
    for (uint32_t i = 0; i < soc->machine.n_devices; i++) {
        behind = behind || soc->devices[i].meter > SOC_METER_PACKAGE;
    }
    return behind;
}

/* Whether the name, or that of the machine it was made from, begins with one of the words. */
static bool is_among(const struct soc *soc, const char *words)
{
    bool among = false;
    for (const char *w = words; *w != '\0'; w += strspn(w, " ")) {
        size_t n = strcspn(w, " ");
        among = among || strncmp(soc->machine.name, w, n) == 0 || strncmp(soc->like, w, n) == 0;
        w += n;
    }
    return among;
}

int metered_complete(struct soc *soc, struct err *e)
{
    if (soc->metered.meter != SOC_METER_UNSTATED || read_behind_the_package(soc)) {
        return 0;
    }
    const char *path = datadir_path("hwmodels/metered.json");
    size_t before = e->n;
    cJSON *root = json_read_file(path, e);
    if (root != NULL) {
        struct json_obj o = json_root(root, path, e);
        struct metered shared = {0};
        json_fields_read(&o, &metered_fields, &shared, NULL);
        json_done(&o);
        cJSON_Delete(root);
        soc->metered = is_among(soc, shared.machines) ? shared : soc->metered;
    }
    return e->n == before ? 0 : -EINVAL;
}

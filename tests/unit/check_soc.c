/* SoC and LLM files: what the shipped ones mean, and that no damaged one gets through. */
#include "hwmodels/soc.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static bool says(const struct err *e, const char *text)
{
    for (size_t i = 0; i < e->n && i < ERR_MAX_LINES; i++) {
        if (strstr(e->lines[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

static cJSON *tree(const char *path)
{
    struct err e = ERR_INIT;
    cJSON *root = json_read_file(path, &e);
    ck_assert_msg(root != NULL, "%s", e.n > 0 ? e.lines[0] : path);
    return root;
}

static cJSON *soc_tree(const char *name)
{
    return tree(soc_path(name));
}

static cJSON *llm_tree(const char *name)
{
    return tree(llm_path(name));
}

static struct soc soc_of(const char *name)
{
    struct err e = ERR_INIT;
    struct soc soc;
    cJSON *root = soc_tree(name);
    ck_assert_int_eq(soc_parse(root, name, &soc, &e), 0);
    cJSON_Delete(root);
    return soc;
}

static struct llm llm_of(const char *name)
{
    struct err e = ERR_INIT;
    struct llm llm;
    cJSON *root = llm_tree(name);
    ck_assert_int_eq(llm_parse(root, name, &llm, &e), 0);
    cJSON_Delete(root);
    return llm;
}

/* ---- meaning ---- */

START_TEST(units_of_a_file_become_base_units)
{
    struct soc soc = soc_of("core-ultra-5-125h");
    const struct machine *m = &soc.machine;
    ck_assert_uint_eq(m->n_devices, 3);
    ck_assert_int_eq(machine_find(m, DEVICE_KIND_NPU), 0);
    ck_assert_int_eq(machine_find(m, DEVICE_KIND_IGPU), 1);
    ck_assert_int_eq(machine_find(m, DEVICE_KIND_CPU), 2);
    ck_assert_int_eq(machine_find(m, DEVICE_KIND_GPU), -1);
    ck_assert_double_eq_tol(m->ddr_peak_bytes_per_s, 89.6e9, 1.0); /* 2 x 8 B x 5.6 GT/s */
    ck_assert(m->ddr_cap_frac == 1.0 && soc.queueing_frac == 0.3);
    ck_assert_int_eq(m->sync_ns, 50000);                         /* 50 us */
    ck_assert_int_eq(m->schedule_ns, 2000);                      /* 2 us */
    ck_assert_int_eq(m->sample_ns_per_token, 100000);            /* 100 us */
    ck_assert_int_eq(m->compile_fixed_ns, 1500000000);           /* 1.5 s */
    ck_assert_double_eq_tol(m->compile_ns_per_token, 5e5, 1e-6); /* 0.5 ms */
    ck_assert_double_eq_tol(m->loader_bytes_per_s, 0.8e9, 1e-3);
    ck_assert_int_eq(m->loader_fixed_ns, 100000000); /* 0.1 s */
    ck_assert_double_eq(m->memory_bytes, 64e9);
    ck_assert_double_eq(m->compile_watts, 12.0);
    ck_assert_double_eq(m->devices[1].prefill_watts, 31.0);
    ck_assert_double_eq(m->devices[1].decode_watts, 25.0);
    ck_assert_int_eq(m->devices[0].submit_ns, 10000); /* 10 us */
    ck_assert_uint_eq(m->devices[0].chunk_rows, 256);
    const struct soc_runtime *npu = &soc.devices[0].runtimes[0];
    ck_assert_double_eq(npu->many.flop_per_s, 3e12);
    ck_assert_double_eq(npu->many.bytes_per_s, 43e9);
    ck_assert_double_eq_tol(npu->many.launch_s, 250e-6, 1e-18);
}
END_TEST

/* The engines' weights of the form `weighted` are data of the machine. They are equal where the
 * file states none. */
START_TEST(a_device_has_a_weight_in_the_ddr)
{
    cJSON *root = soc_tree("core-ultra-5-125h");
    cJSON *igpu = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 1);
    cJSON *weight = cJSON_Duplicate(cJSON_GetObjectItem(igpu, "shared_efficiency"), true);
    (void)cJSON_AddItemToObject(igpu, "ddr_weight", weight);
    struct err e = ERR_INIT;
    struct soc soc;
    ck_assert_int_eq(json_set_path(root, "devices.igpu.ddr_weight", "3", &e), 0);
    ck_assert_int_eq(soc_parse(root, "test", &soc, &e), 0);
    ck_assert_double_eq(soc.machine.devices[1].ddr_weight, 3.0);
    ck_assert_double_eq(soc.machine.devices[0].ddr_weight, 1.0);
    ck_assert_int_eq(json_set_path(root, "devices.igpu.ddr_weight", "0", &e), 0);
    ck_assert_int_eq(soc_parse(root, "test", &soc, &e), -EINVAL);
    ck_assert(says(&e, "devices[1].ddr_weight.value: must be a number from 0.001 to 1000"));
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

START_TEST(a_model_file_gives_weights_and_kv_bytes)
{
    /* In one layer of Llama 3.2 3B, QKV has 3072 (3072 + 2 8 128) = 15 728 640 and O 3072 3072 =
     * 9 437 184. FFN has 3 3072 8192 = 75 497 472, so all have 100 663 296. 28 layers have 2 818
     * 572 288. The head has 3072 128256 = 394 002 432, tied, so it is stored once. Each has 1.01
     * bytes. */
    struct llm small = llm_of("llama-3.2-3b");
    ck_assert_double_eq(small.body_weights, 2818572288.0);
    ck_assert_double_eq(small.head_weights, 394002432.0);
    ck_assert_double_eq_tol(small.weight_bytes, (2818572288.0 + 394002432.0) * 1.01, 1.0);
    ck_assert_double_eq(small.kv_bytes_per_token, 57344.0); /* 2 28 8 128, 1 byte */
    /* A layer of Llama 3.1 8B has 4096 6144 + 4096 4096 + 3 4096 14336 = 218 103 808, and 32 layers
     * 6 979 321 856. The head has 4096 128256 = 525 336 576, and is not tied: an embedding of equal
     * size is resident too. */
    struct llm big = llm_of("llama-3.1-8b");
    ck_assert_double_eq(big.body_weights, 6979321856.0);
    ck_assert_double_eq(big.head_weights, 525336576.0);
    ck_assert_double_eq_tol(big.weight_bytes, (6979321856.0 + 2 * 525336576.0) * 1.01, 1.0);
    ck_assert_double_eq(big.kv_bytes_per_token, 65536.0); /* 2 32 8 128 */
}
END_TEST

START_TEST(a_mixture_of_experts_stores_all_and_crosses_some)
{
    struct err e = ERR_INIT;
    cJSON *root = llm_tree("llama-3.2-3b");
    cJSON_AddNumberToObject(root, "experts", 8);
    cJSON_AddNumberToObject(root, "experts_per_token", 2);
    struct llm m;
    ck_assert_int_eq(llm_parse(root, "moe", &m, &e), 0);
    /* A layer has 25 165 824 of attention and experts of 75 497 472, of which it crosses 2 and
     * stores 8. */
    ck_assert_double_eq(m.body_weights, 28.0 * (25165824.0 + 2 * 75497472.0));
    ck_assert_double_eq_tol(m.weight_bytes,
                            (28.0 * (25165824.0 + 8 * 75497472.0) + 394002432.0) * 1.01, 10.0);
    cJSON_Delete(root);
}
END_TEST

START_TEST(a_width_without_an_entry_takes_the_default_and_says_so)
{
    struct soc soc = soc_of("core-ultra-5-125h");
    enum soc_match match = SOC_MATCH_OTHER;
    const struct soc_device *igpu = &soc.devices[1];
    ck_assert_uint_eq(igpu->runtimes[soc_runtime_find(igpu, NULL, 4, &match)].weight_bits, 4);
    ck_assert_int_eq(match, SOC_MATCH_EXACT);
    ck_assert_uint_eq(
        igpu->runtimes[soc_runtime_find(igpu, "openvino-2025", 16, &match)].weight_bits, 16);
    ck_assert_int_eq(match, SOC_MATCH_EXACT);
    /* Another runtime gets the default's entry at this width. */
    uint32_t r = soc_runtime_find(igpu, "llama.cpp", 4, &match);
    ck_assert_int_eq(match, SOC_MATCH_OTHER);
    ck_assert_uint_eq(igpu->runtimes[r].weight_bits, 4);
    ck_assert_str_eq(igpu->runtimes[r].runtime, igpu->runtimes[igpu->fallback].runtime);
    /* A later version gets the entry of one that is there. */
    r = soc_runtime_find(igpu, "openvino-2025.3", 16, &match);
    ck_assert_int_eq(match, SOC_MATCH_EXACT);
    ck_assert_uint_eq(igpu->runtimes[r].weight_bits, 16);
    ck_assert_uint_eq(soc_runtime_find(igpu, NULL, 2, &match), igpu->fallback);
    ck_assert_int_eq(match, SOC_MATCH_OTHER);
    ck_assert_uint_eq(igpu->runtimes[igpu->fallback].weight_bits, 8);
}
END_TEST

static const char *found(const struct soc_device *d, const char *runtime, enum soc_match want)
{
    enum soc_match match;
    uint32_t r = soc_runtime_find(d, runtime, 4, &match);
    ck_assert_int_eq(match, want);
    return d->runtimes[r].runtime;
}

/* The 288V's GPU has OpenVINO 2024 (its default), 2025, and a static build of 2026.1. 2026.0 is one
 * year from 2025 and two from 2024. Builds of 2026.1 are no versions of each other. */
START_TEST(the_nearest_version_of_a_toolchain_stands_in)
{
    struct soc soc = soc_of("core-ultra-9-288v");
    const struct soc_device *d = &soc.devices[1];
    ck_assert_str_eq(found(d, "openvino-2026.0", SOC_MATCH_VERSION), "openvino-2025");
    ck_assert_str_eq(found(d, "openvino-2026.2-static-chunk64", SOC_MATCH_VERSION),
                     "openvino-2026.1-static-chunk64");
    ck_assert_str_eq(found(d, "openvino-2026.1-static-chunk128", SOC_MATCH_OTHER), "openvino-2024");
    ck_assert_str_eq(found(d, "openvino-genai-2025.4", SOC_MATCH_OTHER), "openvino-2024");
    ck_assert_str_eq(found(d, "ipex-llm-2.2", SOC_MATCH_OTHER), "openvino-2024");
    /* a third number counts a hundredth of the second: 0.9.30 is nearer to 0.9.33 than to 0.8 */
    struct soc_device flm = *d;
    flm.n_runtimes = 2;
    flm.fallback = 0;
    flm.runtimes[0] = (struct soc_runtime){.runtime = "flm-0.8", .weight_bits = 4};
    flm.runtimes[1] = (struct soc_runtime){.runtime = "flm-0.9.33", .weight_bits = 4};
    ck_assert_str_eq(found(&flm, "flm-0.9.30", SOC_MATCH_VERSION), "flm-0.9.33");
}
END_TEST

static void count_kinds(const cJSON *node, uint32_t n[QUANTITY_KINDS])
{
    static const char *const kinds[] = {"measured", "fitted", "assumed", "datasheet"};
    const cJSON *kind = cJSON_GetObjectItem(node, "kind");
    for (int i = 0; i < QUANTITY_KINDS && cJSON_HasObjectItem(node, "unit"); i++) {
        n[i] += strcmp(kind->valuestring, kinds[i]) == 0;
    }
    for (const cJSON *c = node->child; c != NULL; c = c->next) {
        count_kinds(c, n);
    }
}

START_TEST(every_number_is_counted_under_its_kind)
{
    struct soc soc = soc_of("core-ultra-5-125h");
    uint32_t n[QUANTITY_KINDS] = {0};
    cJSON *root = soc_tree("core-ultra-5-125h");
    count_kinds(root, n);
    for (int i = 0; i < QUANTITY_KINDS; i++) {
        ck_assert_uint_gt(n[i], 0);
        ck_assert_uint_eq(soc.n_numbers[i], n[i]);
    }
    cJSON_Delete(root);
}
END_TEST

static int load_soc(const cJSON *root, struct err *e)
{
    struct soc soc;
    return soc_parse(root, "f", &soc, e);
}

/* Attention runs in FP16, so its rate is at most the FP16 peak, in the four digits of a file. */
static int load_soc_with_possible_attention(const cJSON *root, struct err *e)
{
    struct soc soc;
    int rc = soc_parse(root, "f", &soc, e);
    for (uint32_t d = 0; rc == 0 && d < soc.machine.n_devices; d++) {
        for (uint32_t i = 0; i < soc.devices[d].n_runtimes; i++) {
            const struct soc_runtime *r = &soc.devices[d].runtimes[i];
            double rate = r->attention_frac * r->many.flop_per_s;
            if (rate > 1.001 * soc.devices[d].peak_flop_per_s) {
                rc = err_add(e, "%s %s %u bits: attention at %.3g of a peak of %.3g flop/s",
                             soc.machine.devices[d].name, r->runtime, r->weight_bits, rate,
                             soc.devices[d].peak_flop_per_s);
            }
        }
    }
    return rc;
}

static int load_llm(const cJSON *root, struct err *e)
{
    struct llm llm;
    return llm_parse(root, "f", &llm, e);
}

static void load_all(const char *folder, int (*load)(const cJSON *, struct err *))
{
    const char *dir = datadir_path(folder);
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    int n = 0;
    for (struct dirent *f = readdir(d); f != NULL; f = readdir(d)) {
        if (strstr(f->d_name, ".json") == NULL) {
            continue;
        }
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
        struct err e = ERR_INIT;
        cJSON *root = tree(path);
        ck_assert_msg(load(root, &e) == 0, "%s: %s", f->d_name, e.n > 0 ? e.lines[0] : "");
        /* a file is called what it says it is */
        const char *name = cJSON_GetObjectItem(root, "name")->valuestring;
        ck_assert_msg(strncmp(name, f->d_name, strlen(name)) == 0 &&
                          strlen(name) + 5 == strlen(f->d_name),
                      "%s is named %s", f->d_name, name);
        cJSON_Delete(root);
        n++;
    }
    closedir(d);
    ck_assert_int_gt(n, 1);
}

START_TEST(every_shipped_file_loads_and_bears_its_name)
{
    load_all("hwmodels/soc", load_soc);
    load_all("hwmodels/llm", load_llm);
}
END_TEST

START_TEST(no_file_has_attention_above_the_peak)
{
    load_all("hwmodels/soc", load_soc_with_possible_attention);
}
END_TEST

START_TEST(a_name_is_a_shipped_file_and_a_path_is_itself)
{
    ck_assert_str_eq(soc_path("x.json"), "x.json");
    ck_assert_str_eq(soc_path("dir/x"), "dir/x");
    const char *p = llm_path("llama-3.2-3b");
    const char *tail = "hwmodels/llm/llama-3.2-3b.json";
    ck_assert_str_eq(p + strlen(p) - strlen(tail), tail);
}
END_TEST

/* ---- damage ---- */

static bool in_list(const char *key, const char *const *list)
{
    for (int i = 0; list[i] != NULL; i++) {
        if (strcmp(key, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Optional keys; `default` may be missing where a device has one entry. */
static const char *const optional[] = {"note",
                                       "npu_extrapolated",
                                       "package",
                                       "one_row",
                                       "knee",
                                       "decode_batch_inefficiency",
                                       "low",
                                       "min_rows",
                                       "high",
                                       "pad_attention",
                                       "window",
                                       "default",
                                       "valid",
                                       "family",
                                       "fit",
                                       "start",
                                       "width_fill",
                                       "enqueue",
                                       "chunk_rows",
                                       "body_bytes",
                                       "head_bytes",
                                       "kv_bytes",
                                       "kv_gather",
                                       "decode_attention",
                                       "attention_launches",
                                       "fused_launches",
                                       "queueing",
                                       "cores",
                                       "likely",
                                       NULL};

static void must_fail(const cJSON *root, int (*load)(const cJSON *, struct err *), const char *key,
                      const char *what)
{
    struct err e = ERR_INIT;
    ck_assert_msg(load(root, &e) == -EINVAL && e.n > 0 && says(&e, key), "%s of %s: %s", what, key,
                  e.n > 0 ? e.lines[0] : "taken");
    err_fini(&e);
}

/* Damages every member of every object below node, one at a time, and puts it back. */
static uint32_t damage(cJSON *root, cJSON *node, int (*load)(const cJSON *, struct err *))
{
    uint32_t n = 0;
    for (cJSON *c = node->child; c != NULL; c = c->next) {
        n += damage(root, c, load);
        if (c->string == NULL) {
            continue;
        }
        int type = c->type; /* a null instead of the value */
        c->type = cJSON_NULL;
        must_fail(root, load, c->string, "null");
        c->type = type;
        char *name = c->string; /* a key with a misprint: unknown, and missing if required */
        char misprint[] = "x-misprint";
        c->string = misprint;
        must_fail(root, load, "x-misprint: unknown key", "misprint");
        if (!in_list(name, optional)) {
            must_fail(root, load, name, "absence");
        }
        c->string = name;
        n++;
    }
    return n;
}

START_TEST(no_member_of_a_soc_file_can_be_damaged_unnoticed)
{
    cJSON *root = soc_tree("core-ultra-5-125h");
    ck_assert_uint_gt(damage(root, root, load_soc), 300); /* about 400 members */
    struct err e = ERR_INIT;
    ck_assert_int_eq(load_soc(root, &e), 0); /* all put back */
    cJSON_Delete(root);
}
END_TEST

START_TEST(no_member_of_a_model_file_can_be_damaged_unnoticed)
{
    cJSON *root = llm_tree("llama-3.1-8b");
    ck_assert_uint_gt(damage(root, root, load_llm), 20);
    struct err e = ERR_INIT;
    ck_assert_int_eq(load_llm(root, &e), 0);
    cJSON_Delete(root);
}
END_TEST

struct fault {
    const char *path, *value, *line;
};

static void refuse_all(const struct fault *f, size_t n, cJSON *(*make)(const char *),
                       const char *name, int (*load)(const cJSON *, struct err *))
{
    for (size_t i = 0; i < n; i++) {
        struct err e = ERR_INIT;
        cJSON *root = make(name);
        ck_assert_int_eq(json_set_path(root, f[i].path, f[i].value, &e), 0);
        /* an override widens the range of a quantity: a value out of bounds takes an end along */
        bool both = strstr(f[i].line, ".value") != NULL;
        ck_assert_msg(load(root, &e) == -EINVAL && e.n == (both ? 2 : 1) && says(&e, f[i].line),
                      "%s=%s: %zu lines: %s", f[i].path, f[i].value, e.n,
                      e.n > 0 ? e.lines[0] : "taken");
        err_fini(&e);
        cJSON_Delete(root);
    }
}

START_TEST(values_without_meaning_are_refused)
{
    static const struct fault soc[] = {
        {"format", "2", "format: must be a whole number from 1 to 1"},
        {"ddr.together", "1.1", "ddr.together.value: must be a number from 0.1 to 1"},
        {"memory.usable", "0", "memory.usable.value"},
        {"host.sync", "-1", "host.sync.value"},
        {"devices.npu.kind", "tpu", "devices[0].kind: must be one of npu, igpu, cpu, gpu"},
        {"devices.npu.inflight_depth", "0", "devices[0].inflight_depth"},
        {"devices.npu.max_shared", "17", "devices[0].max_shared"}, /* MACHINE_MAX_SHARED 16 */
        {"devices.npu.chunk_rows", "0.5", "devices[0].chunk_rows: must be a whole number"},
        {"devices.igpu.runtimes.0.rate", "0", "devices[1].runtimes[0].rate.value"},
        {"devices.igpu.runtimes.0.weight_bits", "0", "devices[1].runtimes[0].weight_bits"},
        {"devices.igpu.name", "an engine with a long name", "devices[1].name: longer than 15"},
        /* what no single key can get wrong */
        {"loader.bandwidth", "90", "loader: a bandwidth above ddr.peak"},
        {"loader.swap_bandwidth", "90", "loader: a bandwidth above ddr.peak"},
        {"devices.igpu.runtimes.0.bandwidth", "90",
         "devices[1].runtimes[0].bandwidth: above ddr.peak (`xpusim new-soc --ddr-peak` scales"},
        /* 90 > 89.6 */
        {"devices.cpu.name", "npu", "devices[2].name: \"npu\" is given twice"},
        {"devices.npu.kind", "cpu", "devices[1].kind: a igpu comes before a cpu"},
        {"devices.igpu.runtimes.1.weight_bits", "8",
         "devices[1].runtimes[1]: \"openvino-2025\" with 8 bits is given twice"},
        {"devices.igpu.runtimes.0.default", "false",
         "devices[1].runtimes: 0 entries say \"default\": true, must be 1"},
        {"package.pl1", "120", "package.pl2: must be at least package.pl1"}, /* pl2 115 */
    };
    refuse_all(soc, sizeof soc / sizeof soc[0], soc_tree, "core-ultra-5-125h", load_soc);
    static const struct fault llm[] = {
        {"kv_heads", "5", "heads must be a multiple of kv_heads"}, /* 32 / 5 */
        {"layers", "0", "layers: must be a whole number from 1"},
        {"source", "", "source: must say where"},
        {"name", "0123456789012345678901234567890123456789012345678901234567890123",
         "name: longer than 63"}, /* 64 characters */
    };
    refuse_all(llm, sizeof llm / sizeof llm[0], llm_tree, "llama-3.1-8b", load_llm);
}
END_TEST

START_TEST(a_second_default_is_refused)
{
    struct err e = ERR_INIT;
    cJSON *root = soc_tree("core-ultra-5-125h");
    cJSON *igpu = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 1);
    cJSON *second = cJSON_GetArrayItem(cJSON_GetObjectItem(igpu, "runtimes"), 1);
    cJSON_AddTrueToObject(second, "default");
    ck_assert_int_eq(load_soc(root, &e), -EINVAL);
    ck_assert(says(&e, "devices[1].runtimes: 2 entries say \"default\": true"));
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

START_TEST(a_one_row_curve_is_read_and_bounded_too)
{
    struct err e = ERR_INIT;
    struct soc soc;
    cJSON *root = soc_tree("core-ultra-5-125h");
    cJSON *npu = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 0);
    cJSON *entry = cJSON_GetArrayItem(cJSON_GetObjectItem(npu, "runtimes"), 0);
    cJSON *one = cJSON_AddObjectToObject(entry, "one_row");
    static const char *const keys[] = {"rate", "bandwidth", "launch"};
    for (int i = 0; i < 3; i++) {
        cJSON_AddItemToObject(one, keys[i],
                              cJSON_Duplicate(cJSON_GetObjectItem(entry, keys[i]), 1));
    }
    ck_assert_int_eq(json_set_path(root, "devices.npu.runtimes.0.one_row.bandwidth", "20", &e), 0);
    ck_assert_int_eq(soc_parse(root, "f", &soc, &e), 0);
    ck_assert_double_eq(soc.devices[0].runtimes[0].one.bytes_per_s, 20e9);
    ck_assert_double_eq(soc.devices[0].runtimes[0].many.bytes_per_s, 43e9);
    ck_assert_int_eq(json_set_path(root, "devices.npu.runtimes.0.one_row.bandwidth", "90", &e), 0);
    ck_assert_int_eq(soc_parse(root, "f", &soc, &e), -EINVAL); /* 90 > 89.6 */
    ck_assert(says(&e, "devices[0].runtimes[0].bandwidth: above ddr.peak"));
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

START_TEST(more_experts_per_token_than_experts_are_refused)
{
    struct err e = ERR_INIT;
    cJSON *root = llm_tree("llama-3.2-3b");
    cJSON_AddNumberToObject(root, "experts", 4);
    cJSON_AddNumberToObject(root, "experts_per_token", 5);
    ck_assert_int_eq(load_llm(root, &e), -EINVAL);
    ck_assert(says(&e, "experts_per_token at most"));
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

START_TEST(errors_all_over_a_file_come_together)
{
    struct err e = ERR_INIT;
    cJSON *root = soc_tree("core-ultra-5-125h");
    ck_assert_int_eq(json_set_path(root, "ddr.together", "2", &e), 0);
    ck_assert_int_eq(json_set_path(root, "devices.npu.sharing", "mixed", &e), 0);
    ck_assert_int_eq(json_set_path(root, "devices.cpu.runtimes.0.attention", "0", &e), 0);
    cJSON_AddNumberToObject(root, "colour", 3);
    ck_assert_int_eq(load_soc(root, &e), -EINVAL);
    ck_assert(says(&e, "f: ddr.together.value"));
    ck_assert(says(&e, "f: devices[0].sharing"));
    ck_assert(says(&e, "f: devices[2].runtimes[0].attention.value"));
    ck_assert(says(&e, "f: colour: unknown key"));
    ck_assert_uint_eq(e.n, 6); /* the two quantities also name the end of the range that followed */
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

/* Each ability of a device is a member of its file, and a runtime without a knee has 1.2. The test
 * inverts each one. */
START_TEST(each_ability_is_read_from_its_own_member)
{
    static const char *const members[] = {"static_attention", "can_withdraw", "can_reset",
                                          "can_suspend"};
    for (int i = 0; i < 4; i++) {
        for (int on = 0; on < 2; on++) {
            struct err e = ERR_INIT;
            struct soc soc;
            cJSON *root = soc_tree("core-ultra-5-125h");
            cJSON *device = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 0);
            for (int k = 0; k < 4; k++) {
                ck_assert(cJSON_ReplaceItemInObjectCaseSensitive(
                    device, members[k], cJSON_CreateBool(k == i ? on == 1 : on == 0)));
            }
            ck_assert_int_eq(soc_parse(root, "test", &soc, &e), 0);
            const struct device *d = &soc.machine.devices[0];
            const bool got[] = {d->static_attention, d->can_withdraw, d->can_reset, d->can_suspend};
            for (int k = 0; k < 4; k++) {
                ck_assert_msg(got[k] == (k == i ? on == 1 : on == 0), "%s", members[k]);
            }
            ck_assert_double_eq(soc.devices[0].runtimes[0].knee, 1.2);
            cJSON_Delete(root);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(units_of_a_file_become_base_units),
    TEST(a_device_has_a_weight_in_the_ddr),
    TEST(a_model_file_gives_weights_and_kv_bytes),
    TEST(a_mixture_of_experts_stores_all_and_crosses_some),
    TEST(a_width_without_an_entry_takes_the_default_and_says_so),
    TEST(the_nearest_version_of_a_toolchain_stands_in),
    TEST(every_number_is_counted_under_its_kind),
    TEST(every_shipped_file_loads_and_bears_its_name),
    TEST(no_file_has_attention_above_the_peak),
    TEST(each_ability_is_read_from_its_own_member),
    TEST(a_name_is_a_shipped_file_and_a_path_is_itself),
    TEST(no_member_of_a_soc_file_can_be_damaged_unnoticed),
    TEST(no_member_of_a_model_file_can_be_damaged_unnoticed),
    TEST(values_without_meaning_are_refused),
    TEST(a_second_default_is_refused),
    TEST(a_one_row_curve_is_read_and_bounded_too),
    TEST(more_experts_per_token_than_experts_are_refused),
    TEST(errors_all_over_a_file_come_together),
};
SUITE_MAIN("soc", suite)

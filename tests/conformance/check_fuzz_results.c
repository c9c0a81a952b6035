/* Results that commands read again against thousands of damaged versions: tests/helpers/fuzz.h. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/gate/gate.h"
#include "experiments/sweep/store.h"
#include "hwmodels/kernel_rows.h"
#include "hwmodels/speculation_data.h"
#include "plots/figure.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "tests/helpers/fuzz.h"

/* What a figure reads, up to the data it would draw. */
static int prepare(const char *figure, struct err *e)
{
    struct figure_request q = {.n_inputs = 0};
    struct figure_data d;
    (void)figure_input_add(&q, fuzz_path, e);
    figure_data_init(&d);
    int rc = figure_find(figure)->prepare(&q, &d, e);
    figure_data_fini(&d);
    return rc;
}

static int parse_comparison(struct err *e)
{
    return prepare("pareto", e);
}

static int parse_kernels(struct err *e)
{
    return prepare("roofline", e);
}

static int parse_pairs(struct err *e)
{
    return prepare("corun", e);
}

static int parse_gantt(struct err *e)
{
    return prepare("gantt", e);
}

static int parse_queue(struct err *e)
{
    return prepare("queue", e);
}

static int parse_causes(struct err *e)
{
    return prepare("causes", e);
}

static int parse_study(struct err *e)
{
    (void)figure_kinds_of(fuzz_path);
    return prepare("chunk", e);
}

static int parse_baseline(struct err *e)
{
    struct gate_baseline b;
    int rc = gate_baseline_read(fuzz_path, &b, e);
    gate_baseline_fini(&b);
    return rc;
}

static int parse_rows(struct err *e)
{
    struct kernel_rows r;
    kernel_rows_init(&r);
    int rc = kernel_rows_read(&r, fuzz_path, e);
    kernel_rows_fini(&r);
    return rc;
}

/* The shipped folder of speculation data with one file of it damaged. */
static const char *const speculation_files[] = {"ablation.csv", "acceptance.csv", "constants.json",
                                                "rejection_causes.csv"};
static const char *damaged_file;

static void folder_of(char *out, size_t size)
{
    (void)snprintf(out, size, "fuzz-%ld.d", (long)getpid());
}

static void folder_remove(const char *dir)
{
    char file[128];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(file, sizeof file, "%s/%s", dir, speculation_files[i]);
        (void)remove(file);
    }
    (void)rmdir(dir);
}

static int parse_speculation(struct err *e)
{
    static struct speculation_data data;
    char dir[64];
    char link_name[128];
    char target[4200];
    char shipped[4096];
    folder_of(dir, sizeof dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    for (int i = 0; i < 4; i++) {
        bool damaged = strcmp(speculation_files[i], damaged_file) == 0;
        char name[96];
        (void)snprintf(name, sizeof name, "%s/%s", SPECULATION_DIR, speculation_files[i]);
        (void)snprintf(link_name, sizeof link_name, "%s/%s", dir, speculation_files[i]);
        if (damaged) {
            (void)snprintf(target, sizeof target, "../%s", fuzz_path);
        } else {
            const char *from = datadir_path(shipped, sizeof shipped, name);
            (void)snprintf(target, sizeof target, "%s%s", from[0] == '/' ? "" : "../", from);
        }
        ck_assert_int_eq(symlink(target, link_name), 0);
    }
    int rc = speculation_data_read(dir, &data, e);
    folder_remove(dir);
    return rc;
}

/* A store is a database file: damage is found by SQLite or by what is read. */
static int parse_store(struct err *e)
{
    struct store *s = store_open(fuzz_path, STORE_USE_READ, e);
    if (s == NULL) {
        return -1;
    }
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    store_export_csv(s, 0, out);
    (void)fclose(out);
    (void)store_close(s, e);
    return e->n > 0 ? -1 : 0;
}

START_TEST(inputs_of_figures_survive_damage)
{
    static const char comparison[] =
        "{\"config\":{\"soc\":{\"name\":\"s\"}},\"capacity_req_per_min\":9,\"loads\":[{\"load\":0."
        "5,"
        "\"policies\":{\"fcfs\":{\"proactive.throughput_req_per_min\":{\"mean\":3,\"low\":2,"
        "\"high\":4,\"n\":2},\"reactive.e2e_s.mean\":{\"mean\":3,\"low\":null,\"high\":4}}}}]}";
    fuzz(comparison, sizeof comparison - 1, parse_comparison, 10);
    static const char sweep[] = "policy,rate,proactive.throughput_req_per_min,reactive.e2e_s.mean\n"
                                "a,1,2,3\na,2,3,4\nb,1,2,3\n";
    fuzz(sweep, sizeof sweep - 1, parse_comparison, 11);
    static const char kernels[] =
        "{\"kernels\":[{\"device\":\"npu\",\"op\":\"QKV\",\"work\":\"w\",\"flop_per_s\":1e12,"
        "\"flop_per_byte\":9}],\"roofs\":[{\"device\":\"npu\",\"flop_per_s\":1e12,"
        "\"bytes_per_s\":1e10}]}";
    fuzz(kernels, sizeof kernels - 1, parse_kernels, 12);
    static const char pairs[] = "victim,aggressor,slowdown\na,b,1.5\nb,a,1.25\n";
    fuzz(pairs, sizeof pairs - 1, parse_pairs, 13);
    static const char timeline[] =
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"npu\"}},\n"
        "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":5.0,\"name\":\"decode of pass 1\",\"args\":"
        "{\"sequences\":2,\"class\":\"reactive\"}},\n"
        "{\"ph\":\"C\",\"pid\":1,\"tid\":0,\"ts\":5.0,\"name\":\"live requests\",\"args\":"
        "{\"reactive\":1,\"proactive\":2}},\n"
        "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":7.5,\"name\":\"preempt asked\"},\n"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":9.0}\n]}\n";
    fuzz(timeline, sizeof timeline - 1, parse_gantt, 14);
    fuzz(timeline, sizeof timeline - 1, parse_queue, 15);
    static const char causes[] =
        "{\"interference\":{\"reactive\":{\"requests\":2,\"latency_s\":3,\"causes_s\":{\"compute\":"
        "1,"
        "\"held\":2},\"by\":{\"reactive\":{\"wait_s\":1,\"tail_s\":0}}},\"proactive\":{}}}";
    fuzz(causes, sizeof causes - 1, parse_causes, 16);
    static const char study[] =
        "study,device,what,x_name,x,metric,value,unit\nchunk,npu,p,rows,32,throughput,1,tok/s\n"
        "chunk,npu,p,rows,64,throughput,2,tok/s\nchunk,npu,p,rows,64,bound_kernel,2,ms\n";
    fuzz(study, sizeof study - 1, parse_study, 17);
}
END_TEST

START_TEST(baselines_survive_damage)
{
    static const char text[] =
        "{\"format\":1,\"groups\":[{\"name\":\"g\",\"soc\":\"core-ultra-5-125h\",\"llm\":"
        "\"llama-3.2-3b\",\"workload\":\"w1:n=2\",\"set\":[\"sim.truth_sigma=0\"],\"test\":"
        "\"fresh\","
        "\"seed\":1,\"replications\":2,\"tolerance\":0.01,\"policies\":[\"fcfs\"],\"metrics\":["
        "{\"name\":\"reactive.e2e_s.p90\",\"better\":\"lower\",\"tolerance\":0.02}]}],\"results\":["
        "]}";
    fuzz(text, sizeof text - 1, parse_baseline, 18);
    fuzz_shipped("experiments/gate/policies.json", parse_baseline, 19, 1 << 20);
}
END_TEST

START_TEST(measured_kernels_survive_damage)
{
    fuzz_shipped("hwmodels/measured/two-core-xeon-vm.csv", parse_rows, 20, 4000);
}
END_TEST

START_TEST(speculation_data_survive_damage)
{
    char dir[64];
    char name[96];
    folder_of(dir, sizeof dir);
    folder_remove(dir);
    for (uint64_t i = 0; i < 4; i++) {
        damaged_file = speculation_files[i];
        (void)snprintf(name, sizeof name, "%s/%s", SPECULATION_DIR, damaged_file);
        fuzz_shipped(name, parse_speculation, 21 + i, 1 << 20);
    }
}
END_TEST

START_TEST(stores_survive_damage)
{
    char own[64];
    struct err e = ERR_INIT;
    (void)snprintf(own, sizeof own, "fuzz-%ld.db", (long)getpid());
    (void)remove(own);
    struct store *s = store_open(own, STORE_USE_CREATE, &e);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(store_close(s, &e), 0);
    FILE *f = fopen(own, "rb");
    ck_assert_ptr_nonnull(f);
    char *text = xmalloc(1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    (void)fclose(f);
    (void)remove(own);
    fuzz(text, n, parse_store, 25);
    free(text);
    err_fini(&e);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fuzz results");
    TCase *t = tcase_create("parsers");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, inputs_of_figures_survive_damage);
    tcase_add_test(t, baselines_survive_damage);
    tcase_add_test(t, measured_kernels_survive_damage);
    tcase_add_test(t, speculation_data_survive_damage);
    tcase_add_test(t, stores_survive_damage);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Launches that have a part of an operator's weights (columns), by hand. QKV takes 4 ms on the iGPU
 * and 12 ms on the NPU, FFN 8 on both, and attention and the head 1. A part of the columns takes
 * that part of the time. The model has one layer. */
#include <errno.h>
#include <string.h>

#include "hwmodels/roofline.h"
#include "policies/registry.h"
#include "sim/core/kernels.h"
#include "tests/helpers/model.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct script x;

static void setup(void)
{
    memset(&x, 0, sizeof x);
    scenario_init(&sc);
    scenario_cost(&sc, IGPU, OP_QKV, 4, 0, 40);
    scenario_cost(&sc, NPU, OP_QKV, 12, 0, 40);
    scenario_cost(&sc, -1, OP_FFN, 8, 0, 40);
    scenario_cost(&sc, -1, OP_MHA, 1, 0, 10);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 10);
    scenario_cost(&sc, -1, OP_LAYER, 13, 0, 10);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static const struct scenario_request two_tokens[] = {
    {.cls = RT, .input_tokens = 8, .output_tokens = 2}};

static const struct scenario_kernel *decode_kernel(int device, enum op_kind op)
{
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->pass == 2 && k->device == device && k->op == op) {
            return k;
        }
    }
    return NULL;
}

/* QKV of a decode takes 3 ms: a quarter of 12 on the NPU, and three quarters of 4 on the iGPU. FFN
 * takes 4 ms in halves. With attention and the head that is 9 ms instead of 14. */
START_TEST(hetero_split_lets_both_end_together)
{
    scenario_policy(&sc, policy_find("hetero-split"), "decode=columns,split=false");
    ck_assert_msg(scenario_run(&sc, two_tokens, 1, true) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    const struct scenario_kernel *npu = decode_kernel(NPU, OP_QKV);
    const struct scenario_kernel *igpu = decode_kernel(IGPU, OP_QKV);
    ck_assert_ptr_nonnull(npu);
    ck_assert_ptr_nonnull(igpu);
    ck_assert_int_eq(npu->begin_ns, igpu->begin_ns);
    ck_assert_int_eq(npu->end_ns - npu->begin_ns, MS(3));
    ck_assert_int_eq(igpu->end_ns - igpu->begin_ns, MS(3));
    npu = decode_kernel(NPU, OP_FFN);
    ck_assert_int_eq(npu->end_ns - npu->begin_ns, MS(4));
    ck_assert_ptr_null(decode_kernel(NPU, OP_MHA));
    ck_assert_ptr_null(decode_kernel(NPU, OP_HEAD));
    ck_assert_int_eq(sc.records[0].finish_ns - sc.records[0].first_token_ns, MS(9));
}
END_TEST

/* With a barrier of 1.5 ms QKV would take 4.5 ms in two parts, so it stays whole. FFN takes 5.5
 * instead of 8. An op that follows one of another device, or of two, waits for the barrier.
 * Attention follows QKV on the iGPU, FFN runs on the NPU as well, and the head is on the iGPU
 * again. */
START_TEST(a_barrier_keeps_an_operator_whole)
{
    sc.machine.sync_ns = MS(1.5);
    scenario_policy(&sc, policy_find("hetero-split"), "decode=columns,split=false");
    ck_assert_int_eq(scenario_run(&sc, two_tokens, 1, true), 0);
    ck_assert_ptr_null(decode_kernel(NPU, OP_QKV));
    const struct scenario_kernel *qkv = decode_kernel(IGPU, OP_QKV);
    ck_assert_int_eq(qkv->end_ns - qkv->begin_ns, MS(4));
    ck_assert_ptr_nonnull(decode_kernel(NPU, OP_FFN));
    ck_assert_int_eq(sc.records[0].finish_ns - sc.records[0].first_token_ns,
                     MS(4 + 1 + 1.5 + 4 + 1.5 + 1));
}
END_TEST

/* ---- the contract ---- */

static int launch(struct sched *s, struct script *y, uint8_t device, uint32_t columns,
                  enum yield_point yield, uint32_t i)
{
    struct launch_spec spec = sched_launch_rest(s, y->pass[0], device, yield);
    spec.n_ops = 1;
    spec.columns = columns;
    return sched_launch(s, &spec, &y->launch[i]);
}

/* Half of the columns run on the NPU. A quarter runs on the iGPU, and after it the last quarter. */
static void in_three(struct sched *s, struct script *y)
{
    struct pass **p = &y->pass[0];
    if (y->request[0] == NULL) {
        return;
    }
    if (y->stage == 0) {
        *p = script_form(s, y->request[0]);
        y->rc[0] = launch(s, y, NPU, 512, YIELD_KERNEL, 0);
        y->rc[1] = launch(s, y, NPU, 1025, YIELD_OP, 0);
        struct launch_spec some = sched_launch_rest(s, *p, NPU, YIELD_OP);
        some.n_ops = 1;
        some.rows = 4;
        some.columns = 512;
        y->rc[2] = sched_launch(s, &some, NULL);
        ck_assert_int_eq(launch(s, y, NPU, 512, YIELD_OP, 0), 0);
        y->rc[3] = launch(s, y, IGPU, 0, YIELD_OP, 1);
        y->rc[4] = launch(s, y, IGPU, 513, YIELD_OP, 1);
        ck_assert_uint_eq((*p)->rows_todo, 8);
        ck_assert_uint_eq((*p)->rows_active, 8);
        ck_assert_int_eq(launch(s, y, IGPU, 256, YIELD_OP, 1), 0);
        y->stage = 1;
    } else if (y->stage == 1 && sched_device_free_slots(s, IGPU) > 0) {
        ck_assert_int_eq(s->now_ns, MS(1)); /* a quarter of 4 ms */
        ck_assert_uint_eq((*p)->op, 0);
        ck_assert_int_eq(launch(s, y, IGPU, 256, YIELD_OP, 1), 0);
        ck_assert_uint_eq((*p)->rows_todo, 0);
        y->stage = 2;
    } else if (y->stage == 2 && (*p)->op == 1) {
        ck_assert_int_eq(s->now_ns, MS(6));              /* half of 12 ms */
        y->rc[5] = launch(s, y, IGPU, 512, YIELD_OP, 1); /* attention */
        ck_assert_int_eq(script_launch(s, *p, IGPU, YIELD_PASS, NULL), 0);
        y->stage = 3;
    }
}

START_TEST(an_operator_is_done_when_all_its_columns_are)
{
    static const struct scenario_request one[] = {
        {.cls = RT, .input_tokens = 8, .output_tokens = 1}};
    x.step = in_three;
    ck_assert_msg(script_run(&sc, &x, one, 1) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(x.rc[i] == -EINVAL, "refusal %d: %d", i, x.rc[i]);
    }
    ck_assert_int_eq(sc.records[0].finish_ns, MS(6 + 1 + 8 + 1));
}
END_TEST

/* The iGPU's half is asked to stop before it begins. Then the whole op is launched. */
static void taken_back(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL) {
        return;
    }
    if (y->stage == 0) {
        y->pass[0] = script_form(s, y->request[0]);
        ck_assert_int_eq(launch(s, y, IGPU, 512, YIELD_OP, 0), 0);
        y->rc[0] = sched_preempt(s, y->launch[0], (struct preempt_spec){.now = true});
        ck_assert_int_eq(sched_preempt(s, y->launch[0], (struct preempt_spec){0}), 0);
        y->stage = 1;
    } else if (y->stage == 1 && y->n_ends == 1) {
        ck_assert_int_eq(y->ends[0].outcome, LAUNCH_OUTCOME_YIELDED);
        ck_assert_uint_eq(y->ends[0].rows_todo, 8);
        /* The op is whole again, so it may be cut by rows, or not at all. */
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
        y->stage = 2;
    }
}

START_TEST(columns_that_come_back_make_it_whole)
{
    static const struct scenario_request one[] = {
        {.cls = RT, .input_tokens = 8, .output_tokens = 1}};
    x.step = taken_back;
    sc.machine.devices[IGPU].can_suspend = true;
    ck_assert_msg(script_run(&sc, &x, one, 1) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    ck_assert_int_eq(x.rc[0], -EPERM);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(4 + 1 + 8 + 1));
}
END_TEST

/* ---- what is remembered ---- */

static struct model priced;
static uint32_t n_cut, left_columns, n_asked;

/* Cuts each op into two parts on one device: attention by rows, and all others by columns. The
 * first part is a quarter, a half or three quarters, in turn. */
static void in_two_parts(struct sched *s, struct script *y)
{
    uint32_t i = 0;
    while (i < 4 && y->request[i] == NULL) {
        i++;
    }
    if (i == 4) {
        return;
    }
    y->pass[i] = y->request[i]->pass == NULL ? script_form(s, y->request[i]) : y->pass[i];
    struct pass *p = y->pass[i];
    if (p->op == p->n_ops || p->rows_todo == 0 || sched_device_free_slots(s, IGPU) == 0) {
        return;
    }
    struct launch_spec spec = sched_launch_rest(s, p, IGPU, YIELD_OP);
    uint32_t quarters = 1 + n_cut % 3;
    spec.n_ops = 1;
    if (pass_op_kind(p, p->op) == OP_MHA) {
        bool first = p->rows_todo == p->shape.rows;
        spec.rows = first ? p->shape.rows * quarters / 4 : p->rows_todo;
        n_cut += first;
    } else {
        spec.columns = left_columns > 0 ? left_columns : LAUNCH_COLUMNS * quarters / 4;
        n_cut += left_columns == 0;
        left_columns = left_columns > 0 ? 0 : LAUNCH_COLUMNS - spec.columns;
    }
    ck_assert_int_eq(sched_launch(s, &spec, NULL), 0);
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                     int64_t lost_ns)
{
    (void)self;
    (void)now_ns;
    (void)lost_ns;
    struct kernel_run k;
    kernel_run_fill(&priced.r.model, &l->pass->shape, pass_op_kind(l->pass, l->op_begin), l->device,
                    l->graph, l->rows, l->chunk_rows, l->columns, &k);
    ck_assert_msg(isolated_ns == kernel_run_total_ns(&k),
                  "op %u, %u columns, %u rows: %lld ns, not %lld", l->op_begin, l->columns, l->rows,
                  (long long)isolated_ns, (long long)kernel_run_total_ns(&k));
    n_asked++;
}

/* Equal prompts come one after the other, and each is cut in other places. A run remembers costs,
 * but a part takes what the model says of that part, and of no other one. */
START_TEST(a_part_never_takes_the_remembered_time_of_another)
{
    static const struct scenario_request equal[] = {{RT, 0, 16, 1, 0, 0},
                                                    {RT, 100, 16, 1, 0, 0},
                                                    {RT, 200, 16, 1, 0, 0},
                                                    {RT, 300, 16, 1, 0, 0}};
    model_init(&priced, "llama-3.2-3b", "extended");
    priced.llm.n_layers = 1;
    roofline_init(&priced.r, hwmodel_find("extended"), &priced.soc, &priced.llm);
    sc.setup.machine = &priced.r.machine;
    sc.setup.llm = &priced.llm;
    sc.setup.truth = &priced.r.model;
    sc.observer.launch_ended = on_ended;
    n_cut = left_columns = n_asked = 0;
    x.step = in_two_parts;
    ck_assert_msg(script_run(&sc, &x, equal, 4) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(n_asked, 4 * 4 * 2); /* QKV, attention, FFN and the head, of each */
}
END_TEST

/* ---- the price ---- */

/* A quarter of the weights has a quarter of the work and of the bytes of weights, and all
 * activations. A device's filling depends on rows, and not on columns. */
START_TEST(a_part_has_its_part_of_weights_and_work)
{
    struct work_shape w = {.rows = 16, .logit_rows = 1, .sequences = 1, .prefill_rows = 16};
    struct model m;
    model_init(&m, "llama-3.2-3b", "extended");
    const struct llm *llm = m.r.model.llm;
    for (int op = OP_QKV; op <= OP_FFN; op += OP_FFN - OP_QKV) {
        struct kernel_query q = {.device = MODEL_IGPU,
                                 .op = (enum op_kind)op,
                                 .rows = 16,
                                 .padded_rows = 16,
                                 .shape = &w};
        struct kernel_cost all;
        struct kernel_cost part;
        hwmodel_kernel(&m.r.model, &q, &all);
        q.columns = LAUNCH_COLUMNS / 4;
        hwmodel_kernel(&m.r.model, &q, &part);
        double h = llm->hidden;
        double qd = (double)llm->heads * llm->head_dim;
        double kv = (double)llm->kv_heads * llm->head_dim;
        double f = llm->ffn_hidden;
        double weights = op == OP_QKV ? h * (qd + 2.0 * kv) : qd * h + 3.0 * h * f;
        double moved = op == OP_QKV ? h + qd + 2.0 * kv : qd + h + 3.0 * (h + f);
        double bytes = weights * llm->body_bytes_per_weight;
        ck_assert_double_eq_tol(all.bytes, bytes + 16.0 * 2.0 * moved, 1e-9 * all.bytes);
        ck_assert_double_eq_tol(part.bytes, bytes / 4.0 + 16.0 * 2.0 * moved, 1e-9 * all.bytes);
        ck_assert_double_eq_tol(all.flop, 32.0 * weights, 1e-9 * all.flop);
        ck_assert_double_eq_tol(part.flop, 8.0 * weights, 1e-9 * all.flop);
        ck_assert_int_lt(part.t_ns, all.t_ns);
    }
}
END_TEST

/* An operator is measured as 1 ms. A number of its 1024 columns takes that share of it, for any
 * rows. */
START_TEST(a_part_of_a_measured_operator_takes_its_part_of_the_time)
{
    struct model m;
    model_init(&m, "llama-3.2-3b", "per-op");
    struct soc_ops *ops = &m.soc.devices[MODEL_IGPU].runtimes[0].ops;
    struct soc_ops_table same = {.n = 2, .rows = {1, 512}, .s = {1e-3, 1e-3}};
    *ops = (struct soc_ops){.given = true, .qkv = same, .ffn = same, .head = same};
    (void)snprintf(ops->model, sizeof ops->model, "%s", m.llm.name);
    roofline_set_runtime(&m.r, MODEL_IGPU, &m.soc.devices[MODEL_IGPU].runtimes[0]);
    static const enum op_kind of[] = {OP_QKV, OP_FFN, OP_HEAD};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t columns = 1; columns <= LAUNCH_COLUMNS; columns += 31) {
            for (uint32_t rows = 1; rows <= 512; rows *= 8) {
                struct work_shape w = {.rows = rows, .logit_rows = rows, .sequences = rows};
                struct kernel_query q = {.device = MODEL_IGPU,
                                         .op = of[i],
                                         .rows = rows,
                                         .padded_rows = rows,
                                         .columns = columns,
                                         .shape = &w};
                struct kernel_cost part;
                hwmodel_kernel(&m.r.model, &q, &part);
                ck_assert_int_eq(part.t_ns, llround(1e6 * columns / LAUNCH_COLUMNS));
            }
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(hetero_split_lets_both_end_together),
    TEST(a_barrier_keeps_an_operator_whole),
    TEST(an_operator_is_done_when_all_its_columns_are),
    TEST(columns_that_come_back_make_it_whole),
    TEST(a_part_never_takes_the_remembered_time_of_another),
    TEST(a_part_of_a_measured_operator_takes_its_part_of_the_time),
    CASE("price"),
    TEST(a_part_has_its_part_of_weights_and_work),
};
SUITE_MAIN("columns", suite)

/* Figures of kernels, devices and studies: every row and every variable that gnuplot gets, by hand.
 */
#include <string.h>

#include "tests/helpers/drawn.h"
#include "tests/helpers/suite.h"

/* ---- roofline ---- */

/* npu: 2 TFLOP/s over 100 GB/s, the knee at 20 flop a byte; igpu: 400 TFLOP/s over 100 GB/s, its
 * knee at 4000, behind the last corner. At 0.3 flop a byte both have 0.03 TFLOP/s. */
#define ROOFS                                                                                      \
    "\"roofs\":[{\"device\":\"npu\",\"flop_per_s\":2e12,\"bytes_per_s\":1e11},"                    \
    "{\"device\":\"igpu\",\"flop_per_s\":4e14,\"bytes_per_s\":1e11}]}"

struct dot {
    const char *device, *op, *work;
    double flop_per_byte, flop_per_s;
};

static void dots(const struct dot *v, size_t n)
{
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, "{\"about\":{\"kind\":\"kernels\"},\"kernels\":[");
    for (size_t i = 0; i < n; i++) {
        text_format(&t,
                    "%s{\"device\":\"%s\",\"op\":\"%s\",\"work\":\"%s\",\"flop_per_byte\":%g,"
                    "\"flop_per_s\":%g}",
                    i > 0 ? "," : "", v[i].device, v[i].op, v[i].work, v[i].flop_per_byte,
                    v[i].flop_per_s);
    }
    text_string(&t, "]," ROOFS);
    drawn_input("", "k.json", text_end(&t));
}

/* Points of a device that are within e^0.15 = 1.16 of the first in both have their names there:
 * ffn at qkv's. 1.17 apart in one they are two, though both are near ffn, which has no name of its
 * own; and so are those of two devices. */
START_TEST(names_of_near_points_are_one)
{
    static const struct dot near[] = {
        {"npu", "qkv", "prefill 256", 10, 1e12}, {"npu", "ffn", "decode 4", 11.6, 1.16e12},
        {"npu", "mha", "decode 1", 11.7, 1e12},  {"npu", "head", "prefill 1", 10, 1.17e12},
        {"npu", "lone", "prefill 1", 10, 5e12},  {"igpu", "qkv", "re-decode", 10, 5e12},
        {"igpu", "qkv", "decode", 10, 5e12},     {"cpu", "qkv", "decode", 10, 5e12}};
    dots(near, sizeof near / sizeof near[0]);
    drawn_is("roofline",
             "npu\n0.3\t0.03\n20\t2\n3000\t2\n\n\n"
             "igpu\n0.3\t0.03\n4000\t400\n3000\t300\n\n\n"
             "npu\n10\t1\tqkv ffn\t0\n11.6\t1.16\t-\t1\n11.7\t1\tmha\t1\n10\t1.17\thead\t0\n"
             "10\t5\tlone\t0\n\n\n"
             "igpu\n10\t5\tqkv\t0\n10\t5\t-\t1\n",
             "array slot[3]\nslot[1] = 1\nslot[2] = 0\nlongest = 4\ndevices = 2\n");
    static const struct dot far[] = {{"npu", "qkv", "prefill", 10, 1e12},
                                     {"npu", "mha", "prefill", 11.7, 1e12},
                                     {"npu", "ffn", "prefill", 10, 1.17e12}};
    dots(far, sizeof far / sizeof far[0]);
    drawn_is("roofline",
             "npu\n0.3\t0.03\n20\t2\n3000\t2\n\n\n"
             "igpu\n0.3\t0.03\n4000\t400\n3000\t300\n\n\n"
             "npu\n10\t1\tqkv\t0\n11.7\t1\tmha\t0\n10\t1.17\tffn\t0\n\n\nigpu\n",
             NULL);
    drawn_input("", "k.json",
                "{\"about\":{\"kind\":\"kernels\"},\"kernels\":[{\"device\":\"npu\"}],"
                "\"roofs\":[{\"device\":\"npu\",\"flop_per_s\":1}]}");
    drawn_refused("roofline", "k.json: no column op; there are: device\n"
                              "k.json: no column work; there are: device\n"
                              "k.json: no column flop_per_byte; there are: device\n"
                              "k.json: no column flop_per_s; there are: device\n"
                              "k.json: no column bytes_per_s; there are: device, flop_per_s\n");
    drawn_input("", "k.json",
                "{\"about\":{\"kind\":\"kernels\"},\"kernels\":[{\"device\":\"npu\"}]}");
    drawn_refused("roofline", "k.json: no roofs; `xpusim plot list` says what figures read\n");
}
END_TEST

/* ---- kernels ---- */

/* A block per device, an index per operator and work, ms, and energy: of its column, else time
 * times watts: 0.5 s at 8 W are 4 J. */
START_TEST(a_kernel_has_its_row_on_every_device)
{
    drawn_input(
        "", "k.json",
        "{\"about\":{\"kind\":\"kernels\"},\"kernels\":["
        "{\"device\":\"igpu\",\"op\":\"qkv\",\"work\":\"decode 1\",\"time_s\":0.5,\"watts\":8},"
        "{\"device\":\"npu\",\"op\":\"ffn\",\"work\":\"decode "
        "1\",\"time_s\":0.25,\"watts\":2,\"low\":0.2,\"high\":0.5},"
        "{\"device\":\"npu\",\"op\":\"qkv\",\"work\":\"decode 1\",\"time_s\":0.125},"
        "{\"device\":\"igpu\",\"op\":\"qkv\",\"work\":\"\",\"time_s\":2,\"watts\":1}]}");
    drawn_is(
        "kernels",
        "igpu\nqkv, decode 1\t0\t500\tNaN\tNaN\t4\nqkv\t2\t2000\tNaN\tNaN\t2\n\n\n"
        "npu\nffn, decode 1\t1\t250\t200\t500\t0.5\nqkv, decode 1\t0\t125\tNaN\tNaN\tNaN\n",
        "array rows[4]\nrows[1] = 'qkv, decode 1'\nrows[2] = 'ffn, decode 1'\nrows[3] = 'qkv'\n"
        "n_rows = 3\narray slot[3]\nslot[1] = 0\nslot[2] = 1\nlongest = 4\ndevices = 2\n");
    drawn_input("", "k.csv",
                "device,op,time_s,low,high,energy_j,watts\ncpu,qkv,1,0.5,,7,9\ncpu,ffn,2,,4,,9\n");
    drawn_is("kernels", "cpu\nqkv\t0\t1000\t500\tNaN\t7\nffn\t1\t2000\tNaN\t4000\tNaN\n",
             "array rows[3]\nrows[1] = 'qkv'\nrows[2] = 'ffn'\nn_rows = 2\n"
             "array slot[2]\nslot[1] = 2\nlongest = 3\ndevices = 1\n");
    drawn_input("", "k.csv", "device,op,time_s\ncpu,qkv,1\ncpu,ffn,fast\ncpu,mha,\n");
    drawn_refused("kernels", "k.csv:3: column time_s: \"fast\" is not a finite number\n");
    drawn_input("", "k.json",
                "{\"about\":{\"kind\":\"kernels\"},\"kernels\":["
                "{\"device\":\"npu\",\"op\":\"ffn\",\"work\":\"\",\"time_s\":0.25},"
                "{\"device\":\"npu\",\"op\":\"qkv\",\"work\":\"\",\"time_s\":\"slow\"}]}");
    drawn_refused("kernels", "k.json: row 2: column time_s: \"slow\" is not a finite number\n");
    drawn_input("", "k.csv", "device,op\ncpu,qkv\n");
    drawn_refused("kernels", "k.csv: no column time_s; there are: device, op\n");
}
END_TEST

/* ---- tables with one number per row ---- */

/* Seconds become ms; without an interval both ends are the number itself. Without devices the line
 * is the file's. */
START_TEST(a_curve_has_a_line_per_device)
{
    drawn_input("", "b.csv",
                "device,batch,latency_s,low,high\nnpu,1,0.5,0.25,\nigpu,1,0.75,,1\nnpu,8,2,1,4\n");
    drawn_is("batch",
             "npu\n1\t500\t250\t500\t0\t0\n8\t2000\t1000\t4000\t0\t0\n\n\n"
             "igpu\n1\t750\t750\t1000\t0\t0\n",
             "xlabel_text = 'batch (sequences)'\ntitle1 = 'latency of a step (ms)'\n"
             "array slot[3]\nslot[1] = 1\nslot[2] = 0\nlongest = 4\nseries = 2\npanels = 1\n");
    drawn_input("Mine=", "v.csv", "draft_tokens,verify_s\n4,0.125\n");
    drawn_is("draft", "Mine\n4\t125\t125\t125\t0\t0\n",
             "xlabel_text = 'draft length (tokens)'\ntitle1 = 'verification time (ms)'\n"
             "array slot[2]\nslot[1] = 4\nlongest = 4\nseries = 1\npanels = 1\n");
    drawn_input("", "v.csv", "draft_tokens,verify_s\n4,x\n,1\n");
    drawn_refused("draft", "v.csv:2: column verify_s: \"x\" is not a finite number\n"
                           "v.csv:3: column draft_tokens: \"\" is not a finite number\n");
    drawn_input("", "v.csv", "tokens\n4\n");
    drawn_refused("draft", "v.csv: no column draft_tokens; there are: tokens\n"
                           "v.csv: no column verify_s; there are: tokens\n");
    drawn_input("", "v.csv", "tokens\n4\n");
    drawn_refused("batch", "v.csv: no column batch; there are: tokens\n"
                           "v.csv: no column latency_s; there are: tokens\n");
}
END_TEST

/* Column, row, slowdown and its ends, names. */
START_TEST(slowdowns_are_a_matrix)
{
    drawn_input("", "c.csv",
                "victim,aggressor,slowdown,low,high\nGEMM,GEMV,1.5,1.25,1.75\nGEMM,copy,2,,\n"
                "attn,copy,3,2.5,\n");
    drawn_is("corun",
             "slowdown\n0\t0\t1.5\t1.25\t1.75\tGEMV\tGEMM\n1\t0\t2\tNaN\tNaN\tcopy\tGEMM\n"
             "1\t1\t3\t2.5\tNaN\tcopy\tattn\n",
             "rows = 2\ncolumns = 2\n");
    drawn_input("", "c.csv", "victim,aggressor,slowdown\nGEMM,GEMV,1.5\nGEMM,copy,much\n");
    drawn_refused("corun", "c.csv:3: column slowdown: \"much\" is not a finite number\n");
    drawn_input("", "c.csv", "victim,slowdown\nGEMM,1.5\n");
    drawn_refused("corun", "c.csv: no column aggressor; there are: victim, slowdown\n");
}
END_TEST

/* ---- studies ---- */

#define STUDY "study,device,what,x_name,x,metric,value,unit\n"

/* A panel per metric and subject that has at least two x, a line per device. The half width of the
 * same subject, device and x is its interval; a device without the subject has a line of nothing.
 * Other studies and metrics in the file are passed over. */
START_TEST(a_study_has_a_panel_per_metric_and_subject)
{
    drawn_input("", "s.csv",
                STUDY "prompt,npu,prefill_7B,tokens,256,time,2,s\n"
                      "prompt,npu,prefill_7B,tokens,256,time.half_width,0.5,s\n"
                      "prompt,npu,prefill_7B,tokens,512,time,4,s\n"
                      "prompt,igpu,prefill_7B,tokens,512,time,3,s\n"
                      "prompt,igpu,prefill_7B,tokens,512,time.half_width,0.25,s\n"
                      "prompt,npu,once,tokens,256,time,9,s\n"
                      "prompt,igpu,small,tokens,256,time,1,s\n"
                      "prompt,igpu,small,tokens,1024,time,1.5,s\n"
                      "prompt,npu,prefill_7B,tokens,256,throughput,100,tokens/s\n"
                      "prompt,npu,prefill_7B,tokens,512,throughput,128,tokens/s\n"
                      "prompt,npu,prefill_7B,tokens,512,another,1,1\n"
                      "batch,dsp,prefill_7B,tokens,2048,time,7,s\n");
    drawn_is("prompt",
             "npu\n256\t2\t1.5\t2.5\t0\t0\n512\t4\t4\t4\t0\t0\n\n\n"
             "igpu\n512\t3\t2.75\t3.25\t0\t0\n\n\n"
             "npu\nNaN\tNaN\tNaN\tNaN\tNaN\tNaN\n\n\n"
             "igpu\n256\t1\t1\t1\t0\t0\n1024\t1.5\t1.5\t1.5\t0\t0\n\n\n"
             "npu\n256\t100\t100\t100\t0\t0\n512\t128\t128\t128\t0\t0\n\n\n"
             "igpu\nNaN\tNaN\tNaN\tNaN\tNaN\tNaN\n",
             "title1 = 'prefill_7B: time (s)'\ntitle2 = 'small: time (s)'\n"
             "title3 = 'prefill_7B: throughput (tokens/s)'\n"
             "xvalues = '256 512 1024'\narray slot[3]\nslot[1] = 1\nslot[2] = 0\nlongest = 4\n"
             "panels = 3\nseries = 2\nlogx = 1\npoints = 0\nxlabel_text = 'prompt (tokens)'\n");
}
END_TEST

/* Affinity has the intensity of the same row as x, and is drawn in points; it has no tics of its
 * own. Schemes have a line per scheme, in one panel per metric, called as everywhere. */
START_TEST(a_study_has_its_own_axis)
{
    drawn_input(
        "", "s.csv",
        STUDY
        "affinity,npu,GEMM,rows,1,intensity,0.5,flop/B\naffinity,npu,GEMM,rows,1,rate,10,Gflop/s\n"
        "affinity,npu,GEMM,rows,8,rate,40,Gflop/s\naffinity,npu,GEMM,rows,8,intensity,4,flop/B\n"
        "affinity,npu,GEMV,rows,8,intensity,77,flop/B\n"
        "affinity,npu,GEMM,rows,1,efficiency,0.25,1\naffinity,npu,GEMM,rows,16,efficiency,0.5,1\n");
    drawn_is("affinity",
             "npu\n0.5\t10\t10\t10\t0\t0\n4\t40\t40\t40\t0\t0\n\n\n"
             "npu\n0.5\t0.25\t0.25\t0.25\t0\t0\nNaN\t0.5\t0.5\t0.5\t0\t0\n",
             "title1 = 'GEMM: rate (Gflop/s)'\ntitle2 = 'GEMM: efficiency'\n"
             "xvalues = ''\narray slot[2]\nslot[1] = 1\nlongest = 3\npanels = 2\nseries = 1\n"
             "logx = 1\npoints = 1\nxlabel_text = 'intensity (flop per byte of DDR)'\n");
    drawn_input("", "s.csv",
                STUDY
                "schemes,all,a: one,rate,1,reactive.e2e_s.mean,2,s\nschemes,all,a: "
                "one,rate,2,reactive.e2e_s.mean,3,s\n"
                "schemes,all,b: two,rate,1,reactive.e2e_s.mean,4,s\nschemes,all,b: "
                "two,rate,2,reactive.e2e_s.mean,5,s\n"
                "schemes,all,b: two,rate,2,truncated.all.throughput_req_per_min,6,requests/min\n"
                "schemes,all,b: two,rate,4,truncated.all.throughput_req_per_min,7,requests/min\n");
    drawn_is("schemes",
             "a: one\n1\t2\t2\t2\t0\t0\n2\t3\t3\t3\t0\t0\n\n\n"
             "b: two\n1\t4\t4\t4\t0\t0\n2\t5\t5\t5\t0\t0\n\n\n"
             "a: one\nNaN\tNaN\tNaN\tNaN\tNaN\tNaN\n\n\n"
             "b: two\n2\t6\t6\t6\t0\t0\n4\t7\t7\t7\t0\t0\n",
             "title1 = 'mean reactive latency (s)'\ntitle2 = 'throughput (requests/min)'\n"
             "xvalues = '1 2 4'\narray slot[3]\nslot[1] = 4\nslot[2] = 7\nlongest = 6\n"
             "panels = 2\nseries = 2\nlogx = 0\npoints = 0\nxlabel_text = 'requests per minute'\n");
}
END_TEST

/* Which study, metrics and axis each figure of a study has: two points of every metric. */
static const struct {
    const char *figure, *study, *metrics[5], *titles[5], *rest;
} studies[] = {
    {"batch",
     "batch",
     {"time"},
     {"time"},
     "logx = 1\npoints = 0\nxlabel_text = 'batch (sequences)'\n"},
    {"chunk",
     "chunk",
     {"throughput", "bound_kernel", "bound_layer", "activations"},
     {"throughput", "bound kernel", "bound layer", "activations"},
     "logx = 1\npoints = 0\nxlabel_text = 'chunk (rows)'\n"},
    {"mixed",
     "mixed",
     {"time", "decode_slowdown"},
     {"time", "decode slowdown"},
     "logx = 1\npoints = 0\nxlabel_text = 'prefill in the batch (tokens)'\n"},
    {"draft",
     "verify",
     {"time", "time_per_token"},
     {"time", "time per token"},
     "logx = 0\npoints = 0\nxlabel_text = 'draft length (tokens)'\n"},
};

START_TEST(each_study_has_its_panels)
{
    SCOPED(text_fini) struct text in = {0};
    SCOPED(text_fini) struct text rows = {0};
    SCOPED(text_fini) struct text vars = {0};
    text_string(&in, STUDY);
    int n = 0;
    for (; studies[_i].metrics[n] != NULL; n++) {
        text_format(&in, "%s,cpu,w,x,1,%s,%d,1\n%s,cpu,w,x,2,%s,%d,1\n", studies[_i].study,
                    studies[_i].metrics[n], n + 3, studies[_i].study, studies[_i].metrics[n],
                    n + 4);
        text_format(&rows, "%scpu\n1\t%d\t%d\t%d\t0\t0\n2\t%d\t%d\t%d\t0\t0\n", n > 0 ? "\n\n" : "",
                    n + 3, n + 3, n + 3, n + 4, n + 4, n + 4);
        text_format(&vars, "title%d = 'w: %s'\n", n + 1, studies[_i].titles[n]);
    }
    text_format(&vars,
                "xvalues = '1 2'\narray slot[2]\nslot[1] = 2\nlongest = 3\npanels = %d\n"
                "series = 1\n%s",
                n, studies[_i].rest);
    drawn_input("", "s.csv", text_end(&in));
    drawn_is(studies[_i].figure, text_end(&rows), text_end(&vars));
}
END_TEST

/* At most 12 panels and 8 lines are drawn, and 9 tics. */
START_TEST(a_study_is_drawn_as_far_as_there_is_room)
{
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, STUDY);
    for (int i = 0; i < 13; i++) {
        for (int x = 0; x < 2; x++) {
            text_format(&t, "batch,device %d,what %d,x,%d,time,1,s\n", i < 9 ? i : 0, i, i % 9 + x);
        }
    }
    drawn_input("", "s.csv", text_end(&t));
    ck_assert_int_eq(figure_prepare(figure_find("batch"), &drawn_request, &drawn_data, &drawn_err),
                     0);
    const char *vars = drawn_vars();
    ck_assert_uint_eq(drawn_data.blocks, 12 * 8);
    ck_assert_ptr_nonnull(strstr(vars, "title12 = 'what 11: time (s)'\n"));
    ck_assert_ptr_null(strstr(vars, "title13"));
    ck_assert_ptr_nonnull(strstr(vars, "xvalues = ''\n"));
    ck_assert_ptr_nonnull(strstr(vars, "panels = 12\nseries = 8\n"));
}
END_TEST

START_TEST(a_study_that_cannot_be_drawn_is_refused)
{
    drawn_input("", "s.csv", STUDY "prompt,npu,a,x,1,time,2,s\nprompt,npu,b,x,2,time,2,s\n");
    drawn_refused("prompt",
                  "s.csv: no line to draw: every subject of the study prompt has one x only\n");
    drawn_input("", "s.csv", STUDY "batch,npu,a,x,1,time,2,s\nbatch,npu,a,x,2,time,2,s\n");
    drawn_refused("prompt", "s.csv: no rows of the study prompt: expected what `xpusim "
                            "characterize prompt --csv` prints\n");
    drawn_input("", "s.csv", STUDY "prompt,npu,a,x,one,time,,s\n");
    drawn_refused("prompt", "s.csv:2: column x: \"one\" is not a finite number\n"
                            "s.csv:2: column value: \"\" is not a finite number\n");
    drawn_input("", "s.csv", "study,device,x,value\nprompt,npu,1,2\n");
    drawn_refused("prompt", "s.csv: no column what; there are: study, device, x, value\n"
                            "s.csv: no column x_name; there are: study, device, x, value\n"
                            "s.csv: no column metric; there are: study, device, x, value\n"
                            "s.csv: no column unit; there are: study, device, x, value\n");
}
END_TEST

/* The aggressor runs on the other one of two engines. */
START_TEST(pairs_are_of_two_engines)
{
    drawn_input(
        "", "s.csv",
        STUDY
        "corun,igpu,GEMM beside copy,n,1,slowdown,1.5,1\ncorun,igpu,GEMM alone,n,1,slowdown,9,1\n"
        "prompt,igpu,GEMM beside x,n,1,slowdown,9,1\ncorun,cpu,GEMM beside x,n,1,time,9,s\n"
        "corun,npu,GEMV beside copy,n,1,slowdown,2,1\ncorun,npu,GEMM beside "
        "copy,n,1,slowdown,2.5,1\n");
    drawn_is(
        "corun",
        "slowdown\n0\t0\t1.5\tNaN\tNaN\tcopy, npu\tGEMM, igpu\n"
        "1\t1\t2\tNaN\tNaN\tcopy, igpu\tGEMV, npu\n1\t2\t2.5\tNaN\tNaN\tcopy, igpu\tGEMM, npu\n",
        "rows = 3\ncolumns = 2\n");
    drawn_input("", "s.csv", STUDY "corun,igpu,a beside b,n,1,slowdown,1.5,1\n");
    drawn_refused("corun", "s.csv: no slowdowns of a pair of engines\n");
    drawn_input(
        "", "s.csv",
        STUDY "corun,igpu,a beside b,n,1,slowdown,1.5,1\n"
              "corun,npu,a beside b,n,1,slowdown,1.5,1\ncorun,cpu,a beside b,n,1,slowdown,1.5,1\n");
    drawn_refused("corun", "s.csv: no slowdowns of a pair of engines\n");
    drawn_input("", "s.csv", STUDY "batch,igpu,a beside b,n,1,slowdown,1.5,1\n");
    drawn_refused("corun", "s.csv: no rows of the study corun: expected what `xpusim characterize "
                           "corun --csv` prints\n");
}
END_TEST

/* ---- distributions ---- */

/* Equal files are one, whoever served them; a different number in any column makes two. A class
 * without a number has an empty curve. */
START_TEST(twins_are_drawn_once)
{
    drawn_input("", "a.csv",
                "class,input_tokens,output_tokens,x\nreactive,5,1,0\nproactive,7,,0\n");
    drawn_input("", "b.csv",
                "class,input_tokens,output_tokens,x\nreactive,5,1,9\nproactive,7,,9\n");
    drawn_is("lengths", "reactive\n5\t1\n\n\nproactive\n7\t1\n\n\nreactive\n1\t1\n\n\nproactive\n",
             "inputs = 1\narray slot[2]\nslot[1] = 4\nlongest = 1\n");
    for (int column = 0; column < 2; column++) {
        drawn_input("", "a.csv", "class,input_tokens,output_tokens\nreactive,5,1\nreactive,4,2\n");
        drawn_input("edf=", "b.csv",
                    column == 0 ? "class,input_tokens,output_tokens\nreactive,5,1\nreactive,3,2\n"
                                : "class,input_tokens,output_tokens\nreactive,5,1\nreactive,4,3\n");
        drawn_is("lengths",
                 column == 0 ? "a, reactive\n4\t0.5\n5\t1\n\n\na, proactive\n\n\n"
                               "edf, reactive\n3\t0.5\n5\t1\n\n\nedf, proactive\n\n\n"
                               "a, reactive\n1\t0.5\n2\t1\n\n\na, proactive\n\n\n"
                               "edf, reactive\n1\t0.5\n2\t1\n\n\nedf, proactive\n"
                             : "a, reactive\n4\t0.5\n5\t1\n\n\na, proactive\n\n\n"
                               "edf, reactive\n4\t0.5\n5\t1\n\n\nedf, proactive\n\n\n"
                               "a, reactive\n1\t0.5\n2\t1\n\n\na, proactive\n\n\n"
                               "edf, reactive\n1\t0.5\n3\t1\n\n\nedf, proactive\n",
                 "inputs = 2\narray slot[3]\nslot[1] = 4\nslot[2] = 3\nlongest = 3\n");
    }
    drawn_input("", "a.csv", "class,input_tokens,output_tokens\nreactive,5,1\n");
    drawn_input("", "b.csv", "class,input_tokens,output_tokens\nreactive,5,1\nreactive,5,1\n");
    drawn_is(
        "lengths",
        "a, reactive\n5\t1\n\n\na, proactive\n\n\nb, reactive\n5\t0.5\n5\t1\n\n\nb, proactive\n\n\n"
        "a, reactive\n1\t1\n\n\na, proactive\n\n\nb, reactive\n1\t0.5\n1\t1\n\n\nb, proactive\n",
        NULL);
    drawn_input("", "a.csv", "class,input_tokens,output_tokens\nreactive,,\nother,1,1\n");
    drawn_refused("lengths", "a.csv: no request of the class reactive or proactive has a number in "
                             "column input_tokens\n");
    drawn_input("", "a.csv", "class,input_tokens\nreactive,1\n");
    drawn_input("", "b.csv", "input_tokens,output_tokens\n1,1\n");
    drawn_refused("lengths", "a.csv: no column output_tokens; there are: class, input_tokens\n"
                             "b.csv: no column class; there are: input_tokens, output_tokens\n");
}
END_TEST

/* Each of 119 values is a step. With 241, every third is, and the last one, 241; a step has the
 * share of all up to its value. */
START_TEST(a_long_curve_has_fewer_steps)
{
    static const int sizes[] = {119, 241, 240};
    int n = sizes[_i];
    int step = n / 120 + 1;
    SCOPED(text_fini) struct text in = {0};
    SCOPED(text_fini) struct text rows = {0};
    text_string(&in, "class,input_tokens,output_tokens\n");
    for (int i = n; i > 0; i--) {
        text_format(&in, "proactive,%d,\n", i);
    }
    text_string(&rows, "reactive\n\n\nproactive\n");
    for (int last = step; last < n + step; last += step) {
        int value = last < n ? last : n;
        text_format(&rows, "%d\t%.12g\n", value, (double)value / n);
    }
    text_string(&rows, "\n\nreactive\n\n\nproactive\n");
    drawn_input("", "a.csv", text_end(&in));
    drawn_is("lengths", text_end(&rows), "inputs = 1\narray slot[2]\nslot[1] = 4\nlongest = 1\n");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = drawn_setup, .teardown = drawn_teardown),
    TEST(names_of_near_points_are_one),
    TEST(a_kernel_has_its_row_on_every_device),
    TEST(a_curve_has_a_line_per_device),
    TEST(slowdowns_are_a_matrix),
    TEST(a_study_has_a_panel_per_metric_and_subject),
    TEST(a_study_has_its_own_axis),
    LOOP(each_study_has_its_panels, sizeof studies / sizeof studies[0]),
    TEST(a_study_is_drawn_as_far_as_there_is_room),
    TEST(a_study_that_cannot_be_drawn_is_refused),
    TEST(pairs_are_of_two_engines),
    TEST(twins_are_drawn_once),
    LOOP(a_long_curve_has_fewer_steps, 3),
};
SUITE_MAIN("figures of devices", suite)

/* Workloads "summary", "rag", "ui" and "tweet", with ":n=40,concurrent=1,gap_s=0". They have n
 * reactive requests of one task, from users who send the next one gap_s after each answer. sd.npu
 * measures this with one user. Whole rows of a dataset are drawn, without reusable prefixes.
 *
 * "texts:file=FILE.jsonl" has the same keys, and the tokens of its requests are known (texts.h). */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"

/* Whether a workload text names a task. */
bool task_known(const char *spec);
/* 0 or -EINVAL with errors naming spec and key. Precondition: task_known. */
int task_generate(const char *spec, uint64_t seed, struct trace *out, struct err *e);
/* Prints the tasks, the sources of their lengths, and the keys. */
void task_help(FILE *out);

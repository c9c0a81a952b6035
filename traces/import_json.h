/* Declarations shared by readers of JSON formats. */
#pragma once

#include "sim/base/json.h"
#include "traces/import.h"

#define IMPORT_MAX_NS 4e18 /* for clocks that count from 1970 */

/* The place of an error: a line of a file, or the n-th request of a document. */
struct import_place {
    const char *path;
    const char *what; /* "" or "request " */
    unsigned long long number;
    struct err *e;
};

static inline bool import_text_is(const cJSON *o, const char *key, const char *value)
{
    return strcmp(json_string(o, key), value) == 0;
}

void import_refuse(const struct import_place *p, const char *key, const char *what);
/* The number of a key. Outside the range, returns min and adds an error. */
double import_number(const cJSON *c, const char *key, double min, double max,
                     const struct import_place *p);
uint64_t import_tokens(const cJSON *c, const char *key, double min, const struct import_place *p);
/* 0 if o has no such key, or null. */
uint64_t import_tokens_or_none(const cJSON *o, const char *key, const struct import_place *p);
/* A whole number, which may be a text of digits. */
uint64_t import_integer(const cJSON *c, const char *key, double min, double max,
                        const struct import_place *p);
/* An instant. If c is none, returns 0 and adds an error for this key. */
int64_t import_ns(const cJSON *c, const char *key, const struct import_place *p);
/* Adds the blocks of a prompt, numbers or texts, to im->blocks, and their range to *row. */
void import_blocks(struct import *im, const cJSON *ids, struct import_row *row,
                   const struct import_place *p);
/* Draws the begin of the index-th session, after that of the previous one (--rate-per-min). */
int64_t import_begin(struct import *im, uint64_t index, const struct import_place *p);
/* Reads and closes a file. The caller deletes the result. NULL with an error if it is no JSON. */
cJSON *import_document(FILE *in, const char *path, struct err *e);

/* Calls `each` for every JSON value of a file, with one or several per line, and closes it. */
typedef void import_line_fn(struct import *im, const cJSON *o, const struct import_place *p);
void import_values(struct import *im, FILE *in, const char *path, import_line_fn *each,
                   struct err *e);

/* Readers of a format, which close `in`:
 *   import_agents.c   who waits for whom
 *   import_logs.c     Dynamo's request traces, TraceLab's rounds, GitHub Copilot's sessions
 *   import_mooncake.c Mooncake's lines, and the sessions in them
 *   import_spans.c    OTLP JSON of GenAI spans
 *   import_benchmarks.c  what inference-perf and guidellm measured
 *   import_coding.c   logs that coding agents leave on a disk
 *   import_text.c     texts without numbers of tokens: genai-perf's export, ShareGPT */
typedef void import_document_fn(struct import *im, FILE *in, const char *path, struct err *e);
import_document_fn import_weka, import_agentic_mooncake, import_dynamo, import_copilot, import_otel,
    import_claude_code, import_codex, import_genai_perf, import_sharegpt, import_guidellm,
    import_inference_perf;
import_line_fn import_tracelab_line, import_mooncake_line;
typedef void import_end_fn(struct import *im, const char *path, struct err *e);
import_end_fn import_mooncake_end;

/* Reads rows that a user measured, from the command line or from unmodified benchmark files.
 *
 *   model=llama-3-8b,bits=4,runtime=openvino-2025.3,ttft_ms@1024=812,tpot_ms@1024=61.5
 *   file=report.json,runtime=openvino-2025.3
 *   rows.csv
 *
 * A text with '=' is a list of keys. Others are `device` (default igpu), `batch`, `prefill_tok_s@N`
 * and `decode_tok_s@N`; N is the prompt, or the context of a decode. With `file` the keys override
 * values in the file. A file is one of these, recognised by its content:
 *   points      CSV with the columns of points.h; only rows with the machine's name count
 *   llm_bench   report of openvino.genai, JSON or CSV; iterations after the first count
 *   llama-bench JSON, JSON lines, CSV or Markdown; only tests of one phase count */
#pragma once

#include "experiments/validation/points.h"

struct measured {
    struct points points; /* soc is the machine's name; runtime "": not stated */
    const char **place;   /* kept; place of each point, for errors: "rows.csv:3" */
};

/* Adds the rows of a text. Returns 0, or -EINVAL with errors that name option or file and place. */
int measured_read(const char *text, const char *soc, struct measured *out, struct err *e);

/* Bits of weights in a format's name ("Q4_K_M", "OV_FP16-INT8_ASYM", "BF16"); 0: none. */
uint32_t measured_bits(const char *format);

/* Real runs of a scenario: 28 requests that meet, on a machine of three devices, and their tokens.
 */
#pragma once

#include "sim/drive/drive.h"
#include "tests/helpers/scenario.h"

enum { N_REQUESTS = 28 };

struct tokens {
    uint32_t n[N_REQUESTS];
    int32_t t[N_REQUESTS][64];
};

extern struct scenario real;
extern struct scenario_request real_q[N_REQUESTS];
extern uint32_t real_n; /* of them are run */
extern struct drive_options real_options;
extern struct drive_report real_report;

/* All of them: prompts of up to `longest` tokens; arrivals so close that requests meet on any
 * machine. */
void realrun_requests_make(uint32_t longest);
/* prepares real and real_options: that engine on every device. */
void realrun_machine_make(const struct engine_ops *engine, enum drive_clock clock);
void realrun_small_model(void); /* that plain loops run in milliseconds */
void realrun_ggml_model(void);  /* 2 layers x 256 */
/* Parameters that a real run needs of a policy, other than its defaults; "" for none. */
const char *realrun_parameters_of(const char *name);
/* True of policies that no engine here can serve. */
bool realrun_refused(const char *policy);
/* Returns the run's status; its tokens when that is 0. */
int realrun_run(const struct policy_ops *policy, const char *params, struct tokens *out);
/* Requests with the same tokens; with the same first one. */
uint32_t realrun_alike(const struct tokens *a, const struct tokens *b);
uint32_t realrun_alike_at_first(const struct tokens *a, const struct tokens *b);
/* By what drive --topk wrote of the run: is this token as likely as the first one that the request
 * got, but for a tenth? Rounding may give either. */
bool realrun_may_begin_with(FILE *topk, uint32_t request, int32_t token);
/* Asserts that all finished with clean books. */
void realrun_whole(const char *policy);
/* The engine OpenVINO; NULL after a line that says why the test is skipped. */
const struct engine_ops *realrun_openvino(void);

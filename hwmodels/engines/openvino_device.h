/* Devices of OpenVINO by name, and compilation of models for them.
 *
 * An NPU only takes static shapes, and its compiler is in the driver or in the plug-in (property
 * NPU_COMPILER_TYPE). Linux wheels have the plug-in without its compiler (openvino issue 36374),
 * and a driver may lack one too. So both are tried, the driver's first, and an error has both
 * reasons.
 *
 * The environment variable XPUSIM_FAKE_NPU replaces the NPU by a fake one, for tests: the device
 * CPU with an NPU's restrictions (openvino_fake.c). */
#pragma once

#include <stdatomic.h>

#include "hwmodels/engines/openvino_ir.h"
#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */
#include <openvino/c/openvino.h>

struct openvino {
    ov_core_t *core;      /* owned */
    char *cache;          /* owned; folder of compiled models, except CPU's; NULL: none */
    _Atomic int compiler; /* of the NPU: the one that worked last, which is tried first */
};

struct compiled {
    ov_compiled_model_t *model;
    ov_infer_request_t *request;
    uint8_t *blob;  /* its constants, must not change */
    uint32_t rows;  /* static rows, 0: any */
    const char *by; /* compiler of an NPU's model: "driver" or "plug-in"; else "" */
    bool cached;    /* read from the cache folder */
};

/* threads: for device CPU; with 1 the caller's thread runs kernels. cache NULL: none. 0 or -EIO
 * with a reason. */
int openvino_start(struct openvino *o, uint32_t threads, const char *cache, char *why);
void openvino_stop(struct openvino *o);
const char *openvino_version(void);
double openvino_now_s(void); /* monotonic clock */

bool openvino_is_npu(const char *device);
/* OpenVINO's name of a device; that of the fake NPU is CPU. */
const char *openvino_name(const char *device);
/* Compiles a model, then ends and frees it; its constants move to *out. Returns 0, or -errno with a
 * reason and nothing to free. Unbounded shapes are refused before an NPU's compiler, because it may
 * end the process (openvino pull request 32341). */
int openvino_compile(struct openvino *o, const char *device, struct ir *ir, struct compiled *out,
                     char *why);
void compiled_free(struct compiled *c);
/* Sets an input by pointer. False: it is refused. */
bool openvino_input(const struct compiled *c, size_t index, ov_element_type_e type,
                    const void *data, int64_t rank, const int64_t *dims);

/* Writes OpenVINO's message after `what`. Returns -EIO. */
int openvino_failure(char *why, const char *what);

/* openvino_fake.c */
bool fake_npu(void);
/* Like ov_core_compile_model_props for an NPU. False with a reason of at most `size` bytes. */
bool fake_npu_compile(const ov_core_t *core, const ov_model_t *model, size_t n,
                      const ov_property_t *properties, ov_compiled_model_t **out, char *why,
                      size_t size);
#endif

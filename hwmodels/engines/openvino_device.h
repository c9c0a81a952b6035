/* Devices of OpenVINO by name, and how a model is compiled for each.
 *
 * An NPU takes static shapes only, and its compiler is in the driver or in the plug-in (property
 * NPU_COMPILER_TYPE). Linux wheels have the plug-in without its compiler (openvino issue 36374),
 * and a driver may lack one too. So both are tried, the driver's first, and an error has both
 * reasons.
 *
 * XPUSIM_FAKE_NPU in the environment puts a fake NPU in the place of the real one, for tests: the
 * device CPU with an NPU's restrictions (openvino_fake.c). */
#pragma once

#include <stdatomic.h>

#include "hwmodels/engines/openvino_ir.h"
#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */
#include <openvino/c/openvino.h>

struct openvino {
    ov_core_t *core;      /* owned */
    char *cache;          /* owned; folder of compiled models of all devices but CPU; NULL: none */
    _Atomic int compiler; /* the NPU's that worked last; it is tried first */
};

struct compiled {
    ov_compiled_model_t *model;
    ov_infer_request_t *request;
    uint8_t *blob;  /* its constants: must stay */
    uint32_t rows;  /* static rows, 0: any */
    const char *by; /* of an NPU: "driver" or "plug-in", whose compiler it was; else "" */
    bool cached;    /* read from the cache folder */
};

/* threads: of the device CPU; with one the caller's thread runs the kernels. cache NULL: none.
 * 0 or -EIO with a reason. */
int openvino_start(struct openvino *o, uint32_t threads, const char *cache, char *why);
void openvino_stop(struct openvino *o);
const char *openvino_version(void);
double openvino_now_s(void); /* of a clock that never goes back */

bool openvino_is_npu(const char *device);
/* OpenVINO's own name of a device: the fake NPU's is CPU. */
const char *openvino_name(const char *device);
/* Compiles a model, which is ended and freed; its constants go to *out. 0, or -errno with a reason
 * and nothing to free: shapes without a bound are refused before an NPU's compiler sees them, since
 * it may end the process over them (openvino pull request 32341). */
int openvino_compile(struct openvino *o, const char *device, struct ir *ir, struct compiled *out,
                     char *why);
void compiled_free(struct compiled *c);
/* Sets an input by pointer. False where it is refused. */
bool openvino_input(const struct compiled *c, size_t index, ov_element_type_e type,
                    const void *data, int64_t rank, const int64_t *dims);

/* Writes OpenVINO's message after `what`. Returns -EIO. */
int openvino_failure(char *why, const char *what);

/* openvino_fake.c */
bool fake_npu(void);
/* As ov_core_compile_model_props of an NPU. False with a reason of at most `size` bytes. */
bool fake_npu_compile(const ov_core_t *core, const ov_model_t *model, size_t n,
                      const ov_property_t *properties, ov_compiled_model_t **out, char *why,
                      size_t size);
#endif

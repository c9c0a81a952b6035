/* The part of OpenCL 1.2 that the backend uses, found at run time: no headers, nothing to link. */
#pragma once

#include "sim/base/base.h"

/* Values as the OpenCL 1.2 specification lists them. */
enum {
    CL_SUCCESS = 0,
    CL_COMPLETE = 0,
    CL_TRUE_VALUE = 1,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_NAME = 0x102B,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    CL_DEVICE_PARTITION_EQUALLY = 0x1086,
    CL_DEVICE_TYPE_CPU = 2,
    CL_DEVICE_TYPE_GPU = 4,
    CL_QUEUE_PROFILING_ENABLE = 2,
    CL_MEM_READ_WRITE = 1,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283
};
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFFu

/* name, result, arguments: every handle is an opaque pointer. */
#define OPENCL_FUNCTIONS(F)                                                                        \
    F(clGetPlatformIDs, int32_t, (uint32_t n, void **out, uint32_t *count))                        \
    F(clGetDeviceIDs, int32_t,                                                                     \
      (void *platform, uint64_t type, uint32_t n, void **out, uint32_t *count))                    \
    F(clGetDeviceInfo, int32_t,                                                                    \
      (void *device, uint32_t what, size_t size, void *out, size_t *used))                         \
    F(clCreateSubDevices, int32_t,                                                                 \
      (void *device, const intptr_t *how, uint32_t n, void **out, uint32_t *count))                \
    F(clReleaseDevice, int32_t, (void *device))                                                    \
    F(clCreateContext, void *,                                                                     \
      (const intptr_t *how, uint32_t n, void *const *devices, void *callback, void *data,          \
       int32_t *rc))                                                                               \
    F(clReleaseContext, int32_t, (void *context))                                                  \
    F(clCreateCommandQueue, void *, (void *context, void *device, uint64_t how, int32_t *rc))      \
    F(clReleaseCommandQueue, int32_t, (void *queue))                                               \
    F(clCreateProgramWithSource, void *,                                                           \
      (void *context, uint32_t n, const char *const *text, const size_t *sizes, int32_t *rc))      \
    F(clBuildProgram, int32_t,                                                                     \
      (void *program, uint32_t n, void *const *devices, const char *options, void *callback,       \
       void *data))                                                                                \
    F(clGetProgramBuildInfo, int32_t,                                                              \
      (void *program, void *device, uint32_t what, size_t size, void *out, size_t *used))          \
    F(clReleaseProgram, int32_t, (void *program))                                                  \
    F(clCreateKernel, void *, (void *program, const char *name, int32_t *rc))                      \
    F(clReleaseKernel, int32_t, (void *kernel))                                                    \
    F(clSetKernelArg, int32_t, (void *kernel, uint32_t index, size_t size, const void *value))     \
    F(clCreateBuffer, void *, (void *context, uint64_t how, size_t size, void *host, int32_t *rc)) \
    F(clReleaseMemObject, int32_t, (void *buffer))                                                 \
    F(clEnqueueNDRangeKernel, int32_t,                                                             \
      (void *queue, void *kernel, uint32_t dims, const size_t *offset, const size_t *global,       \
       const size_t *local, uint32_t n_wait, void *const *wait, void **event))                     \
    F(clEnqueueWriteBuffer, int32_t,                                                               \
      (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, const void *data, \
       uint32_t n_wait, void *const *wait, void **event))                                          \
    F(clEnqueueReadBuffer, int32_t,                                                                \
      (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, void *data,       \
       uint32_t n_wait, void *const *wait, void **event))                                          \
    F(clFlush, int32_t, (void *queue))                                                             \
    F(clFinish, int32_t, (void *queue))                                                            \
    F(clGetEventInfo, int32_t, (void *event, uint32_t what, size_t size, void *out, size_t *used)) \
    F(clGetEventProfilingInfo, int32_t,                                                            \
      (void *event, uint32_t what, size_t size, void *out, size_t *used))                          \
    F(clReleaseEvent, int32_t, (void *event))

#define OPENCL_MEMBER(name, result, arguments) result(*name) arguments;

struct opencl_api {
    void *handle;
    OPENCL_FUNCTIONS(OPENCL_MEMBER)
};

/* Loads a library, libOpenCL.so.1 for NULL. 0, or -EINVAL with an error that names the Debian
 * packages. */
int opencl_api_load(struct opencl_api *a, const char *library, struct err *e);
void opencl_api_unload(struct opencl_api *a);
/* A fact of a device: a text cut to its place, or a number of 4 or 8 bytes. */
void opencl_info_text(const struct opencl_api *a, void *device, uint32_t what, char *out,
                      size_t size);
uint64_t opencl_info_number(const struct opencl_api *a, void *device, uint32_t what, size_t size);

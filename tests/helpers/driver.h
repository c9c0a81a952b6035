/* The opencl backend over a driver that notes what it is asked (tests/helpers/opencl). */
#pragma once

#include "hwmodels/backends/opencl_impl.h"
#include "tests/helpers/opencl/fake.h"

extern char driver_library[64];
extern struct fake_opencl *driver;
extern const struct fake_device driver_gpu;

/* Compiles and loads it; once for all tests of a file. */
void driver_build(void);
/* It has these devices, and has been asked nothing. */
void driver_devices(uint32_t n, const struct fake_device *d);
struct backend *driver_start(uint64_t pool_bytes, uint32_t variant);
struct backend_device *driver_open(struct backend *b); /* the first one */
struct backend_kernel *driver_prepare(struct backend_device *d, const struct kernel_spec *s);
/* Asserts that all that was made has been released once. */
void driver_nothing_lives(void);

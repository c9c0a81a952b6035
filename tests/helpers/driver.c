#include "tests/helpers/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/helpers/suite.h"

char driver_library[64];
struct fake_opencl *driver;

/* Once for all tests. */
void driver_build(void)
{
    char command[400];
    const char *cc = getenv("CC");
    (void)snprintf(driver_library, sizeof driver_library, "/tmp/check_opencl.%d.so", (int)getpid());
    (void)snprintf(command, sizeof command,
                   "%s -std=c17 -D_POSIX_C_SOURCE=200809L -I. -shared -fPIC -w -o %s "
                   "tests/helpers/opencl/fake.c",
                   cc != NULL ? cc : "gcc", driver_library);
    ck_assert_int_eq(system(command), 0);
    void *handle = dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    driver = dlsym(handle, "fake_opencl");
    ck_assert_ptr_nonnull(driver);
    (void)unlink(
        driver_library); /* the name leads to what is loaded as long as this process lives */
}

const struct fake_device driver_gpu = {.type = 4,
                                       .units = 3,
                                       .unified = 1,
                                       .group_max = 256,
                                       .most_bytes = 1u << 30,
                                       .name = "Some GPU",
                                       .driver = "1.2.3"};

void driver_devices(uint32_t n, const struct fake_device *d)
{
    memset(driver, 0, sizeof *driver);
    driver->n_platforms = 1;
    driver->n_devices[0] = n;
    memcpy(driver->devices[0], d, n * sizeof *d);
    driver->log = "no log";
    driver->launch_ns = 1000;
}

struct backend *driver_start(uint64_t pool_bytes, uint32_t variant)
{
    struct backend_options o = {
        .pool_bytes = pool_bytes, .library = driver_library, .gemm_variant = variant};
    struct err e = ERR_INIT;
    struct backend *b = backend_opencl.start(&o, &e);
    ck_assert_msg(b != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    return b;
}

struct backend_device *driver_open(struct backend *b)
{
    struct err e = ERR_INIT;
    struct backend_device *d = backend_opencl.open(b, 0, &e);
    ck_assert_msg(d != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    return d;
}

struct backend_kernel *driver_prepare(struct backend_device *d, const struct kernel_spec *s)
{
    struct backend_prep prep;
    struct err e = ERR_INIT;
    struct backend_kernel *k = backend_opencl.prepare(d, s, &prep, &e);
    ck_assert_msg(k != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_str_eq(prep.note, ((const struct fake_object *)k->kernel)->text);
    return k;
}

/* Every object that was made has been released once. */
void driver_nothing_lives(void)
{
    for (int i = 0; i < FAKE_KINDS; i++) {
        ck_assert_msg(driver->live[i] == 0, "%d objects of kind %d are left", driver->live[i], i);
    }
}

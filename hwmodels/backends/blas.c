/* `blas`: OpenBLAS on CPU cores, one thread per device, loaded at run time. */
#include <dlfcn.h>

#include "hwmodels/backends/cpu.h"
#include "sim/base/library.h"

/* The part of the CBLAS interface used here; the values are those of every CBLAS. */
enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 };
typedef void cblas_sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c,
                            int ldc);
typedef void cblas_sgemv_fn(int order, int trans, int m, int n, float alpha, const float *a,
                            int lda, const float *x, int incx, float beta, float *y, int incy);
typedef void set_threads_fn(int n);
typedef char *get_config_fn(void);

struct blas {
    struct cpu_backend cpu; /* first: cpu.c sees only this */
    void *handle;
    cblas_sgemm_fn *sgemm;
    cblas_sgemv_fn *sgemv;
};

static void product_f32(const struct native_product *p, const float *x, const void *w, float *y)
{
    const struct blas *s = p->library;
    int n = (int)p->n;
    int k = (int)p->k;
    /* One row uses GEMV, a separate function, because GEMM is optimised for many rows. */
    if (p->rows == 1) {
        s->sgemv(CBLAS_ROW_MAJOR, CBLAS_NO_TRANS, n, k, 1.0f, w, k, x, 1, 0.0f, y, 1);
    } else {
        s->sgemm(CBLAS_ROW_MAJOR, CBLAS_NO_TRANS, CBLAS_TRANS, (int)p->rows, n, k, 1.0f, x, k, w, k,
                 0.0f, y, n);
    }
}

static struct backend *start(const struct backend_options *o, struct err *e)
{
    const struct library openblas = {
        {o->library != NULL ? o->library : "libopenblas.so.0"},
        .missing = "backend blas: OpenBLAS is not installed",
        .remedy = "install the Debian package libopenblas0-pthread, or use --backend native",
        .lacks = "backend blas: the library lacks",
        .needs = "reinstall the Debian package libopenblas0-pthread, or use --backend native",
    };
    struct blas *s = xcalloc(1, sizeof *s);
    set_threads_fn *set_threads;
    get_config_fn *get_config;
    const struct library_function functions[] = {{"cblas_sgemm", &s->sgemm},
                                                 {"cblas_sgemv", &s->sgemv},
                                                 {"openblas_set_num_threads", &set_threads},
                                                 {"openblas_get_config", &get_config}};
    /* Before loading, because the library would start one thread per core. */
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 1);
    s->handle = library_open(&openblas, functions, sizeof functions / sizeof functions[0], e);
    if (s->handle == NULL) {
        free(s);
        return NULL;
    }
    /* One thread per device: further threads of the library would use cores of other devices. */
    set_threads(1);
    s->cpu.kernels = *native_kernels_best(); /* streams remain native */
    s->cpu.kernels.name = "openblas";
    s->cpu.kernels.product_f32 = product_f32;
    /* CBLAS only has products of 32-bit floats. Other products and attention are not measured,
     * because native kernels must not count as this backend. */
    s->cpu.kernels.product_f16 = NULL;
    s->cpu.kernels.product_i8 = NULL;
    s->cpu.kernels.attention = NULL;
    s->cpu.library = s;
    (void)snprintf(s->cpu.description, sizeof s->cpu.description, "%.80s", get_config());
    struct backend *b = xcalloc(1, sizeof *b);
    *b = (struct backend){&backend_blas, *o, s};
    return b;
}

static void stop(struct backend *b)
{
    OWNED struct blas *s = b->state;
    (void)dlclose(s->handle);
    free(b);
}

const struct backend_ops backend_blas = {
    .name = "blas",
    .summary = "OpenBLAS on CPU cores (package libopenblas0-pthread)",
    .start = start,
    .stop = stop,
    CPU_BACKEND_OPS,
};

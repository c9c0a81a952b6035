/* The kernels of the backend opencl, in OpenCL C. Weights are w[n][k] in a pool, `at` elements from
 * its start. DIM is the head dimension. STRIDED 1 lets neighbouring work-items read neighbouring
 * vectors (GPUs), 0 gives each a piece of its own (CPUs). `floats` of a stream are vectors of 16. */
float sum16(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    return b.x + b.y + b.z + b.w;
}

#if STRIDED
#define EACH(i, n) \
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0))
#else
#define EACH(i, n) \
    for (ulong i = n * get_global_id(0) / get_global_size(0); \
         i < n * (get_global_id(0) + 1) / get_global_size(0); i++)
#endif

kernel void stream_read(global float *pool, ulong at, ulong vectors, global float *y)
{
    float16 s = 0.0f;
    EACH(i, vectors) s += vload16(i, pool + at);
    y[get_global_id(0)] = sum16(s);
}

kernel void stream_copy(global float *pool, ulong at, ulong vectors, global float *y)
{
    EACH(i, vectors) vstore16(vload16(i, pool + at), vectors + i, pool + at);
}

/* A chain of dependent multiply-adds per element, four vectors at a time. */
kernel void stream_knob(global float *pool, ulong at, ulong vectors, global float *y,
                        uint steps)
{
    float16 s = 0.0f;
    ulong fours = vectors / 4;
    EACH(i, fours) {
        global float *p = pool + at + i * 64;
        float16 v = vload16(0, p), w = vload16(1, p), x = vload16(2, p), z = vload16(3, p);
        float16 a = 0.5f, b = 0.5f, c = 0.5f, d = 0.5f;
        for (uint k = 0; k < steps; k++) {
            a = fma(a, v, (float16)(0.5f));
            b = fma(b, w, (float16)(0.5f));
            c = fma(c, x, (float16)(0.5f));
            d = fma(d, z, (float16)(0.5f));
        }
        s += a + b + c + d;
    }
    y[get_global_id(0)] = sum16(s);
}

#define GEMV(NAME, TYPE, LOAD, SCALE) \
kernel void NAME(global TYPE *pool, ulong at, global float *x, global float *y, \
                 uint rows, uint n, uint k) \
{ \
    uint o = get_global_id(0) * 4; \
    global TYPE *w = pool + at + (ulong)o * k; \
    float16 a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f; \
    for (uint i = 0; i < k / 16; i++) { \
        float16 v = vload16(i, x); \
        a = fma(v, LOAD(i, w), a); \
        b = fma(v, LOAD(i, w + k), b); \
        c = fma(v, LOAD(i, w + 2 * (ulong)k), c); \
        d = fma(v, LOAD(i, w + 3 * (ulong)k), d); \
    } \
    y[o] = SCALE * sum16(a); \
    y[o + 1] = SCALE * sum16(b); \
    y[o + 2] = SCALE * sum16(c); \
    y[o + 3] = SCALE * sum16(d); \
}

#define LOAD_I8(i, p) convert_float16(vload16(i, p))
GEMV(gemv_f32, float, vload16, 1.0f)
GEMV(gemv_f16, half, vload_half16, 1.0f)
GEMV(gemv_i8, char, LOAD_I8, (1.0f / 64.0f))
/* Variant 1: 16 x 16 tiles through local memory, one result per work-item (GPUs). */
kernel void gemm_tiled(global float *pool, ulong at, global float *x, global float *y,
                       uint rows, uint n, uint k)
{
    local float a[16][16];
    local float b[16][17];
    uint c = get_local_id(0), r = get_local_id(1);
    uint o = get_group_id(0) * 16, m = get_group_id(1) * 16;
    float s = 0.0f;
    for (uint i = 0; i < k; i += 16) {
        a[r][c] = m + r < rows ? x[(ulong)(m + r) * k + i + c] : 0.0f;
        b[r][c] = o + r < n ? pool[at + (ulong)(o + r) * k + i + c] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < 16; j++) s = fma(a[r][j], b[c][j], s);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (m + r < rows && o + c < n) y[(ulong)(m + r) * n + o + c] = s;
}

/* Variant 2: 4 x 4 results in vector registers, no local memory (CPUs, wide SIMD). */
kernel void gemm_blocked(global float *pool, ulong at, global float *x, global float *y,
                         uint rows, uint n, uint k)
{
    uint o = get_global_id(0) * 4, m = get_global_id(1) * 4;
    float16 s[4][4];
    for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) s[r][c] = 0.0f;
    for (uint i = 0; i < k / 16; i++) {
        float16 b[4];
        for (int c = 0; c < 4; c++) b[c] = vload16(i, pool + at + (ulong)(o + c) * k);
        for (int r = 0; r < 4; r++) {
            float16 a = vload16(i, x + (ulong)min(m + r, rows - 1) * k);
            for (int c = 0; c < 4; c++) s[r][c] = fma(a, b[c], s[r][c]);
        }
    }
    for (uint r = 0; r < 4 && m + r < rows; r++)
        for (uint c = 0; c < 4; c++) y[(ulong)(m + r) * n + o + c] = sum16(s[r][c]);
}

/* One work-item per query row and head; softmax in one pass over the keys (running maximum). */
kernel void attention(global half *pool, ulong at, global float *x, global float *y,
                      uint rows, uint heads, uint kv_heads, uint context, uint decode)
{
    uint head = get_global_id(0), row = get_global_id(1);
    ulong sequence = decode ? row : 0, sequences = decode ? rows : 1;
    ulong part = (ulong)context * kv_heads * DIM;
    ulong kv = (ulong)(head / (heads / kv_heads)) * context * DIM;
    global half *keys = pool + at + sequence * part + kv;
    global half *values = pool + at + (sequences + sequence) * part + kv;
    global float *q = x + ((ulong)row * heads + head) * DIM;
    uint visible = decode ? context : context - rows + row + 1;
    float16 acc[DIM / 16];
    for (int i = 0; i < DIM / 16; i++) acc[i] = 0.0f;
    float top = -INFINITY, sum = 0.0f;
    for (uint j = 0; j < visible; j++) {
        float16 s = 0.0f;
        for (int i = 0; i < DIM / 16; i++)
            s = fma(vload16(i, q), vload_half16(i, keys + (ulong)j * DIM), s);
        float score = sum16(s) * rsqrt((float)DIM);
        float next = fmax(top, score);
        float keep = exp(top - next), add = exp(score - next);
        for (int i = 0; i < DIM / 16; i++)
            acc[i] = fma(vload_half16(i, values + (ulong)j * DIM), (float16)add,
                         acc[i] * keep);
        sum = sum * keep + add;
        top = next;
    }
    for (int i = 0; i < DIM / 16; i++)
        vstore16(acc[i] / sum, i, y + ((ulong)row * heads + head) * DIM);
}

#include "experiments/validation/least_squares.h"

#include "sim/base/quantile.h"

#define ROUNDS 20
#define SWEEPS 2000
#define HUBER 1.5
#define ROBUST_SD 1.4826 /* of a median absolute deviation */

/* Coordinate descent until convergence. */
static void solve(const double *a, const double *y, const double *w, size_t n, int numbers,
                  double *x)
{
    double g[LEAST_SQUARES_MAX][LEAST_SQUARES_MAX] = {{0}};
    double h[LEAST_SQUARES_MAX] = {0};
    for (size_t i = 0; i < n; i++) {
        const double *row = a + i * (size_t)numbers;
        for (int k = 0; k < numbers; k++) {
            h[k] += w[i] * row[k] * y[i];
            for (int j = 0; j < numbers; j++) {
                g[k][j] += w[i] * row[k] * row[j];
            }
        }
    }
    int used[LEAST_SQUARES_MAX]; /* a column of zeros gets 0, and does not affect the others */
    int n_used = 0;
    for (int k = 0; k < numbers; k++) {
        x[k] = g[k][k] > 0.0 ? x[k] : 0.0;
        used[n_used] = k;
        n_used += g[k][k] > 0.0;
    }
    bool moved = true;
    for (int s = 0; s < SWEEPS && moved; s++) {
        moved = false; /* else further sweeps change nothing */
        for (int u = 0; u < n_used; u++) {
            int k = used[u];
            double rest = h[k];
            for (int v = 0; v < n_used; v++) {
                rest -= v == u ? 0.0 : g[k][used[v]] * x[used[v]];
            }
            SIM_ASSERT(g[k][k] > 0.0);
            double to = fmax(0.0, rest / g[k][k]);
            moved = moved || to != x[k];
            x[k] = to;
        }
    }
}

void least_squares_fit(const double *a, const double *y, size_t n, int numbers, double *x)
{
    OWNED double *w = xmalloc((n + 1) * sizeof *w);
    OWNED double *off = xmalloc((n + 1) * sizeof *off);
    for (size_t i = 0; i < n; i++) {
        w[i] = 1.0;
    }
    for (int round = 0; round < ROUNDS; round++) {
        solve(a, y, w, n, numbers, x);
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (int k = 0; k < numbers; k++) {
                sum += a[i * (size_t)numbers + (size_t)k] * x[k];
            }
            off[i] = w[i] = fabs(sum - y[i]);
        }
        double limit = HUBER * ROBUST_SD * fmax(sample_quantile_of(off, n, 0.5), 1e-3);
        for (size_t i = 0; i < n; i++) {
            w[i] = fmin(1.0, limit / fmax(w[i], 1e-9));
            SIM_ASSERT(w[i] > 0.0);
        }
    }
}

#include "sim/base/portable.h"

#include <gsl/gsl_cdf.h>

#include "sim/base/base.h"

double portable_round(double x)
{
    char text[40];
    if (!isfinite(x)) {
        return x;
    }
    (void)snprintf(text, sizeof text, "%.*e", PORTABLE_DIGITS - 1, x);
    return strtod(text, NULL);
}

double portable_exp(double x)
{
    return portable_round(exp(x));
}

double portable_student_above(double t, double df)
{
    return portable_round(gsl_cdf_tdist_Q(t, df));
}

double portable_student_quantile(double p, double df)
{
    return portable_round(gsl_cdf_tdist_Pinv(p, df));
}

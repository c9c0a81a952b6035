#include "sim/base/portable.h"

#include <gsl/gsl_cdf.h>

#include "sim/base/base.h"

double portable_digits(double x, int digits)
{
    char text[40];
    if (!isfinite(x)) {
        return x;
    }
    (void)snprintf(text, sizeof text, "%.*e", digits - 1, x);
    return strtod(text, NULL);
}

double portable_round(double x)
{
    return portable_digits(x, PORTABLE_DIGITS);
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

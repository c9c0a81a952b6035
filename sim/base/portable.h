/* Functions whose results are equal to the last bit on every processor.
 *
 * The C library computes exp and log with fused multiply-add if the processor has it. The last
 * digit then differs, and with it all values computed from it: Student's distribution, ratios from
 * logarithms, random machines. Such a result is rounded to PORTABLE_DIGITS significant digits
 * before it is printed or used. Values that differ in the sixteenth digit then differ with a chance
 * of about 1 in 5,000, not of 1 in 2.
 *
 * Times do not need this, because they are rounded to nanoseconds. */
#pragma once

#define PORTABLE_DIGITS 12

/* x, rounded to `digits` significant digits; non-finite values unchanged. O(1), a microsecond. */
double portable_digits(double x, int digits);
/* x, rounded to PORTABLE_DIGITS. */
double portable_round(double x);
/* exp(x), rounded. */
double portable_exp(double x);

/* Student's distribution with df > 0 degrees of freedom. */
/* P(T > t). */
double portable_student_above(double t, double df);
/* The p-quantile, p in (0, 1). */
double portable_student_quantile(double p, double df);

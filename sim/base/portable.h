/* Numbers that are the same bytes on every processor.
 *
 * The C library computes exp and log with fused multiply-add where the processor has it, and
 * without where it has not. The last digit differs then, and so does what is made of it: Student's
 * distribution, ratios from logarithms, drawn machines. Such a result is rounded to
 * PORTABLE_DIGITS significant digits before it is printed or used. Two values that differ in the
 * sixteenth digit then differ with a chance of about 1 in 5,000, not of 1 in 2.
 *
 * Times need none of this, because they are rounded to nanoseconds. */
#pragma once

#define PORTABLE_DIGITS 12

/* x, rounded to so many significant digits; what is not finite stays. O(1), a microsecond. */
double portable_digits(double x, int digits);
/* x, rounded to PORTABLE_DIGITS. */
double portable_round(double x);
/* exp(x), rounded. */
double portable_exp(double x);

/* Student's distribution with df > 0 degrees of freedom. */
/* Chance of more than t. */
double portable_student_above(double t, double df);
/* The value below which a share p in (0, 1) lies. */
double portable_student_quantile(double p, double df);

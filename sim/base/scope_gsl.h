/* Destructors of GSL's vectors and matrices for SCOPED (scope.h). */
#pragma once

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>

#include "sim/base/scope.h"

/* SCOPED(vector_drop) gsl_vector *. */
static inline void vector_drop(gsl_vector **v)
{
    gsl_vector_free(*v);
}

/* SCOPED(matrix_drop) gsl_matrix *. */
static inline void matrix_drop(gsl_matrix **m)
{
    gsl_matrix_free(*m);
}

/* Libraries loaded on first use, because most runs need none of them. */
#pragma once

#include "sim/base/base.h"

struct library {
    const char *names[2];         /* tried in this order; the second may be NULL */
    const char *missing, *remedy; /* "observe: there is no libcurl", "install Debian's libcurl4" */
    const char *lacks, *needs;    /* "observe: libcurl lacks", "version 7.66 is needed" */
};

/* A function to look up, and the address of the pointer to set. */
struct library_function {
    const char *name;
    void *pointer;
};

/* The handle, for dlclose; NULL with an error: "MISSING (why): REMEDY", or "LACKS name: NEEDS". */
void *library_open(const struct library *l, const struct library_function *f, size_t n,
                   struct err *e);

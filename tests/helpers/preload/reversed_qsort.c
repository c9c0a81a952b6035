/* A shim for LD_PRELOAD: a qsort by merging that reverses equal elements. The C standard leaves
 * their order open, while the one of glibc keeps it. */
#include <stdlib.h>
#include <string.h>

typedef int compare_fn(const void *a, const void *b);

static void merge_sort(char *v, size_t n, size_t size, compare_fn *compare, char *spare)
{
    if (n < 2) {
        return;
    }
    char *end = v + n * size;
    char *a = v;
    char *b = v + n / 2 * size;
    char *const middle = b;
    merge_sort(a, n / 2, size, compare, spare);
    merge_sort(b, n - n / 2, size, compare, spare);
    for (char *to = spare; to < spare + n * size; to += size) {
        char **from = b == end || (a < middle && compare(a, b) < 0) ? &a : &b;
        memcpy(to, *from, size);
        *from += size;
    }
    memcpy(v, spare, n * size);
}

void qsort(void *v, size_t n, size_t size, compare_fn *compare)
{
    char *spare = malloc(n * size + 1);
    if (spare == NULL) {
        abort();
    }
    merge_sort(v, n, size, compare, spare);
    free(spare);
}

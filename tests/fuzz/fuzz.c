/* libFuzzer's entry: XPUSIM_READER names the reader of tests/helpers/readers.c that the inputs go
 * to. Without it the names, longest inputs and shipped files of all are printed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/memory.h"
#include "tests/helpers/readers.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const struct reader *reader;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *name = getenv("XPUSIM_READER");
    reader = name == NULL ? NULL : reader_find(name);
    if (reader == NULL) {
        for (size_t i = 0; i < n_readers; i++) {
            printf("%s %zu %s\n", readers[i].name, readers[i].most,
                   readers[i].shipped == NULL ? "-" : readers[i].shipped);
        }
        exit(name == NULL ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    memory_guard();
    (void)atexit(readers_fini);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    (void)reader_try(reader, bytes, n);
    return 0;
}

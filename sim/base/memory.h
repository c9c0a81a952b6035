/* If memory runs out, the process ends with exit status 3 (arena.h), in libraries too. An
 * incomplete JSON tree or a truncated line must not be taken for a result. */
#pragma once

#include <stdio.h>

/* Makes cJSON and GSL allocate so. Call it once, first in main. (SQLite's and libcsv's allocators
 * are set where they are initialised.) */
void memory_guard(void);

/* As open_memstream, but exits if memory runs out. The text is complete after a flush. */
FILE *memory_stream(char **text, size_t *size);
/* As fflush, but ends the process on failure. Call it before the text is used. */
void memory_stream_flush(FILE *f);
/* memory_stream_flush, then fclose. text: the pointer that memory_stream got. */
void memory_stream_close(FILE *f, char *const *text);

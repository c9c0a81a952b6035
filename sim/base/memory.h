/* Memory that runs out ends the process with exit status 3 (arena.h), in libraries too. Half a JSON
 * tree, or a line that stops where the buffer could not grow, must not pass for a result. */
#pragma once

#include <stdio.h>

/* Once, first in main: cJSON and GSL allocate through this. (SQLite's store and libcsv's readers
 * set theirs where they start.) */
void memory_guard(void);

/* As open_memstream, but memory that runs out ends the process. The text is whole after a flush. */
FILE *memory_stream(char **text, size_t *size);
/* Before the text is used, as fflush: it is whole, or the process ends. */
void memory_stream_flush(FILE *f);
/* memory_stream_flush, then fclose; text: the stream's. */
void memory_stream_close(FILE *f, char *const *text);

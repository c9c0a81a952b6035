/* One file of a test's own. */
#pragma once

/* Names a file that nobody else has, and that is not there yet. suffix: "" or ".json". */
const char *tempfile_make(const char *suffix);
/* Its text. */
void tempfile_put(const char *text);
/* Removes it, if it is there. */
void tempfile_remove(void);

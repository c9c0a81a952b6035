#pragma once

/* Runs the program for every k of RANGE ("FIRST:LAST:STEP"), each in a forked process in this
 * folder, with out/ and scratch/ emptied before, its output in the file stdout and its messages in
 * stderr; and judges each: exit 0 with want.stdout's bytes and want/'s files, or exit 3 with "out
 * of memory" in the first line of its messages and no file in out/ that is not as in want/. A wrong
 * one is printed. k = 0, where nothing fails, comes first: beyond the allocations of the largest
 * process of that run (`most`, counted in shared memory) and a tenth more, nothing is run. Prints
 * "allocations tried same exit-3 wrong" at the end; returns 1 when one was wrong. FM_NAME names the
 * command in what is printed. */
int failtable(const char *range, int (*program)(unsigned long k), const unsigned long *most);

#pragma once

/* Runs the program once for every k of `range` ("FIRST:LAST:STEP"), each time in a forked process
 * in this folder. It empties out/ and scratch/ first. The process writes its output to the file
 * stdout, and its messages to stderr.
 *
 * A run is right in two cases, and every other one is printed:
 *
 * - Exit 0: the output is that of want.stdout, and out/ has the files of want/.
 * - Exit 3: the first line of messages says "out of memory", and every file in out/ is as in want/.
 *
 * The first run is k = 0, in which nothing fails. Its largest process counts its allocations in
 * `most`, in shared memory. No k beyond this count and a tenth more is run. The last line printed
 * is "allocations tried same exit-3 wrong". Returns 1 when a run was wrong. FM_NAME is the
 * command's name in what is printed. */
int failtable(const char *range, int (*program)(unsigned long k), const unsigned long *most);

#!/bin/sh
# Writes docs/accuracy.md to stdout: errors and intervals of every class, and the change since the
# record (hwmodels/accuracy.json, `make accuracy-record`).
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
cat <<'TEXT'
# How accurate predictions are

`make accuracy` writes this page from the published measurements in the tree (`hwmodels/points/reference.csv`). A test fails when the page is old, when a class of 30 rows or more has a median error worse by a tenth than the record, or when its coverage falls below 93 %. The record is `hwmodels/accuracy.json`; `make accuracy-record` replaces it at a release.

The first column says what of a row nobody had measured when it was predicted. Find your case there:

| unseen | your case | how the rows were predicted |
|---|---|---|
| nothing | a model and a machine of the tables | by the shipped files, which were fitted to these rows |
| model | another model on a machine of the tables | by a fit without the model |
| source | your own measurement of such a machine | by a fit without the publication, from other publications of the part or its family |
| soc, 1 model known | a machine made by `new-soc --measured` | from a similar chip, updated by one measured model |
| soc | a machine made by `new-soc --like` | from a similar chip by data sheet |
| runtime | a runtime or a version that the file lacks | by the numbers of another runtime of the device |

* *|error|* is |predicted / measured - 1| in %: the median, then the 90th percentile.
* *in 95 %* is the share of rows within their 95 % intervals. An interval never rests on what was left out with its row.
* *x or /* is the median factor of these intervals: 1.5 means from predicted / 1.5 to predicted x 1.5.
* *wider than needed* divides the logarithm of the intervals by that of the narrowest ones in proportion that hold 95 % of the rows. 1 is ideal, below 1 is too narrow. Classes of fewer than 30 rows have none.
* *was* is the record.
* *memory* is the highest resident set of the process. *Runtime* unseen means the mean of the other runtimes' numbers there.

Powers and energies have [a table of their own](../hwmodels/VALIDATION.md); so do measured serving runs.
TEXT
"$x" validate --points reference --accuracy --against hwmodels/accuracy.json --markdown

#!/bin/sh
# Writes docs/accuracy.md to stdout: errors and intervals of every class, and the change since the
# record (hwmodels/accuracy.json, `make accuracy-record`).
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
cat <<'TEXT'
# How accurate predictions are

`make accuracy` writes this page from the published measurements in the tree (`hwmodels/points/reference.csv`). A test fails when the page is out of date. It also fails when a class of 30 rows or more has a median error worse by a tenth than the record, or a coverage below 93 %. The record is `hwmodels/accuracy.json`; `make accuracy-record` replaces it at a release, and where a change of the errors is intended. CHANGELOG.md then has both numbers.

The first column says what was new in a prediction: the model, the source, the machine or the runtime. Find your case there:

| unseen | your case | how the rows were predicted |
|---|---|---|
| nothing | a model and a machine of the tables | by the shipped files, which were fitted to these rows |
| model | another model on a machine of the tables | by a fit without the model |
| source | your own measurement of such a machine | by a fit without the publication, from other publications of the part or its family |
| soc, averaged, 1 model known | a machine made by `new-soc --measured` without `--like` | from all similar chips, averaged by their probabilities and updated by one measured model |
| soc, 1 model known | a machine made by `new-soc --like S --measured` | from a similar chip, updated by one measured model |
| soc | a machine made by `new-soc --like` | from a similar chip by data sheet |
| runtime | a runtime or a version that the file lacks | by the numbers of another runtime of the device |

* *|error|* is |predicted / measured - 1| in %: the median, then the 90th percentile.
* *in 95 %* is the share of rows within their 95 % intervals. An interval rests on other rows only: none of the model, source, machine or runtime that was new.
* *x or /* is the median factor of these intervals: 1.5 means from predicted / 1.5 to predicted x 1.5.
* *wider than needed* divides the logarithm of the intervals by that of the narrowest ones in proportion that hold 95 % of the rows. 1 is ideal, below 1 is too narrow. Classes of fewer than 30 rows have none.
* *was* is the record.
* *memory* is the highest resident set of the process. *Runtime* unseen means the mean of the other runtimes' numbers there.
TEXT
awk -F, '$1 == "soc" {
        for (i = 1; i <= NF; i++) {
            at[$i] = i
        }
    }
    $at["phase"] == "decode" && $at["left_out"] == "soc" {
        device = $at["device"]
        machine = $at["soc"] FS device
        row = machine FS $at["runtime"] FS $at["weight_bits"] FS $at["model"] FS $at["input_tokens"] FS $at["batch"]
        n[device]++
        rows[device] += !(row in seen)
        machines[device] += !(machine in seen)
        seen[row] = seen[machine] = 1
    }
    END {
        printf "* *rows* of an unseen soc are predictions. A measured row counts once for each chip that it was predicted from, "
        printf "and with 1 model known once for each model that was measured, too. "
        printf "The %d decodes on iGPUs are of %d measured rows of %d machines, and the %d on NPUs of %d rows of %d.\n",
            n["igpu"], rows["igpu"], machines["igpu"], n["npu"], rows["npu"], machines["npu"]
    }' hwmodels/residuals.csv
cat <<'TEXT'

Powers and what no model can know are at the end of the page. Measured serving runs have [tables of their own](../hwmodels/VALIDATION.md).
TEXT
"$x" validate --points reference --accuracy --against hwmodels/accuracy.json --markdown
cat <<'TEXT'

## A machine that no fit has seen

The Core Ultra X7 358H has 444 published times and 222 peaks of memory (`hwmodels/points/unseen.csv`). `new-soc --like core-ultra-7-258v` makes its file from the data sheet, and no fit takes them. Their errors in short prompts led to the rule of `row_fill`, so of that rule they are no unseen test. Intervals are those of a runtime that the file lacks, because the table is of OpenVINO 2026.0.

TEXT
echo '```'
"$x" validate --points unseen | sed -n '3,14p;/^    memory_mib/p'
echo '```'
cat <<'TEXT'

## Powers

Each of 104 published powers is predicted by a fit without its source, and by a fit without its model on its machine. *W, rate measured* tests the watts alone. *J/token, rate predicted* takes the rate from the machine's file.

TEXT
echo '```'
"$x" validate --energy energy | sed -n '/quantity/,/^$/p' | sed '$d'
echo '```'
cat <<'TEXT'

## What no model can know

*Twins* are rows of one machine, version, width and length whose models have the same shape, against their centre. *Other versions* are one row under two versions of a toolchain. No row of a time has two publications of one version. Where two versions were published apart, they differ by 1.04 to 1.46 (Genie) and 1.6 to 1.8 (FastFlowLM 0.1 and 0.9).

TEXT
echo '```'
"$x" validate --points reference | sed -n '/no form can know/,/^$/p' | sed '/twins: /,$d'
echo '```'
cat <<'TEXT'

Powers of one case that were read twice, in W:

TEXT
echo '```'
"$x" validate --energy energy | sed -n '/read twice/,/^$/p' | sed '$d'
echo '```'

/* Options that do not go together are refused, of every command, word for word. Each is tested
 * alone, and next to it the nearest line that is not refused so, but for another reason. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/text.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

struct line {
    const struct command *command;
    const char *words; /* between blanks */
    const char *says;  /* NULL: an error with 2, whichever */
};

#define BOTH_GET                                                                                   \
    "--b-trace, --b-workload, --b-machine, --b-ttft-slo and --b-tpot-slo: both sides get side "    \
    "A's "                                                                                         \
    "requests, their targets and events of the machine; `xpusim diff` compares runs of different " \
    "ones"
#define POLICY "--policy is missing (`xpusim list policy` shows the names)"
#define LOGS "decision logs and --policy exclude each other, and so do options of runs"
#define SELECTS                                                                                    \
    "--select: chooses on the public split with as many runs as it takes, explains nothing and "   \
    "counts nobody"
#define STORED                                                                                     \
    "without --policy, compare shows what is in the store; options of runs (--workload, --set, "   \
    "--load, ...) belong to --policy"
#define RESAMPLE "--resample: takes one recorded trace (--trace FILE)"
#define RESAMPLED                                                                                  \
    "--resample: does not go with --store, --tune, --regret and --uncertainty, which need a "      \
    "sample of its own"
#define SELECT                                                                                     \
    "--select: takes one metric, and does not go with --resample, --regret and --uncertainty"
#define EXPLAIN "--policy, and either --request, --job or --interference, are needed"
#define TOGETHER "--points, --corun, --energy and --run exclude each other"
#define WHOLE_TABLE                                                                                \
    "--energy and --corun are of all machines and models of their table: --soc and --llm do not "  \
    "go with them"
#define FITS "--under, --over, --state, --witness and --confirm go with --fit"
#define FITTED "--fit: names its claims itself, and takes no ID, --list and --brief"
#define NO_SOC_FILE "-o: is for the file of --soc; --residuals and --memory write none"
#define NO_FILE                                                                                    \
    "without an experiment file sweep prints what is in the store; --policy, --shard, --dry-run "  \
    "and --fail-fast belong to a file"
#define OWN_TRACES                                                                                 \
    "--calibrate runs its own traces; --trace and --workload are of --compare and of a run"
#define SLURM "--slurm excludes --shard and --export"
#define NO_SLURM "--slurm-scripts and --slurm-option go with --slurm TASKS"
#define RANDOM "graphs: --random goes with --seed, --keep-old and --json only"
#define FEW "--uncertainty: needs --replications 2 or more"

#define NO_NAME(what)                                                                              \
    ": not a shipped name (`xpusim list " what "` shows them), nor a file ending in .json"
#define NO_METRIC ": no metric is called so (`xpusim run --json` shows all)"

#define OF_TIMELINE                                                                                \
    "--from, --to and --timeline-detail belong to --timeline; results are of the whole run"

static const struct line lines[] = {
    {&cmd_run, "--seed 1", POLICY},
    {&cmd_run, "--policy fcfs --soc no-such", "--soc no-such" NO_NAME("soc")},
    {&cmd_run, "--policy fcfs --soc no-such.json", "no-such.json: No such file or directory"},
    {&cmd_run, "--policy fcfs --soc no/such.json", "no/such.json: No such file or directory"},
    {&cmd_run, "--policy fcfs --soc such/json", "--soc such/json" NO_NAME("soc")},
    {&cmd_run, "--policy fcfs --llm no-such", "--llm no-such" NO_NAME("llm")},
    {&cmd_run, "--policy fcfs --llm no-such.json", "no-such.json: No such file or directory"},
    {&cmd_run, "--policy fcfs --workload no-such.json", "no-such.json: No such file or directory"},
    {&cmd_run, "--policy fcfs --machine no-such.json", "no-such.json: No such file or directory"},
    {&cmd_run, "--policy nobody --from 2 --to 2", "--to 2: not after --from 2"},
    {&cmd_run, "--policy fcfs --from 3 --to 2.5", "--to 2.5: not after --from 3"},
    {&cmd_run, "--policy fcfs --timeline t.json --from 2 --to 2.5 --soc no-such", NULL},
    {&cmd_run, "--policy fcfs --timeline t.json --from 2 --soc no-such", NULL},
    {&cmd_run, "--policy fcfs --from 2", OF_TIMELINE},
    {&cmd_run, "--policy fcfs --to 2", OF_TIMELINE},
    {&cmd_run, "--policy fcfs --timeline-detail kernels", OF_TIMELINE},

    {&cmd_compare, "--seed 1", POLICY},
    {&cmd_compare, "--policy fcfs --metric enrgy_j",
     "--metric enrgy_j" NO_METRIC "; did you mean energy_j?"},
    {&cmd_compare, "--policy fcfs --metric reactive.tfft_s",
     "--metric reactive.tfft_s" NO_METRIC "; did you mean reactive.ttft_s.mean?"},
    {&cmd_compare, "--policy fcfs --metric something-else", "--metric something-else" NO_METRIC},
    {&cmd_compare, "--policy fcfs --metric dvfs.speed_frac",
     "--metric dvfs.speed_frac: runs of this machine and these models lack it (`xpusim list "
     "metric` has all)"},
    {&cmd_search, "--policy fcfs --slo model.loads<=2",
     "--slo model.loads: runs of this machine and these models lack it (`xpusim list metric` has "
     "all)"},
    {&cmd_compare, "--store no.db --load 0.5", STORED},
    {&cmd_compare, "--store no.db --regret", STORED},
    {&cmd_compare, "--store no.db --tune 4", STORED},
    {&cmd_compare, "--store no.db --uncertainty 16", STORED},
    {&cmd_compare, "--store no.db --workload w1", STORED},
    {&cmd_compare, "--store no.db --trace t.csv", STORED},
    {&cmd_compare, "--store no.db --set sim.stall_s=1", STORED},
    {&cmd_compare, "--store no.db --quantile 97", STORED},
    {&cmd_compare, "--store no.db --below 2", STORED},
    {&cmd_compare, "--store no.db --qoe 1,5", STORED},
    {&cmd_compare, "--store no.db --select 0.9", STORED},
    {&cmd_compare, "--policy nobody --resample sessions", RESAMPLE},
    {&cmd_compare, "--policy nobody --resample sessions --trace t.csv --trace u.csv", RESAMPLE},
    {&cmd_compare, "--policy nobody --resample sessions --trace t.csv --regret", RESAMPLED},
    {&cmd_compare, "--policy nobody --resample sessions --trace t.csv --tune 4", RESAMPLED},
    {&cmd_compare, "--policy nobody --resample sessions --trace t.csv --uncertainty 16", RESAMPLED},
    {&cmd_compare, "--policy nobody --resample sessions --trace t.csv --store s.db", RESAMPLED},
    {&cmd_compare, "--policy nobody --select 0.9 --resample sessions --trace t.csv", SELECT},
    {&cmd_compare, "--policy nobody --select 0.9 --regret", SELECT},
    {&cmd_compare, "--policy nobody --select 0.9 --uncertainty 16", SELECT},
    {&cmd_compare, "--policy nobody --select 0.9 --metric energy_j --metric all.shed", SELECT},
    {&cmd_compare, "--policy nobody --by soc", "--by belongs to --store without --policy"},
    {&cmd_compare, "--policy nobody --tune-metric energy_j",
     "--tune-metric and --tune-replications belong to --tune N"},
    {&cmd_compare, "--policy nobody --tune-replications 2",
     "--tune-metric and --tune-replications belong to --tune N"},

    {&cmd_explain, "--request 0", EXPLAIN},
    {&cmd_explain, "--policy nobody", EXPLAIN},
    {&cmd_explain, "--policy nobody --request 0 --job 0", EXPLAIN},
    {&cmd_explain, "--policy nobody --request 0 --interference", EXPLAIN},
    {&cmd_explain, "--policy nobody --job 0 --interference", EXPLAIN},
    {&cmd_explain, "--policy nobody --job 0 --until first-token",
     "--until first-token: a job ends with the last token of a request"},
    {&cmd_explain, "--policy nobody --request 0 --until first-token", NULL},
    {&cmd_explain, "--policy nobody --interference --until first-token",
     "--until first-token: goes with --request, not with --interference"},
    {&cmd_explain, "--policy nobody --interference --until last-token", NULL},

    {&cmd_search, "--policy fcfs --slo all.e2e_s.mean<=9 --set sim.horizon_s=9",
     "--slo: with sim.horizon_s requests stay unfinished, and a target holds at the rate that "
     "leaves out most of them"},
    {&cmd_search, "--slo energy_j<=1", POLICY},
    {&cmd_search, "--policy nobody", "--slo is missing, as in --slo 'reactive.e2e_s.p90<=20'"},

    {&cmd_gate, "--update", "--baseline is missing"},
    {&cmd_gate, "--baseline no.json --against /bin/true --update",
     "--against and --update exclude each other"},
    {&cmd_gate, "--baseline no.json --against no-such",
     "--against no-such: not a program: No such file or directory"},
    {&cmd_gate, "--baseline no.json --old t.csv", "--old t.csv: not a program: Permission denied"},
    {&cmd_gate, "--baseline no.json --old /bin/true", NULL},

    {&cmd_bisect, "--policy nobody", "-o is missing: where the trace goes"},
    {&cmd_bisect, "--policy fcfs -o o.csv --b-machine m.json", BOTH_GET},
    {&cmd_bisect, "--policy fcfs -o o.csv --b-trace t.csv", BOTH_GET},
    {&cmd_bisect, "--policy fcfs -o o.csv --b-workload mixed", BOTH_GET},
    {&cmd_bisect, "--policy fcfs -o o.csv --b-ttft-slo 1", BOTH_GET},
    {&cmd_bisect, "--policy fcfs -o o.csv --b-tpot-slo 1", BOTH_GET},
    {&cmd_diff, "a", "two decision logs are compared, or two runs"},
    {&cmd_diff, "a b --policy fcfs", LOGS},
    {&cmd_diff, "a b --b-policy fcfs", LOGS},
    {&cmd_diff, "a b --against x", LOGS},
    {&cmd_diff, "a b --b-seed 2", LOGS},
    {&cmd_diff, "a b --workload w1", LOGS},
    {&cmd_diff, "--seed 1", POLICY},
    {&cmd_diff, "--policy fcfs --against no-such",
     "--against no-such: not a program: No such file or directory"},

    {&cmd_falsify, "--policy nobody",
     "--policy and --baseline are needed (`xpusim list policy` shows the names)"},
    {&cmd_falsify, "--baseline nobody",
     "--policy and --baseline are needed (`xpusim list policy` shows the names)"},
    {&cmd_falsify, "--policy fcfs --baseline edf --set sim.horizon_s=9",
     "--metric: with sim.horizon_s requests stay unfinished, and no metric has what those have "
     "lost"},
    {&cmd_falsify, "--policy nobody --baseline nobody --trace t.csv",
     "--trace: a loss is confirmed on fresh traces, and a recording gives none; use --workload"},

    {&cmd_validate, "--seed 1",
     "say what to validate: --points FILE, --corun FILE, --energy FILE or --run FILE"},
    {&cmd_validate, "--points a --corun b", TOGETHER},
    {&cmd_validate, "--points a --energy b", TOGETHER},
    {&cmd_validate, "--points a --run b", TOGETHER},
    {&cmd_validate, "--corun a --energy b", TOGETHER},
    {&cmd_validate, "--corun a --run b", TOGETHER},
    {&cmd_validate, "--energy a --run b", TOGETHER},
    {&cmd_validate, "--energy a --soc rk3588", WHOLE_TABLE},
    {&cmd_validate, "--energy a --llm qwen3-4b", WHOLE_TABLE},
    {&cmd_validate, "--corun a --soc core-ultra-5-125h", WHOLE_TABLE},
    {&cmd_validate, "--points a --policy fcfs", "--policy: validate --points has no use for it"},
    {&cmd_validate, "--corun a --fit rate", "--fit: validate --corun has no use for it"},
    {&cmd_validate, "--energy a --fit-on first:0.5",
     "--fit-on: validate --energy has no use for it"},
    {&cmd_validate, "--points a --replicas 2", "--replicas: validate --points has no use for it"},
    {&cmd_validate, "--corun a --requests r.csv", "--requests: validate --corun has no use for it"},
    {&cmd_validate, "--energy a --max-e2e-mape 5",
     "--max-e2e-mape: validate --energy has no use for it"},
    {&cmd_validate, "--points a --max-ttft-mape 5",
     "--max-ttft-mape: validate --points has no use for it"},
    {&cmd_validate, "--run a --rows", "--rows: validate --run has no use for it"},
    {&cmd_validate, "--corun a --max-median 5", "--max-median: validate --corun has no use for it"},
    {&cmd_validate, "--energy a --max-p90 5", "--max-p90: validate --energy has no use for it"},
    {&cmd_validate, "--run a --leave-machine-out 2",
     "--leave-machine-out: validate --run has no use for it"},
    {&cmd_validate, "--corun a --accuracy", "--accuracy: validate --corun has no use for it"},
    {&cmd_validate, "--energy a --against j.json",
     "--against: validate --energy has no use for it"},
    {&cmd_validate, "--corun a --rows", "--rows: validate --corun has no use for it"},
    {&cmd_validate, "--points a --trace t.csv", "--trace: validate --points has no use for it"},
    {&cmd_validate, "--corun a --workload mixed", "--workload: validate --corun has no use for it"},
    {&cmd_validate, "--energy a --machine m.json",
     "--machine: validate --energy has no use for it"},
    {&cmd_validate, "--points a --seed 3", "--seed: validate --points has no use for it"},
    {&cmd_validate, "--corun a --ttft-slo 3", "--ttft-slo: validate --corun has no use for it"},
    {&cmd_validate, "--energy a --tpot-slo 3", "--tpot-slo: validate --energy has no use for it"},
    {&cmd_validate, "--points a --quantile 97", "--quantile: validate --points has no use for it"},
    {&cmd_validate, "--corun a --below 3", "--below: validate --corun has no use for it"},
    {&cmd_validate, "--energy a --qoe 1,5", "--qoe: validate --energy has no use for it"},
    {&cmd_validate, "--run a --machine m.json", "--machine: validate --run has no use for it"},
    {&cmd_validate, "--run a --quantile 97", "--quantile: validate --run has no use for it"},
    {&cmd_validate, "--run a --below 3", "--below: validate --run has no use for it"},
    {&cmd_validate, "--run a --qoe 1,5", "--qoe: validate --run has no use for it"},
    {&cmd_validate, "--energy a --set sim.contention=none",
     "--set: validate --energy has no use for it"},
    {&cmd_validate, "--corun a --set sim.horizon_s=9",
     "--set: validate --corun has no use for it but sim.contention"},
    {&cmd_validate, "--corun a --set sim.contention=none --set sim.horizon_s=9",
     "--set: validate --corun has no use for it but sim.contention"},
    {&cmd_validate, "--points a --uncertainty 9",
     "--uncertainty: validate --points has no use for it"},
    {&cmd_validate, "--energy a --queue round-robin",
     "--queue: validate --energy has no use for it"},
    {&cmd_validate, "--run a --queue round-robin",
     "--queue: validate --run without --replicas has no use for it"},
    {&cmd_validate, "--run a --fit rate --uncertainty 9",
     "--uncertainty: validate --run --fit has no use for it"},
    {&cmd_validate, "--run a --replicas 2 --queue round-robin --uncertainty 9",
     "validate --run needs --run, --soc, --llm and --policy"},
    {&cmd_validate, "--energy no.csv --rows", NULL},
    {&cmd_validate, "--corun no.csv --set sim.contention=none", NULL},
    {&cmd_validate, "--run no.csv --seed 3 --ttft-slo 3", NULL},

    {&cmd_merge, "a.db", "usage: xpusim merge -o OUT.db A.db B.db ..."},
    {&cmd_sweep, "-o s.db", "the experiment file is missing; `xpusim sweep --help`"},
    {&cmd_sweep, "s.json", "-o STORE.db is missing: where results go"},
    {&cmd_sweep, "--export csv", "-o STORE.db is missing: where results go"},
    {&cmd_sweep, "s.json -o s.db --slurm 2 --shard 0/2", SLURM},
    {&cmd_sweep, "s.json -o s.db --slurm 2 --export csv", SLURM},
    {&cmd_sweep, "s.json -o s.db --slurm-scripts", NO_SLURM},
    {&cmd_sweep, "s.json -o s.db --slurm-option=--mem=2G", NO_SLURM},
    {&cmd_sweep, "s.json -o s.db --dry-run --export csv",
     "--dry-run excludes --export: there are no results"},
    {&cmd_sweep, "-o s.db --export csv --policy fcfs", NO_FILE},
    {&cmd_sweep, "-o s.db --export csv --shard 1/2", NO_FILE},
    {&cmd_sweep, "--export csv --dry-run", NO_FILE},
    {&cmd_sweep, "-o s.db --export csv --fail-fast", NO_FILE},
    {&cmd_sweep, "-o s.db --export csv --jobs 2", NULL},

    {&cmd_observe, "--url http://127.0.0.1:1/v1", "--url and --trace are needed"},
    {&cmd_observe, "--trace t.csv", "--url and --trace are needed"},
    {&cmd_observe, "--url http://127.0.0.1:1/v1 --trace cancels.csv",
     "--trace cancels.csv: requests that cancel others are not replayed on a server"},

    {&cmd_report, "a.json --to 1 --from 1", NULL},
    {&cmd_explain, "--policy fcfs --request 1 --quantile 97",
     "--quantile: explain has no use for it"},
    {&cmd_diff, "--policy fcfs --b-policy edf --qoe 1,5", "--qoe: diff has no use for it"},
    {&cmd_diff, "--policy fcfs --b-policy edf --b-below 3", "--b-below: diff has no use for it"},
    {&cmd_bisect, "-o t.csv --policy fcfs --b-policy edf --below 3",
     "--below: bisect has no use for it"},
    {&cmd_search, "--policy fcfs --slo reactive.qoe.mean>=0.9 --qoe 1,5 --below 3",
     "--below: search has no use for it"},
    {&cmd_falsify, "--policy fcfs --baseline edf --quantile 97",
     "--quantile: falsify has no use for it"},
    {&cmd_diff, "a.log b.log --time-limit 3",
     "--time-limit: diff of decision logs has no use for it"},
    {&cmd_claims, "C1 --budget 9", "--budget: claims without --fit has no use for it"},
    {&cmd_claims, "--list --replications 9", "--replications: claims --list has no use for it"},
    {&cmd_plot, "list --font 9", "--font: plot list has no use for it"},
    {&cmd_help, "run --man --completion bash", "--man: help --completion has no use for it"},
    {&cmd_check_policy, "fcfs --load 3 --loads 2",
     "--loads: check-policy --load has no use for it"},
    {&cmd_figure, "--store s.db", "--store: figure without PAPER has no use for it"},
    {&cmd_figure, "--replications 3", "--replications: figure without PAPER has no use for it"},
    {&cmd_list, "kernels --seed 4", "--seed: list kernels has no use for it"},
    {&cmd_list, "kernels --soc core-ultra-7-258v --trace t.csv",
     "--trace: list kernels has no use for it"},
    {&cmd_list, "policy --soc core-ultra-7-258v", "--soc: list policy has no use for it"},
    {&cmd_characterize, "affinity --replications 8",
     "--replications: characterize without schemes has no use for it"},
    {&cmd_characterize, "--store s.db", "--store: characterize without schemes has no use for it"},
    {&cmd_characterize, "affinity schemes --replications 3 --quantile 40",
     "--quantile: characterize has no use for it"},
    {&cmd_characterize, "weather --soc core-ultra-7-258v --llm llama-3.2-1b:bits=4", NULL},
    {&cmd_figure, "no-such 3", "no-such 3: no such figure; `xpusim figure` lists them"},

    {&cmd_claims, "--uncertainty 16", "--uncertainty: is for --headline"},
    {&cmd_claims, "--headline --uncertainty 16 --replications 1", FEW},
    {&cmd_claims, "--headline --fit C1", "--headline: excludes --fit, --list and --brief"},
    {&cmd_claims, "--headline --list", "--headline: excludes --fit, --list and --brief"},
    {&cmd_claims, "--headline --brief", "--headline: excludes --fit, --list and --brief"},
    {&cmd_claims, "--under C1", FITS},
    {&cmd_claims, "--over a", FITS},
    {&cmd_claims, "--state f", FITS},
    {&cmd_claims, "--list --witness f", FITS},
    {&cmd_claims, "--confirm 3", FITS},
    {&cmd_claims, "C1 --fit C2", FITTED},
    {&cmd_claims, "--list --fit C2", FITTED},
    {&cmd_claims, "--brief --fit C2", FITTED},
    {&cmd_claims, "--list --set a", "--set a: must be PATH=VALUE"},
    {&cmd_claims, "--list --policy a", "--policy a: must be NAME:key=value"},
    {&cmd_claims, "--list --scale a", "--scale a: must be KIND:key=value"},

    {&cmd_drive, "--policy fcfs --calibrate t.csv", "--calibrate needs -o FILE.json"},
    {&cmd_drive, "--policy fcfs --explain --timeline a.json",
     "--explain and --timeline: one of them a run"},
    {&cmd_drive, "--policy fcfs --beside-soc two-cores", "--beside-soc goes with --compare"},
    {&cmd_drive, "--policy fcfs --trace-only", "--trace-only goes with --calibrate"},
    {&cmd_drive, "--calibrate t.csv -o a.json --trace u.csv", OWN_TRACES},
    {&cmd_drive, "--calibrate t.csv -o a.json --workload mixed", OWN_TRACES},
    {&cmd_drive, "--compare --policy fcfs --calibrate t.csv -o a.json --trace u.csv --trace-only",
     "--compare needs at least two --policy"},
    {&cmd_drive, "--compare --policy fcfs", "--compare needs at least two --policy"},
    {&cmd_drive, "--trace t.csv", "one --policy is needed (several with --compare)"},
    {&cmd_drive, "--policy fcfs --policy edf", "one --policy is needed (several with --compare)"},

    {&cmd_measure, "--list --seed 4", "--seed: measure --list has no use for it"},
    {&cmd_measure, "--fit a.csv --window-s 1", "--window-s: measure --fit has no use for it"},
    {&cmd_measure, "--fit a.csv --pairs --ddr-peak 90",
     "--ddr-peak: measure --fit has no use for it"},
    {&cmd_measure, "--backend sim -o a.csv --library l.so",
     "--library: measure without --fit has no use for it"},
    {&cmd_measure, "-o a.csv --soc core-ultra-7-258v",
     "--soc: measure of real devices has no use for it"},
    {&cmd_measure, "--fit no.csv -o a.json --ddr-peak 90", NULL},
    {&cmd_measure, "--backend sim", "measure: -o FILE.csv is needed (or --fit, or --list)"},
    {&cmd_measure, "-o a.csv --pairs --alone", "measure: --pairs and --alone: one of them"},
    {&cmd_measure, "-o a.csv --json", "measure: --json goes with --fit"},
    {&cmd_measure, "-o a.csv --backend no-such",
     "--backend no-such: no such backend; `xpusim measure --list` shows them"},
    {&cmd_measure, "-o a.csv --backend native --sim noise=0", "--sim goes with --backend sim"},
    {&cmd_measure, "-o a.csv --backend sim --name a/b",
     "--name a/b: letters, digits and . _ - + only, at most 63"},

    {&cmd_graphs, "--p 1", "graphs: --p, --d, --s and --chunks are needed (or --random)"},
    {&cmd_graphs, "--d 1 --s 1 --chunks 1",
     "graphs: --p, --d, --s and --chunks are needed (or --random)"},
    {&cmd_graphs, "--p 1 --s 1 --chunks 1",
     "graphs: --p, --d, --s and --chunks are needed (or --random)"},
    {&cmd_graphs, "--p 1 --d 1 --chunks 1",
     "graphs: --p, --d, --s and --chunks are needed (or --random)"},
    {&cmd_graphs, "--p 1 --d 1 --s 1",
     "graphs: --p, --d, --s and --chunks are needed (or --random)"},
    {&cmd_graphs, "--p 1,2 --d 1 --s 1,2 --chunks 1",
     "graphs: --p, --d and --s hold 2, 1 and 2 values; one per block is needed in each"},
    {&cmd_graphs, "--p 1,2 --d 1,2 --s 1,2,3 --chunks 1",
     "graphs: --p, --d and --s hold 2, 2 and 3 values; one per block is needed in each"},
    {&cmd_graphs, "--p 1 --d 1 --s 1 --chunks 1 --seed 2", "graphs: --seed goes with --random"},
    {&cmd_graphs, "--p 1 --d 1 --s 1 --chunks 1 --strategy x",
     "--strategy: no strategy \"x\", see xpusim graphs --help"},
    {&cmd_graphs, "--random 2 --p 1", RANDOM},
    {&cmd_graphs, "--random 2 --d 1", RANDOM},
    {&cmd_graphs, "--random 2 --s 1", RANDOM},
    {&cmd_graphs, "--random 2 --chunks 1", RANDOM},
    {&cmd_graphs, "--random 2 --strategy all", RANDOM},
    {&cmd_graphs, "--random 2 --gantt", RANDOM},
    {&cmd_graphs, "--random 2 --nodes 5", RANDOM},
    {&cmd_graphs, "--p 1,x --d 1 --s 1 --chunks 1",
     "--p: \"1,x\" is not a list of integers such as 10,12,8"},
    {&cmd_graphs, "--p 1 --d 1, --s 1 --chunks 1",
     "--d: \"1,\" is not a list of integers such as 10,12,8"},
    {&cmd_graphs, "--p 1 --d 1 --s -1 --chunks 1",
     "--s: \"-1\" is not a list of integers such as 10,12,8"},
    {&cmd_graphs, "--p 1 --d 1 --s 1;2 --chunks 1",
     "--s: \"1;2\" is not a list of integers such as 10,12,8"},

    {&cmd_calibrate, "--points a", NULL},
    {&cmd_calibrate, "--points a -o a.json", NULL},
    {&cmd_calibrate, "--points a --memory -o a.json", NO_SOC_FILE},
    {&cmd_calibrate, "--points a --residuals r.csv -o a.json", NO_SOC_FILE},
    {&cmd_calibrate, "--soc a", NULL},
    {&cmd_send_in, "-o .tar.gz", "-o '.tar.gz': must be a path ending in .tar.gz"},
    {&cmd_send_in, "-o a.tar.gx", "-o 'a.tar.gx': must be a path ending in .tar.gz"},

    {&cmd_check_policy, "fcfs --capable",
     "--capable, --params, --pair, --trace and --decisions need --load"},
    {&cmd_check_policy, "fcfs --params device=npu",
     "--capable, --params, --pair, --trace and --decisions need --load"},
    {&cmd_check_policy, "fcfs --pair collapsed",
     "--capable, --params, --pair, --trace and --decisions need --load"},
    {&cmd_check_policy, "fcfs --trace t.csv",
     "--capable, --params, --pair, --trace and --decisions need --load"},
    {&cmd_check_policy, "fcfs --decisions d",
     "--capable, --params, --pair, --trace and --decisions need --load"},

    {&cmd_trace, "gen --seed 1", "trace gen needs --workload"},
    {&cmd_arena, "judge fcfs --sealed",
     "--sealed: needs --ledger FILE, which counts the candidates that were looked at"},
    {&cmd_arena, "judge fcfs --select 0.9 --words", SELECTS},
    {&cmd_arena, "judge fcfs --select 0.9 --sealed --ledger l.csv", SELECTS},
    {&cmd_arena, "judge fcfs --select 0.9 --ledger l.csv", SELECTS},
    {&cmd_arena, "judge fcfs --select 0.9 --replications 5", SELECTS},
    {&cmd_arena, "judge fcfs --falsify 8", "--falsify belongs to --words"},
    {&cmd_arena, "archive --slurm 2", "--slurm and --shard need --store FILE.db, where runs go"},
    {&cmd_arena, "archive --shard 1/2", "--slurm and --shard need --store FILE.db, where runs go"},

    {&cmd_plot, "no-such a.json", NULL},
    {&cmd_plot, "gantt", NULL},
};

static void setup(void)
{
    folder_enter();
    folder_put("t.csv", "");
    folder_put("u.csv", "");
    folder_put("cancels.csv",
               "# xpusim-trace v2\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
               "output_tokens,prefix_tokens,parent_ids,ends_with\n"
               "0,0,0,proactive,0,,40,4,0,,1\n1,1,0,reactive,0.5,,40,4,0,,\n");
}

START_TEST(options_that_do_not_go_together)
{
    const struct line *l = &lines[_i];
    OWNED char *text = xstrdup(l->words);
    const char *words[32] = {NULL};
    char *save = NULL;
    uint32_t n = 0;
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        words[n++] = w;
    }
    SCOPED(said_fini) struct said s = commanded(l->command, words);
    if (l->says != NULL) {
        said_refused(&s, l->says);
    } else {
        ck_assert_msg(s.status == EXIT_BAD_INPUT && strncmp(s.err, "xpusim: error: ", 15) == 0,
                      "%s %s: %d, %s", l->command->name, l->words, s.status, s.err);
        ck_assert_msg(strstr(s.err, "not after") == NULL || l->command == &cmd_report, "%s", s.err);
        ck_assert_str_eq(s.out, "");
    }
}
END_TEST

static const struct suite_row rows[] = {
    CASE("options", .setup = setup, .teardown = folder_leave),
    LOOP(options_that_do_not_go_together, sizeof lines / sizeof lines[0]),
};
SUITE_MAIN("refused", rows)

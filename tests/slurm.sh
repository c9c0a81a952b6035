#!/bin/sh
# A sweep on a real Slurm: slurmctld and slurmd of this machine on the loopback, started here and
# stopped here. The export is the same to the byte as a local sweep's, also after one array task
# failed and was submitted again. Needs root and Debian's slurm-wlm and munge; where the daemons cannot run
# it says so and passes, with --must it fails.
set -u
cd "$(dirname "$0")/.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
host=$(hostname)
pids=""
finish() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    test ! -s "$dir/munged.pid" || kill "$(cat "$dir/munged.pid")" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
fail() {
    echo "FAILED: $*"
    for f in "$dir"/*.log "$dir"/out.db.slurm/*.log; do
        [ -s "$f" ] && tail -n 5 "$f"
    done
    exit 1
}

must=${1:-}
no_slurm() { # here; what it needs is said
    echo "skipped: Slurm on the loopback: $*"
    [ "$must" = --must ] && exit 1
    exit 0
}

for tool in sbatch squeue slurmctld slurmd munged; do
    if ! command -v $tool >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
        no_slurm "needs root, slurm-wlm and munge"
    fi
done

# munge with a key and a socket of its own
chmod 755 "$dir"
mkdir "$dir/munge" "$dir/spool" "$dir/state"
dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 2>/dev/null
chmod 700 "$dir/munge"
chmod 600 "$dir/munge/key"
socket=$dir/munge.socket
munged --key-file="$dir/munge/key" --socket="$socket" --pid-file="$dir/munged.pid" \
    --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --force 2>"$dir/munged.log" || no_slurm "munged does not start: $(tail -n 1 "$dir/munged.log")"

cat >"$dir/slurm.conf" <<END
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$socket
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmdSpoolDir=$dir/spool
StateSaveLocation=$dir/state
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$dir/slurm.conf"
slurmctld -c -D >"$dir/ctld.out" 2>&1 &
pids="$pids $!"
sleep 2
slurmd -c -D >"$dir/slurmd.out" 2>&1 &
pids="$pids $!"
n=0
until sinfo -h -o %T 2>/dev/null | grep -q '^idle'; do
    n=$((n + 1))
    [ $n -le 60 ] || no_slurm "the node does not come up: $(sinfo -h 2>&1; tail -n 2 "$dir/slurmd.log")"
    sleep 0.5
done

ended() { # no job is left
    n=0
    while [ -n "$(squeue -h 2>/dev/null)" ]; do
        n=$((n + 1))
        [ $n -le 120 ] || fail "jobs do not end: $(squeue -h)"
        sleep 0.5
    done
}

cat >"$dir/spec.json" <<'END'
{"name": "cluster", "base": {"workload": "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60"},
 "axes": {"policy": ["fcfs", "agent-xpu-v2", "openvino-cb"], "rate": [1, 2]}, "replications": 5}
END
"$x" sweep "$dir/spec.json" -o "$dir/local.db" --quiet --export csv >"$dir/local.csv" || fail "local sweep"

# task 1 cannot write its store, and fails; the merge must not pass for complete
mkdir -p "$dir/out.db.slurm/shard-1.db"
"$x" sweep "$dir/spec.json" -o "$dir/out.db" --slurm 4 --slurm-option=--mem=200 2>"$dir/submit.log" ||
    fail "submit: $(cat "$dir/submit.log")"
ended
test ! -e "$dir/out.db" || fail "merged although a task failed"
grep -q error "$dir/out.db.slurm/merge.log" || fail "the merge does not say what is missing"
echo "4 tasks ran, 1 failed as meant; the merge refused: $(head -n 1 "$dir/out.db.slurm/merge.log")"

# what made it fail is gone: that task and the merge again
rmdir "$dir/out.db.slurm/shard-1.db"
task=$(sbatch --parsable --array=1 "$dir/out.db.slurm/array.sh") || fail "submit task 1 again"
sbatch --dependency=afterok:"$task" "$dir/out.db.slurm/merge.sh" >/dev/null || fail "submit the merge again"
ended
"$x" sweep "$dir/spec.json" -o "$dir/out.db" --quiet --export csv >"$dir/out.csv" || fail "export"
cmp "$dir/local.csv" "$dir/out.csv" || fail "not the bytes of the local run"
"$x" sweep "$dir/spec.json" -o "$dir/out.db" --dry-run | grep -q "30 of them in the store" || fail "runs were missing"
echo "byte-identical to the local run after task 1 was submitted again: $(cksum <"$dir/out.csv")"

#!/bin/bash
# sbatch slurm.sh [TARGETS and options of kcheck fuzz]: a shard of the run for each task; the exit code is the whole run's
#SBATCH --job-name=kcheck
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --time=08:00:00
#SBATCH --output=kcheck-%j.log
export REPORTS="kcheck-$SLURM_JOB_ID"
mkdir -p "$REPORTS"
# Each task ends with the code of its shard; what counts is said by kcheck merge, also of a task that left no report.
srun bash -c 'exec kcheck fuzz --profile nightly --quiet --shard auto --report "json=$REPORTS/shard-$SLURM_PROCID.json" "$@"' kcheck "$@" || true
exec kcheck merge "$REPORTS"/shard-*.json --report-dir "$REPORTS"

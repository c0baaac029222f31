#!/bin/bash
# sbatch slurm.sh [TARGETS and options of kcheck fuzz]
#SBATCH --job-name=kcheck
#SBATCH --gpus=1
#SBATCH --time=08:00:00
#SBATCH --output=kcheck-%j.log
exec kcheck fuzz --profile nightly --report-dir "kcheck-$SLURM_JOB_ID" "$@"

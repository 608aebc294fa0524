#!/usr/bin/env bash
# Run the tests in two lanes, since much of their time is waiting; each lane has its own servers.
# Usage: scripts/test_lanes.sh MARK LANE [LANE ...]   where a lane is a quoted list of pytest arguments
set -euo pipefail
mark=$1
shift
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
pids=()
for lane in "$@"; do
  # shellcheck disable=SC2086 # a lane is a list of words
  .venv/bin/pytest -m "$mark" $lane >"$logs/${#pids[@]}" 2>&1 &
  pids+=($!)
done
failed=0
for place in "${!pids[@]}"; do
  wait "${pids[$place]}" || failed=1
  cat "$logs/$place"
done
exit $failed

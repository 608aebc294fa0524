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
# What failed is printed last: whoever keeps only the end of the output still sees it.
failed=()
for place in "${!pids[@]}"; do
  if wait "${pids[$place]}"; then cat "$logs/$place"; else failed+=("$place"); fi
done
for place in "${failed[@]}"; do
  cat "$logs/$place"
done
for place in "${failed[@]}"; do
  echo "== lane $((place + 1)) failed:"
  grep -E '^(FAILED|ERROR) ' "$logs/$place" || tail -n 20 "$logs/$place"
done
[[ ${#failed[@]} -eq 0 ]]

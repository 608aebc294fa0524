#!/bin/bash
# Freehold as the subject of a measurement.
#   subject.sh prepare [COUNT]   make the ledger and attach the rule, COUNT holds being overdue (0)
#   subject.sh ROLES [ROLES]     run one process for each list of roles until SIGTERM
# DATABASE_URL names the database; FREEHOLD the command, which is freehold by default; MODE the
# rule's mode, which is reservation by default.
set -euo pipefail
freehold="${FREEHOLD:-freehold}"
export FREEHOLD_DATABASE__URL="$DATABASE_URL"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
config="$(mktemp --suffix=.toml)"
trap 'rm -f "$config"' EXIT
{ cat "$here/freehold.toml"; echo "mode = \"${MODE:-reservation}\""; } > "$config"

if [ "$1" = prepare ]; then
  "$freehold" --config "$config" db upgrade
  "$freehold" --config "$config" attach reservations --confirm "${2:-0}" --by benchmark
  exit
fi

for roles in "$@"; do
  "$freehold" --config "$config" run --role "$roles" &
done
trap 'kill -TERM $(jobs -p) 2>/dev/null; wait' TERM
wait

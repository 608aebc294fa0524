#!/usr/bin/env bash
# Write run.txt and dev.txt anew: exact versions with hashes, and no registry address.
# LOCKER names another pip-compile than the one of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

# `all` only names the other extras; compiling it would lock this checkout as its own requirement.
mapfile -t extras < <(sed -n '/^\[project.optional-dependencies\]/,/^$/s/^\([a-z]*\) = .*/\1/p' pyproject.toml | grep -vx all)

compile() {
  CUSTOM_COMPILE_COMMAND="make lock" "${LOCKER:-.venv/bin/pip-compile}" --quiet --generate-hashes --allow-unsafe \
    --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
    --resolver=backtracking "${extras[@]/#/--extra=}" "$@"
}
compile --output-file requirements/run.txt pyproject.toml
compile --output-file requirements/dev.txt pyproject.toml requirements/dev.in

#!/usr/bin/env bash
# Run the tests: sets up .venv in this checkout if needed, then runs pytest on all cores.
#   ./test.sh                    the whole suite
#   ./test.sh -m "not slow"      with any options of pytest
#   ./test.sh -m long            the few tests of up to a minute each, which are left out otherwise
set -euo pipefail
extra=test
# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$checkout"
# Hundreds of processes import the packages: without the files that this forbids, each compiles them.
unset PYTHONDONTWRITEBYTECODE
cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
# Half as many processes again as cores: many tests wait for processes of their own.
exec "$venv/bin/python" -m pytest -n $((cores + (cores + 1) / 2)) --dist loadscope \
    --no-loadscope-reorder "$@"

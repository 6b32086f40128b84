#!/usr/bin/env bash
# Run the tests: sets up .venv in this checkout if there is none, then runs pytest on all cores.
#   ./test.sh                    the whole suite
#   ./test.sh -m "not slow"      any options of pytest
#   ./test.sh -m long            a few tests of up to a minute each, which are left out otherwise
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$checkout"
exec "$venv/bin/python" -m pytest -n "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)" --dist loadscope "$@"

#!/usr/bin/env bash
# Run the tests: sets up .venv in this checkout if there is none, then runs pytest on all cores.
#   ./test.sh                    the whole suite
#   ./test.sh -m "not slow"      any options of pytest
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=setup.sh
source "$here/setup.sh"
cd "$here"
exec .venv/bin/python -m pytest -n "$(nproc)" --dist loadscope "$@"

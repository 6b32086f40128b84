#!/usr/bin/env bash
# Make a dataset: sets up .venv in this checkout if needed, then runs `qm1b generate`.
#   ./generate.sh                                          the bundled sample of GDB-11
#   ./generate.sh my.smi --conformers 20 --out data/mine   with any options of `qm1b generate`
#   ./generate.sh --help                                   lists the options
set -euo pipefail
extra=generate
# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
exec "$venv/bin/qm1b" generate "$@"

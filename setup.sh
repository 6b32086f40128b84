# Sourced by generate.sh and test.sh: makes .venv beside this file, with all that both need.
# Set PYTHON to choose the interpreter (3.11 or newer).
_checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
_stamp="$_checkout/.venv/.installed"
if [ ! -e "$_stamp" ] || [ "$_checkout/pyproject.toml" -nt "$_stamp" ]; then
    _python=${PYTHON:-python3}
    if ! "$_python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "error: '$_python' is missing or older than Python 3.11; set PYTHON to a newer one" >&2
        exit 2
    fi
    echo "Setting up $_checkout/.venv (once; a few minutes, about 1.5 GB) ..."
    [ -x "$_checkout/.venv/bin/python" ] || "$_python" -m venv "$_checkout/.venv"
    "$_checkout/.venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable "$_checkout[test]"
    touch "$_stamp"
fi
unset _checkout _stamp _python

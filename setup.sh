# Sourced by generate.sh and test.sh: makes a virtual environment for both if needed, and sets `venv`
# to its path.
#   PYTHON          interpreter to make it with (3.11 or newer; default python3)
#   PYSCF_IPU_VENV  path of the environment (default: .venv beside this file)
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${PYSCF_IPU_VENV:-$checkout/.venv}

# True if the packaging or the C++ is newer than the last complete installation, or if the checkout
# has been moved.
stale() {
    [ "$(cat "$venv/.installed" 2>/dev/null)" != "$checkout" ] && return 0
    [ -n "$(find "$checkout/pyproject.toml" "$checkout/CMakeLists.txt" \
        "$checkout/pyscf_ipu/codelets/cpp" -newer "$venv/.installed" -print -quit)" ]
}
if stale; then
    if ! "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "error: '${PYTHON:-python3}' is missing or older than Python 3.11: set PYTHON to a newer one" >&2
        exit 2
    fi
    echo "Setting up $venv (once: a few minutes, 1.5 GB) ..."
    fresh=1
    [ -e "$venv" ] && fresh=0 # the user's folder: never remove it
    if [ ! -x "$venv/bin/python" ] && ! "${PYTHON:-python3}" -m venv "$venv"; then
        [ "$fresh" = 1 ] && rm -rf "$venv"
        echo "error: no virtual environment could be made in $venv: check that the folder is writable" \
            "and that Python has its venv module (Debian, Ubuntu: apt install python3-venv)" >&2
        exit 2
    fi
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable "$checkout[test]"; then
        echo "error: the packages could not be installed into $venv (pip's message is above):" \
            "check the network and run the command again" >&2
        exit 2
    fi
    echo "$checkout" >"$venv/.installed"
fi

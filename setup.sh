# Sourced by generate.sh and test.sh: makes a virtual environment with all that both need, if there
# is none, and leaves its path in `venv`.
#   PYTHON          interpreter to make it from (3.11 or newer; default python3)
#   PYSCF_IPU_VENV  where it lies (default: .venv beside this file)
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${PYSCF_IPU_VENV:-$checkout/.venv}

# Installed again when the packaging or the C++ is newer than the last complete installation, or when
# the checkout has been moved.
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
    [ -e "$venv" ] && fresh=0 # somebody's folder: never removed
    if [ ! -x "$venv/bin/python" ] && ! "${PYTHON:-python3}" -m venv "$venv"; then
        [ "$fresh" = 1 ] && rm -rf "$venv"
        echo "error: no virtual environment could be made in $venv: check that the folder is writable" \
            "and that Python's venv module is installed (Debian, Ubuntu: apt install python3-venv)" >&2
        exit 2
    fi
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable "$checkout[test]"; then
        echo "error: the packages could not be installed into $venv (pip's message stands above):" \
            "check the network and run the command again" >&2
        exit 2
    fi
    echo "$checkout" >"$venv/.installed"
fi

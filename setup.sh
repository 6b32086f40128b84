# Sourced by generate.sh and test.sh: makes a virtual environment for both if needed, and sets `venv`
# to its path.  It has the extra that `extra` names: generate, or test, which has nearly all others
# (default).
#   PYTHON               interpreter to make it with (3.11 or newer; default python3)
#   PYSCF_IPU_VENV       path of the environment (default: .venv beside this file)
#   PYSCF_IPU_INSTALLER  uv or pip (default: uv if it is there)
#   PYSCF_IPU_LOCKED=1   exactly the versions in constraints.txt
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${PYSCF_IPU_VENV:-$checkout/.venv}
extra=${extra:-test}

# True if the environment has the extra.
has_extra() { grep -qxE "extra ($extra|test)" "$venv/.installed" 2>/dev/null; }

# True if the last complete installation was of this checkout, and of this packaging and C++.
is_built() {
    [ "$(sed -n 1p "$venv/.installed" 2>/dev/null)" = "$checkout" ] &&
        [ -z "$(find "$checkout/pyproject.toml" "$checkout/CMakeLists.txt" \
            "$checkout/pyscf_ipu/codelets/cpp" -newer "$venv/.installed" -print -quit)" ]
}

# make_venv: pip is in it in any case, for further extras.
make_venv() {
    if [ "$installer" = uv ]; then
        uv venv --quiet --seed --python "${PYTHON:-python3}" "$venv"
    else
        "${PYTHON:-python3}" -m venv "$venv"
    fi
}

# requirements: all that pyproject.toml names, with the extra, which may name other extras.
requirements() {
    "$venv/bin/python" - "$checkout/pyproject.toml" "$extra" <<'END'
import re, sys, tomllib

def lines(requirements):
    for line in requirements:
        extras = re.match(r"pyscf-ipu\[(.*?)\](.*)", line)
        if extras is None:
            yield line
        else:
            for name in extras[1].split(","):
                yield from (f"{each}{extras[2]}" for each in lines(optional[name]))

project = tomllib.load(open(sys.argv[1], "rb"))["project"]
optional = project["optional-dependencies"]
print(*lines(project["dependencies"] + optional[sys.argv[2]]), sep="\n")
END
}

install() {
    local locked=()
    [ "${PYSCF_IPU_LOCKED:-0}" = 1 ] && locked=(--constraint "$checkout/constraints.txt")
    if [ "$installer" = uv ]; then
        uv pip install --quiet --python "$venv/bin/python" ${locked[@]+"${locked[@]}"} "$@"
    else
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
            ${locked[@]+"${locked[@]}"} "$@"
    fi
}

# install_packages: what the packages require, while the compiler works for them.
install_packages() {
    requirements >"$venv/requirements.txt" || return 1
    if is_built; then
        install --requirement "$venv/requirements.txt"
        return
    fi
    install --requirement "$venv/requirements.txt" &
    local built=0
    install --no-deps --editable "$checkout" || built=1
    wait $! && [ "$built" = 0 ]
}

if ! is_built || ! has_extra; then
    if ! "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "error: '${PYTHON:-python3}' is missing or older than Python 3.11: set PYTHON to a newer one" >&2
        exit 2
    fi
    installer=${PYSCF_IPU_INSTALLER:-$(command -v uv >/dev/null && echo uv || echo pip)}
    if [ "$installer" != pip ] && { [ "$installer" != uv ] || ! command -v uv >/dev/null; }; then
        echo "error: PYSCF_IPU_INSTALLER is '$installer': give pip, or uv if it is installed" >&2
        exit 2
    fi
    # An environment for the tests stays one.
    has_extra && grep -qx "extra test" "$venv/.installed" && extra=test
    echo "Setting up $venv with $installer (once: a few minutes, 1.5 GB; for the tests 2.7 GB) ..."
    fresh=1
    [ -e "$venv" ] && fresh=0 # the user's folder: never remove it
    if [ ! -x "$venv/bin/python" ] && ! make_venv; then
        [ "$fresh" = 1 ] && rm -rf "$venv"
        echo "error: no virtual environment could be made in $venv: check that the folder is writable" \
            "and that Python has its venv module (Debian, Ubuntu: apt install python3-venv)" >&2
        exit 2
    fi
    installed=0
    install_packages && installed=1
    # uv reads none of pip's settings, for example of an index of one's own.
    if [ "$installed$installer" = 0uv ] && [ -z "${PYSCF_IPU_INSTALLER:-}" ]; then
        echo "uv could not install the packages (its message is above); trying pip ..." >&2
        installer=pip
        install_packages && installed=1
    fi
    if [ "$installed" = 0 ]; then
        echo "error: the packages could not be installed into $venv ($installer's message is above):" \
            "check the network and run the command again" >&2
        exit 2
    fi
    printf '%s\n' "$checkout" "extra $extra" >"$venv/.installed"
fi

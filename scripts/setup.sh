#!/usr/bin/env bash
# Installs what is missing: Debian packages and the OpenVINO wheel in .venv. Needs no network when
# all is present.
#
#   scripts/setup.sh [demo|test|bench|fuzz|training]
#
# Exit codes: 0 all present, 1 an installation failed, 2 packages missing and no right to install.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONHOME PYTHONPATH # a foreign Python's settings must not reach the system's
readonly log=build/setup.log

fail() {
    echo "setup: $*" >&2
    echo "setup: last lines of $log:" >&2
    tail -n 25 "$log" >&2
    exit 1
}

package_lists() {
    echo packaging/apt-packages.txt
    case "$1" in
    demo) ;;
    test) echo packaging/apt-packages-test.txt ;;
    bench) echo packaging/apt-packages-test.txt packaging/apt-packages-bench.txt ;;
    fuzz) echo packaging/apt-packages-fuzz.txt ;;
    training) echo packaging/apt-packages-training.txt ;;
    esac
}

missing_packages() {
    local wanted
    # shellcheck disable=SC2046
    wanted=$(sed 's/#.*//' $(package_lists "$1") | xargs -n1 | sort -u)
    # shellcheck disable=SC2086
    comm -23 <(echo "$wanted") \
        <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null |
            sed -n 's/^ii  *//p' | sort -u)
}

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo -n "$@"; fi
}

install_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "setup: not a Debian system; these are needed by other means:" \
            "$(package_lists "$1" | xargs)"
        return
    fi
    local -a missing
    mapfile -t missing < <(missing_packages "$1")
    [[ ${#missing[@]} == 0 ]] && return
    if [[ $(id -u) != 0 ]] && ! sudo -n true 2>/dev/null; then
        echo "setup: ${#missing[@]} packages are missing: ${missing[*]}" >&2
        echo "setup: install them with" >&2
        echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 2
    fi
    echo "setup: installing ${#missing[@]} packages: ${missing[*]}"
    {
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update || true
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
            --no-install-recommends "${missing[@]}"
    } >>"$log" 2>&1 </dev/null || fail "apt-get could not install ${missing[*]}"
}

# True when every pinned wheel is there, judged by its metadata folder: no Python is started.
wheels_present() {
    local name version found
    while IFS='=' read -r name version; do
        found=$(compgen -G ".venv/lib/python3*/site-packages/${name}-${version}.dist-info/RECORD") ||
            return 1
        [[ -n $found ]] || return 1
    done < <(sed 's/#.*//; s/[[:space:]]//g; /^$/d; s/==/=/' requirements.txt)
    .venv/bin/python -c '' 2>/dev/null
}

install_wheels() {
    wheels_present && return
    echo "setup: installing $(sed 's/#.*//; /^$/d' requirements.txt | xargs) into .venv"
    {
        /usr/bin/python3 -m venv --clear .venv &&
            .venv/bin/python -m pip install --disable-pip-version-check --no-input -q \
                -r requirements.txt
    } >>"$log" 2>&1 </dev/null || fail "could not install the Python packages of requirements.txt"
    wheels_present || fail "pip succeeded, but .venv lacks what requirements.txt pins"
}

main() {
    local profile="${1:-demo}"
    case "$profile" in
    demo | test | bench | fuzz | training) ;;
    *)
        echo "usage: scripts/setup.sh [demo|test|bench|fuzz|training]" >&2
        exit 2
        ;;
    esac
    mkdir -p build
    : >"$log"
    install_packages "$profile"
    install_wheels
    if [[ $profile == test || $profile == bench ]]; then
        scripts/fetch_detectors.sh >>"$log" 2>&1 || fail "could not fetch the face detectors"
    fi
    echo "setup: ready for $profile"
}

main "$@"

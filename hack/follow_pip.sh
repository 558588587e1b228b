# shellcheck shell=bash
# For other scripts to source.

# PYTHON: let uv use the index and the certificates that this interpreter's pip is configured with: uv does not read pip's
# configuration.
follow_pip() {
    local index cert
    index=${PIP_INDEX_URL:-$(pip_setting "$1" index-url)} cert=${PIP_CERT:-$(pip_setting "$1" cert)}
    [[ -z $index ]] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}
    [[ -z $cert ]] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$cert}
    [[ -z ${PIP_FIND_LINKS:-} ]] || export UV_FIND_LINKS=${UV_FIND_LINKS:-$PIP_FIND_LINKS}
}

# PYTHON NAME: what pip's configuration says, or nothing.
pip_setting() { "$1" -m pip --disable-pip-version-check config get "global.$2" 2> /dev/null || echo; }

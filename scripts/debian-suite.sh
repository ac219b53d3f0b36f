# Sourced by the other scripts: where this machine gets Debian from, for those who fetch another suite than its own.
# shellcheck shell=bash

DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Whatever the mirror calls its folders: apt knows by what the mirror says of itself. Before the first `apt-get update` it does
# not, so then by name. The security archive is none: it does not hold all packages.
debian_mirror() {
  local named
  named=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    sed -nE 's#^Debian (\S+[^/])/?$#\1#p' | head -n 1)
  printf '%s' "${named:-$(mirror_by_name)}"
}

mirror_by_name() {
  shopt -s nullglob
  local files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
  shopt -u nullglob
  cat "${files[@]}" 2>/dev/null |
    sed -nE 's/^(URIs:|deb(\s+\[[^]]*\])?)\s+(\S+).*/\3/p' |
    grep -E '/debian(/?|\.list)$' | head -n 1
}

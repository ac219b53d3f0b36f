#!/usr/bin/env bash
# Installs npm at /opt/svc/lib/npm, for machines that have none. Debian's package of it brings 350 others, among them eslint and
# webpack, and works only with them, so that the demo image of Node could not take it along.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-packages.sh
source "$ROOT/scripts/debian-packages.sh"

# The last line of npm that runs with the Node of Debian 12.
VERSION=10.9.9
SHA512=d60fba8cb42f688b81e33c2f1cbef2ad7b977166700ec0ad057f1b6d60ea6ef2524abf673e20c35931cd8305d1dbb8887134d6eefdc0e7b8435bd458bf65b862
FOLDER=/opt/svc/lib/npm

main() {
  if command -v npm >/dev/null; then
    step_done 'npm' 'present'
    return
  fi
  local folder
  folder=$(mktemp -d)
  # shellcheck disable=SC2064 # The folder of now.
  trap "rm -rf '$folder'" EXIT
  if fetch "$folder" || fetch_with_debian "$folder"; then
    install_folder "$folder/package"
    step_done 'npm' "$VERSION ($FOLDER)"
  else
    step_done 'npm' 'that of Debian'
  fi
}

# Without the rest of Debian's npm.
fetch() {
  local folder=$1 registry
  registry=$(named_registry)
  [ -n "$registry" ] || registry=$(default_registry "$folder")
  [ -n "$registry" ] || return 1
  # SAFETY: the address may hold a password, so it is no argument. What arrives is run only when it is the file we know.
  printf 'url = "%s/npm/-/npm-%s.tgz"\n' "${registry%/}" "$VERSION" |
    curl --config - -fsSL --retry 2 --connect-timeout 20 -o "$folder/npm.tgz" || return 1
  unpack "$folder"
}

# Debian's npm may reach what curl does not, by settings of its own.
fetch_with_debian() {
  local folder=$1
  note 'no npm registry can be reached: taking the npm of Debian, and 350 packages with it'
  # In a shell of its own, whose traps are its own. It has told what went wrong.
  (apt_install npm) || exit 1
  npm pack --silent --pack-destination "$folder" "npm@$VERSION" >/dev/null || return 1
  mv "$folder/npm-$VERSION.tgz" "$folder/npm.tgz"
  unpack "$folder"
}

unpack() {
  local folder=$1
  echo "$SHA512  $folder/npm.tgz" | sha512sum --quiet -c - || return 1
  tar -xzf "$folder/npm.tgz" -C "$folder" --no-same-owner
}

# Where this user's settings say that npm packages come from; empty when they say nothing.
named_registry() {
  if [ -n "${npm_config_registry:-}" ]; then
    printf '%s' "$npm_config_registry"
  else
    cat .npmrc ~/.npmrc /etc/npmrc 2>/dev/null | sed -nE 's/^\s*registry\s*=\s*"?([^"[:space:]]+).*/\1/p' | head -n 1
  fi
}

# The default of npm, as Debian's package of it says. It is only downloaded: installed, it brings 350 others.
default_registry() {
  local folder=$1
  (cd "$folder" && apt-get -q download npm >/dev/null 2>&1) || return 0
  dpkg-deb --fsys-tarfile "$folder"/npm_*.deb | tar -xO --wildcards '*/config/definitions.js' |
    sed -nE "/^define\('registry'/,/^\}/s/^ *default: *['\"\`]([^'\"\`]+).*/\1/p"
}

install_folder() {
  as_root install -d -m 755 "${FOLDER%/*}" /opt/svc/bin
  as_root rm -rf "$FOLDER" "$FOLDER.new"
  as_root cp -r "$1" "$FOLDER.new"
  as_root chmod -R u=rwX,go=rX "$FOLDER.new"
  # Renamed into place: half a folder is never taken for a whole one.
  as_root mv "$FOLDER.new" "$FOLDER"
  as_root ln -sfn ../lib/npm/bin/npm-cli.js /opt/svc/bin/npm
  as_root ln -sfn ../lib/npm/bin/npx-cli.js /opt/svc/bin/npx
}

main "$@"

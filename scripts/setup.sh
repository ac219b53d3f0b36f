#!/usr/bin/env bash
# Makes this checkout ready to use: Debian packages, runc and runsc, npm packages, the two C programs, svc with its server and engine, the dashboard. Installs only what is missing,
# so it can be repeated and interrupted at any point. As root, or as a user who may use sudo.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-packages.sh
source "$ROOT/scripts/debian-packages.sh"
cd "$ROOT"

main() {
  local for_tests=no
  [ "${1:-}" = --for-tests ] && for_tests=yes
  heading 'Set-up'
  need_root_rights
  install_debian_packages "$for_tests"
  scripts/install-runc.sh
  scripts/install-runsc.sh
  scripts/install-npm.sh
  install_npm_packages
  if [ "$for_tests" = yes ]; then install_test_clients; fi
  build_programs
  build_archive_program
  build_own_programs
  build_dashboard
  compile_ahead
  as_root ./svc doctor --compact
}

install_npm_packages() {
  local stamp=node_modules/.svc-installed wanted
  wanted=$(sha256sum package-lock.json)
  if [ -x node_modules/.bin/node ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    step_done 'npm packages' 'in step with package-lock.json'
    return
  fi
  step_begins 'npm packages' 'installing what package-lock.json says (Node 24 comes with them, about 130 MB)'
  npm_install || explain_npm_failure 'npm packages'
  [ -x node_modules/.bin/node ] || fail 'npm installed no Node 24' 'remove node_modules and run make setup again'
  # npm leaves out optional packages that the Node it runs with is too old for. Debian 12's is, and then the formatter does not
  # start: so again, with the new Node.
  with_our_node oxfmt --version >/dev/null 2>&1 || npm_install || explain_npm_failure 'npm packages'
  # Written last: a set-up that was interrupted before this line installs again.
  printf '%s\n' "$wanted" | as_owner tee "$stamp" >/dev/null
  step_done 'npm packages' "installed, Node $(node_modules/.bin/node --version)"
}

# Not `npm ci`: it refuses a lock file whose optional packages for other platforms the registry in use does not have,
# and it deletes node_modules under an engine that runs from it. Versions and hashes are those of the lock file either way.
# Hides npm's own deprecation warnings on a newer Node.
npm_install() { with_our_node env NODE_OPTIONS=--no-deprecation npm install --no-save --loglevel=error; }

# With the Node of this checkout once it is there, before that with the machine's.
with_our_node() { as_owner env "PATH=$ROOT/node_modules/.bin:$PATH" "$@"; }

explain_npm_failure() {
  fail "$1 could not be installed" 'read the lines above: check the network (behind a proxy: npm config set proxy; one that opens TLS: npm config set cafile) and the disk, then run this again'
}

# What tests run against our server or our client: the published client of the reference product, the oldest Node that our client
# supports, a driver for the browser. In folders of their own: nothing of it is ours.
install_test_clients() {
  install_apart test/clients
  install_apart test/clients/e2b
  install_apart test/clients/adapters/js
  case $(uname -m) in
    x86_64) install_apart test/interop ;;
    aarch64)
      install_apart test/interop/arm64
      note 'the reference client for arm64 is 0.6.8: its logs, connectOrCreate and files of volumes do not know servers and are left out'
      ;;
    *) note "the reference client is not published for $(uname -m): tests with it will fail" ;;
  esac
  if needs_newer_libc; then scripts/install-newer-libc.sh; fi
  # The newest reference client is published for Python alone.
  install_python_clients test/interop/python
  install_python_clients test/clients/e2b/python
  install_python_clients test/clients/adapters/python
  download_python_packages
}

install_python_clients() {
  local folder=$1 wanted
  local stamp=$folder/build/.svc-installed
  wanted=$(sha256sum "$folder/requirements.txt")
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    step_done "$folder" 'in step with its requirements.txt'
    return
  fi
  as_owner rm -rf "$folder/build"
  # Harbor asks for Python 3.12; its tests run with the 3.11 of Debian 12, too.
  as_owner /usr/bin/python3 -m pip --quiet install --target "$folder/build" --no-deps --only-binary :all: --require-hashes \
    --ignore-requires-python --no-compile --disable-pip-version-check --root-user-action ignore -r "$folder/requirements.txt" ||
    fail "what $folder needs could not be installed" 'read the lines above: check the network (behind a proxy: pip config set global.proxy) and the disk, then run this again'
  printf '%s\n' "$wanted" | as_owner tee "$stamp" >/dev/null
  step_done "$folder" 'installed, for tests'
}

# What our client for Python is tried with: the oldest and the newest versions that it supports, and a type checker. Tests install from
# these folders, without a network.
download_python_packages() {
  local folder=test/clients/sdk-python name wanted
  local stamp=$folder/build/.svc-downloaded
  wanted=$(cat "$folder"/requirements-*.txt | sha256sum)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    step_done "$folder" 'in step with its requirements'
    return
  fi
  as_owner rm -rf "$folder/build"
  for name in oldest newest types; do
    as_owner /usr/bin/python3 -m pip --quiet download --dest "$folder/build/$name" --no-deps --only-binary :all: --require-hashes \
      --disable-pip-version-check -r "$folder/requirements-$name.txt" ||
      fail "what $folder needs could not be downloaded" 'read the lines above: check the network (behind a proxy: pip config set global.proxy) and the disk, then run this again'
  done
  as_owner node_modules/.bin/node scripts/build-packages.ts --tools ||
    fail 'what makes Python packages could not be installed' 'read the lines above: check the network and the disk, then run this again'
  printf '%s\n' "$wanted" | as_owner tee "$stamp" >/dev/null
  step_done "$folder" 'downloaded, for tests'
}

# The reference client for arm64 does; see test/interop/newer-libc.ts.
needs_newer_libc() {
  local own
  own=$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)
  [ "${SVC_TEST_NEWER_LIBC:-}" = yes ] || { [ "$(uname -m)" = aarch64 ] && dpkg --compare-versions "$own" lt 2.39; }
}

install_apart() {
  local folder=$1 stamp=$1/node_modules/.svc-installed wanted
  wanted=$(sha256sum "$folder/package-lock.json")
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    step_done "$folder" 'in step with its package-lock.json'
    return
  fi
  (cd "$folder" && npm_install) || explain_npm_failure "what $folder needs"
  printf '%s\n' "$wanted" | as_owner tee "$stamp" >/dev/null
  step_done "$folder" 'installed, for tests'
}

build_programs() {
  local program
  for program in init host; do
    as_owner make --no-print-directory -s -C "packages/$program" ||
      fail "svc-$program could not be built" "read the compiler's lines above; try: make -C packages/$program"
  done
  step_done 'svc-init, svc-host' 'built'
}

# What reads the headers of images, in a process without rights.
build_archive_program() {
  with_our_node node scripts/build-archive-program.ts >/dev/null ||
    fail 'the program that reads archives could not be built' 'read the lines above; try: npm run build:archive-program'
  step_done 'reader of archives' 'built'
}

# What svc, its server and its engine start from. Without it they run their sources, which takes them twice as long to start.
build_own_programs() {
  with_our_node node scripts/build-programs.ts >/dev/null ||
    fail 'svc could not be built' 'read the lines above; try: npm run build:programs'
  step_done 'svc, server, engine' 'built'
}

# What a browser gets at the address of the server. Without it the server says there how to begin, and everything else works.
build_dashboard() {
  with_our_node node scripts/build-dashboard.ts >/dev/null ||
    fail 'the dashboard could not be built' 'read the lines above; try: npm run build:dashboard'
  step_done 'dashboard' 'built'
}

# A first start compiles all that it loads, which takes seconds and some 80 MiB that are never given back, and 11 to 16 MiB in each
# process that has to read a single changed file: so the first start happens here, in a folder of its own. If it fails, the examination
# that follows explains why.
compile_ahead() {
  local stamp=node_modules/.cache/svc/.compiled-ahead folder wanted
  wanted=$(digest_of_sources)
  if [ "$(as_root cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    step_done 'compiled code' 'in step with the sources'
    return
  fi
  folder=$(as_root mktemp -d)
  if as_root ./svc server start --dev --detach --port 0 --path "$folder" >/dev/null 2>&1; then
    as_root ./svc server stop --path "$folder" >/dev/null
    printf '%s\n' "$wanted" | as_root tee "$stamp" >/dev/null
    step_done 'compiled code' 'kept for every start'
  else
    note 'the code could not be compiled ahead; the first start does it'
  fi
  # SAFETY: the name is mktemp's.
  as_root rm -rf "$folder"
}

# Of what they say, not of their times: those of an archive that was unpacked over an older version may be older than that.
digest_of_sources() {
  {
    cat package-lock.json scripts/build-programs.ts
    find packages -name node_modules -prune -o -type f \( -name '*.ts' -o -name '*.cjs' -o -name '*.py' \) -print0 | sort -z | xargs -0 cat
  } | sha256sum
}

main "$@"

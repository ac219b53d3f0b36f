# Sourced by the other scripts: single packages of another suite of Debian than this machine's, checked by apt against Debian's
# signature. The system itself stays as it is.
# shellcheck shell=bash

DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# A build that could not be fetched is asked for again after a day: a mirror that is away or out of date takes minutes to say so.
MISSES=/opt/svc/lib/unavailable
RETRY_AFTER_MINUTES=1440

was_missed() { [ -n "$(find "$MISSES/$1" -mmin "-$RETRY_AFTER_MINUTES" 2>/dev/null)" ]; }
note_miss() { as_root install -D -m 644 /dev/null "$MISSES/$1"; }
forget_miss() { as_root rm -f "$MISSES/$1"; }

# Unpacks packages of a suite into the folder `content` of a scratch folder, which the caller removes as root: apt leaves files of
# root there. An apt of its own: one source, own lists and cache, so that nothing else can come from there, now or later.
unpack_from_suite() {
  local suite=$1 scratch=$2 mirror file
  shift 2
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || { note 'no Debian mirror in the configuration of apt; name one: SVC_DEBIAN_MIRROR=URL make setup'; return 1; }
  mkdir -p "$scratch"/{lists,cache,download,content}
  # apt downloads as the user _apt.
  chmod 755 "$scratch"
  chmod 777 "$scratch/download"
  printf 'deb [signed-by=%s] %s %s main\n' "$DEBIAN_KEYRING" "$mirror" "$suite" >"$scratch/sources.list"
  local apt=(
    apt-get -qq
    -o "Dir::Etc::sourcelist=$scratch/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$scratch/lists" -o "Dir::Cache=$scratch/cache"
    -o Acquire::Languages=none -o Acquire::Retries=2
  )
  as_root "${apt[@]}" update || return 1
  (cd "$scratch/download" && as_root "${apt[@]}" download "$@") || return 1
  for file in "$scratch"/download/*.deb; do dpkg-deb -x "$file" "$scratch/content" || return 1; done
}

# The mirror of the suite, as apt finds it in the mirror's release file; before the first `apt-get update` it is found by name.
# The security archive does not count: it does not hold all packages. Other systems (Ubuntu) have none in their configuration: SVC_DEBIAN_MIRROR names one.
debian_mirror() {
  local named
  named=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    sed -nE 's#^Debian (\S+[^/])/?$#\1#p' | head -n 1)
  named=${named:-$(mirror_by_name)}
  printf '%s' "${named:-${SVC_DEBIAN_MIRROR:-}}"
}

mirror_by_name() {
  shopt -s nullglob
  local files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
  shopt -u nullglob
  cat "${files[@]}" 2>/dev/null |
    sed -nE 's/^(URIs:|deb(\s+\[[^]]*\])?)\s+(\S+).*/\3/p' |
    grep -E '/debian(/?|\.list)$' | head -n 1
}

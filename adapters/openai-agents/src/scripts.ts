/** What is done by the user of a command, with the rights of that user. Own exit codes say why a path was refused. */
export const ABSENT = 72;
export const IS_DIRECTORY = 73;
export const FORBIDDEN = 77;

export const READ = `
[ -d "$1" ] && exit ${IS_DIRECTORY}
[ -e "$1" ] || exit ${ABSENT}
[ -r "$1" ] || exit ${FORBIDDEN}
exec cat < "$1"`;

export const WRITE = `
[ -d "$1" ] && exit ${IS_DIRECTORY}
mkdir -p -- "\${1%/*}/" || exit ${FORBIDDEN}
if [ -e "$1" ]; then [ -w "$1" ]; else [ -w "\${1%/*}/" ]; fi || exit ${FORBIDDEN}
exec cat > "$1"`;

export const REMOVE = `
[ -e "$1" ] || [ -L "$1" ] || exit ${ABSENT}
[ -d "$1" ] && exit ${IS_DIRECTORY}
exec rm -f -- "$1"`;

/** Kind and name of each entry, each ended by a zero byte. */
export const LIST = `
[ -e "$1" ] || exit ${ABSENT}
cd -- "$1" || exit ${FORBIDDEN}
for name in * .[!.]* ..?*; do
  if [ -L "$name" ]; then kind=other
  elif [ -d "$name" ]; then kind=dir
  elif [ -f "$name" ]; then kind=file
  elif [ -e "$name" ]; then kind=other
  else continue
  fi
  printf '%s\\0%s\\0' "$kind" "$name"
done`;

const FREE_ID = 'id=1000; while grep -q ":$id:" /etc/passwd /etc/group; do id=$((id + 1)); done';

/** In the files, because many images lack programs for it. */
export const MAKE_USER = `
touch /etc/passwd /etc/group || exit
grep -q "^$1:" /etc/passwd && exit 0
${FREE_ID}
echo "$1:x:$id:$id::/home/$1:/bin/sh" >> /etc/passwd && echo "$1:x:$id:" >> /etc/group || exit
mkdir -p "/home/$1" && chown "$id:$id" "/home/$1"`;

/** The name of the group, then those of its members. */
export const MAKE_GROUP = `
group=$1; shift
touch /etc/passwd /etc/group || exit
if ! grep -q "^$group:" /etc/group; then
  ${FREE_ID}
  echo "$group:x:$id:" >> /etc/group || exit
fi
for name; do
  grep -q "^$group:.*[:,]$name\\(,.*\\)*$" /etc/group && continue
  sed -i "/^$group:/{s/$/,$name/;s/:,/:/}" /etc/group || exit
done`;

/** Says who the user is when only another can make the folder. */
export const MAKE_ROOT = 'mkdir -p -- "$1" 2> /dev/null && [ -w "$1" ] || id -u';
export const GIVE_ROOT = 'mkdir -p -- "$2" && chown -- "$1" "$2"';

/** From a folder, and a folder below it, to a path. */
export const COPY_FOLDER = 'mkdir -p -- "$3" && cp -R -- "$1/$2/." "$3" && rm -rf -- "$1"';

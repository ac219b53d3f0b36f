import { chmod, chown, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * `sudo` of root is Debian's. For other users it could only fail, with a message that names no remedy: no program gains privileges in a
 * sandbox.
 */
const SUDO = `#!/bin/sh
[ "$(id -u)" = 0 ] && exec /usr/bin/sudo "$@"
echo "sudo: no program gains privileges in a sandbox; start this command as the user root instead (svc exec --user root, E2B's clients: user 'root')" >&2
exit 1
`;
/** What the scripts of the packages make of Debian's templates; login by password is not possible. */
const PAM: Readonly<Record<string, string>> = {
  'common-account': 'account required pam_unix.so\n',
  'common-auth': 'auth required pam_unix.so\n',
  'common-password': 'password required pam_unix.so\n',
  'common-session': 'session required pam_unix.so\n',
  'common-session-noninteractive': 'session required pam_unix.so\n',
};

/** The accounts of Debian and the user `user`, and what the commands that change and switch accounts read. */
export async function writeAccounts(root: string): Promise<void> {
  const masters = join(root, 'usr/share/base-passwd');
  const passwd = await readFile(join(masters, 'passwd.master'), 'utf8');
  const group = await readFile(join(masters, 'group.master'), 'utf8');
  // `*` as the password disables logins by password.
  await writeFile(join(root, 'etc/passwd'), `${passwd.trim()}\nuser:*:1000:1000:user:/home/user:/bin/bash\n`);
  await writeFile(join(root, 'etc/group'), `${group.trim()}\nuser:*:1000:\n`);
  const home = join(root, 'home/user');
  await cp(join(root, 'etc/skel'), home, { recursive: true });
  await chown(home, 1000, 1000);
  for (const name of await readdir(home)) await chown(join(home, name), 1000, 1000);
  for (const [name, text] of Object.entries(PAM)) await writeFile(join(root, 'etc/pam.d', name), text);
  await mkdir(join(root, 'usr/local/bin'), { recursive: true });
  await writeFile(join(root, 'usr/local/bin/sudo'), SUDO);
  await chmod(join(root, 'usr/local/bin/sudo'), 0o755);
}

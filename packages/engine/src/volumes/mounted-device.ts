import { readFile } from 'node:fs/promises';

/** The device mounted at a path of ours, undefined when none is. */
export async function mountedDevice(mountPoint: string): Promise<string | undefined> {
  // https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')) {
    const [mount = '', source = ''] = line.split(' - ');
    if (unescape(mount.split(' ')[4] ?? '') === mountPoint) return source.split(' ')[1];
  }
  return undefined;
}

/** The kernel writes blanks and backslashes as three octal digits. */
function unescape(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCodePoint(Number.parseInt(digits, 8)),
  );
}

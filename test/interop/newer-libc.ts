import { existsSync } from 'node:fs';

/** scripts/install-newer-libc.sh puts it there. */
const NEWER_LIBC = '/opt/svc/lib/debian-13';
const CHECKOUT = new URL('../..', import.meta.url).pathname;

/**
 * The command that runs another one with the C library of Debian 13 and sees this checkout and one folder that it may write to;
 * the command itself where this machine's own library is new enough. `SVC_TEST_NEWER_LIBC=yes` has it so everywhere.
 */
export function withNewerLibc(
  command: readonly string[],
  options: { readonly least: string; readonly folder: string },
): readonly string[] {
  const isWanted = process.env['SVC_TEST_NEWER_LIBC'] === 'yes' || isOlder(ownLibc(), options.least);
  if (!isWanted) return command;
  if (!existsSync(NEWER_LIBC))
    throw new Error(`libc ${options.least} is missing: run scripts/install-newer-libc.sh`);
  const seen = [
    ['--ro-bind', `${NEWER_LIBC}/usr`, '/usr'],
    ['--symlink', 'usr/lib', '/lib'],
    ['--symlink', 'usr/lib64', '/lib64'],
    ['--ro-bind', '/etc', '/etc'],
    ['--proc', '/proc'],
    ['--dev-bind', '/dev', '/dev'],
    ['--tmpfs', '/tmp'],
    ['--ro-bind', CHECKOUT, CHECKOUT],
    ['--bind', options.folder, options.folder],
  ];
  return ['bwrap', ...seen.flat(), '--die-with-parent', '--', ...command];
}

function ownLibc(): string {
  // A report is documented as JSON without a schema; this field names the C library that Node runs with.
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime ?? '0';
}

function isOlder(version: string, least: string): boolean {
  return version.localeCompare(least, 'en', { numeric: true }) < 0;
}

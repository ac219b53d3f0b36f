import { readFileSync } from 'node:fs';

/** Mount points of this host inside a folder, the innermost first. */
export function mountsBelow(
  folder: string,
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
): string[] {
  return mountinfo
    .split('\n')
    .map((line) => unescaped(line.split(' ')[4] ?? ''))
    .filter((path) => path.startsWith(`${folder}/`))
    .toReversed();
}

/** The kernel escapes blanks, tabs, line ends and backslashes as octal numbers. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

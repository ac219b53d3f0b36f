import { statSync } from 'node:fs';
import { dirname } from 'node:path';

const READ = 0o004;
const PASS = 0o001;

/** Whether every user of this host can read the file: then more of a program can be loaded after its privileges are gone. */
export function isWorldReadable(file: string): boolean {
  if ((statSync(file).mode & READ) === 0) return false;
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & PASS) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

import { readFileSync } from 'node:fs';

/** Gives the driver a file name that nothing of the user has, so that its frames can be told from theirs. */
const PYTHON_START = "import sys; exec(compile(sys.argv.pop(), '<svc driver>', 'exec'))";

/** How the interpreter of each language is started. Its driver is told in its own file what it speaks with us. */
export const INTERPRETERS = {
  python: { program: 'python3', args: ['-c', PYTHON_START, readDriver('python-driver.py')] },
  node: { program: 'node', args: ['-e', readDriver('node-driver.cjs'), readDriver('node-imports.cjs')] },
} as const;

export type Language = keyof typeof INTERPRETERS;

function readDriver(name: string): string {
  return readFileSync(new URL(`drivers/${name}`, import.meta.url), 'utf8');
}

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { SpareProcess } from '@svc/engine/client';

/** Gives the driver a file name that nothing of the user has, so that its frames can be told from theirs. */
const PYTHON_START = "import sys\nwhile sys.argv[1:]: exec(compile(sys.argv.pop(1), '<svc driver>', 'exec'))";
/** In this order, and with names in common. */
const PYTHON_DRIVER = ['python-streams.py', 'python-results.py', 'python-commands.py', 'python-driver.py'];
/** The first one loads the others. */
const NODE_DRIVER = ['node-driver.cjs', 'node-imports.cjs', 'node-results.cjs', 'node-errors.cjs'];

/** How the interpreter of each language is started. Its driver is told in its own file what it speaks with us. */
export const INTERPRETERS = {
  python: { program: 'python3', args: ['-c', PYTHON_START, ...PYTHON_DRIVER.map(readDriver)] },
  node: { program: 'node', args: ['-e', ...NODE_DRIVER.map(readDriver)] },
} as const;

export type Language = keyof typeof INTERPRETERS;

/** Where the drivers read their units. */
export const CONTROL_FD = 12;

/**
 * The interpreter that a sandbox may have before anybody ran code in it. Named after what it is started from, because a server of
 * another version speaks with another driver.
 */
export function spareOf(language: Language): SpareProcess {
  const { program, args } = INTERPRETERS[language];
  const digest = createHash('sha256')
    .update(JSON.stringify([program, args]))
    .digest('hex');
  return { key: `svc.code.spare.${digest.slice(0, 24)}`, cmd: program, args, stdinFd: CONTROL_FD };
}

function readDriver(name: string): string {
  return readFileSync(new URL(`drivers/${name}`, import.meta.url), 'utf8');
}

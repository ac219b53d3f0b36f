import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { KERNEL_PREFIX } from '@svc/contract';
import type { SpareProcess } from '@svc/contract/orchestrator';

/** Gives the driver a file name that user code cannot have, so that its frames differ from the user's. */
const PYTHON_START =
  "import sys\nfor text in [sys.argv.pop(1) for _ in range(int(sys.argv.pop(1)))]: exec(compile(text, '<svc driver>', 'exec'))";
/** Loaded in this order, into one namespace. */
const PYTHON_DRIVER = [
  'python-wire.py',
  'python-results.py',
  'python-charts.py',
  'python-commands.py',
  'python-driver.py',
];
const KERNEL_DRIVER = ['python-wire.py', 'python-results.py', 'kernel-driver.py'];
/** The first file loads the others. */
const NODE_DRIVER = ['node-driver.cjs', 'node-imports.cjs', 'node-results.cjs', 'node-errors.cjs'];

/** How an interpreter is started. The protocol is described in the driver's own file. */
export interface InterpreterProgram {
  readonly program: string;
  readonly args: readonly string[];
  /** The name that messages to callers use. */
  readonly title: string;
}

const INTERPRETERS = {
  python: { program: 'python3', args: pythonArgs(PYTHON_DRIVER), title: "'python3'" },
  node: { program: 'node', args: ['-e', ...NODE_DRIVER.map(readDriver)], title: "'node'" },
} as const satisfies Record<string, InterpreterProgram>;

/** Either with a driver of ours, or with a Jupyter kernel of the image. */
export type Language = keyof typeof INTERPRETERS | `${typeof KERNEL_PREFIX}${string}`;

const KERNEL_ARGS = pythonArgs(KERNEL_DRIVER);

export function interpreterOf(language: Language): InterpreterProgram {
  const kernel = kernelOf(language);
  if (kernel === undefined) return INTERPRETERS[language as keyof typeof INTERPRETERS];
  // SAFETY: an argument of its own; the driver hands the name to jupyter_client, which looks for it among the image's kernels.
  return { program: 'python3', args: [...KERNEL_ARGS, kernel], title: `Jupyter kernel '${kernel}'` };
}

export function languageOfKernel(kernel: string): Language {
  return `${KERNEL_PREFIX}${kernel}`;
}

/** Undefined when the language is not a kernel's. */
export function kernelOf(language: Language): string | undefined {
  return language.startsWith(KERNEL_PREFIX) ? language.slice(KERNEL_PREFIX.length) : undefined;
}

function pythonArgs(files: readonly string[]): readonly string[] {
  return ['-c', PYTHON_START, `${files.length}`, ...files.map(readDriver)];
}

/** The descriptor from which drivers read units. */
export const CONTROL_FD = 12;

/**
 * The interpreter that a sandbox may start before the first call. Its key is derived from the command that starts it, because a server
 * of another version has another driver.
 */
export function spareOf(language: Language): SpareProcess {
  const { program, args } = interpreterOf(language);
  const digest = createHash('sha256')
    .update(JSON.stringify([program, args]))
    .digest('hex');
  return { key: `svc.code.spare.${digest.slice(0, 24)}`, cmd: program, args, stdinFd: CONTROL_FD };
}

function readDriver(name: string): string {
  return readFileSync(new URL(`drivers/${name}`, import.meta.url), 'utf8');
}

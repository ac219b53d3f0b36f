import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { Command, Option } from 'commander';
import type { CodeResult, CodeRunResult, Sandbox } from '@svc/sdk';
import { parseTimeout } from '../arguments/number.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { ResultFiles } from '../sandbox/result-files.ts';
import { printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface CodeOptions {
  readonly language?: 'python' | 'javascript';
  readonly kernel?: string;
  readonly codeContext?: string;
  readonly file?: string;
  readonly timeout?: number;
  readonly saveResults?: string;
}

const EXIT_CODES: Readonly<Record<CodeResult['status'], number>> = {
  success: 0,
  error: 1,
  timeout: 124,
  interrupted: 130,
};
const STDIN = '-';

export function createCommand(): Command {
  return new Command('code')
    .description(
      'Runs code in an interpreter of a running sandbox that keeps its state: what one call defines, the next one knows.\n' +
        'Exit code: 0, 1 when the code raised, 124 out of time, 130 interrupted, 126 when the interpreter cannot be started,\n' +
        '125 when svc itself failed.',
    )
    .argument('<name>', 'the sandbox')
    .argument('[code]', 'what to run (default: what comes on stdin)')
    .addOption(
      new Option('-l, --language <language>', 'which default interpreter (default: python)').choices([
        'python',
        'javascript',
      ]),
    )
    .option('--kernel <name>', 'a Jupyter kernel of the image instead, such as python3 or ir')
    .option('--code-context <name>', 'a code context, by name or id, instead of a default interpreter')
    .option('-f, --file <file>', 'run what is in a file of here')
    .option('--timeout <time>', 'interrupt the code after this long (90, 10m)', parseTimeout)
    .option('--save-results <folder>', 'write charts, HTML and tables to files of here, and name them')
    .addHelpText(
      'after',
      examples(
        [`svc code box 'x = 6 * 7; x'`, 'one line of Python'],
        ['svc code box --file plot.py --save-results charts', 'charts become charts/1.png, charts/2.png'],
        [`svc code box -l javascript '[1, 2].map((n) => n * 2)'`, 'JavaScript'],
        [`echo 'summary(cars)' | svc code --kernel ir box`, 'R, where the image has its kernel'],
      ),
    )
    .action(runCode);
}

async function runCode(
  name: string,
  code: string | undefined,
  options: CodeOptions,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const source = await readSource(name, code, options.file);
  const { connectRunning } = await import('../sandbox/connect-running.ts');
  const { connectServer } = await import('../server/connect.ts');
  const sandbox = await connectRunning(name, await connectServer(globals));
  const files = new ResultFiles(options.saveResults);
  const result = await runIn(sandbox, source, options, globals.isJson ? undefined : files);
  if (globals.isJson) {
    for (const shown of result.results) await files.take(shown);
    printJson(result);
  }
  process.exitCode = EXIT_CODES[result.status];
}

async function readSource(name: string, code: string | undefined, file: string | undefined): Promise<string> {
  if (code !== undefined && file !== undefined) throw new UsageError('give the code, or --file, not both');
  if (file !== undefined && file !== STDIN) return await readFile(file, 'utf8');
  if (code !== undefined && code !== STDIN) return code;
  if (process.stdin.isTTY)
    throw new UsageError(`there is no code to run\n  try: svc code ${name} 'print(1)'`);
  return await readAll(process.stdin);
}

/** Ctrl-C interrupts the code; its state is kept. */
async function runIn(
  sandbox: Sandbox,
  code: string,
  { language, kernel, codeContext: context, timeout }: CodeOptions,
  files: ResultFiles | undefined,
): Promise<CodeResult> {
  const abort = new AbortController();
  const interrupt = () => abort.abort();
  process.once('SIGINT', interrupt);
  let saving = Promise.resolve();
  const onResult = (result: CodeRunResult) => {
    saving = saving.then(async () => {
      const line = await files?.take(result);
      if (line !== undefined) report(line);
    });
  };
  const isNamed = language !== undefined || kernel !== undefined || context !== undefined;
  try {
    const result = await sandbox.runCode(code, {
      ...(isNamed ? {} : { language: 'python' }),
      ...(language === undefined ? {} : { language }),
      ...(kernel === undefined ? {} : { kernel }),
      ...(context === undefined ? {} : { context }),
      ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }),
      ...(files === undefined
        ? {}
        : {
            onStdout: (text: string) => void process.stdout.write(text),
            onStderr: (text: string) => void process.stderr.write(text),
            onResult,
          }),
      signal: abort.signal,
    });
    await saving;
    return result;
  } finally {
    process.off('SIGINT', interrupt);
  }
}

import { inspect } from 'node:util';

/** An event of node:test's `run()`. */
export interface TestEvent {
  readonly type: string;
  readonly data: unknown;
}

/** The fields of an event's data that are read; which exist depends on the type. */
interface Outcome {
  readonly name?: string;
  readonly nesting?: number;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly message?: string;
  readonly details?: {
    readonly type?: string;
    readonly duration_ms?: number;
    readonly error?: Error & { readonly failureType?: string };
  };
}

/** Whether it is the last event of a file that shares a process with others. */
export function readEndOfFile({
  type,
  data,
}: TestEvent): { readonly name: string; readonly durationMs: number } | undefined {
  const { name, nesting, details } = data as Outcome;
  const isEnd = (type === 'test:pass' || type === 'test:fail') && nesting === 0 && details?.type === 'suite';
  return isEnd && name !== undefined ? { name, durationMs: details.duration_ms ?? 0 } : undefined;
}

const MAX_OUTPUT_CHARS = 32_768;
const MAX_COMMAND_CHARS = 200;

/** The results of the tests of one file. */
class FileResult {
  readonly file: string;
  readonly failures: string[] = [];
  readonly skipped: string[] = [];
  readonly #startedAt = performance.now();
  readonly #onEnd: (result: FileResult) => void;
  tests = 0;
  output = '';
  durationMs = 0;

  constructor(file: string, onEnd: (result: FileResult) => void) {
    this.file = file;
    this.#onEnd = onEnd;
  }

  take(event: TestEvent): void {
    // node:test documents the data of each type; every field we read is optional here.
    const outcome = event.data as Outcome;
    if (event.type === 'test:stdout' || event.type === 'test:stderr')
      this.output = (this.output + (outcome.message ?? '')).slice(-MAX_OUTPUT_CHARS);
    if (event.type === 'test:pass') this.#takePass(outcome);
    if (event.type === 'test:fail') this.#takeFailure(outcome);
  }

  /** `left` lists the processes that it did not end. */
  end(left: readonly string[] = [], durationMs = performance.now() - this.#startedAt): void {
    for (const command of left) this.failures.push(`  left running: ${command.slice(0, MAX_COMMAND_CHARS)}`);
    this.durationMs = durationMs;
    if (this.tests === 0 && this.failures.length === 0) this.failures.push('  holds no test');
    this.#onEnd(this);
  }

  #takePass(outcome: Outcome): void {
    const { name = '' } = outcome;
    // A file without a test is reported as one test that bears the file's name.
    if (this.#isTest(outcome)) this.tests += 1;
    if (outcome.skip !== undefined || outcome.todo !== undefined) this.skipped.push(name);
  }

  #takeFailure(outcome: Outcome): void {
    if (this.#isTest(outcome)) this.tests += 1;
    const error = outcome.details?.error;
    // A parent fails because a child did, and the child is reported.
    if (error?.failureType === 'subtestsFailed') return;
    const cause = error?.cause ?? error;
    const text = typeof cause === 'string' ? cause : inspect(cause, { depth: 6 });
    this.failures.push(`  ${outcome.name ?? ''}\n${text.replaceAll(/^/gm, '    ')}`);
  }

  #isTest(outcome: Outcome): boolean {
    return outcome.details?.type !== 'suite' && outcome.name?.endsWith(this.file) !== true;
  }
}

/** Counts test results, prints a line per file as it ends, and the failures with their output at the end. */
export class TestTally {
  readonly #print: (line: string) => void;
  readonly #results: FileResult[] = [];
  readonly #firstAttempts: FileResult[] = [];

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  begin(file: string): FileResult {
    return new FileResult(file, (result) => {
      this.#results.push(result);
      this.#printLine(result);
    });
  }

  /** The files that failed so far. */
  failed(): readonly string[] {
    return this.#results.filter(hasFailed).map(({ file }) => file);
  }

  /** How long each file took, in milliseconds. */
  durations(): readonly (readonly [string, number])[] {
    return this.#results.map(({ file, durationMs }) => [file, durationMs]);
  }

  /** Removes the results of a file that is run again from the count; they are still shown. */
  runAgain(file: string): void {
    this.#firstAttempts.push(...this.#results.filter((result) => result.file === file));
    this.forget(file);
  }

  /** Removes the results of a file that did not finish. */
  forget(file: string): void {
    const index = this.#results.findIndex((result) => result.file === file);
    if (index >= 0) this.#results.splice(index, 1);
  }

  /** Prints the summary; true when the run counts as failed. */
  report(options: {
    readonly skipsFail: boolean;
    readonly slowest: number;
    readonly wallMs: number;
  }): boolean {
    for (const result of this.#firstAttempts) this.#printFailures(result, 'at first, beside other files');
    for (const result of this.#results.filter(hasFailed)) this.#printFailures(result);
    const skipped = this.#results.flatMap((result) =>
      result.skipped.map((name) => `${result.file}: ${name}`),
    );
    for (const name of skipped)
      this.#print(`skipped${options.skipsFail ? ', which CI does not allow' : ''}: ${name}`);
    this.#printSlowest(options.slowest);
    const failures = sum(this.#results.map((result) => result.failures.length));
    const unsteady = this.#firstAttempts.filter(({ file }) => !this.failed().includes(file));
    for (const { file } of unsteady) this.#print(`unsteady, which is a fault to find: ${file}`);
    for (const { file, failures } of this.#results.filter(hasFailed))
      for (const failure of failures) this.#print(`failed: ${file}: ${failure.trim().split('\n', 1)[0]}`);
    const failed = failures > 0 || (options.skipsFail && skipped.length > 0);
    const tests = sum(this.#results.map((result) => result.tests));
    this.#print(
      `\n${failed ? 'FAILED' : 'passed'}: ${tests} tests in ${this.#results.length} files, ` +
        `${failures} failed, ${unsteady.length} unsteady, ${skipped.length} skipped, ${seconds(options.wallMs).trim()}`,
    );
    return failed;
  }

  #printFailures(result: FileResult, when = ''): void {
    this.#print(`\n✗ ${result.file} ${when}\n${result.failures.join('\n')}`);
    if (result.output.trim() !== '') this.#print(`  it printed\n${result.output}`);
  }

  #printLine(result: FileResult): void {
    const mark = hasFailed(result) ? '✗' : '✓';
    const count = `${result.tests} ${result.tests === 1 ? 'test' : 'tests'}`;
    this.#print(`${mark} ${result.file.padEnd(64)} ${count.padStart(10)} ${seconds(result.durationMs)}`);
  }

  #printSlowest(count: number): void {
    this.#print('\nslowest files');
    const slowest = this.#results.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, count);
    for (const { file, durationMs } of slowest) this.#print(`${seconds(durationMs)}  ${file}`);
  }
}

function hasFailed({ failures }: FileResult): boolean {
  return failures.length > 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`.padStart(9);
}

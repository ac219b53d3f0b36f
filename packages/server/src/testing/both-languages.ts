import { after, before, test } from 'node:test';
import { pino } from 'pino';
import { createCodeRunner } from '../code/code-runner.ts';
import type { UnitOptions } from '../code/interpreter.ts';
import type { CodeResult } from '../code/slot-request.ts';
import { TestSandbox } from './code-sandbox.ts';

export type Run = (code: string, timeoutMs?: number, options?: UnitOptions) => Promise<CodeResult>;
type Language = 'python' | 'node';
type Check = (code: string, run: Run, language: Language) => Promise<void>;
type InBoth = (title: string, codes: Readonly<Record<Language, string>>, check: Check) => void;

/**
 * Declares tests of one behaviour in both languages, each with an interpreter of its own in a sandbox of this file. The default limit
 * gives code on a busy machine enough time to react to an interruption.
 */
export function bothLanguages({ killMs = 60_000 } = {}): InBoth {
  let sandbox: TestSandbox;
  let runner: ReturnType<typeof createCodeRunner>;
  before(async () => {
    sandbox = await TestSandbox.start();
    const logger = pino({ level: 'silent' });
    const openChannel = (_id: string, signal: AbortSignal) => sandbox.openChannel(signal);
    runner = createCodeRunner({ openChannel, logger, killMs });
  });
  after(async () => {
    runner.close();
    await sandbox.stop();
  });
  return (title, codes, check) => {
    for (const language of ['python', 'node'] as const) {
      void test(`${title} (${language})`, async () => {
        const sandboxId = `${title} ${language}`;
        const signal = new AbortController().signal;
        const run: Run = async (code, timeoutMs = 60_000, options?: UnitOptions) =>
          await runner.run({ sandboxId, language, code, timeoutMs, options }, signal);
        try {
          await check(codes[language], run, language);
        } finally {
          runner.forget(sandboxId);
        }
      });
    }
  };
}

export function success(output: string): CodeResult {
  return { status: 'success', output, error: '', truncated: false };
}

import { once } from 'node:events';
import type { DetachedOutput, DetachedProcess } from '@svc/sdk';
import { formatBytes } from '../terminal/amounts.ts';
import { report } from '../terminal/print.ts';
import { borrowTerminal, windowSize } from '../terminal/raw-terminal.ts';
import { withoutQueries } from './without-queries.ts';

/** Enough to draw the last screen of a terminal again. */
const REPLAYED_BYTES = 16 * 1024;

/**
 * Shows what a detached process writes and hands it what is typed, until it ends or Ctrl-] leaves it running.
 * Returns the code to exit with: its own, 128 + n when signal n ended it, 0 when it runs on.
 */
export async function attachProcess(child: DetachedProcess): Promise<number> {
  const { tty: isTty, stdout_bytes: written } = child.info;
  const leaving = new AbortController();
  using terminal = isTty && process.stdin.isTTY ? borrowTerminal(child) : null;
  if (terminal !== null) await child.resize(windowSize()).catch(() => undefined);
  forwardInput(child, terminal?.filter);
  const stdoutOffset = isTty ? Math.max(0, written - REPLAYED_BYTES) : 0;
  const output = child.output({ stdoutOffset, signal: leaving.signal });
  const finished = show(terminal === null ? output : withoutQueries(output, written));
  const outcome = await Promise.race([finished, ...(terminal === null ? [] : [terminal.left])]);
  process.stdin.destroy();
  if (outcome !== 'left') return await exitCodeOf(child);
  // The abort ends only our reading; it was requested, so it is no failure.
  finished.catch(() => undefined);
  leaving.abort();
  terminal?.[Symbol.dispose]();
  report(`\nleft; it runs on as ${child.name ?? child.id}`);
  return 0;
}

/** Writes the output of a process to the stream of the same name. */
export async function show(output: AsyncIterable<DetachedOutput>): Promise<void> {
  for await (const event of output) {
    if (event.kind === 'dropped') {
      report(`… ${formatBytes(event.to - event.from)} of ${event.stream} were not kept …`);
      continue;
    }
    const stream = event.stream === 'stderr' ? process.stderr : process.stdout;
    if (!stream.write(event.data)) await once(stream, 'drain');
  }
}

async function exitCodeOf(child: DetachedProcess): Promise<number> {
  const { code, shell_code: shellCode, message } = await child.wait();
  if (code === null) report(message);
  return shellCode ?? 1;
}

function forwardInput(child: DetachedProcess, filter: ((chunk: Buffer) => Buffer) | undefined): void {
  const pump = async (): Promise<void> => {
    let hasInput = false;
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
      hasInput = true;
      const typed = filter === undefined ? chunk : filter(chunk);
      if (typed.length > 0) await child.write(typed);
    }
    // An empty stdin, such as /dev/null in scripts, does not end the process; nor does a terminal, which may attach again.
    if (hasInput && !child.info.tty) await child.closeStdin();
  };
  // A process may have no input, or a closed one; its output is shown all the same.
  pump().catch(() => undefined);
}

import { constants } from 'node:os';
import type { ChannelClient, DetachedEvent, DetachedState } from '@svc/contract';
import { ConnectError } from '../wire/connect-error.ts';

/** What a client gets of one process. */
export type ProcessEvent =
  | { readonly start: { readonly pid: number } }
  | { readonly data: { readonly stdout?: string; readonly stderr?: string; readonly pty?: string } }
  | { readonly end: ProcessEnd }
  | { readonly keepalive: Record<string, never> };

interface ProcessEnd {
  readonly exitCode: number;
  readonly exited: boolean;
  readonly status: string;
  readonly error?: string;
}

const SIGKILL = 9;

/** The words of Go for signals, which E2B's clients show; others are told by their number. */
const SIGNAL_WORDS: Readonly<Record<string, string>> = {
  SIGHUP: 'hangup',
  SIGINT: 'interrupt',
  SIGQUIT: 'quit',
  SIGILL: 'illegal instruction',
  SIGTRAP: 'trace/breakpoint trap',
  SIGABRT: 'aborted',
  SIGBUS: 'bus error',
  SIGFPE: 'floating point exception',
  SIGKILL: 'killed',
  SIGUSR1: 'user defined signal 1',
  SIGSEGV: 'segmentation fault',
  SIGUSR2: 'user defined signal 2',
  SIGPIPE: 'broken pipe',
  SIGALRM: 'alarm clock',
  SIGTERM: 'terminated',
};

/**
 * Output of a process from these offsets on, then its end; asked for at once, before the first value is. Output that was lost because
 * the client read too slowly is an error, never a silent gap.
 */
export function processEvents(
  channel: ChannelClient,
  { key, isTty }: { readonly key: string; readonly isTty: boolean },
  from: { readonly stdout: number; readonly stderr: number },
): AsyncGenerator<ProcessEvent, void> {
  const events = channel.detached.read(key, { ...from, follow: true });
  const first = events.next();
  // Until it is awaited, a failure must not be unhandled.
  first.catch(() => undefined);
  return eventsFrom(first, events, isTty);
}

async function* eventsFrom(
  first: ReturnType<AsyncGenerator<DetachedEvent, void>['next']>,
  events: AsyncGenerator<DetachedEvent, void>,
  isTty: boolean,
): AsyncGenerator<ProcessEvent, void> {
  for (let next = await first; next.done !== true; next = await events.next()) {
    const event = next.value;
    yield event.type === 'end' ? { end: endOf(event.state) } : dataOf(event, isTty);
  }
}

function dataOf(event: Exclude<DetachedEvent, { readonly type: 'end' }>, isTty: boolean): ProcessEvent {
  if (event.type === 'dropped') {
    const bytes = event.to - event.from;
    throw new ConnectError('resource_exhausted', `${bytes} bytes of ${event.stream} were not read in time`);
  }
  const { data, stream } = event;
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  return { data: isTty ? { pty: text } : { [stream]: text } };
}

/** @throws ConnectError `deadline_exceeded` when its time was over */
export function endOf({ end }: DetachedState): ProcessEnd {
  if (end === null) throw new ConnectError('internal', 'the process has not ended');
  if (end.reason === 'timeout') throw timedOut();
  const signal = end.signal ?? (end.code === null ? SIGKILL : null);
  if (signal !== null) {
    const status = `signal: ${wordOf(signal)}`;
    return { exitCode: -1, exited: false, status, error: status };
  }
  const exitCode = end.code ?? 0;
  const status = `exit status ${exitCode}`;
  return { exitCode, exited: true, status, ...(exitCode === 0 ? {} : { error: status }) };
}

export function timedOut(): ConnectError {
  return new ConnectError('deadline_exceeded', 'context deadline exceeded');
}

function wordOf(signal: number): string {
  const [name = ''] = Object.entries(constants.signals).find(([, number]) => number === signal) ?? [];
  return SIGNAL_WORDS[name] ?? `signal ${signal}`;
}

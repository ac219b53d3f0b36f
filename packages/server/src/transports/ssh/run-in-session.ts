import { constants } from 'node:os';
import { ExecFailed, type ChannelClient, type ChannelProcess, type ExecRequest } from '@svc/contract/channel';
import { showLine } from '@svc/contract/visible';
import type { ServerChannel } from 'ssh2';
import { readHalf } from '../../published-ports/read-half.ts';
import type { SshOutput } from './ssh-output.ts';

/** The exit status of shells for this case. */
const EXIT_NOT_FOUND = 127;
const EXIT_NOT_STARTED = 126;

/** SSH names signals without SIG. */
export const SIGNAL_NUMBERS: ReadonlyMap<string, number> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [name.replace(/^SIG/, ''), number]),
);
/** The signals of RFC 4254; clients need not support others. */
const KNOWN_SIGNALS = [
  'ABRT',
  'ALRM',
  'FPE',
  'HUP',
  'ILL',
  'INT',
  'KILL',
  'PIPE',
  'QUIT',
  'SEGV',
  'TERM',
  'USR1',
  'USR2',
];

/** Runs one process for one SSH session, from the first byte of input to the exit status. */
export async function runInSession(
  channel: ChannelClient,
  request: ExecRequest,
  client: {
    readonly stream: ServerChannel;
    readonly output: SshOutput;
    readonly onStarted: (process: ChannelProcess) => void;
    readonly onReceived: (bytes: number) => void;
  },
): Promise<void> {
  const { stream, output } = client;
  try {
    const process = await channel.exec(request);
    client.onStarted(process);
    // Not awaited: the process may exit while the client still sends.
    sendInput(stream, process, client.onReceived).catch(() => undefined);
    await Promise.all([output.pump(process.stdout), output.pump(process.stderr, 'stderr')]);
    const { code, signal, reason } = await process.exited;
    if (reason === 'oom')
      await output.write(line('the sandbox ran out of memory: the process was killed'), 'stderr');
    if (signal === null) stream.exit(code < 0 ? EXIT_NOT_STARTED : code);
    else exitBySignal(stream, signal);
  } catch (error) {
    if (!(error instanceof ExecFailed)) throw error;
    await output.write(line(error.message), 'stderr');
    stream.exit(error.kind === 'not_found' ? EXIT_NOT_FOUND : EXIT_NOT_STARTED);
  } finally {
    stream.end();
  }
}

/**
 * A message of the gateway, readable also on a terminal in raw mode. Escapes control characters in names that users
 * chose.
 */
export function line(message: string): Buffer {
  return Buffer.from(`svc: ${showLine(message)}\r\n`);
}

async function sendInput(
  stream: ServerChannel,
  process: ChannelProcess,
  onReceived: (bytes: number) => void,
): Promise<void> {
  for await (const chunk of readHalf(stream)) {
    onReceived(chunk.length);
    await process.writeStdin(chunk);
  }
  await process.closeStdin();
}

function exitBySignal(stream: ServerChannel, signal: number): void {
  const name = KNOWN_SIGNALS.find((known) => SIGNAL_NUMBERS.get(known) === signal);
  if (name === undefined) stream.exit(128 + signal);
  else stream.exit(name, false, '');
}

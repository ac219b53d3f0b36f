import { spawn } from '@svc/contract/node-spawn';
import type { ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';
import { ChannelClient } from '@svc/contract/channel';
import type { ChannelFiles } from '@svc/contract/channel';
import { socketTransport } from '@svc/contract/node-socket-transport';

const MAX_COMPLAINT_CHARACTERS = 2000;

/** File operations in a host folder, carried out by a process that sees only this folder. */
export interface ConfinedFolder {
  /** Paths are absolute, as if the folder were the root. */
  readonly files: ChannelFiles;
  /** Ends the process. */
  close(): void;
  /** Resolves when its connection is closed. */
  readonly closed: Promise<unknown>;
  /** Resolves when the process has ended, which releases the folder. */
  readonly gone: Promise<void>;
}

/** Starts the process; it ends with ours too, because its connection closes. */
export async function openConfinedFolder(
  program: string,
  folder: string,
  signal?: AbortSignal,
): Promise<ConfinedFolder> {
  // SAFETY: both arguments are ours (configuration, a folder that the engine chose) and reach the shell as parameters.
  // The shell only moves the socket to descriptor 0, where a child's own pipe would be one-way. No environment; a process
  // group of its own, so that a signal for the engine's does not end it in the middle of a write.
  const child = spawn('/bin/sh', ['-c', 'exec "$0" serve-files "$1" <&3 3<&-', program, folder], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: {},
    cwd: '/',
    detached: true,
  });
  const { gone, complaint } = observe(child);
  try {
    const transport = socketTransport(socketOf(child));
    const client = await ChannelClient.connect(transport, signal ? { signal } : {});
    void client.closed.then(() => child.kill('SIGKILL'));
    return { files: client.files, closed: client.closed, gone, close: () => client.close() };
  } catch (error) {
    child.kill('SIGKILL');
    await gone;
    signal?.throwIfAborted();
    throw new Error(`The process that serves a folder did not start: ${complaint()}`, { cause: error });
  }
}

function observe(child: ChildProcess): { gone: Promise<void>; complaint: () => string } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let complaint = '';
  child.once('exit', () => resolve());
  child.once('error', (error) => {
    complaint = error.message;
    if (child.pid === undefined) resolve();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-MAX_COMPLAINT_CHARACTERS);
  });
  return { gone: promise, complaint: () => complaint };
}

function socketOf(child: ChildProcess): Duplex {
  const socket = child.stdio[3];
  if (!(socket instanceof Duplex)) throw new Error('its channel is not a socket');
  return socket;
}

import type { Process, ServerEvent } from '@svc/contract/rest';
import { withoutPartialEnd, withoutPartialStart } from './file-content.ts';

/** Maximum size of both streams in one answer. */
const MAX_READ_BYTES = 30_000;

type Stream = 'stdout' | 'stderr';

export interface ReadOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly nextOffset: string;
  readonly hasMore: boolean;
  readonly droppedBytes: number;
  /** The process at the end of its output; undefined when there is more output. */
  readonly process: Process | undefined;
}

/** The offset from which the latest output fits into one answer. */
export function latestOffset({ stdout_bytes: stdout, stderr_bytes: stderr }: Process): string {
  const half = MAX_READ_BYTES / 2;
  const forStderr = Math.min(stderr, Math.max(half, MAX_READ_BYTES - stdout));
  const forStdout = Math.min(stdout, MAX_READ_BYTES - forStderr);
  return `${stdout - forStdout}-${stderr - forStderr}`;
}

/** Reads output from an offset, as much as fits into one answer, without splitting a character. */
export async function readOutput(events: AsyncIterable<ServerEvent>, offset: string): Promise<ReadOutput> {
  const [stdout = 0, stderr = 0] = offset.split('-').map(Number);
  const next = { stdout, stderr };
  const chunks: Record<Stream, Buffer[]> = { stdout: [], stderr: [] };
  let room = MAX_READ_BYTES;
  let droppedBytes = 0;
  let process: Process | undefined;
  for await (const { event, data } of events) {
    if (event === 'end') {
      process = data as Process;
      break;
    }
    if (event === 'dropped') {
      const { stream, from, to } = data as { stream: Stream; from: number; to: number };
      droppedBytes += to - from;
      next[stream] = to;
      continue;
    }
    const { stream, data: text } = data as { stream: Stream; data: string };
    const bytes = Buffer.from(text, 'base64');
    const taken = bytes.subarray(0, room);
    chunks[stream].push(taken);
    next[stream] += taken.length;
    room -= taken.length;
    if (taken.length < bytes.length) break;
  }
  // After the process has ended, an incomplete character is shown, because no more bytes will follow.
  const isOver = process !== undefined && process.exit !== null;
  const decode = (stream: Stream): string => {
    const all = withoutPartialStart(Buffer.concat(chunks[stream]));
    const whole = isOver ? all : withoutPartialEnd(all);
    next[stream] -= all.length - whole.length;
    return whole.toString('utf8');
  };
  const texts = { stdout: decode('stdout'), stderr: decode('stderr') };
  const nextOffset = `${next.stdout}-${next.stderr}`;
  return { ...texts, nextOffset, hasMore: process === undefined, droppedBytes, process };
}

import { ChannelError, FileFailed, PlatformError } from '@svc/contract';
import type { ChannelPool } from '../orchestrator/channel-pool.ts';
import { explainFailure, isTimeout } from '../processes/explain-failure.ts';

/** Translates a failed call to the sandbox about a file into an error for the caller; leaves other errors as they are. */
export async function explainFileFailure(
  channels: Pick<ChannelPool, 'explainBreak'>,
  sandboxId: string,
  path: string,
  error: unknown,
): Promise<unknown> {
  if (error instanceof FileFailed) {
    const { platformCode: code, errnoName, message } = error;
    return new PlatformError(code, `${path}: ${message}${remedyOf(message)}`, {
      details: { path, errno: errnoName },
      cause: error,
    });
  }
  if (isTimeout(error)) return explainFailure(error, { process: path });
  if (!(error instanceof ChannelError)) return error;
  if (error.kind === 'refused' || error.kind === 'unsupported') {
    return new PlatformError('invalid_request', `${path}: the sandbox refused: ${error.message}`, {
      details: { field: 'path', path },
      cause: error,
    });
  }
  const reason = await channels.explainBreak(sandboxId);
  if (reason !== undefined) return reason;
  return new PlatformError('unavailable', 'the connection to the sandbox broke; try again', { cause: error });
}

/** Of the file systems of gVisor, and of a few in class container. */
function remedyOf(message: string): string {
  return message.startsWith('metadata: Operation not supported')
    ? '; this file system has no extended attributes (class gvisor has none at all), so leave the metadata out'
    : '';
}

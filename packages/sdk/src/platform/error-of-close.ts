import { OUT_OF_MEMORY_CLOSE } from '@svc/contract/channel';
import { SvcError } from '../svc-error.ts';

/** The error for the close code with which a server closed the channel. */
export function errorOfClose(code: number, reason: string): Error {
  if (code === OUT_OF_MEMORY_CLOSE)
    return new SvcError('sandbox_not_running', reason, { details: { reason: 'oom' } });
  return new Error(reason || `The server closed the channel (${code})`);
}

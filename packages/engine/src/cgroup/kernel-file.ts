import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { isErrno } from '@svc/contract/errno';

const buffer = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * The text of a small file of /proc or the cgroup file system; undefined when its process or cgroup is gone.
 * Synchronous on purpose: the kernel answers from memory in some 10 µs, a round trip through Node's thread pool takes ten times that.
 */
export function readKernelFile(path: string): string | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    return goneOrThrow(error);
  }
  try {
    const length = readSync(descriptor, buffer, 0, buffer.length, 0);
    if (length < buffer.length) return buffer.toString('latin1', 0, length);
    return readFileSync(path, 'latin1');
  } catch (error) {
    return goneOrThrow(error);
  } finally {
    closeSync(descriptor);
  }
}

/** Does nothing when its process or cgroup is gone. Synchronous, for the reason above. */
export function writeKernelFile(path: string, text: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_WRONLY | constants.O_TRUNC);
    writeSync(descriptor, text);
  } catch (error) {
    goneOrThrow(error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function goneOrThrow(error: unknown): undefined {
  if (isErrno(error, 'ENOENT', 'ENODEV', 'ESRCH')) return undefined;
  throw error;
}

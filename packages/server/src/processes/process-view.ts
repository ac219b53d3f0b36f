import { PlatformError } from '@svc/contract';
import type { Process } from '@svc/contract/rest';
import type { ProcessRecord } from '../store/processes.ts';

export function toProcessView(record: ProcessRecord): Process {
  const { exit } = record;
  return {
    id: record.id,
    sandbox_id: record.sandboxId,
    name: record.name,
    pid: record.pid,
    command: [...record.command],
    tty: record.isTty,
    status: exit === null ? 'running' : 'exited',
    started_at: record.startedAt,
    ended_at: record.endedAt,
    exit:
      exit === null
        ? null
        : {
            code: exit.code,
            signal: exit.signal,
            reason: exit.reason,
            killed_by: exit.killedBy,
            message: exit.message,
          },
    stdout_bytes: record.stdoutBytes,
    stderr_bytes: record.stderrBytes,
  };
}

export function processNotFound(process: string): PlatformError {
  const message = `There is no process '${process}' in this sandbox; list its processes to see which there are`;
  return new PlatformError('process_not_found', message, { details: { process_id: process } });
}

import { PlatformError, shellCodeOf } from '@svc/contract';
import type { Process } from '@svc/contract/rest';
import type { ProcessExit, ProcessRecord } from '../store/processes.ts';
import { signalNumber } from './describe-exit.ts';

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
            shell_code: shellCodeOfExit(exit),
            reason: exit.reason,
            killed_by: exit.killedBy,
            message: exit.message,
          },
    stdout_bytes: record.stdoutBytes,
    stderr_bytes: record.stderrBytes,
  };
}

function shellCodeOfExit({ code, signal }: ProcessExit): number | null {
  const number = signal === null ? null : (signalNumber(signal) ?? null);
  return code === null && number === null ? null : shellCodeOf({ code: code ?? -1, signal: number });
}

export function processNotFound(process: string): PlatformError {
  const message = `There is no process '${process}' in this sandbox; list its processes to see which there are`;
  return new PlatformError('process_not_found', message, { details: { process_id: process } });
}

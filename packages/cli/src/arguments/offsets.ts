import { InvalidArgumentError } from 'commander';

/** The read positions in the streams of a process, in bytes. */
export interface Offsets {
  readonly stdoutOffset: number;
  readonly stderrOffset: number;
}

/** `N` of stdout, or `N-M` of stdout and stderr. */
export function parseOffsets(text: string): Offsets {
  const [, stdout, stderr = '0'] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text) ?? [];
  if (stdout === undefined)
    throw new InvalidArgumentError('Give bytes, such as 4096, or 4096-120 for stdout and stderr.');
  return { stdoutOffset: Number(stdout), stderrOffset: Number(stderr) };
}

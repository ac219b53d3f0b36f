import type { EngineRecord } from './record.ts';

/**
 * The command that runs from the start: the caller's `cmd`, behind the entrypoint. Without a `cmd` of the caller
 * nothing runs: a sandbox is started to be used, and the image's own CMD is for `exec` without a command.
 */
export function commandOf(record: EngineRecord): readonly string[] | undefined {
  const cmd = record.spec.runtime?.cmd ?? [];
  if (cmd.length === 0) return undefined;
  const entrypoint = record.spec.runtime?.entrypoint ?? record.image.config.entrypoint;
  return [...entrypoint, ...cmd];
}

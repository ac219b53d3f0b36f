import { PlatformError } from '@svc/contract/errors';
import { refusalReason } from '../guest/guest-messages.ts';
import { applyPatches } from './apply-patches.ts';
import type { StoredRecord } from './stored-record.ts';
import type { Kit } from './kit.ts';
import { withoutPatches, type EngineRecord } from './record.ts';
import type { Run } from './run.ts';
import { trustAuthority } from './trust-authority.ts';

/** Prepares a run for its caller: applies the patches and starts the main command. */
export async function makeUsable(
  kit: Pick<Kit, 'mounts' | 'network'>,
  stored: StoredRecord,
  run: Run,
  signal: AbortSignal,
): Promise<void> {
  if (!stored.value.patched && (stored.value.spec.patches ?? []).length > 0) {
    await applyPatches(kit.mounts, stored.value, run.link, signal);
    await stored.save(withoutPatches(stored.value));
  }
  await prepareCommands(kit, run, stored.value, signal);
  const command = commandOf(stored.value);
  if (command === undefined) return run.restSoon();
  if (run.main.isRunning) return;
  await run.main.start(command, signal);
  stored.journal.note('debug', `the main command ${command[0]} has been started`);
}

/**
 * Makes sure that commands can be started: makes the working directory when the image lacks it, refuses an unknown user now rather than
 * with every command, and installs trusted authorities. Runs after the patches, which may add both.
 */
async function prepareCommands(
  kit: Pick<Kit, 'network'>,
  run: Run,
  record: EngineRecord,
  signal: AbortSignal,
): Promise<void> {
  await trustAuthority(kit.network, record, run.link, signal);
  const user = record.spec.runtime?.user ?? record.image.config.user;
  const workdir = record.spec.runtime?.workdir ?? record.image.config.workdir;
  if ((user ?? '') === '' && (workdir ?? '') === '') return;
  const answer = await run.link.request('svc.prepare', {}, signal);
  if (answer.type === 'svc.prepared') return;
  const details = { user: user ?? null, workdir: workdir ?? null };
  throw new PlatformError('start_failed', `no command can be started: ${refusalReason(answer)}`, { details });
}

/**
 * The command that runs from the start: the caller's `cmd`, behind the entrypoint. Without a `cmd` of the caller
 * nothing runs: a sandbox is started to be used, and the image's own CMD is for `exec` without a command.
 */
function commandOf(record: EngineRecord): readonly string[] | undefined {
  const cmd = record.spec.runtime?.cmd ?? [];
  if (cmd.length === 0) return undefined;
  const entrypoint = record.spec.runtime?.entrypoint ?? record.image.config.entrypoint;
  return [...entrypoint, ...cmd];
}

import { PlatformError } from '@svc/contract/errors';
import type { Orphan } from '../orphans/orphans.ts';
import { askServer, type Question } from './ask-server.ts';

/** A removal takes what the removal of a disk takes. */
const TIMEOUT_MS = 90_000;

/** What the engine has and no row of its server knows. @throws PlatformError also when no server runs there */
export async function readOrphans(dataFolder: string): Promise<readonly Orphan[]> {
  const answer = await askRunning(dataFolder, { method: 'GET', path: '/orphans', timeoutMs: TIMEOUT_MS });
  return Array.isArray(answer) ? (answer as readonly Orphan[]) : outdated();
}

/** @throws PlatformError when it has an owner, or it runs and `isForced` is not set */
export async function removeLocalOrphan(
  dataFolder: string,
  id: string,
  { isForced }: { readonly isForced: boolean },
): Promise<void> {
  const path = `/orphans/${encodeURIComponent(id)}${isForced ? '?force' : ''}`;
  const answer = await askRunning(dataFolder, { method: 'DELETE', path, timeoutMs: TIMEOUT_MS });
  if (typeof answer !== 'object' || answer === null || !('removed' in answer)) outdated();
}

async function askRunning(dataFolder: string, question: Question): Promise<unknown> {
  const answer = await askServer(dataFolder, question);
  if (answer !== undefined) return answer;
  const message = `no server runs on ${dataFolder}, and only a server knows what is whose`;
  throw new PlatformError('unavailable', `${message}\n  try: svc server start --detach`);
}

/** A server that was started before an upgrade answers every request with its status. */
function outdated(): never {
  const message = 'the server that runs is older than this command\n  try: systemctl restart svc';
  throw new PlatformError('unavailable', message);
}

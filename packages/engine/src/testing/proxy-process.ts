import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { scopeKey } from '../egress/proxies.ts';
import { command } from './command.ts';
import type { TestEngine } from './test-engine.ts';

/** The recorded process that is the proxy of a scope; null when there is none. */
export function proxyOf({ options }: TestEngine, scope: string | null): number | null {
  const file = join(options.runFolder, 'proxies', `${scopeKey(scope)}.json`);
  if (!existsSync(file)) return null;
  const text = readFileSync(file, 'utf8');
  // Half written for a moment.
  return text.endsWith('}') ? (JSON.parse(text) as { pid: number }).pid : null;
}

/** Waits for a proxy of a scope that is not `old`. */
export async function newProxyOf(
  engine: TestEngine,
  scope: string | null,
  old: number | null = null,
): Promise<number> {
  await waitUntil(() => ![null, old].includes(proxyOf(engine, scope)), `a proxy of ${scope}`);
  const pid = proxyOf(engine, scope);
  assert.ok(pid !== null && pid > 1);
  return pid;
}

export function networkOf(pid: number): string {
  return `/proc/${pid}/ns/net`;
}

/** Words that run a program in the network, and as the user and the group, that a process has. */
export function likeProcess(pid: number): readonly string[] {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [uid, gid] = ['Uid', 'Gid'].map((name) => new RegExp(`^${name}:\\t(\\d+)`, 'm').exec(status)?.[1]);
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  return ['nsenter', `--net=${networkOf(pid)}`, '--', ...user];
}

export async function succeeds(...line: readonly string[]): Promise<boolean> {
  return await command('timeout', '10', ...line).then(
    () => true,
    () => false,
  );
}

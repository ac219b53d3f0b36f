import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Installation } from './installation.ts';

/** Longer than a busy machine takes to prepare the network slots that were lost. */
const AGREE_MS = 60_000;
const LOOK_MS = 100;
const run = promisify(execFile);

interface ListedSandbox {
  readonly id: string;
  readonly status: string;
  readonly started_at: string | null;
}

interface Rest {
  readonly sandboxes: { readonly data: readonly ListedSandbox[] };
  readonly quotas: {
    readonly total_sandboxes: number;
    readonly concurrent_ephemeral_running: number;
    readonly concurrent_persistent_running: number;
  };
}

/** Checks that records, quotas and firewall rules agree with the sandboxes that exist. */
export async function assertAgreement(installation: Installation): Promise<void> {
  const deadline = performance.now() + AGREE_MS;
  for (;;) {
    try {
      return await compare(installation);
    } catch (error) {
      // What is written down may be a moment behind, and so may what is prepared for the next sandboxes.
      if (performance.now() > deadline) throw error;
      await delay(LOOK_MS);
    }
  }
}

async function compare(installation: Installation): Promise<void> {
  const records = (await read(installation, 'sandboxes')).data;
  const views = await installation.engine.listSandboxes();
  const known = new Set(views.map(({ id }) => id));
  const recorded = records.filter((record) => known.has(record.id) || !wasNeverMade(record));
  assert.deepEqual(
    recorded.map(({ id, status }) => `${id} ${status}`).toSorted(),
    views.map(({ id, state }) => `${id} ${state}`).toSorted(),
    'records and engine',
  );
  const onTheirWay = views.filter(({ state }) => !['running', 'stopped'].includes(state));
  assert.deepEqual(onTheirWay, [], 'a sandbox is on its way, or failed');
  const running = views.filter(({ state }) => state === 'running');
  const quotas = await read(installation, 'quotas');
  assert.equal(quotas.total_sandboxes, records.length, 'sandboxes that the quotas count');
  const counted = quotas.concurrent_ephemeral_running + quotas.concurrent_persistent_running;
  assert.equal(counted, running.length, 'running ones that the quotas count');
  const admitted = await admittedLinks(installation.instance);
  assert.deepEqual(
    [...admitted.keys()].toSorted(),
    await links(installation.instance),
    'admitted interfaces',
  );
  const addresses = [...admitted.values()];
  assert.equal(new Set(addresses).size, addresses.length, 'an address is admitted once');
  for (const { id, address } of running)
    assert.ok(address !== null && addresses.includes(address), `sandbox ${id} is admitted`);
}

/** Stopped before its first start had got as far as the engine, which makes it when it is next started. */
function wasNeverMade({ status, started_at: startedAt }: ListedSandbox): boolean {
  return status === 'stopped' && startedAt === null;
}

async function read<Path extends keyof Rest>({ url }: Installation, path: Path): Promise<Rest[Path]> {
  const response = await fetch(`${url}/v1/${path}`);
  assert.equal(response.status, 200, await response.clone().text());
  // As the OpenAPI document has it, with which the server is compared elsewhere.
  return (await response.json()) as Rest[Path];
}

/** Addresses by the interface that they may come from. */
async function admittedLinks(instance: string): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await run('nft', ['list', 'set', 'inet', `svc_${instance}`, 'slots']);
  const elements = stdout.matchAll(/"(?<name>[^"]+)" \. (?<address>[\d.]+)/g);
  return new Map([...elements].map(({ groups }) => [groups?.['name'] ?? '', groups?.['address'] ?? '']));
}

async function links(instance: string): Promise<readonly string[]> {
  const { stdout } = await run('ip', ['-o', 'link']);
  const names = stdout.split('\n').map((line) => /^\d+: (?<name>[^@:]+)/.exec(line)?.groups?.['name'] ?? '');
  return names.filter((name) => name.startsWith(`v${instance}-`)).toSorted();
}

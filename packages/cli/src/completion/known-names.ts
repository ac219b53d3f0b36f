import type { Client, ClientCallOptions } from '@svc/sdk';
import { readContexts } from '../context/context-file.ts';
import type { Globals } from '../globals.ts';

/** Time limit of a completion. */
const TIMEOUT_MS = 2000;

type Call = ClientCallOptions & { readonly client: Client };

export async function contextNames({ contextFolder }: Globals): Promise<readonly string[]> {
  return Object.keys((await readContexts(contextFolder)).contexts);
}

export async function sandboxNames(globals: Globals): Promise<readonly string[]> {
  const { Sandbox } = await import('@svc/sdk');
  return await ask(globals, (call) => Array.fromAsync(Sandbox.list(call), ({ name }) => name));
}

export async function volumeNames(globals: Globals): Promise<readonly string[]> {
  const { Volume } = await import('@svc/sdk');
  return await ask(globals, async (call) =>
    (await Volume.list(call)).flatMap(({ name }) => (name === null ? [] : [name])),
  );
}

/** Drops the default parts of a reference. */
export async function imageNames(globals: Globals): Promise<readonly string[]> {
  const { Images } = await import('@svc/sdk');
  return await ask(globals, async (call) =>
    (await Images.list(call)).flatMap(({ references }) =>
      references.map((reference) => reference.replace(/:latest$/, '').replace(/^svc\//, '')),
    ),
  );
}

/** Processes that still exist, by name where they have one. */
export async function processNames(globals: Globals, sandbox: string): Promise<readonly string[]> {
  const { Sandbox } = await import('@svc/sdk');
  return await ask(globals, async (call) => {
    const { id } = await Sandbox.connect(sandbox, call);
    const { data } = await call.client.call('processes.list', { params: { sandbox_id: id } }, call);
    return [...new Set(data.map(({ name, id: processId }) => name ?? processId))];
  });
}

export async function webhookIds(globals: Globals): Promise<readonly string[]> {
  const { Webhooks } = await import('@svc/sdk');
  return await ask(globals, async (call) => (await Webhooks.list(call)).map(({ id }) => id));
}

/** The latest ones. */
export async function deliveryIds(globals: Globals, webhook: string): Promise<readonly string[]> {
  return await ask(globals, async (call) => {
    const { data } = await call.client.call('webhooks.deliveries', { params: { webhook_id: webhook } }, call);
    return data.map(({ id }) => id);
  });
}

export async function eventPatterns(): Promise<readonly string[]> {
  const { EVENT_PATTERNS } = await import('@svc/contract/rest');
  return EVENT_PATTERNS;
}

/** Errors of the server give no candidates, because an error message would spoil the command line. */
async function ask(
  globals: Globals,
  list: (call: Call) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const { connectServer } = await import('../server/connect.ts');
  const call = { client: await connectServer(globals), timeoutMs: TIMEOUT_MS };
  return await list(call).catch(() => []);
}

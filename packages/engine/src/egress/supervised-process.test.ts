import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import { HOST_NETWORKS } from '../testing/host-networks.ts';
import { SupervisedProcess } from './supervised-process.ts';

/** What a process does on its line to the engine. `say` writes a message, `raw` bytes. */
const LINE = `
import { Socket } from 'node:net';
const line = new Socket({ fd: 3, readable: true, writable: true });
line.on('error', () => undefined).resume();
const raw = (bytes) => line.write(bytes);
const say = (text) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(text));
  raw(Buffer.concat([length, Buffer.from(text)]));
};
say('{"kind":"listening","ports":{"ipv4":1,"ipv6":null}}');
setInterval(() => undefined, 1000);
`;

interface Opened {
  readonly kept: SupervisedProcess<never>;
  readonly warnings: { readonly text: string; readonly fields: object }[];
  readonly ports: unknown[];
}

async function keep(t: TestContext, script: string, watchTickMs = 1000): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-kept-'));
  const main = join(folder, 'main.mjs');
  await writeFile(main, LINE + script);
  const warnings: { text: string; fields: object }[] = [];
  const ports: unknown[] = [];
  const kept = new SupervisedProcess<never>({
    name: 'tried',
    about: { scope: 'one' },
    hostProgram: BUILT_SVC_HOST,
    prefix: [],
    choosesAddress: true,
    link: null,
    shown: [],
    main,
    recordFile: join(folder, 'record.json'),
    logger: {
      info: () => undefined,
      warn: (fields: object, text?: string) => void warnings.push({ text: text ?? '', fields }),
    },
    codeCache: null,
    group: null,
    maxReportsPerSecond: 100,
    watchTickMs,
    config: () => ({ hostId: 64_561, groupId: 64_561, hostNetworks: HOST_NETWORKS }),
    onListening: async (at) => void ports.push(await Promise.resolve(at)),
    onReport: () => undefined,
  });
  t.after(async () => {
    await kept.close();
    await rm(folder, { recursive: true });
  });
  kept.start();
  return { kept, warnings, ports };
}

const DECISION = {
  kind: 'tcp',
  verdict: 'deny',
  host: 'a.example',
  address: '192.0.2.1',
  port: 80,
  protocol: 'tcp',
  decidedBy: 'default',
  rule: null,
};
const decided = (decision: object) =>
  `say(JSON.stringify({ kind: 'decided', client: '192.0.2.2', report: { decisions: [{ decision: ${JSON.stringify(decision)}, count: 1 }], leftOut: 0 } }));`;

/** What a process may say that was taken over. */
const NONSENSE: Readonly<Record<string, string>> = {
  'no JSON': `say('x');`,
  null: `say('null');`,
  'a kind that is none': `say('{"kind":"become root"}');`,
  'ports that are commands': `say('{"kind":"listening","ports":{"ipv4":"1; flush ruleset","ipv6":null}}');`,
  'a message longer than any': `raw(Buffer.from([0xff, 0xff, 0xff, 0xff]));`,
  'objects in objects': `say('['.repeat(1e5) + ']'.repeat(1e5));`,
  'a decision of the packet filter': decided({ ...DECISION, decidedBy: 'ceiling' }),
  'a name of a million letters': decided({ ...DECISION, host: 'a'.repeat(1_000_000) }),
  'an address that is none': `say('{"kind":"pin","id":1,"client":"192.0.2.2","pins":[{"name":"a","address":"1.2.3","seconds":1}]}');`,
};

for (const [title, script] of Object.entries(NONSENSE))
  test(`a process that says ${title} is replaced, and harms nothing else`, async (t) => {
    const { warnings } = await keep(t, script);
    const refused = () => warnings.filter(({ text }) => text.endsWith('reports nonsense; it is replaced'));
    await waitUntil(() => refused().length > 1, 'another one says it too');
  });

test('reports beyond the rate limit wait in the process', async (t) => {
  const { kept, warnings, ports } = await keep(
    t,
    `let sent = 0;
     const flood = () => { while (raw(Buffer.alloc(0)) && sent < 1e6) { sent += 1; ${decided(DECISION)} } line.once('drain', flood); };
     setImmediate(flood);
     setInterval(() => process.stderr.write('sent ' + sent), 500).unref();`,
  );
  await waitUntil(() => ports.length > 0, 'it listens');
  const sent = () =>
    warnings.flatMap(
      ({ fields }) => /sent (\d+)/.exec('output' in fields ? String(fields.output) : '')?.[1] ?? [],
    );
  await waitUntil(() => sent().length > 4, 'it has been at it for a while');
  assert.ok(Number(sent().at(-1)) < 20_000, `it has got rid of ${sent().at(-1)} reports`);
  assert.ok(kept.pid !== undefined);
});

test('stderr of a supervised process is logged a limited number of times', async (t) => {
  const { warnings, ports } = await keep(
    t,
    `process.stderr.on('error', () => setInterval(() => say('x'), 100));
     setInterval(() => process.stderr.write('y'.repeat(1e5)), 1);`,
  );
  // It says nonsense once its stderr is closed.
  await waitUntil(() => ports.length > 1, 'another one listens');
  const first = warnings.findIndex(({ text }) => text.includes('nonsense'));
  const complaints = warnings.slice(0, first).filter(({ text }) => text.includes('complained'));
  assert.equal(complaints.length, 16);
  for (const { fields } of complaints) assert.ok(JSON.stringify(fields).length < 3000);
});

/** How it can hang, and all of them are noticed. */
const HANGS: Readonly<Record<string, string>> = {
  'computes without end': `setTimeout(() => { for (;;); }, 100);`,
  'waits without end': `setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 100);`,
  'is stopped': `setTimeout(() => process.kill(process.pid, 'SIGSTOP'), 100);`,
};

for (const [title, script] of Object.entries(HANGS))
  test(`a process that ${title} is replaced`, async (t) => {
    const { warnings, ports } = await keep(t, script, 50);
    await waitUntil(() => ports.length > 1, 'another one listens');
    const hangs = warnings.find(({ text }) => text === 'The tried process hangs; it is replaced');
    assert.equal(hangs !== undefined && 'scope' in hangs.fields && hangs.fields.scope, 'one');
  });

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createKey } from '@svc/server/keys';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

let server: TestServer;
let headers: { readonly authorization: string };
let id: string;

before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  headers = {
    authorization: `Bearer ${(await createKey(server.engine.folder, { namespace: 'default' })).key}`,
  };
  const script = 'for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; sleep 0.2; done';
  const response = await fetch(`${server.url}/v1/sandboxes?start=true&wait_for=running&wait_timeout=60`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'talker',
      image: { type: 'oci', reference: BUSYBOX },
      runtime: { cmd: ['sh', '-c', script] },
    }),
  });
  const body = (await response.json()) as { id: string };
  assert.equal(response.status, 200, JSON.stringify(body));
  ({ id } = body);
});
after(() => server.destroy());

async function stream(more: Readonly<Record<string, string>> = {}, query = ''): Promise<readonly string[]> {
  const response = await fetch(`${server.url}/v1/sandboxes/${id}/logs${query}`, {
    headers: { ...headers, ...more },
  });
  assert.equal(response.status, 200);
  return (await response.text()).split('\n\n').filter((block) => block.startsWith('event: '));
}

const idOf = (block: string) => /^id: (.+)$/m.exec(block)?.[1] ?? '';
const textOf = (block: string) =>
  (JSON.parse(/^data: (.+)$/m.exec(block)?.[1] ?? '{}') as { text?: string }).text ?? '';

test('a stream follows the main process to the end of its run and resumes anywhere without loss or repetition', async () => {
  const blocks = await stream();
  assert.equal(blocks.at(-1), 'event: end\ndata: {}');
  const entries = blocks.slice(0, -1);
  const whole = entries.map(textOf).join('');
  for (const index of [1, 2, 3, 4, 5])
    assert.ok(whole.includes(`out ${index}\n`) && whole.includes(`err ${index}\n`));
  for (const [index, entry] of entries.entries()) {
    const rest = await stream({ 'last-event-id': idOf(entry) });
    assert.deepEqual(rest.slice(0, -1), entries.slice(index + 1));
  }
  assert.ok(
    (await stream({}, '?sources=stderr')).slice(0, -1).every((block) => textOf(block).startsWith('err')),
  );
});

test('the log of a sandbox that has ended is read in pages', async () => {
  const read = async (query: string) => {
    const response = await fetch(`${server.url}/v1/sandboxes/${id}/logs/entries${query}`, { headers });
    assert.equal(response.status, 200);
    return (await response.json()) as {
      data: { text: string; cursor: string; ts: string }[];
      next_cursor: string | null;
    };
  };
  const all = await read('');
  const paged: string[] = [];
  for (let cursor: string | null = 'AA=='; cursor !== null;) {
    const page = await read(`?limit=2&cursor=${encodeURIComponent(cursor)}`);
    paged.push(...page.data.map(({ text }) => text));
    cursor = page.next_cursor;
  }
  assert.deepEqual(
    paged,
    all.data.map(({ text }) => text),
  );
  assert.deepEqual((await read('?tail=1')).data, all.data.slice(-1));
  const middle = all.data[3]?.ts ?? '';
  const later = await read(`?since=${encodeURIComponent(middle)}`);
  assert.deepEqual(
    later.data,
    all.data.filter(({ ts }) => ts >= middle),
  );
});

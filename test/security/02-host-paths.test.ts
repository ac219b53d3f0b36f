import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { createLocalApiKey, createLocalOrganization } from '@svc/server/local';
import { connectClient, textOf } from '../../packages/server/src/testing/mcp-client.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from '../e2e/start-server.ts';

const run = promisify(execFile);

/** What an organization's key can make its sandboxes mount, over every surface, on a real engine. */
let server: TestServer;
let roots: { readonly binds: string; readonly images: string };
let attacker: Tenant;
let victim: Tenant;

interface Tenant {
  readonly slug: string;
  readonly id: string;
  readonly key: string;
}

before(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-host-paths-'));
  roots = { binds: join(folder, 'binds'), images: join(folder, 'images') };
  for (const root of Object.values(roots)) await mkdir(root);
  const engineArgs = ['--bind-root', roots.binds, '--disk-image-root', roots.images];
  server = await TestServer.start({ args: [], engineArgs });
  attacker = await makeTenant('attacker');
  victim = await makeTenant('victim');
  for (const { id } of [attacker, victim]) {
    await mkdir(join(roots.binds, id));
    await writeFile(join(roots.binds, id, 'file'), `of ${id}`);
    await mkdir(join(roots.images, id));
    await makeImage(join(roots.images, id, 'disk.img'));
  }
  await symlink(`../${victim.id}`, join(roots.binds, attacker.id, 'link'));
  await symlink(`../${victim.id}/disk.img`, join(roots.images, attacker.id, 'link.img'));
});
after(async () => {
  await server.destroy();
  await rm(join(roots.binds, '..'), { recursive: true, force: true });
});

async function makeTenant(slug: string): Promise<Tenant> {
  const place = { dataFolder: server.engine.folder };
  await createLocalOrganization(place, { slug, owner: `owner@${slug}.example` });
  const { secret: key } = await createLocalApiKey(place, slug, { name: 'test' });
  const answer = await fetch(`${server.url}/v1/me/org`, { headers: { authorization: `Bearer ${key}` } });
  const { id } = (await answer.json()) as { readonly id: string };
  return { slug, id, key };
}

async function makeImage(path: string): Promise<void> {
  await writeFile(path, '');
  await truncate(path, 4 * 1024 * 1024);
  await run('mkfs.ext4', ['-q', '-F', '-O', '^has_journal', path]);
}

type Mount = Readonly<Record<string, unknown>>;
interface Answer {
  readonly isMade: boolean;
  readonly text: string;
}

async function create(tenant: Tenant, name: string, mounts: readonly Mount[]): Promise<Answer> {
  const answer = await fetch(`${server.url}/v1/sandboxes?start=true&wait_for=running`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, image: { type: 'oci', reference: BUSYBOX }, mounts }),
  });
  const text = await answer.text();
  const { status } = JSON.parse(text) as { readonly status?: string };
  return { isMade: answer.status === 200 && status === 'running', text };
}

/** One bind over each surface; each name is used once. */
async function surfaces(t: TestContext, tenant: Tenant) {
  const headers = { authorization: `Bearer ${tenant.key}` };
  const { client } = await connectClient(t, server.url, headers);
  const input = (sandbox: string, path: string) => ({
    sandbox,
    namespace: tenant.slug,
    config: { image: BUSYBOX, volumes: [`${path}:/m`] },
  });
  return {
    rest: (name: string, path: string): Promise<Answer> =>
      create(tenant, name, [{ type: 'bind', host: path, guest: '/m' }]),
    rpc: async (name: string, path: string): Promise<Answer> => {
      const call = { jsonrpc: '2.0', id: 1, method: 'sandbox.start', params: input(name, path) };
      const { body } = await server.post(call, headers);
      return { isMade: body.error === undefined, text: JSON.stringify(body) };
    },
    mcp: async (name: string, path: string): Promise<Answer> => {
      const result = await client.callTool({ name: 'sandbox_start', arguments: input(name, path) });
      return { isMade: result.isError !== true, text: textOf(result) };
    },
  };
}

async function inside(tenant: Tenant, sandbox: string, script: string): Promise<string> {
  const params = { sandbox, namespace: tenant.slug, command: 'sh', args: ['-c', script] };
  const call = { jsonrpc: '2.0', id: 1, method: 'sandbox.command.run', params };
  const { body } = await server.post(call, { authorization: `Bearer ${tenant.key}` });
  return (body.result as { readonly output: string }).output;
}

test("a key of one organization mounts nothing of another's folder, over REST, JSON-RPC and MCP", async (t) => {
  for (const [surface, ask] of Object.entries(await surfaces(t, attacker))) {
    const hostile = [
      join(roots.binds, victim.id),
      roots.binds,
      `${roots.binds}/${attacker.id}/../${victim.id}`,
      join(roots.binds, attacker.id, 'link'),
      '/etc',
    ];
    for (const [index, path] of hostile.entries()) {
      const { isMade, text } = await ask(`bad-${surface}-${index}`, path);
      assert.ok(!isMade, `${surface} ${path}: ${text}`);
      assert.doesNotMatch(text, new RegExp(`of ${victim.id}`));
      // Two guards, one behind the other: the server by the path, before the engine looks where it leads.
      if (!path.endsWith('/link')) assert.match(text, /must be relative/, `${surface} ${path}`);
    }
    const name = `good-${surface}`;
    const { isMade, text } = await ask(name, join(roots.binds, attacker.id));
    assert.ok(isMade, text);
    assert.equal(await inside(attacker, name, 'cat /m/file'), `of ${attacker.id}`);
    // The link leads nowhere inside: neither the guest nor what it writes gets to the neighbour.
    assert.equal(
      await inside(attacker, name, 'cat /m/link/file 2>/dev/null; echo x > /m/link/file; true'),
      '',
    );
  }
  assert.equal(await readFile(join(roots.binds, victim.id, 'file'), 'utf8'), `of ${victim.id}`);
});

test('a disk image is mounted from the folder of the organization, and from nowhere else', async () => {
  const image = (host: string) => ({ type: 'disk_image', host, guest: '/d', format: 'raw' });
  const hostile = [
    join(roots.images, victim.id, 'disk.img'),
    `../${victim.id}/disk.img`,
    'link.img',
    `${roots.images}/${attacker.id}/../${victim.id}/disk.img`,
    'missing.img',
  ];
  for (const [index, host] of hostile.entries()) {
    const { isMade, text } = await create(attacker, `bad-image-${index}`, [image(host)]);
    assert.ok(!isMade, `${host}: ${text}`);
    assert.match(text, /"field":"mounts\[0\]\.host"/, 'refused at create, by the name of the field');
  }
  const { isMade, text } = await create(attacker, 'good-image', [image('disk.img')]);
  assert.ok(isMade, text);
  const script = 'echo kept > /d/file; cat /d/file; ls -d /d/lost+found';
  assert.equal(await inside(attacker, 'good-image', script), 'kept\n/d/lost+found\n');
});

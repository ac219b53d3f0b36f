import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { CommandLine } from './command-line.ts';

let svc: CommandLine;
before(async () => {
  svc = await CommandLine.withoutEngine();
});
after(() => svc.close());

/** Options for an engine that does not run, and that the server does not start. */
const elsewhere = () => ['--dev', '--run-as', '64555:64555', '--engine-socket', `${svc.folder}/away.sock`];

test('an address that is taken is an error that says what to do about it', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const { code, stderr } = await svc.run(['server', 'start', '--port', String(port), ...elsewhere()]);
  assert.equal(code, 4);
  assert.ok(
    stderr.includes(`another program listens on port ${port} of 127.0.0.1; stop it, or choose another port`),
  );
});

test('a server starts without the engine that --engine-socket names, and says so', async (t) => {
  t.after(() => svc.run(['server', 'stop']));
  const started = await svc.succeed(['server', 'start', '--detach', '--port', '0', ...elsewhere()]);
  assert.match(started, /server started on http/);
  assert.match(started, /it cannot run sandboxes yet: the engine cannot be reached/);
});

test('arguments of svc are never read as options of Node', async () => {
  const engine = await svc.run(['engine', 'start', '--socket-owner', '--env-file=/nowhere']);
  assert.match(engine.stderr, /--socket-owner: '--env-file=\/nowhere' is neither a user name nor/);
  const server = await svc.run(['server', 'start', '--port', '0', '--run-as', '--env-file=/nowhere']);
  assert.match(server.stderr, /'--run-as' argument is ambiguous/);
});

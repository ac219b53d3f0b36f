import assert from 'node:assert/strict';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claim, claimOnce, provedBy, type Claim } from '../claim.ts';
import { dataOf, type Ground, type Json } from '../ground.ts';
import { call } from './rpc-call.ts';

async function errorOf(ground: Ground, body: unknown): Promise<Json> {
  return (await ground.postRpc(body)).body.error;
}

const RPC_TEST = 'packages/server/src/transports/rpc/specification.test.ts';
const METRICS = { jsonrpc: '2.0', method: 'sandbox.metrics.get', params: { namespace: 'none' } };

export const envelopeClaims: readonly Claim[] = [
  claimOnce(
    'rpc.code.-32700',
    'The body is not JSON',
    'the code, the message `Parse error` and the status 400',
    async (ground) => {
      const response = await fetch(`${ground.server.url}/api/v1/rpc`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{',
      });
      const { error } = (await response.json()) as Json;
      assert.deepEqual([response.status, error.code, error.message], [400, -32_700, 'Parse error']);
    },
  ),
  claimOnce(
    'rpc.code.-32600',
    'It is no request of JSON-RPC 2.0',
    'without the version, and as an empty batch',
    async (ground) => {
      const error = await errorOf(ground, { ...METRICS, jsonrpc: '1.0' });
      assert.deepEqual([error.code, error.message], [-32_600, 'Invalid or missing jsonrpc version field']);
      assert.equal((await errorOf(ground, [])).code, -32_600);
    },
  ),
  claimOnce('rpc.code.-32601', 'There is no such method', 'the message names it', async (ground) => {
    const error = await errorOf(ground, { ...METRICS, method: 'sandbox.fly' });
    assert.deepEqual([error.code, error.message], [-32_601, 'Method not found: sandbox.fly']);
  }),
  claimOnce(
    'rpc.code.-32602',
    'A parameter is missing, unknown or not what it should be',
    '`data` has the field and the reason',
    async (ground) => {
      const error = await errorOf(ground, { ...METRICS, params: { namespace: 'a', colour: 'red' } });
      assert.deepEqual(
        [error.code, error.data.field, error.data.reason],
        [-32_602, 'colour', 'is not a known field'],
      );
    },
  ),
  claimOnce(
    'rpc.code.-32603',
    'The operation failed; `data` has the code of the table of errors',
    'a command in a sandbox that is unknown',
    async (ground) => {
      const { error } = await ground.rpc('sandbox.command.run', { sandbox: 'missing', command: 'true' });
      assert.deepEqual([error?.code, dataOf({ error }).code], [-32_603, 'sandbox_not_found']);
    },
  ),
  claimOnce(
    'rpc.code.-32002',
    'No valid credential',
    'a made-up key, with the status 401',
    async (ground) => {
      const { status, body } = await ground.postRpc({ ...METRICS, id: 1 }, 'svc_made-up');
      assert.deepEqual([status, body.error?.code], [401, -32_002]);
    },
  ),
  claimOnce(
    'message.namespace-empty',
    '`Namespace cannot be empty`',
    'the message of a request with an empty namespace',
    async (ground) => {
      assert.equal(
        (await errorOf(ground, { ...METRICS, params: { namespace: '' } })).message,
        'Namespace cannot be empty',
      );
    },
  ),
  claimOnce(
    'message.sandbox-unknown',
    "`Sandbox '<name>' not found in configuration`",
    'the message of a stop of an unknown sandbox',
    async (ground) => {
      const { error } = await ground.rpc('sandbox.stop', { sandbox: 'missing' });
      assert.equal(error?.message, "Sandbox 'missing' not found in configuration");
    },
  ),
  claim(
    'message.start-failed',
    'A start that fails begins with `sandbox start failed`, and says why',
    'a missing image',
    async (ground) => {
      const { error } = await ground.rpc('sandbox.start', {
        sandbox: ground.fresh('bad'),
        namespace: 'rpc',
        config: { image: 'svc/absent' },
      });
      assert.match(error?.message ?? '', /^sandbox start failed: .*svc\/absent/);
    },
  ),
  claim(
    'message.command-failed',
    'A command that cannot be run begins with `command execution failed`, and says why',
    'a sandbox that is stopped',
    async (ground) => {
      const place = { sandbox: await stoppedBox(ground), namespace: 'rpc' };
      const { error } = await ground.rpc('sandbox.command.run', { ...place, command: 'true' });
      assert.match(error?.message ?? '', /^command execution failed: .*stopped/);
    },
  ),
  claim(
    'message.execution-failed',
    'Code that cannot be run begins with `execution failed`, and says why',
    'a sandbox that is stopped',
    async (ground) => {
      const place = { sandbox: await stoppedBox(ground), namespace: 'rpc' };
      const { error } = await ground.rpc('sandbox.repl.run', { ...place, language: 'python', code: '1' });
      assert.match(error?.message ?? '', /^execution failed: .*stopped/);
    },
  ),
  claimOnce(
    'message.stop-failed',
    'A stop that fails begins with `sandbox stop failed`',
    'the engine is away',
    async (ground) => {
      const { error } = await ground.rpc('sandbox.stop', {
        sandbox: await stoppedBox(ground),
        namespace: 'rpc',
      });
      assert.match(error?.message ?? 'none', /^sandbox stop failed: /);
    },
    { phase: 'outage' },
  ),
  claimOnce(
    'message.metrics-failed',
    'Metrics that cannot be had begin with `failed to get metrics`',
    'the engine is away, which is also the status 502',
    async (ground) => {
      const { status, body } = await ground.postRpc({ ...METRICS, params: { namespace: '*' }, id: '1' });
      assert.equal(status, 502);
      assert.match(body.error?.message ?? 'none', /^failed to get metrics: /);
    },
    { phase: 'outage' },
  ),
  claimOnce(
    'rule.rpc-envelope',
    'A success is `{jsonrpc, result, id}`, a failure `{jsonrpc, error: {code, message, data}, id}`',
    'the keys of both, and an id of each type',
    async (ground) => {
      for (const id of ['7', 7, null]) {
        const { status, body } = await ground.postRpc({ ...METRICS, id });
        assert.deepEqual([status, body], [200, { jsonrpc: '2.0', result: { sandboxes: [] }, id }]);
      }
      const { body } = await ground.postRpc({ ...METRICS, method: 'nope', id: 'x' });
      assert.deepEqual(Object.keys(body).toSorted(), ['error', 'id', 'jsonrpc']);
      assert.deepEqual(Object.keys(body.error ?? {}), ['code', 'message', 'data']);
    },
  ),
  claimOnce(
    'endpoint.health',
    '`GET /api/v1/health` answers `{message}` without a key',
    'its status and body',
    async (ground) => {
      const response = await fetch(`${ground.server.url}/api/v1/health`);
      assert.deepEqual([response.status, await response.json()], [200, { message: 'Service is healthy' }]);
    },
  ),
  claimOnce(
    'endpoint.rpc',
    '`POST /api/v1/rpc` takes JSON with a key',
    'another content type is 415, another method 405',
    async (ground) => {
      const url = `${ground.server.url}/api/v1/rpc`;
      const authorization = `Bearer ${ground.rpcKey}`;
      const text = await fetch(url, {
        method: 'POST',
        headers: { authorization, 'content-type': 'text/plain' },
        body: '{}',
      });
      assert.equal(text.status, 415);
      assert.equal((await fetch(url, { headers: { authorization } })).status, 405);
    },
  ),
  claim(
    'endpoint.rpc.legacy',
    '`/legacy/api/v1/rpc` answers output in lines, as the original did',
    'the shape of the output of a command',
    async (ground) => {
      const sandbox = ground.fresh('old');
      await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX } });
      const params = { sandbox, namespace: 'rpc', command: 'echo', args: ['line'] };
      const response = await fetch(`${ground.server.url}/legacy/api/v1/rpc`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ground.rpcKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sandbox.command.run', params }),
      });
      const { result } = (await response.json()) as Json;
      assert.deepEqual(result.output, [{ stream: 'stdout', text: 'line' }]);
      await call(ground, 'sandbox.stop', { sandbox });
    },
  ),
  claim('flow.rpc', 'Start, run, stop', 'the three answers, one after the other', async (ground) => {
    const sandbox = ground.fresh('typical');
    assert.equal(
      await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX } }),
      `Sandbox ${sandbox} started successfully`,
    );
    assert.equal(
      (await call(ground, 'sandbox.command.run', { sandbox, command: 'echo', args: ['hi'] })).output,
      'hi\n',
    );
    assert.equal(await call(ground, 'sandbox.stop', { sandbox }), `Sandbox ${sandbox} stopped successfully`);
  }),
  claimOnce(
    'version.paths',
    'The control plane is below `/v1`, the self-hosted surface below `/api/v1`, and the document says version 0.1.0',
    '`/openapi.json`',
    async (ground) => {
      const document = (await (await fetch(`${ground.server.url}/openapi.json`)).json()) as Json;
      assert.equal(document.info.version, '0.1.0');
      const others = Object.keys(document.paths).filter((path) => !path.startsWith('/v1/'));
      assert.deepEqual(others, []);
      assert.equal((await fetch(`${ground.server.url}/health`)).status, 404);
    },
  ),
  provedBy(
    'rule.rpc-batch',
    'A batch holds 1 to 100 calls, which are done in their order',
    RPC_TEST,
    'a batch holds at most 100 calls',
  ),
  provedBy(
    'rule.rpc-without-id',
    'A request without an id is answered, without one; in a batch it is not',
    RPC_TEST,
    'a lone request without an id is answered, without an id',
  ),
  provedBy(
    'rule.default-address',
    'Without options the server listens on loopback, port 5555, and asks for keys',
    'packages/server/src/config.test.ts',
    'without options the server listens on loopback port 5555 and asks for keys',
  ),
  claimOnce(
    'limit.rate',
    'There is no limit on requests unless the operator sets one',
    'no answer has a header about a limit',
    async (ground) => {
      const { headers } = await ground.rest('GET', '/sandboxes');
      assert.equal(headers.get('ratelimit-limit'), null);
    },
  ),
];

async function stoppedBox(ground: Ground): Promise<string> {
  return await ground.shared('rpc-stopped', async () => {
    const sandbox = ground.fresh('rests');
    await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX } });
    await call(ground, 'sandbox.stop', { sandbox });
    return sandbox;
  });
}

import assert from 'node:assert/strict';
import {
  BYTES,
  pathsOf,
  REST_OPERATIONS,
  ROLES,
  type HttpMethod,
  type RestOperation,
  type RestOperationName,
} from '@svc/contract/rest';
import { changeStore } from '../../../packages/server/src/local-commands/local-store.ts';
import { createApiKey, createToken } from '../../../packages/server/src/store/api-keys-and-tokens.ts';
import { findOrganization } from '../../../packages/server/src/store/organizations.ts';
import { Outcomes } from './outcomes.ts';
import { addressOf, UNKNOWN_ID, type Call, type Parts, type Reply, type Way, type World } from './world.ts';

/** For `--max-body-bytes`. */
export const MAX_BODY_BYTES = 64 * 1024;
const METHODS: readonly HttpMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** One character more than there may be. */
const LONG_KEY = { 'idempotency-key': 'x'.repeat(256) };
// The entries of the table have its names.
const TABLE = Object.entries(REST_OPERATIONS) as [RestOperationName, RestOperation][];

/** Credentials that were good once, and some that are good for less. */
interface Bad {
  readonly spent: Readonly<Record<Way, readonly string[]>>;
  /** By the role that they would need. */
  readonly weak: Readonly<Record<string, Readonly<Record<Way, string>>>>;
}
let bad: Bad;

/** What every operation refuses in the same way; made from the table, so that a new operation is covered automatically. */
export const everyOperation = new Outcomes();

everyOperation.phase('every operation', {
  enter: async (world) => {
    bad = await makeBad(world);
  },
});
for (const [name, operation] of TABLE) {
  const blank: Parts = { params: paramsOf(operation) };
  if (operation.audience !== 'anyone')
    everyOperation.add(name, 'invalid_api_key', refuseSpent(name, operation));
  for (const { path, audience } of pathsOf(operation)) {
    const takesRole = operation.role !== ROLES[0];
    if (audience === 'anyone' || (!path.startsWith('/orgs/{slug}') && !takesRole)) continue;
    const refuse = async (call: Call, world: World) => {
      const weak = bad.weak[operation.role]?.[audience];
      if (weak !== undefined) expect(await call(name, { ...blank, as: weak }), 403);
      return await call(name, {
        ...blank,
        as: audience === 'user' ? world.otherTenant.token : (weak ?? null),
      });
    };
    everyOperation.add(name, 'forbidden', refuse, audience);
  }
  everyOperation.add(name, 'method_not_allowed', async (call, _world, way) => {
    const { path } = addressOf(operation, way);
    const taken = TABLE.filter(([, other]) => pathsOf(other).some((address) => address.path === path));
    const free = METHODS.find((method) => !taken.some(([, other]) => other.method === method));
    assert.ok(free, `${path} takes every method`);
    const reply = await call(name, { ...blank, method: free });
    assert.deepEqual(
      new Set(reply.headers.get('allow')?.split(', ')),
      new Set(taken.map(([, other]) => other.method)),
    );
    return reply;
  });
  everyOperation.add(name, 'invalid_request', async (call) => {
    if (operation.body !== BYTES && operation.body !== null) {
      const headers = { ...headersOf(operation), 'content-type': 'application/json' };
      for (const body of ['{', '[]', 'null', '"\\ud800"', '{"no_such_field":1}']) {
        expect(await call(name, { ...blank, headers, body }), 400, body);
      }
    }
    const isBlankLegal = !hasRequired(operation.body) && !hasRequired(operation.query);
    if (operation.method !== 'GET' && isBlankLegal) {
      const reply = await call(name, { ...blank, headers: { ...headersOf(operation), ...LONG_KEY } });
      expect(reply, 400);
      assert.equal(reply.body.error.details.field, 'Idempotency-Key');
    }
    const reply = await call(name, { ...blank, query: { no_such_parameter: 1 } });
    assert.match(reply.body.error.message, /no_such_parameter|is required/);
    return reply;
  });
  if (operation.body === null || operation.body === BYTES) continue;
  everyOperation.add(name, 'payload_too_large', async (call) => {
    const headers = { ...headersOf(operation), 'content-type': 'application/json' };
    const length = Math.max(MAX_BODY_BYTES, operation.maxBodyBytes ?? 0);
    return await call(name, { ...blank, headers, body: `"${'x'.repeat(length)}"` });
  });
}

everyOperation.phase('every operation for callers over their rate limit', {
  enter: async (world) => {
    await world.server.stop();
    world.server = world.server.with('--rate-limit', '0');
    await world.server.launch();
  },
});
for (const [name, operation] of TABLE) {
  everyOperation.add(name, 'rate_limited', async (call) => {
    const reply = await call(name, { params: paramsOf(operation) });
    assert.ok(Number(reply.headers.get('retry-after')) > 0);
    assert.equal(reply.headers.get('ratelimit-remaining'), '0');
    return reply;
  });
}

function refuseSpent(name: RestOperationName, operation: RestOperation) {
  const blank: Parts = { params: paramsOf(operation) };
  return async (call: Call, world: World, way: Way): Promise<Reply> => {
    const { audience } = addressOf(operation, way);
    const others = [world.credentialOf(audience === 'key' ? 'user' : 'key'), 'svc_0', 'svc_pat_0', 'x'];
    for (const as of [...bad.spent[way], ...others]) expect(await call(name, { ...blank, as }), 401, as);
    const reply = await call(name, { ...blank, as: null });
    assert.equal(reply.headers.get('www-authenticate'), 'Bearer');
    return reply;
  };
}

function expect({ status, body }: Reply, expected: number, about = ''): void {
  assert.equal(status, expected, `${about}: ${JSON.stringify(body)}`);
  assert.equal(typeof body.error.code, 'string');
}

function paramsOf({ params }: RestOperation): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.keys(params.properties).map((name) => [name, name === 'name' ? 'unknown' : UNKNOWN_ID]),
  );
}

function headersOf({ headers }: RestOperation): Readonly<Record<string, string>> {
  return 'x-svc-file-path' in headers.properties ? { 'x-svc-file-path': 'eA' } : {};
}

function hasRequired(schema: RestOperation['body']): boolean {
  return typeof schema === 'object' && schema !== null && 'required' in schema;
}

async function makeBad(world: World): Promise<Bad> {
  const call = world.caller('user');
  const key = async (as?: string) => (await call('apiKeys.create', callerParts(as))).body;
  const [revokedKey, revokedToken] = [await key(), (await call('tokens.create', callerParts())).body];
  await call('apiKeys.revoke', { params: { id: revokedKey.id } });
  await call('tokens.revoke', { params: { id: revokedToken.id } });
  const [member, admin] = [await world.person('member'), await world.person('admin')];
  const expired = await changeStore(world.place, async (db) => {
    const organization = await findOrganization(db, world.acme.slug);
    const old = { name: 'old', createdBy: null, expiresAt: new Date(Date.now() - 1000).toISOString() };
    return {
      key: (await createApiKey(db, organization?.id ?? '', old)).secret,
      token: (await createToken(db, member.id, old)).secret,
    };
  });
  return {
    spent: { key: [revokedKey.key, expired.key], user: [revokedToken.token, expired.token] },
    weak: {
      admin: { key: (await key(member.token)).key, user: member.token },
      owner: { key: (await key(admin.token)).key, user: admin.token },
    },
  };
}

function callerParts(as?: string): Parts {
  return { body: { name: 'test' }, ...(as === undefined ? {} : { as }) };
}

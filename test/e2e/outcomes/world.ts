import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { waitUntil } from '@svc/contract/testing';
import {
  pathsOf,
  REST_OPERATIONS,
  type HttpMethod,
  type RestOperation,
  type RestOperationName,
} from '@svc/contract/rest';
import { createLocalApiKey, createLocalOrganization, createLocalToken } from '@svc/server/local';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { TestServer } from '../start-server.ts';

/** With an organization's API key below `/v1`, or as a user: a member below `/v1/orgs/{slug}`, or about oneself. */
export type Way = 'key' | 'user';

export interface Parts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  /** Sent as JSON, or as it is when it is text, bytes or a stream of them. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of that of the operation. */
  readonly method?: HttpMethod;
  /** Absent: the credential of the organization or its owner. Null: none. */
  readonly as?: string | null;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- Tests look into answers in many ways, and name the fields they expect.
  readonly body: any;
}

export type Call = (operation: RestOperationName, parts?: Parts) => Promise<Reply>;

/** An organization and its credentials. */
export interface Tenant {
  readonly slug: string;
  readonly key: string;
  readonly token: string;
}

export const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const OWNER = 'owner@acme.example';

/** A real server on a real engine, with an organization to act in, and another one. */
export class World {
  server: TestServer;
  readonly acme: Tenant;
  /** Of another organization. */
  readonly otherTenant: Tenant;

  private constructor(server: TestServer, acme: Tenant, otherTenant: Tenant) {
    this.server = server;
    this.acme = acme;
    this.otherTenant = otherTenant;
  }

  static async start(args: readonly string[] = []): Promise<World> {
    const server = await TestServer.start({ args, engineArgs: ['--isolation', 'container'] });
    try {
      const place = { dataFolder: server.engine.folder };
      const tenant = async (slug: string, owner: string): Promise<Tenant> => {
        await createLocalOrganization(place, { slug, owner });
        const { secret: key } = await createLocalApiKey(place, slug, { name: 'test' });
        const { secret: token } = await createLocalToken(place, owner, { name: 'test' });
        return { slug, key, token };
      };
      const acme = await tenant('acme', OWNER);
      return new World(server, acme, await tenant('other', 'owner@other.example'));
    } catch (error) {
      await server.destroy();
      throw error;
    }
  }

  async destroy(): Promise<void> {
    await this.server.destroy();
  }

  /** Where `@svc/server/local` finds the store. */
  get place(): { readonly dataFolder: string } {
    return { dataFolder: this.server.engine.folder };
  }

  /** Requests as this kind of caller wherever the operation lets both kinds in. */
  caller(way: Way): Call {
    return (operation, parts = {}) => this.#send(way, operation, parts);
  }

  /** A name that nothing has yet. */
  fresh(word: string): string {
    return `${word}-${randomUUID().slice(0, 8)}`;
  }

  /** A user with a token, and with a role when one is given. */
  async person(
    role?: string,
  ): Promise<{ readonly id: string; readonly email: string; readonly token: string }> {
    const email = `${this.fresh('person')}@acme.example`;
    const { secret: token, user } = await createLocalToken(this.place, email, { name: 'test' });
    if (role !== undefined) {
      const call = this.caller('user');
      const invite = await call('invites.create', { body: { email, role } });
      const accepted = await call('invites.accept', { params: { token: invite.body.token }, as: token });
      assert.equal(accepted.status, 200, JSON.stringify(accepted.body));
    }
    return { id: user.id, email, token };
  }

  /** Of a create. */
  bodyOf(name: string, more: object = {}): object {
    const resources = { vcpus: 1, memory_mib: 64, disk_size_mib: 64 };
    return { name, image: { type: 'oci', reference: BUSYBOX }, resources, ...more };
  }

  /** A sandbox that was never started. */
  async created(more: object = {}, name = this.fresh('box')): Promise<Reply['body']> {
    const reply = await this.caller('key')('sandboxes.create', { body: this.bodyOf(name, more) });
    assert.equal(reply.status, 200, JSON.stringify(reply.body));
    return reply.body;
  }

  async running(more: object = {}, name = this.fresh('box')): Promise<Reply['body']> {
    const query = { start: true, wait_for: 'running', wait_timeout: 60 };
    const reply = await this.caller('key')('sandboxes.create', { query, body: this.bodyOf(name, more) });
    assert.equal(reply.body.status, 'running', JSON.stringify(reply.body));
    return reply.body;
  }

  async stopped(more: object = {}): Promise<Reply['body']> {
    const { id } = await this.running(more);
    await this.caller('key')('sandboxes.stop', { params: { sandbox_id: id } });
    return await this.until(id, 'stopped');
  }

  async until(id: string, status: string): Promise<Reply['body']> {
    let seen: Reply['body'];
    const look = async () => {
      seen = (await this.caller('key')('sandboxes.get', { params: { sandbox_id: id } })).body;
      return seen.status === status;
    };
    await waitUntil(look, { timeoutMs: 60_000, what: `${id} is ${status}` }).catch((error: unknown) => {
      assert.equal(seen.status, status, `${String(error)}: ${JSON.stringify(seen)}`);
    });
    return seen;
  }

  /** Kills the engine; returns when the server knows. */
  async loseEngine(): Promise<void> {
    await this.server.engine.kill();
    const probe = { sandbox_id: UNKNOWN_ID };
    const isKnown = async () => {
      const reply = await this.caller('key')('sandboxes.stop', { params: probe });
      return reply.status === 502;
    };
    await waitUntil(isKnown, { timeoutMs: 60_000, what: 'the server sees that the engine is gone' });
  }

  /** Starts it again; returns when the server makes promises again. */
  async regainEngine(): Promise<void> {
    await this.server.engine.launch();
    const probe = { sandbox_id: UNKNOWN_ID };
    const isKnown = async () => {
      const reply = await this.caller('key')('sandboxes.stop', { params: probe });
      return reply.status === 404;
    };
    await waitUntil(isKnown, { timeoutMs: 60_000, what: 'the server sees that the engine is back' });
  }

  async #send(way: Way, operation: RestOperationName, parts: Parts): Promise<Reply> {
    const { method, ...spec }: RestOperation = REST_OPERATIONS[operation];
    const address = addressOf(spec, way);
    const params = { slug: this.acme.slug, ...parts.params };
    const path = address.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent((params as Readonly<Record<string, string>>)[name] ?? ''),
    );
    const query = new URLSearchParams(
      Object.entries(parts.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const credential = parts.as === undefined ? this.credentialOf(address.audience) : parts.as;
    const { body } = parts;
    const isRaw = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
    const response = await fetch(`${this.server.url}/v1${path}?${query.toString()}`, {
      method: parts.method ?? method,
      headers: {
        ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
        ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
        ...parts.headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body), duplex: 'half' }),
    });
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    const { status, headers } = response;
    return { status, headers, body: isJson ? await response.json() : await response.text() };
  }

  credentialOf(audience: 'anyone' | Way, tenant: Tenant = this.acme): string {
    return audience === 'key' ? tenant.key : tenant.token;
  }
}

/** Where this kind of caller finds the operation; the only address, where there is no choice. */
export function addressOf(operation: Pick<RestOperation, 'path' | 'audience'>, way: Way) {
  const addresses = pathsOf(operation);
  const address = addresses.find(({ audience }) => audience === way) ?? addresses[0];
  assert.ok(address);
  return address;
}

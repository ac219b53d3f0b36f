import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { SESSION_MS, signSession } from '../access/sessions.ts';
import type { Role } from '@svc/contract/rest';
import { createApiKey, createToken } from '../store/api-keys-and-tokens.ts';
import { createOrganization, findOrganization, putMember } from '../store/organizations.ts';
import { createSession } from '../store/sessions.ts';
import { ensureUser } from '../store/users.ts';
import { nextMillisecond, startTestServer, type TestServer, type TestServerOptions } from './test-server.ts';

/** For tests with credentials. */
export const SIGNING_KEY = randomBytes(32);

export interface Person {
  readonly id: string;
  readonly email: string;
  /** A personal access token. */
  readonly key: string;
}

export interface TestPeople {
  readonly server: TestServer;
  /** A user with a token and without an organization. */
  readonly person: (name: string) => Promise<Person>;
  /** The token in the session cookie of their browser. */
  readonly session: (userId: string, hasSecondFactor?: boolean) => Promise<string>;
  /** An organization with these members. */
  readonly organization: (slug: string, members: Partial<Record<Role, Person>>) => Promise<string>;
  /** A key of an organization. */
  readonly apiKey: (slug: string, expiresAt?: string) => Promise<string>;
  /** Types of the events of an organization, oldest first. */
  readonly eventTypes: (organizationId: string) => Promise<readonly string[]>;
}

/** A server that requires credentials, and functions that make some. */
export async function startWithPeople(t: TestContext, options: TestServerOptions = {}): Promise<TestPeople> {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY, ...options });
  const { database } = server;
  const credential = { name: 'test', createdBy: null, expiresAt: null };
  return {
    server,
    person: async (name) => {
      const { id, email } = await ensureUser(database, `${name}@example.com`);
      return { id, email, key: (await createToken(database, id, credential)).secret };
    },
    session: async (userId, hasSecondFactor = false) => {
      const expiresAt = new Date(Date.now() + SESSION_MS).toISOString();
      const of = {
        userId,
        hasSecondFactor,
        organizationId: null,
        userAgent: 'test',
        sourceAddress: null,
        expiresAt,
      };
      return await signSession(SIGNING_KEY, await createSession(database, of));
    },
    organization: async (slug, members) => {
      const { id } = await createOrganization(database, { slug, name: slug });
      for (const [role, person] of Object.entries(members)) {
        await nextMillisecond();
        // The keys of the record are roles.
        await putMember(database, id, person.id, role as Role);
      }
      return id;
    },
    apiKey: async (slug, expiresAt) => {
      const organization = await findOrganization(database, slug);
      if (organization === undefined) throw new Error(`there is no organization ${slug}`);
      const made = await createApiKey(database, organization.id, {
        ...credential,
        expiresAt: expiresAt ?? null,
      });
      return made.secret;
    },
    eventTypes: async (organizationId) => {
      const rows = await database
        .selectFrom('events')
        .select('event_type')
        .where('organization_id', '=', organizationId)
        .orderBy('sequence')
        .execute();
      return rows.map((row) => row.event_type);
    },
  };
}

import assert from 'node:assert/strict';
import { after, describe, test, type TestContext } from 'node:test';
import { pino } from 'pino';
import { openStore } from '../../store/open-store.ts';
import { putMember } from '../../store/organizations.ts';
import { postgresDialect } from '../../store/postgres.ts';
import { TestPostgres } from '../../testing/test-postgres.ts';
import type { TestServerOptions } from '../../testing/test-server.ts';
import { startWithPeople } from '../../testing/people.ts';

const postgres = await TestPostgres.start();
after(() => postgres[Symbol.asyncDispose]());

const stores: Readonly<Record<string, () => Promise<TestServerOptions>>> = {
  SQLite: async () => await Promise.resolve({}),
  PostgreSQL: async () => {
    const dialect = postgresDialect(await postgres.createDatabase(), pino({ level: 'silent' }));
    return { database: await openStore(dialect) };
  },
};

for (const [name, choose] of Object.entries(stores)) {
  describe(`people who act at the same moment, ${name}`, () => {
    const startWithTwoOwners = async (t: TestContext) => {
      const people = await startWithPeople(t, await choose());
      const [ann, bob] = [await people.person('ann'), await people.person('bob')];
      const id = await people.organization('acme', { owner: ann });
      await putMember(people.server.database, id, bob.id, 'owner');
      const owners = async () => {
        const query = people.server.database.selectFrom('members').select('user_id');
        return (await query.where('role', '=', 'owner').execute()).length;
      };
      return { ...people, ann, bob, id, owners };
    };

    test('two owners who remove each other leave one of them', async (t) => {
      const { server, ann, bob, owners } = await startWithTwoOwners(t);
      const answers = await Promise.all([
        server.rest('DELETE', `/orgs/acme/members/${bob.id}`, { key: ann.key }),
        server.rest('DELETE', `/orgs/acme/members/${ann.id}`, { key: bob.key }),
      ]);
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      assert.equal(await owners(), 1);
    });

    test('two owners who step down leave one of them', async (t) => {
      const { server, ann, bob, owners } = await startWithTwoOwners(t);
      const body = { role: 'member' };
      const answers = await Promise.all(
        [ann, bob].map(({ id, key }) => server.rest('PATCH', `/orgs/acme/members/${id}`, { key, body })),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 409]));
      assert.equal(await owners(), 1);
    });

    test('two owners who delete their accounts leave one of them', async (t) => {
      const { server, ann, bob, owners } = await startWithTwoOwners(t);
      const answers = await Promise.all(
        [ann, bob].map(({ key, email }) =>
          server.rest('DELETE', '/users/me', { key, body: { confirm: email } }),
        ),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 409]));
      assert.equal(await owners(), 1);
    });

    test('an invite is used once, also when it is answered and renewed concurrently', async (t) => {
      const { server, ann, person, id } = await startWithTwoOwners(t);
      const guest = await person('guest');
      const invite = () =>
        server.rest('POST', '/orgs/acme/invites', { key: ann.key, body: { email: guest.email } });
      const { token } = (await invite()).body;
      const answer = (verb: string) => server.rest('POST', `/invites/${token}/${verb}`, { key: guest.key });
      const [first, second, third, renewed] = await Promise.all([
        answer('accept'),
        answer('accept'),
        answer('decline'),
        invite(),
      ]);
      const taken = [first, second, third].filter(({ status }) => status === 200);
      assert.ok(taken.length <= 1, JSON.stringify([first, second, third].map(({ status }) => status)));
      assert.ok([200, 409].includes(renewed.status), String(renewed.status));
      const joined = await server.database
        .selectFrom('members')
        .select('user_id')
        .where('organization_id', '=', id)
        .where('user_id', '=', guest.id)
        .execute();
      assert.ok(joined.length <= 1);
    });

    test('of many who want one slug one gets it', async (t) => {
      const { server, ann } = await startWithTwoOwners(t);
      const body = { name: 'New', slug: 'new' };
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => server.rest('POST', '/orgs', { key: ann.key, body })),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      assert.equal(answers.filter(({ status }) => status === 409).length, 5);
    });

    test('a rename and a deletion at once leave no trace of the organization', async (t) => {
      const { server, ann, bob, id } = await startWithTwoOwners(t);
      const renames = ['x', 'y', 'z'].map((slug) =>
        server.rest('PATCH', '/orgs/acme', { key: bob.key, body: { slug } }),
      );
      const removal = server.rest('DELETE', '/orgs/acme', { key: ann.key, body: { confirm: 'acme' } });
      for (const { status } of await Promise.all([...renames, removal]))
        assert.ok(status < 500, String(status));
      const { slug, deleted_at: deletedAt } = await server.database
        .selectFrom('organizations')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      assert.equal(slug.startsWith('~'), deletedAt !== null);
    });
  });
}

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { makeFolder } from '../testing/test-server.ts';
import { openStore } from './open-store.ts';
import { sqliteDialect } from './sqlite.ts';

test('a store that a later version made is refused', async (t) => {
  const path = join(await makeFolder(t), 'store.db');
  const later = '9999-later';
  const first = await openStore(sqliteDialect(path));
  await sql`insert into kysely_migration (name, timestamp) values (${later}, 'some day')`.execute(first);
  await first.destroy();
  await assert.rejects(openStore(sqliteDialect(path)), /newer svc \(9999-later\): start that one/);
});

test('a store that is opened again is the same, and nothing is applied twice', async (t) => {
  const path = join(await makeFolder(t), 'store.db');
  const openAndRead = async () => {
    const database = await openStore(sqliteDialect(path));
    const { rows } = await sql`select name, timestamp from kysely_migration order by name`.execute(database);
    await database.destroy();
    return rows;
  };
  const first = await openAndRead();
  assert.ok(first.length > 1);
  assert.deepEqual(await openAndRead(), first);
});

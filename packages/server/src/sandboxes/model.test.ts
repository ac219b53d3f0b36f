import { after } from 'node:test';
import { pino } from 'pino';
import { openStore } from '../store/open-store.ts';
import { postgresDialect } from '../store/postgres.ts';
import { TestPostgres } from '../testing/test-postgres.ts';
import { makeFolder } from '../testing/test-server.ts';
import { lifecycleModel } from './model.suite.ts';

lifecycleModel('SQLite', async (t) => {
  const folder = await makeFolder(t);
  return () => Promise.resolve({ folder });
});

const postgres = await TestPostgres.start();
after(() => postgres[Symbol.asyncDispose]());

lifecycleModel('PostgreSQL', async () => {
  const url = await postgres.createDatabase();
  return async () => ({ database: await openStore(postgresDialect(url, pino({ level: 'silent' }))) });
});

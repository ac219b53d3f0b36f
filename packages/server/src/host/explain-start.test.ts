import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { pino } from 'pino';
import { readConfig } from '../config.ts';
import { openDatabase } from '../store/open-database.ts';
import { explainStart } from './explain-start.ts';
import { EXIT } from './exit-codes.ts';
import { StartError } from './start-error.ts';

const config = (...args: string[]) => readConfig(args, {});
const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => assert.fail('it did not fail'),
    (error: unknown) => error,
  );

test('an address that is taken is named, with the option that chooses another', async (t) => {
  const first = createServer().listen(0, '127.0.0.1');
  t.after(() => first.close());
  await once(first, 'listening');
  const { port } = first.address() as { port: number };
  const second = createServer().listen(port, '127.0.0.1');
  const error = await failureOf(once(second, 'listening'));
  const explained = explainStart(error, config('--port', String(port)));
  assert.equal(explained?.exitCode, EXIT.addressInUse);
  assert.equal(
    explained.message,
    `another program listens on port ${port} of 127.0.0.1; stop it, or choose another port with --port`,
  );
  const ofSsh = explainStart(error, config('--ssh-port', String(port)));
  assert.match(ofSsh?.message ?? '', /choose another port with --ssh-port$/);
});

test('an address of another machine and a name that leads nowhere are said to be that', async () => {
  // 198.51.100.0/24 is for documentation (RFC 5737); no machine has it, and no other test gives it to one.
  const elsewhere = createServer().listen(0, '198.51.100.201');
  const error = await failureOf(once(elsewhere, 'listening'));
  assert.match(
    explainStart(error, config())?.message ?? '',
    /^198\.51\.100\.201 is no address of this machine/,
  );
  const hostname = 'nowhere.invalid';
  const unknown = Object.assign(new Error('x'), { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname });
  const { message = '' } = explainStart(unknown, config('--host', 'nowhere.invalid')) ?? {};
  assert.match(message, /^--host nowhere\.invalid is a name that leads nowhere/);
});

test('a database that does not answer is reported without its password', async () => {
  const mine = config('--database', 'postgres://me:secret@127.0.0.1:1/db');
  const error = await failureOf(openDatabase(mine, pino({ level: 'silent' })));
  const { message = '' } = explainStart(error, mine) ?? {};
  assert.match(message, /^the database of --database cannot be used: connect ECONNREFUSED 127\.0\.0\.1:1$/);
});

test('a bug is not explained, and what was explained already stays as it is', () => {
  assert.equal(explainStart(new TypeError('x is undefined'), config()), undefined);
  const known = new StartError(EXIT.usage, 'a bad option');
  assert.equal(explainStart(known, config()), known);
});

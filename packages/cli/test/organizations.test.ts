import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CommandLine } from './command-line.ts';

const OWNER = 'ann@example.com';

let svc: CommandLine;
before(async () => {
  svc = await CommandLine.withoutEngine();
  await svc.succeed(['org', 'create', 'acme', '--owner', OWNER, '--display-name', 'Acme Inc']);
});
after(() => svc.close());

test('organizations are listed for people and for programs', async () => {
  assert.match(await svc.succeed(['org', 'ls']), /^ORGANIZATION .*\nacme +Acme Inc +self_hosted +1 +0/);
  const [only] = JSON.parse(await svc.succeed(['-o', 'json', 'org', 'ls'])) as {
    slug: string;
    members: number;
  }[];
  assert.deepEqual([only?.slug, only?.members], ['acme', 1]);
});

test('the secret of a key is all that goes to standard output', async () => {
  const key = await svc.run(['apikey', 'create', '--org', 'acme', '--name', 'ci', '--expire', '30d']);
  assert.match(key.stdout, /^svc_[0-9a-f]{64}\n$/);
  assert.match(key.stderr, /organization acme in \S+; expires: 2/);
  assert.ok(!key.stderr.includes(key.stdout.trim()));
  const token = await svc.run(['token', 'create', '--user', OWNER]);
  assert.match(token.stdout, /^svc_pat_[0-9a-f]{64}\n$/);
  assert.match(token.stderr, /for ann@example.com in \S+; expires: never/);
});

test('a key and a token are listed by what they end in, and revoked by their id', async () => {
  for (const [kind, scope] of [
    ['apikey', ['--org', 'acme']],
    ['token', ['--user', OWNER]],
  ] as const) {
    const made = JSON.parse(
      await svc.succeed(['-o', 'json', kind, 'create', ...scope, '--name', 'gone']),
    ) as {
      readonly id: string;
      readonly key?: string;
      readonly token?: string;
    };
    const secret = made.key ?? made.token ?? '';
    const listed = await svc.succeed([kind, 'ls', ...scope]);
    assert.ok(listed.includes(`…${secret.slice(-8)}`) && !listed.includes(secret));
    await svc.succeed([kind, 'revoke', ...scope, made.id]);
    const again = await svc.run([kind, 'revoke', ...scope, made.id]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, new RegExp(`see \`svc ${kind} ls`));
    assert.ok(!(await svc.succeed([kind, 'ls', ...scope])).includes(made.id));
  }
});

test('keys made at once by several processes are all there', async () => {
  await svc.succeed(['org', 'create', 'busy']);
  await Promise.all(Array.from({ length: 3 }, () => svc.succeed(['apikey', 'create', '--org', 'busy'])));
  const keys = JSON.parse(await svc.succeed(['-o', 'json', 'apikey', 'ls', '--org', 'busy'])) as unknown[];
  assert.equal(keys.length, 3);
});

test('quotas are shown and changed, and a limit that does not exist is named', async () => {
  assert.match(
    await svc.succeed(['org', 'quota', 'acme', 'max_sandboxes=3', 'max_vcpus_per_sandbox=unlimited']),
    /Sandboxes +3\nvCPUs of one sandbox +unlimited/,
  );
  await svc.succeed(['org', 'quota', 'acme', 'max_sandboxes=plan']);
  const { quotas } = JSON.parse(await svc.succeed(['-o', 'json', 'org', 'quota', 'acme'])) as {
    quotas: object;
  };
  assert.deepEqual(quotas, { max_vcpus_per_sandbox: null });
  const bad = await svc.run(['org', 'quota', 'acme', 'colour=1']);
  assert.equal(bad.code, 2);
  assert.match(bad.stderr, /colour is no limit; there are .*max_sandboxes/);
});

test('a malformed argument is a usage error, a missing object a failure that names the next command', async () => {
  for (const words of [
    ['org', 'create', 'Bad_'],
    ['org', 'create', 'x', '--owner', 'no-address'],
    ['apikey', 'create', '--org', 'acme', '--expire', 'soon'],
    ['apikey', 'create', '--org', 'acme', '--name', ''],
    ['token', 'create'],
    ['org', 'quota', 'acme', 'x'],
  ]) {
    const { code, stderr } = await svc.run(words);
    assert.equal(code, 2, `${words.join(' ')}: ${stderr}`);
  }
  const missing = await svc.run(['apikey', 'create', '--org', 'nowhere']);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /There is no organization 'nowhere'; make it with: svc org create/);
  const taken = await svc.run(['org', 'create', 'acme', '--owner', OWNER]);
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /see `svc org ls`/);
  const noKeys = await svc.run(['server', 'rotate-secrets']);
  assert.equal(noKeys.code, 1);
  assert.match(noKeys.stderr, /a server makes it when it starts/);
});

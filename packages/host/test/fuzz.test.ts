import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const LINES = 20_000;
const UNPRIVILEGED_ID = 65_534;

test(`${LINES} random and mutated lines neither crash the helper nor go unanswered`, async () => {
  // Another test file may build it too.
  await promisify(execFile)('flock', [PACKAGE, 'make', '-s', '-C', PACKAGE, 'asan']);
  const folder = await mkdtemp(join(tmpdir(), 'svc-host-fuzz-'));
  try {
    // User 65534 may have no access to the checkout.
    await copyFile(join(PACKAGE, 'build/svc-host-asan'), join(folder, 'svc-host'));
    await chmod(join(folder, 'svc-host'), 0o755);
    // Not /bin/true: truncated it is /bin/tr, which waits for its input.
    await copyFile('/bin/true', join(folder, 'ends'));
    await chown(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
    const seed = Number(process.env['SVC_FUZZ_SEED'] ?? Date.now() % 2 ** 31);
    const { answers, exit, errors } = await feed(folder, seed);
    assert.deepEqual(exit, [0, null], `seed ${seed}: ${errors}`);
    assert.equal(answers, LINES, `seed ${seed}: ${errors}`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

async function feed(folder: string, seed: number) {
  // SAFETY: a mutated path may name any file of this machine. The helper runs as user 65534, root only in namespaces of its own, so
  // an unmount, a deletion or a write can affect little but the folder, which it sees as /mnt.
  const confined = ['--user', '--map-root-user', '--mount', '--net'];
  const script = 'mount --bind "$1" /mnt && exec /mnt/svc-host';
  const child = spawn('unshare', [...confined, 'sh', '-c', script, 'sh', folder], {
    stdio: 'pipe',
    cwd: '/',
    uid: UNPRIVILEGED_ID,
    gid: UNPRIVILEGED_ID,
  });
  const closed = once(child, 'close');
  let answers = 0;
  let errors = '';
  createInterface({ input: child.stdout }).on('line', () => answers++);
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  child.stdin.on('error', () => undefined);
  const random = makeRandom(seed);
  for (let line = 0; line < LINES; line++) {
    if (!child.stdin.write(`${makeLine(random)}\n`, 'latin1')) {
      await Promise.race([once(child.stdin, 'drain'), closed]);
    }
  }
  child.stdin.end();
  return { exit: await closed, answers, errors };
}

/** Numbers below a bound, the same for the same seed (mulberry32). */
function makeRandom(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

function makeLine(random: (bound: number) => number): string {
  const at = (name: string) => `/mnt/${name}`;
  const requests = [
    ['createNamespaces', at('u'), at('n'), '100000'],
    [
      'createNamespaces',
      at('u'),
      at('n'),
      '100000',
      'fuzzlink',
      '10.0.0.2',
      '169.254.1.1',
      '1500',
      '02:00:00:00:00:02',
    ],
    ['removeNamespaces', at('u'), at('n')],
    ['deleteLink', 'fuzzlink'],
    ['mountOverlay', at('t'), at('d/u'), at('d/w'), at('u'), '100000', at('l0'), at('l1')],
    ['mountImage', at('i'), at('t'), 'ext4', '0', '1'],
    ['bind', '/mnt', 'a/b', at('t'), '1', '0', '/proc/self/ns/user', '100000', 'folder', '0', '0', '5'],
    ['bind', '/etc', 'passwd', at('t'), '1', '1'],
    ['unmount', at('t')],
    ['copySparse', '/etc/hostname', at('c')],
    ['copyFrozen', '/etc/hostname', '/dev/loop0', at('m'), at('c'), '1000'],
    ['thaw', '/etc/hostname', '/dev/loop0', at('m')],
    ['writeDirectly', '/etc/hostname', '/dev/loop0'],
    ['launch', '7', 'null', '', '', '1', 'PATH=/bin', 'true', 'x'],
    ['launch', '8', 'closed', at('ends'), at('ends'), '0', at('ends')],
    ['findClaim', at('ends')],
    ['endLaunch', '7'],
  ];
  if (random(10) === 0) return randomBytes(random(300), random);
  const fields = [String(random(100_000)), ...(requests[random(requests.length)] ?? [])];
  for (let change = random(4); change >= 0; change--) mutate(fields, random);
  return fields.join('\t').replaceAll('\n', ' ');
}

function mutate(fields: string[], random: (bound: number) => number): void {
  const index = random(fields.length);
  const field = fields[index] ?? '';
  const place = random(field.length + 1);
  switch (random(8)) {
    case 0:
      fields.splice(index, 1);
      break;
    case 1:
      fields.splice(index, 0, ...Array.from({ length: random(20) === 0 ? 700 : 2 }, () => field));
      break;
    case 2:
      fields[index] = field.slice(0, place);
      break;
    case 3:
      fields[index] = field.slice(0, place) + randomBytes(1 + random(8), random) + field.slice(place);
      break;
    case 4:
      fields[index] = `${field.slice(0, place)}%${random(256).toString(16)}${field.slice(place)}`;
      break;
    case 5:
      fields[index] = String(random(2 ** 32 - 1) * (1 + random(3)));
      break;
    case 6:
      fields[index] = field.repeat(1 + random(random(50) === 0 ? 5000 : 5));
      break;
    default:
      fields[index] =
        ['', '/', '/proc/self/ns/net', '/dev/null', '..', '0', '-1', '4294967295'][random(8)] ?? '';
  }
}

function randomBytes(length: number, random: (bound: number) => number): string {
  const bytes = Array.from({ length }, () => String.fromCodePoint(random(256)));
  return bytes.join('').replaceAll('\n', ' ');
}

import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const PROGRAM = join(PACKAGE, 'build/svc-host');
const SANITIZED = join(PACKAGE, 'build/svc-host-asan');
const LINES = 5000;
/** Never open here. */
const NO_DESCRIPTOR = 1_000_000;

test('what is no request, names no connection, or names another one than it says is refused with the reason', async (t) => {
  const relay = start(t, PROGRAM);
  const [one, other] = [await pair(t), await pair(t)];
  const [caller, guest] = [nameOf(one), nameOf(other)];
  const file = openSync('/proc/self/status', 'r');
  const cases: readonly [line: string, answer: RegExp][] = [
    ['nonsense', /^0\terr\tEINVAL\t/],
    ['1', /^1\terr\tEINVAL\tthe request names no call/],
    ['2\tdance', /^2\terr\tENOSYS\t/],
    ['3\tjoin\t1\t2\t3', /^3\terr\tEINVAL\twrong number of arguments/],
    [`4\tjoin\t${caller}\tx\ty`, /^4\terr\tEINVAL\tan argument is not a number/],
    [`5\tjoin\t${NO_DESCRIPTOR}\t1\t${guest}`, /^5\terr\tEBADF\t/],
    // Its number is right, and it is another connection by now.
    [`6\tjoin\t${caller}\t${guest.split('\t')[0]}\t1`, /^6\terr\tESTALE\t/],
    [`7\tjoin\t${file}\t${fstatSync(file).ino}\t${guest}`, /^7\terr\tESTALE\t/],
  ];
  for (const [line, answer] of cases) assert.match(await relay.ask(line), answer);
  relay.child.stdin.write('8\tend\n');
  assert.match(await relay.ask(`9\tjoin\t${caller}\t${guest}`), /^9\tok\t/);
  one.far.write('through');
  const [seen] = (await once(other.far, 'data')) as [Buffer];
  assert.equal(seen.toString(), 'through');
});

test('it ends when whoever started it does, and with it all that it joined', async (t) => {
  const relay = start(t, PROGRAM);
  const [one, other] = [await pair(t), await pair(t)];
  await relay.ask(`1\tjoin\t${nameOf(one)}\t${nameOf(other)}`);
  for (const { near } of [one, other]) near.destroy();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) relay.child.kill(signal);
  one.far.write('still');
  await once(other.far, 'data');
  other.far.resume();
  relay.child.stdin.end();
  const [exit] = await Promise.all([once(relay.child, 'exit'), once(other.far, 'end')]);
  assert.deepEqual(exit, [0, null]);
});

test(`${LINES} random lines neither crash it nor stop it`, async (t) => {
  // Another file may build it too.
  await promisify(execFile)('flock', [PACKAGE, 'make', '-s', '-C', PACKAGE, 'asan']);
  const relay = start(t, SANITIZED);
  const pairs = await Promise.all(Array.from({ length: 6 }, () => pair(t)));
  const seed = Number(process.env['SVC_FUZZ_SEED'] ?? Date.now() % 2 ** 31);
  let state = seed;
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
    return (state >> 8) % bound;
  };
  const pick = () => pairs[below(pairs.length)] ?? assert.fail();
  for (let count = 0; count < LINES; count++) {
    const id = String(below(12));
    const lines = [
      `${id}\tend`,
      `${id}\tjoin\t${nameOf(pick())}\t${nameOf(pick())}`,
      `${id}\tjoin\t${below(40)}\t${below(1e6)}\t${nameOf(pick())}`,
      `${id}\tjoin`.slice(0, below(7)) + '%0'.repeat(below(3)),
    ];
    pick().far.write('x'.repeat(below(3) === 0 ? 100_000 : 1));
    if (!relay.child.stdin.write(`${lines[below(lines.length)]}\n`)) await once(relay.child.stdin, 'drain');
  }
  relay.child.stdin.end();
  assert.deepEqual(await once(relay.child, 'exit'), [0, null], `seed ${seed}`);
});

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

interface Relay {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  /** The answer, not what is told of what was joined. */
  ask(line: string): Promise<string>;
}

function start(t: TestContext, program: string): Relay {
  const child = spawn(program, ['--relay'], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines: Interface = createInterface({ input: child.stdout });
  return {
    child,
    ask: async (line) => {
      child.stdin.write(`${line}\n`);
      for (;;) {
        const [answer] = (await once(lines, 'line')) as [string];
        if (!/\t(said|over)$/.test(answer)) return answer;
      }
    },
  };
}

/** The two ends of one connection; whoever takes the near one finds it paused. */
async function pair(t: TestContext): Promise<Pair> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-relay-'));
  const server = createServer({ pauseOnConnect: true }).listen(join(folder, 'socket'));
  await once(server, 'listening');
  const far = connect({ path: join(folder, 'socket'), allowHalfOpen: true });
  far.on('error', () => undefined);
  const [near] = (await once(server, 'connection')) as [Socket];
  near.on('error', () => undefined);
  t.after(() => {
    far.destroy();
    near.destroy();
    server.close();
    rmSync(folder, { recursive: true });
  });
  return { near, far };
}

/** Descriptor and inode of the near end. */
function nameOf({ near }: Pair): string {
  const { fd } = (near as unknown as { readonly _handle: { readonly fd: number } })._handle;
  return `${fd}\t${fstatSync(fd).ino}`;
}

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { TestSandbox } from '../testing/code-sandbox.ts';
import { runAndListen, type ListenedRun } from '../testing/run-results.ts';
import { createCodeRunner } from './code-runner.ts';
import { interpreterOf } from './languages.ts';

let sandbox: TestSandbox;
let runner: ReturnType<typeof createCodeRunner>;
before(async () => {
  sandbox = await TestSandbox.start();
  const openChannel = (_id: string, signal: AbortSignal) => sandbox.openChannel(signal);
  runner = createCodeRunner({ openChannel, logger: pino({ level: 'silent' }), killMs: 60_000 });
});
after(async () => {
  runner.close();
  await sandbox.stop();
});

const run = async (code: string, timeoutMs?: number): Promise<ListenedRun> =>
  await runAndListen(runner, { sandboxId: 'box', language: 'python', code }, timeoutMs);

test('await works outside of functions, and what was left in the event loop goes on', async () => {
  const code = `
import asyncio
async def later(value):
    await asyncio.sleep(0.01)
    return value
task = asyncio.ensure_future(later(1))
await later(41) + 1`;
  assert.equal((await run(code)).result, '42');
  assert.equal((await run('await task')).result, '1');
  assert.equal((await run('asyncio.run(later(2))')).result, '2');
});

test('an await that takes for ever is cancelled by the timeout, and may clean up', async () => {
  const { status, stdout } = await run(
    'import asyncio\ntry:\n    await asyncio.sleep(1000)\nfinally:\n    print("cleaned")',
    500,
  );
  assert.deepEqual([status, stdout], ['timeout', 'cleaned\n']);
  assert.equal((await run('40 + 2')).result, '42');
});

test('a failed await shows the code of the user, not the event loop', async () => {
  const { exception } = await run('async def f():\n    raise ValueError("no")\nawait f()');
  assert.equal(exception?.name, 'ValueError');
  assert.doesNotMatch(exception.traceback, /asyncio|svc/);
  assert.deepEqual(
    exception.frames.map(({ line }) => line),
    [3, 2],
  );
});

test('!command runs in a shell, with values of variables, and its output can be kept', async () => {
  const { stdout, stderr, status } = await run(`
word = "there"
print("before")
!echo hello {word} && echo oops >&2
for i in range(2):
    !echo $(( {i} + 1 )) \\
      '{not_a_name}'
lines = !printf 'a\\nb\\n'
print(lines)
!exit 3
print(_exit_code)`);
  assert.equal(status, 'success', stderr);
  assert.equal(stdout, "before\nhello there\n1 {not_a_name}\n2 {not_a_name}\n['a', 'b']\n3\n");
  assert.equal(stderr, 'oops\n');
});

test('%cd, %env, %pwd and %matplotlib do what notebooks do', async () => {
  const { stdout, result, stderr } = await run(
    '%matplotlib inline\n%cd /usr\n%env WORD=two words\n%env OTHER x\n!echo $WORD $OTHER\nplace = %pwd\nprint(place)\n%env WORD',
  );
  assert.equal(stderr, '');
  assert.equal(stdout, "/usr\ntwo words x\n/usr\n'two words'\n");
  assert.equal(result, "'two words'");
});

test('%%bash and %%writefile take the whole code; a script that fails is an error', async () => {
  const folder = '/tmp/svc-cells-test';
  const { stdout, status } = await run(`\n%%bash one\nmkdir -p ${folder}; cd ${folder}\necho "$1"; pwd`);
  assert.deepEqual([stdout, status], [`one\n${folder}\n`, 'success']);
  await run(`%%writefile ${folder}/kept.txt\nfirst\nsecond`);
  assert.equal((await run(`open("${folder}/kept.txt").read()`)).result, "'first\\nsecond\\n'");
  const failed = await run(`%%bash\nrm -r ${folder}\nexit 4`);
  assert.deepEqual([failed.status, failed.exception?.name], ['error', 'CalledProcessError']);
  assert.match(failed.exception?.message ?? '', /exit status 4/);
});

test('%pip runs the pip of the interpreter', async () => {
  const { status, stdout, exception } = await run('%pip --version');
  // Without one, the error says so.
  if (status === 'success') assert.match(stdout, /^pip \d/);
  else assert.equal(exception?.name, 'CalledProcessError');
});

test('a command that is not known is named, with those that are', async () => {
  const { exception } = await run('%unknown 5');
  assert.equal(exception?.name, 'NameError');
  assert.match(exception.message, /no %unknown here; known are %cd, %env/);
});

test('valid Python is not read as a shell or magic command', async () => {
  const text = 'x = """\n!not a command\n%cd /nowhere\n"""\ny = (7\n%4)\n';
  const { status, result } = await run(`${text}x.count("!"), y`);
  assert.deepEqual([status, result], ['success', '(1, 3)']);
  // Beside a real command, too.
  assert.equal((await run(`${text}!true\nx.count("!")`)).result, '1');
  const broken = await run('!true\nif x\n  pass');
  assert.equal(broken.exception?.name, 'SyntaxError');
  assert.deepEqual(
    broken.exception.frames.map(({ line, source }) => [line, source]),
    [[2, 'if x']],
  );
});

test('an interruption ends a command, and the state is kept', async () => {
  const { status } = await run('kept = 41\n!sleep 1000', 500);
  assert.equal(status, 'timeout');
  assert.equal((await run('kept + 1')).result, '42');
});

test('a last value is printed behind all that was printed before it, and where stdout leads', async () => {
  const printed = await run(
    'import os, sys\nsys.stdout.write("a")\nsys.displayhook(1)\nos.write(1, b"b\\n")\nprint("c", end="")\n2',
  );
  assert.deepEqual([printed.stdout, printed.result], ['a1\nb\nc2\n', '2']);
  const away = await run('sink = os.open(os.devnull, os.O_WRONLY)\nos.dup2(sink, 1)\n3');
  assert.deepEqual([away.stdout, away.result], ['', '3']);
  assert.equal(
    (await run('class Loud(int):\n  def __repr__(self):\n    print("x")\n    return "y"\nLoud()')).stdout,
    'x\ny\n',
  );
});

/** Each piece that is written to a socket of this kind is read separately. */
const PIECES = `
import os, socket, struct, subprocess, sys
near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
units, control = os.pipe()
os.dup2(units, 12)
child = subprocess.Popen(sys.argv[1:], stdout=far, stderr=subprocess.DEVNULL, pass_fds=[12])
os.write(control, struct.pack(">I", 3) + b"a" * 16 + b"1+1" + b"z" * 16)
near.settimeout(60)
pieces = []
while not any(b"z" * 16 in piece for piece in pieces):
    pieces.append(near.recv(65536))
child.kill()
print(len(pieces), pieces[-1][:2])
`;

test('a last value, its forms and the end of its unit go out as one piece', async () => {
  const { program, args } = interpreterOf('python');
  const { stdout } = await promisify(execFile)(program, ['-c', PIECES, program, ...args]);
  assert.equal(stdout, "3 b'2\\n'\n", 'that it is ready, the first mark, and all the rest');
});

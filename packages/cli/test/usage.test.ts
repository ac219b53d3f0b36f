import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { CommandLine } from './command-line.ts';

let svc: CommandLine;
before(async () => {
  svc = await CommandLine.withoutEngine();
});
after(() => svc.close());

test('every command explains itself, with examples', async () => {
  const commands = await commandsUnder([]);
  assert.ok(commands.length > 50, commands.join(', '));
  for (const words of commands) assert.match(await help(words), /Examples:\n {2}/, words.join(' '));
});

test('wrong usage exits with 2 and says what is possible', async () => {
  for (const words of [
    ['nonsense'],
    ['run'],
    ['run', '--nonsense', 'image'],
    ['run', '-m', 'x', 'image'],
    ['ls', '-o', 'xml'],
    ['logs', '-s', 'x', 'a'],
    ['logs', '--since', 'x', 'a'],
    ['run', '-p', '80', 'image'],
    ['recover', 'a', 'nonsense'],
    ['completion', 'csh'],
  ]) {
    const { code, stderr } = await svc.run(words);
    assert.equal(code, 2, words.join(' '));
    assert.match(stderr, /^error: [^\n]+\n( {2}usage: svc .*\n)? {2}try: svc .*--help\n$/, words.join(' '));
  }
});

test('without an engine every command fails with the command that starts one', async () => {
  for (const words of [
    ['image', 'ls'],
    ['engine', 'status'],
  ]) {
    const { code, stderr } = await svc.run(words);
    assert.equal(code, 1, words.join(' '));
    assert.match(stderr, /^error: .*svc engine start/, words.join(' '));
  }
  const { code, stderr } = await svc.run(['image', 'ls', '-o', 'json']);
  assert.equal(code, 1);
  assert.equal((JSON.parse(stderr) as { error: { code: string } }).error.code, 'orchestrator_unreachable');
});

test('a data folder that sandboxes cannot pass through is refused with the remedy', async () => {
  await chmod(svc.folder, 0o700);
  const { code, stderr } = await svc.run(['engine', 'start', '--detach']);
  await chmod(svc.folder, 0o711);
  assert.equal(code, 2);
  assert.ok(stderr.includes(`chmod o+x ${svc.folder}`), stderr);
});

test('stopping an engine that does not run succeeds', async () => {
  assert.match(await svc.succeed(['engine', 'stop']), /does not run/);
});

async function help(words: readonly string[]): Promise<string> {
  return await svc.succeed([...words, '--help']);
}

/** Commands that run something, as their groups list them. */
async function commandsUnder(group: readonly string[]): Promise<readonly (readonly string[])[]> {
  const [, list] = (await help(group)).split('\nCommands:\n');
  if (list === undefined) return [group];
  const names = [...list.matchAll(/^ {2}([a-z-]+)/gm)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'help');
  const nested = await Promise.all(
    [...new Set(names)].filter((name) => name !== 'svc').map((name) => commandsUnder([...group, name])),
  );
  return nested.flat();
}

import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '../src/program.ts';
import { CommandLine } from './command-line.ts';

let svc: CommandLine;
before(async () => {
  svc = await CommandLine.withoutEngine();
});
after(() => svc.close());

const program = await createProgram('all');

test('all commands are listed, by their groups', async () => {
  assert.ok(commandsUnder(program, []).length > 50);
  for (const group of [program, ...program.commands.filter(isGroup)]) {
    const words = group === program ? [] : [group.name()];
    const [, list = ''] = (await svc.succeed([...words, '--help'])).split('\nCommands:\n');
    const names = new Set([...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name));
    const missing = shownIn(group).filter((child) => !names.has(child.name()));
    assert.deepEqual(
      missing.map((child) => child.name()),
      [],
      words.join(' '),
    );
  }
});

for (const words of commandsUnder(program, [])) {
  test(`svc ${words.join(' ')} explains itself, with examples`, async () => {
    assert.match(await svc.succeed([...words, '--help']), /Examples:\n {2}/);
  });
}

test('wrong usage exits with 2 and says what is possible', async () => {
  for (const words of [
    ['nonsense'],
    ['run'],
    ['run', '--nonsense', 'image'],
    ['run', '-m', 'x', 'image'],
    ['ls', '-o', 'xml'],
    ['logs', '-s', 'x', 'a'],
    ['logs', '--since', 'x', 'a'],
    ['run', '-p', '0', 'image'],
    ['run', '--cpus', '0.5', 'image'],
    ['kill', '-s', 'NONE', 'a'],
    ['ps', '--filter', 'colour=red'],
    ['ps', '--filter', 'status=nonsense'],
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

/** Those that run something. */
function commandsUnder(command: Command, words: readonly string[]): readonly (readonly string[])[] {
  if (!isGroup(command)) return [words];
  return shownIn(command).flatMap((child) => commandsUnder(child, [...words, child.name()]));
}

function shownIn(command: Command): readonly Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help');
}

function isGroup(command: Command): boolean {
  return command.commands.length > 0;
}

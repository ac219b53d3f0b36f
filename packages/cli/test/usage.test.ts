import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { Command } from 'commander';
import { INSTEAD } from '../src/foreign-words.ts';
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
    const help = await svc.succeed([...words, '--help']);
    const names = new Set([...help.matchAll(/^ {2}([a-z][a-z0-9-]*)/gm)].map(([, name]) => name));
    const missing = shownIn(group).filter((child) => !names.has(child.name()));
    assert.deepEqual(
      missing.map((child) => child.name()),
      [],
      words.join(' '),
    );
  }
});

test('the fifteen commands that matter come first, the rest in groups', async () => {
  const groups = (await svc.succeed(['--help'])).split(/\n(?=[A-Za-z][A-Za-z ,]+:\n)/).slice(2, -1);
  const [first = '', ...others] = groups;
  assert.match(first, /^Often used:\n {2}run /);
  const sizes = groups.map((group) => [...group.matchAll(/^ {2}[a-z]/gm)].length);
  assert.equal(sizes[0], 15);
  assert.ok(others.length >= 5 && Math.max(...sizes.slice(1)) <= 12, sizes.join(' '));
});

test('commands of other tools do the same, or say what to type', async () => {
  assert.match(await svc.succeed(['images', '--help']), /^Usage: svc image ls /);
  assert.match(await svc.succeed(['rmi', '--help']), /^Usage: svc image rm /);
  for (const [typed, instead] of [
    [['shell', 'web'], 'svc exec -it web sh'],
    [['connect', 'web'], 'svc exec -it web sh'],
    [['top', 'web'], 'svc exec web ps'],
    [['prune'], 'svc image prune'],
    [['login'], 'svc context add NAME'],
    [['diff', 'web'], 'svc cp web:'],
    [['commit', 'web', 'kept'], 'svc snapshot create web'],
    [['-o', 'json', 'pause', 'web'], 'svc stop web'],
  ] as const) {
    const { code, stderr } = await svc.run(typed);
    assert.equal(code, 2, stderr);
    assert.ok(stderr.includes(instead), stderr);
  }
});

test("every command that is suggested in place of another tool's exists", () => {
  for (const text of Object.values(INSTEAD))
    for (const [, name, child] of text.matchAll(/svc ([a-z-]+)(?: ([a-z][a-z-]*))?/g)) {
      const command = program.commands.find((each) => each.name() === name);
      assert.ok(command !== undefined || ['has', 'keeps', 'reads', 'does'].includes(name ?? ''), text);
      if (command !== undefined && isGroup(command))
        assert.ok(command.commands.some((each) => each.name() === child) || child === undefined, text);
    }
});

test('options of other tools are answered with what svc has', async () => {
  for (const [words, instead] of [
    [['run', '--network', 'none', 'image'], /--net: public.*none\n/],
    [['create', '--network=host', 'image'], /--net: public.*none\n/],
    [['run', '--entrypoint', 'sh', 'image'], /a command behind the image replaces its entrypoint/],
    [['run', '--gpus', 'all', 'image'], /no devices of the host/],
  ] as const) {
    const { code, stderr } = await svc.run(words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^error: svc has no option '--[a-z]+': .*\n {2}usage: svc .*\n {2}try: .*--help\n$/);
    assert.match(stderr, instead);
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
  assert.equal(await svc.succeed(['engine', 'stop']), `no engine runs on the data folder ${svc.folder}\n`);
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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProgram } from '../program.ts';
import { toCommandLineTerms, sandboxOf } from './command-line-terms.ts';

const ID = '0d5f7c1e-0000-4000-8000-000000000000';

test('fields are called by the options that were typed', () => {
  for (const [message, expected] of [
    ['resources.memory_mib: must be at least 16', '-m/--memory: must be at least 16'],
    [
      'more than 64 MiB were needed; raise resources.memory_mib',
      'more than 64 MiB were needed; raise -m/--memory',
    ],
    ['idle for 9 s (lifecycle.idle_timeout_secs)', 'idle for 9 s (--idle-timeout)'],
    ['network.ports[0].host_bind: 1.2.3.4 may not', '-p/--publish: 1.2.3.4 may not'],
    ['network.ports[1].host_port: is given twice', '-p/--publish (number 2): is given twice'],
    ['mounts[2].guest: must be absolute', '-v/--volume (number 3): must be absolute'],
    ['env[0].key: A is given twice', '-e/--env: A is given twice'],
    ['labels.svc.dev/x: the prefix svc. is reserved', '-l/--label: the prefix svc. is reserved'],
    ['the env of mounts: labels', 'the env of mounts: labels'],
    ['see runtime.users and my.resources.vcpus', 'see runtime.users and my.resources.vcpus'],
  ] as const)
    assert.equal(toCommandLineTerms(message, undefined), expected);
});

test('a sandbox is called by the name that was typed, also where that is its id', () => {
  assert.equal(
    toCommandLineTerms(`Sandbox ${ID} is stopped; start it`, 'web'),
    "Sandbox 'web' is stopped; start it",
  );
  assert.equal(toCommandLineTerms(`Sandbox ${ID} is stopped`, ID), `Sandbox ${ID} is stopped`);
  assert.equal(toCommandLineTerms(`volume ${ID} is in use`, 'web'), `volume ${ID} is in use`);
});

test('the sandbox of a command line is found in whichever place it stands', async () => {
  for (const [words, expected] of [
    [['exec', 'web', 'ls', 'a:b'], 'web'],
    [['process', 'logs', 'web', 'job'], 'web'],
    [['cp', './file', 'web:/tmp'], 'web'],
    [['run', '--name', 'new', 'python', 'true'], 'new'],
    [['run', 'python', 'true'], undefined],
    [['start', 'one', 'two'], undefined],
    [['volume', 'rm', 'data'], undefined],
    [['ps'], undefined],
  ] as const) {
    const program = await createProgram(words);
    for (const command of program.commands.flatMap((one) => [one, ...one.commands]))
      command.action(() => undefined);
    await program.parseAsync(words, { from: 'user' });
    assert.equal(sandboxOf(program), expected, words.join(' '));
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command } from 'commander';
import { globalOptions } from './globals.ts';
import { createProgram } from './program.ts';

test('no command has an option that takes the place of one that every command knows', async () => {
  const program = await createProgram('all');
  const names = globalOptions().map((option) => option.attributeName());
  const clashes = commandsBelow(program).flatMap((command) =>
    names
      .filter((name) => command.options.filter((option) => option.attributeName() === name).length > 1)
      .map((name) => `${command.name()}: ${name}`),
  );
  assert.deepEqual(clashes, []);
});

function commandsBelow(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...commandsBelow(child)]);
}

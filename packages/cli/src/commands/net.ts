import { Command } from 'commander';
import { createCommand as createExplain } from './net-explain.ts';
import { createCommand as createSet } from './net-set.ts';

export function createCommand(): Command {
  const net = new Command('net').description('What a sandbox may reach.');
  for (const create of [createExplain, createSet]) net.addCommand(create());
  return net;
}

import { Command } from 'commander';
import { createCommand as createExplain } from './net-explain.ts';
import { createCommand as createLog } from './net-log.ts';
import { createCommand as createSet } from './net-set.ts';

export function createCommand(): Command {
  const net = new Command('net').description('What a sandbox may reach, and what it was kept from.');
  for (const create of [createExplain, createLog, createSet]) net.addCommand(create());
  return net;
}

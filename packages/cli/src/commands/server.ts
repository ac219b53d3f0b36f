import { Command } from 'commander';
import { createCommand as createKeygen } from './server-keygen.ts';
import { createCommand as createLogs } from './server-logs.ts';
import { createCommand as createRotateSecrets } from './server-rotate-secrets.ts';
import { createCommand as createStart } from './server-start.ts';
import { createCommand as createStatus } from './server-status.ts';
import { createCommand as createStop } from './server-stop.ts';

export function createCommand(): Command {
  const server = new Command('server').description(
    'The server: JSON-RPC and MCP for clients, on http://127.0.0.1:5555 unless told otherwise.',
  );
  for (const create of [
    createStart,
    createStop,
    createStatus,
    createKeygen,
    createRotateSecrets,
    createLogs,
  ]) {
    server.addCommand(create());
  }
  return server;
}

import { Command } from 'commander';
import type { Client, Sandbox, ServerCapabilities } from '@svc/sdk';
import about from '../../package.json' with { type: 'json' };
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('info')
    .description('Shows which server commands talk to, what it can do, and how much is there.')
    .addHelpText(
      'after',
      examples(
        ['svc info', 'the server, its isolation, your sandboxes'],
        ['svc doctor', 'what this machine can do'],
        ['svc server status', 'the server on this machine, for its operator'],
      ),
    )
    .action(showInfo);
}

async function showInfo(_options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Capabilities } = await import('@svc/sdk');
  const { resolveServer } = await import('../context/resolve-server.ts');
  const { connectServer } = await import('../server/connect.ts');
  const { url, source } = await resolveServer(globals);
  const client = await connectServer(globals);
  const capabilities = await Capabilities.get({ client });
  const counts = await countAll(client);
  const clientVersion = about.version;
  if (globals.isJson) return printJson({ client_version: clientVersion, url, ...counts, capabilities });
  const lines: readonly (readonly [string, string])[] = [
    ['Server', `${url} (${source})`],
    ['Versions', `svc ${clientVersion}, server ${capabilities.version}`],
    ['Sandboxes', `${counts.running} run, ${counts.sandboxes - counts.running} do not`],
    ['Images', String(counts.images)],
    ['Volumes', String(counts.volumes)],
    ['Isolation', describeIsolation(capabilities)],
    ['Network', describeCeiling(capabilities)],
    ['SSH', capabilities.ssh === null ? 'no gateway' : 'a gateway: svc ssh NAME'],
    ['Previews', capabilities.previews === null ? 'no domain' : capabilities.previews.domain],
  ];
  for (const [title, text] of lines) print(`${title.padEnd(9)}  ${text}`);
}

interface Counts {
  readonly sandboxes: number;
  readonly running: number;
  readonly images: number;
  readonly volumes: number;
}

async function countAll(client: Client): Promise<Counts> {
  const { Images, Sandbox, Volume } = await import('@svc/sdk');
  const sandboxes: Sandbox[] = await Array.fromAsync(Sandbox.list({ client }));
  const [images, volumes] = await Promise.all([Images.list({ client }), Volume.list({ client })]);
  return {
    sandboxes: sandboxes.length,
    running: sandboxes.filter(({ status }) => status === 'running').length,
    images: images.length,
    volumes: volumes.length,
  };
}

function describeIsolation({ isolation }: ServerCapabilities): string {
  // A class is listed once for each runtime that can implement it.
  const available = new Set(
    isolation.classes.filter(({ is_available: isThere }) => isThere).map(({ name }) => name),
  );
  if (available.size === 0) return 'none: svc doctor says why';
  return [...available].map((name) => (name === isolation.default ? `${name} (default)` : name)).join(', ');
}

function describeCeiling({ network }: ServerCapabilities): string {
  const { ceiling } = network;
  if (ceiling.includes('all')) return 'policies may open every address';
  return `policies may open at most: ${ceiling.length === 0 ? 'nothing' : ceiling.join(', ')}`;
}

import type { Command } from 'commander';
import type { CreateProgram } from './completion/find-candidates.ts';

interface ListedCommand {
  readonly name: string;
  readonly alias?: string;
  readonly summary: string;
  /** Not for people. */
  readonly isHidden?: boolean;
  readonly load: () => Promise<{ readonly createCommand: (createProgram: CreateProgram) => Command }>;
}

interface CommandGroup {
  readonly title: string;
  readonly commands: readonly ListedCommand[];
}

/** Every command, in the order of `svc --help`. Only the ones that the command line names are loaded. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    title: 'Often used',
    commands: [
      { name: 'run', summary: 'run a command in a new sandbox', load: () => import('./commands/run.ts') },
      { name: 'ps', alias: 'ls', summary: 'list sandboxes', load: () => import('./commands/ps.ts') },
      { name: 'exec', summary: 'run a command in a sandbox', load: () => import('./commands/exec.ts') },
      { name: 'code', summary: 'run code in an interpreter', load: () => import('./commands/code.ts') },
      { name: 'logs', summary: 'show what a sandbox wrote', load: () => import('./commands/logs.ts') },
      { name: 'cp', summary: 'copy files into and out of a sandbox', load: () => import('./commands/cp.ts') },
      {
        name: 'open',
        summary: 'open a port of a sandbox in a browser',
        load: () => import('./commands/open.ts'),
      },
      { name: 'start', summary: 'start sandboxes', load: () => import('./commands/start.ts') },
      { name: 'stop', summary: 'stop sandboxes', load: () => import('./commands/stop.ts') },
      { name: 'rm', summary: 'remove sandboxes', load: () => import('./commands/rm.ts') },
      { name: 'stats', summary: 'show what sandboxes use', load: () => import('./commands/stats.ts') },
      { name: 'inspect', summary: 'show all about sandboxes', load: () => import('./commands/inspect.ts') },
      {
        name: 'image',
        summary: 'images that sandboxes here are made from',
        load: () => import('./commands/image.ts'),
      },
      { name: 'server', summary: 'the server on this machine', load: () => import('./commands/server.ts') },
      { name: 'doctor', summary: 'show what this host can do', load: () => import('./commands/doctor.ts') },
    ],
  },
  {
    title: 'More about sandboxes',
    commands: [
      { name: 'create', summary: 'make a sandbox, not started', load: () => import('./commands/create.ts') },
      { name: 'ssh', summary: 'a shell in a sandbox', load: () => import('./commands/ssh.ts') },
      {
        name: 'link',
        summary: 'make a link to a file of a sandbox',
        load: () => import('./commands/link.ts'),
      },
      {
        name: 'attach',
        summary: 'show what a sandbox writes from now on',
        load: () => import('./commands/attach.ts'),
      },
      { name: 'wait', summary: 'wait for the end of sandboxes', load: () => import('./commands/wait.ts') },
      { name: 'kill', summary: 'end sandboxes at once', load: () => import('./commands/kill.ts') },
      { name: 'restart', summary: 'stop and start sandboxes', load: () => import('./commands/restart.ts') },
      { name: 'rename', summary: 'give a sandbox another name', load: () => import('./commands/rename.ts') },
      {
        name: 'update',
        summary: 'change how long sandboxes may run',
        load: () => import('./commands/update.ts'),
      },
      {
        name: 'recover',
        summary: 'choose how a sandbox goes on after an outage',
        load: () => import('./commands/recover.ts'),
      },
      {
        name: 'process',
        summary: 'processes that run on without a client',
        load: () => import('./commands/process.ts'),
      },
      { name: 'snapshot', summary: 'copies of disks', load: () => import('./commands/snapshot.ts') },
    ],
  },
  {
    title: 'Network and secrets',
    commands: [
      { name: 'net', summary: 'what a sandbox may reach', load: () => import('./commands/net.ts') },
      { name: 'port', summary: 'show what leads into a sandbox', load: () => import('./commands/port.ts') },
      {
        name: 'preview',
        summary: 'addresses of ports for browsers',
        load: () => import('./commands/preview.ts'),
      },
      {
        name: 'secret',
        summary: 'secrets that sandboxes use and never hold',
        load: () => import('./commands/secret.ts'),
      },
    ],
  },
  {
    title: 'Images and storage',
    commands: [
      { name: 'pull', summary: 'svc image pull', load: () => import('./commands/image-pull.ts') },
      {
        name: 'build',
        summary: 'what to do instead of building images',
        load: () => import('./commands/build.ts'),
      },
      {
        name: 'volume',
        summary: 'storage that outlives sandboxes',
        load: () => import('./commands/volume.ts'),
      },
    ],
  },
  {
    title: 'The organization',
    commands: [
      { name: 'usage', summary: 'what was used this month', load: () => import('./commands/usage.ts') },
      { name: 'quota', summary: 'limits, and how much is taken', load: () => import('./commands/quota.ts') },
      { name: 'events', summary: 'what was done, and by whom', load: () => import('./commands/events.ts') },
      {
        name: 'webhook',
        summary: 'addresses that are told of events',
        load: () => import('./commands/webhook.ts'),
      },
      {
        name: 'member',
        summary: 'people of an organization, and invites',
        load: () => import('./commands/member.ts'),
      },
      {
        name: 'apikey',
        summary: 'API keys of organizations, for programs',
        load: () => import('./commands/apikey.ts'),
      },
      {
        name: 'token',
        summary: 'personal access tokens of users',
        load: () => import('./commands/token.ts'),
      },
      { name: 'ssh-key', summary: 'public keys for svc ssh', load: () => import('./commands/ssh-key.ts') },
    ],
  },
  {
    title: 'Which server',
    commands: [
      {
        name: 'context',
        summary: 'servers that commands can talk to',
        load: () => import('./commands/context.ts'),
      },
      { name: 'info', summary: 'the server that commands talk to', load: () => import('./commands/info.ts') },
      { name: 'node', summary: 'the hosts of sandboxes behind it', load: () => import('./commands/node.ts') },
      {
        name: 'e2b',
        summary: "how E2B's clients reach this server",
        load: () => import('./commands/e2b.ts'),
      },
      {
        name: 'mcp',
        summary: 'MCP on standard input and output, for AI tools',
        load: () => import('./commands/mcp.ts'),
      },
    ],
  },
  {
    title: 'The server on this machine, for its operator',
    commands: [
      {
        name: 'engine',
        summary: 'the engine that runs sandboxes here',
        load: () => import('./commands/engine.ts'),
      },
      {
        name: 'pool',
        summary: 'sandboxes that are kept warm here',
        load: () => import('./commands/pool.ts'),
      },
      {
        name: 'orphan',
        summary: 'sandboxes, volumes and snapshots without an owner',
        load: () => import('./commands/orphan.ts'),
      },
      { name: 'org', summary: 'organizations of the server here', load: () => import('./commands/org.ts') },
      { name: 'user', summary: 'people who sign in', load: () => import('./commands/user.ts') },
      {
        name: 'audit',
        summary: 'audit events of the server here',
        load: () => import('./commands/audit.ts'),
      },
      {
        name: 'backup',
        summary: 'copy all data of the server here into a file',
        load: () => import('./commands/backup.ts'),
      },
      {
        name: 'restore',
        summary: 'make a data folder of a backup',
        load: () => import('./commands/restore.ts'),
      },
      {
        name: 'complete-words',
        summary: 'what may come next, for the shell',
        isHidden: true,
        load: () => import('./commands/complete-words.ts'),
      },
      {
        name: 'save-server-files',
        summary: 'the store and keys, for svc backup',
        isHidden: true,
        load: () => import('./commands/save-server-files.ts'),
      },
    ],
  },
  {
    title: 'svc itself',
    commands: [
      {
        name: 'version',
        summary: 'versions of svc and of its server',
        load: () => import('./commands/version.ts'),
      },
      {
        name: 'install',
        summary: 'put svc and its completion on this machine',
        load: () => import('./commands/install.ts'),
      },
      {
        name: 'completion',
        summary: 'make the shell complete svc commands',
        load: () => import('./commands/completion.ts'),
      },
    ],
  },
];

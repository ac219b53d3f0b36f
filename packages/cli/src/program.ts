import { Command, Option } from 'commander';

/** Every command, in the order of `svc --help`. Only the ones that the command line names are loaded. */
const COMMANDS: readonly {
  readonly name: string;
  readonly alias?: string;
  readonly summary: string;
  readonly load: () => Promise<{ readonly createCommand: () => Command }>;
}[] = [
  { name: 'run', summary: 'run a command in a new sandbox', load: () => import('./commands/run.ts') },
  { name: 'exec', summary: 'run a command in a sandbox', load: () => import('./commands/exec.ts') },
  { name: 'ls', alias: 'ps', summary: 'list sandboxes', load: () => import('./commands/ls.ts') },
  { name: 'inspect', summary: 'show all about a sandbox', load: () => import('./commands/inspect.ts') },
  { name: 'logs', summary: 'show what a sandbox wrote', load: () => import('./commands/logs.ts') },
  { name: 'stats', summary: 'show what sandboxes use', load: () => import('./commands/stats.ts') },
  { name: 'start', summary: 'start stopped sandboxes', load: () => import('./commands/start.ts') },
  { name: 'stop', summary: 'stop sandboxes', load: () => import('./commands/stop.ts') },
  { name: 'rm', summary: 'remove sandboxes', load: () => import('./commands/rm.ts') },
  {
    name: 'image',
    summary: 'images that sandboxes are made from',
    load: () => import('./commands/image.ts'),
  },
  {
    name: 'engine',
    summary: 'the engine that runs sandboxes here',
    load: () => import('./commands/engine.ts'),
  },
  {
    name: 'server',
    summary: 'the server that clients talk to',
    load: () => import('./commands/server.ts'),
  },
  {
    name: 'mcp',
    summary: 'MCP on standard input and output, for AI tools',
    load: () => import('./commands/mcp.ts'),
  },
  { name: 'doctor', summary: 'show what this host can do', load: () => import('./commands/doctor.ts') },
];

export async function createProgram(words: readonly string[]): Promise<Command> {
  const program = new Command('svc')
    .description('Runs untrusted code in sandboxes on this machine.')
    .option('--path <dir>', 'data folder of the engine (default: $SVC_HOME or /var/lib/svc)')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(add --help for what is possible)')
    .exitOverride()
    .addHelpText('after', HELP);
  for (const { name, alias, summary, load } of COMMANDS) {
    const isNamed = words.includes(name) || (alias !== undefined && words.includes(alias));
    const command = isNamed ? (await load()).createCommand() : new Command(name);
    command.summary(summary).copyInheritedSettings(program);
    if (alias !== undefined) command.alias(alias);
    program.addCommand(command);
  }
  return program;
}

const HELP = `
Examples:
  svc engine start --detach                  start the engine
  svc image build-demo python                make an image from Debian packages
  svc run python -- python3 -c 'print(6*7)'  run Python in a sandbox that is gone afterwards
  svc run --name web python -- sh            a sandbox that stays`;

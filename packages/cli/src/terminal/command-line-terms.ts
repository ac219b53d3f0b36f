import type { Command } from 'commander';

/** The option of `svc run` and `svc create` for each field of a create. Longer names come before their prefixes. */
const OPTIONS: readonly (readonly [field: string, option: string])[] = [
  ['resources.memory_mib', '-m/--memory'],
  ['resources.vcpus', '--cpus'],
  ['resources.disk_size_mib', '--disk'],
  ['lifecycle.idle_timeout_secs', '--idle-timeout'],
  ['lifecycle.max_duration_secs', '--max-duration'],
  ['runtime.workdir', '-w/--workdir'],
  ['runtime.user', '-u/--user'],
  ['runtime.shell', '--shell'],
  ['runtime.cmd', 'the command'],
  ['image.reference', 'the image'],
  ['network.ports', '-p/--publish'],
  ['network.policy', '--net and --net-rule'],
  ['network.strict', '--net-strict'],
  ['network.max_connections', '--max-connections'],
  ['network.max_udp_connections', '--max-udp-connections'],
  ['network.secrets', '--secret'],
  ['network.enabled', '--no-network'],
];

/** Fields that are also English words: they count as fields only at the beginning of a sentence. */
const FIRST_OPTIONS: readonly (readonly [field: string, option: string])[] = [
  ['env', '-e/--env'],
  ['labels', '-l/--label'],
  ['mounts', '-v/--volume'],
  ['isolation', '--isolation'],
  ['security_profile', '--security'],
  ['pull_policy', '--pull'],
];

/** The suffix of a field name: the index and the part of an item. */
const REST = String.raw`(?:\[(\d+)\])?(?:\.[a-z_]+)*(?![\w.]*\w)`;
const PUBLISH_ANOTHER = /publish another host_port/;
const UUID = /\bsandbox ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/gi;

/**
 * Rewrites a message of the server for the user of the command line: options instead of fields, and the name of the sandbox instead
 * of its id.
 */
export function toCommandLineTerms(message: string, sandbox: string | undefined): string {
  let text = message.replace(
    PUBLISH_ANOTHER,
    'publish another port with -p/--publish, or leave the choice: -p GUEST',
  );
  for (const [field, option] of OPTIONS)
    text = text.replaceAll(
      new RegExp(`(?<![\\w.])${field.replace('.', '\\.')}${REST}`, 'g'),
      numbered(option),
    );
  for (const [field, option] of FIRST_OPTIONS)
    text = text.replace(new RegExp(`^${field}(?:\\[(\\d+)\\])?(?:\\.[^\\s:]+)?(?=: )`), numbered(option));
  return sandbox === undefined
    ? text
    : text.replaceAll(UUID, (whole, id: string) =>
        id === sandbox ? whole : whole.replace(id, `'${sandbox}'`),
      );
}

/** For a repeated option the message says which one. */
function numbered(option: string): (whole: string, index?: string) => string {
  return (_, index) => (Number(index ?? 0) > 0 ? `${option} (number ${Number(index) + 1})` : option);
}

/** The one sandbox that a command line names; undefined when it names none, or several. */
export function sandboxOf(program: Command): string | undefined {
  let command = program;
  for (
    let next: Command | undefined = command;
    next !== undefined;
    next = next.commands.find(({ args }) => args.length > 0)
  )
    command = next;
  const { name } = command.opts<{ name?: unknown }>();
  // `run` and `create` have no existing sandbox.
  if (['run', 'create'].includes(command.name())) return typeof name === 'string' ? name : undefined;
  const isOwn = command.parent === program;
  const names = command.registeredArguments.flatMap((argument, index) => {
    const isSandbox = argument.name() === 'sandbox' || (isOwn && argument.name() === 'name');
    const isPath = isOwn && ['from', 'to'].includes(argument.name());
    const words = argument.variadic ? command.args.slice(index) : command.args.slice(index, index + 1);
    if (isSandbox) return words;
    return isPath ? words.flatMap((word) => /^([\w.-]+):/.exec(word)?.[1] ?? []) : [];
  });
  return names.length === 1 ? names[0] : undefined;
}

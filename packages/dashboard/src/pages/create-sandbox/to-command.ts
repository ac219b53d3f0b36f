import { linesOf, wordsOf, type SandboxForm } from './sandbox-form.ts';

/** The form as a command line. */
export function toCommand(form: SandboxForm): string {
  const words = [
    ['svc', 'run', '--detach'],
    ['--name', form.name.trim() || 'NAME'],
    form.isEphemeral ? ['--rm'] : [],
    form.vcpus === '1' ? [] : ['--cpus', form.vcpus],
    form.memoryMib === '512' ? [] : ['--memory', `${form.memoryMib}M`],
    form.diskMib === '' ? [] : ['--disk', `${form.diskMib}M`],
    ...linesOf(form.env).map((line) => ['--env', line]),
    ...linesOf(form.labels).map((line) => ['--label', line]),
    ...linesOf(form.mounts).map((line) => ['--volume', line]),
    reachWords(form),
    ...(form.reach === 'off' ? [] : linesOf(form.secrets).map((line) => ['--secret', line])),
    form.isolation === 'auto' ? [] : ['--isolation', form.isolation],
    form.idleMinutes === '' ? [] : ['--idle-timeout', `${form.idleMinutes}m`],
    form.maxMinutes === '' ? [] : ['--max-duration', `${form.maxMinutes}m`],
    form.snapshot === '' ? [] : ['--snapshot', form.snapshot],
    [form.snapshot === '' ? form.image.trim() || 'IMAGE' : '-', ...wordsOf(form.command)],
  ];
  return words.flat().map(quote).join(' ');
}

function reachWords({ reach, domains }: SandboxForm): readonly string[] {
  if (reach === 'public') return [];
  if (reach === 'off') return ['--no-network'];
  if (reach !== 'named') return ['--net', reach];
  const rules = ['allow@dns', ...linesOf(domains).map((domain) => `allow@domain=${domain}`)];
  return ['--net', 'none', '--net-rule', rules.join(',')];
}

/** Quotes any text as one word for a shell. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Options of other container tools, and the equivalents of svc. */
const FOREIGN_OPTIONS: Readonly<Record<string, string>> = {
  '--network': 'say what the sandbox may reach with --net: public, private, host, all or none',
  '--entrypoint': 'a command behind the image replaces its entrypoint: svc run IMAGE PROGRAM ARGUMENT…',
  '--mount': 'mount with -v SOURCE:PATH[:ro]',
  '--tmpfs':
    '/tmp is on the disk of the sandbox, whose size --disk sets; a tmpfs is a field of the API: mounts',
  '--env-file': 'give each variable with -e KEY=VALUE; -e KEY takes the value of here',
  '--restart': 'svc does not restart sandboxes automatically; svc wait tells when one has ended',
  '--privileged': 'a sandbox never has rights over the host; svc doctor shows what the classes allow',
  '--cap-add': 'a sandbox has a fixed set of capabilities, inside its own user namespace',
  '--cap-drop': 'a tighter sandbox: --security restricted',
  '--security-opt': 'a tighter sandbox: --security restricted',
  '--runtime': 'choose what isolates it with --isolation container or gvisor',
  '--platform': 'sandboxes run images of the architecture of the host',
  '--gpus': 'sandboxes have no devices of the host',
  '--device': 'sandboxes have no devices of the host',
  '--publish-all': 'publish each port with -p GUEST; any free port of the host is taken',
  '--dns': 'the resolver of a sandbox follows its network policy: svc net --help',
  '--add-host': 'write into the sandbox: svc exec -u root NAME sh -c "echo ADDRESS NAME >>/etc/hosts"',
  '--storage-opt': 'the size of the writable disk is --disk',
  '--memory-swap': 'sandboxes have no swap; the limit of memory is -m',
  '--cpu-shares': 'give whole CPUs with --cpus',
  '--stop-timeout': 'svc stop --help says how long a stop waits',
  '--force-rm': 'a sandbox without --name is removed when its command has ended',
};

/** The error text for an unknown option, with its equivalent in svc instead of a guess from its letters. */
export function explainForeignOption(text: string): string {
  const [, option] = /^error: unknown option '(--[a-z-]+)/.exec(text) ?? [];
  if (option === undefined || !Object.hasOwn(FOREIGN_OPTIONS, option)) return text;
  return `error: svc has no option '${option}': ${FOREIGN_OPTIONS[option]}\n`;
}

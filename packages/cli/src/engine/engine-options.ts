import { Option } from 'commander';

/** Options of the engine that `svc server start` takes too, for an engine that it starts. New ones each time: commands keep state in them. */
export function engineOptions(): Option[] {
  return [
    new Option('--isolation <class>', 'default class of sandboxes').choices([
      'auto',
      'container',
      'gvisor',
      'microvm',
    ]),
    new Option('--warm <image=count...>', 'keep that many started sandboxes ready'),
    new Option(
      '--warm-adaptive <n>',
      'keep up to that many ready of what was asked for lately (default: 3; 0: none)',
    ),
    new Option(
      '--tuning <setting>',
      'off: without what only makes starts and commands quicker and idle sandboxes cheaper (default: on)',
    ).choices(['on', 'off']),
    new Option('--bind-root <dir...>', 'folders of this host that sandboxes may mount from'),
    new Option('--disk-image-root <dir...>', 'folders of this host whose disk images may be mounted'),
    new Option('--insecure-registry <host...>', 'registries spoken to without TLS'),
    new Option('--trusted-registry <host...>', 'registries in private networks that may be asked'),
    new Option('--max-image-gib <n>', 'how large an image may be once it is unpacked (default: 32)'),
    new Option(
      '--max-unpack-ratio <n>',
      'how many times its compressed size a layer may unpack to, beyond 64 MiB (default: 100)',
    ),
    new Option(
      '--keep-images <days>',
      'for how long unused images stay that organizations pulled (default: 7; 0: for ever)',
    ),
    new Option('--nameserver <address...>', 'resolvers to forward to (default: those of this host)'),
    new Option('--address-pool <cidr>', 'addresses of sandboxes'),
    new Option(
      '--ipv6-pool <cidr>',
      'IPv6 addresses of sandboxes: auto, or a /96 (default: they have no IPv6)',
    ),
    new Option(
      '--max-packets <n>',
      'packets that a sandbox may send in a second, and receive (default: 100000)',
    ),
    new Option(
      '--max-bandwidth <mib>',
      'MiB that a sandbox may send in a second, and receive (default: no limit)',
    ),
  ];
}

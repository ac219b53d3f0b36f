import { Option, type Command } from 'commander';
import type { NetworkChange, SecretEntry } from '@svc/sdk';
import { parseNetProfile, toPolicy } from '../arguments/net-profile.ts';
import { collectNetRules, type NetRule } from '../arguments/net-rule.ts';
import { wholeNumber } from '../arguments/number.ts';
import { collectSecret } from '../arguments/secret.ts';
import { UsageError } from '../usage-error.ts';

/** The network options of the command line. */
export interface NetworkOptions {
  readonly net?: NonNullable<NetworkChange['policy']>;
  readonly netRule?: readonly NetRule[];
  readonly netStrict?: boolean;
  readonly maxConnections?: number;
  readonly maxUdpConnections?: number;
  readonly secret?: readonly SecretEntry[];
  readonly onSecretViolation?: 'block' | 'block-and-log' | 'block-and-terminate';
}

export function addNetworkOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--net <profile>', 'what it reaches: public (default), private, host, or none, or all')
        .argParser(parseNetProfile)
        .conflicts('network'),
    )
    .addOption(
      new Option(
        '--net-rule <rule>',
        'allow@TARGET or deny@TARGET[:PROTOCOL[:PORTS]], before what --net says (repeatable)',
      )
        .argParser(collectNetRules)
        .conflicts('network'),
    )
    .addOption(
      new Option(
        '--net-strict',
        'names are allowed only to connections that say which name they mean',
      ).conflicts('network'),
    )
    .addOption(
      new Option('--max-connections <n>', 'connections that it may have open (default 256)')
        .argParser(wholeNumber(1))
        .conflicts('network'),
    )
    .addOption(
      new Option('--max-udp-connections <n>', 'how many of them over UDP (default: all)')
        .argParser(wholeNumber(1))
        .conflicts('network'),
    )
    .addOption(
      new Option(
        '--secret <env@host,host>',
        'a secret of the organization (svc secret set ENV --host HOST) that it uses towards these hosts (repeatable)',
      )
        .argParser(collectSecret)
        .conflicts('network'),
    )
    .addOption(
      new Option(
        '--on-secret-violation <action>',
        'when the placeholder of a secret is sent elsewhere (default block-and-log)',
      ).choices(['block', 'block-and-log', 'block-and-terminate']),
    );
}

/** The same as fields of the API; only the given ones. Rules without a profile come before `base`, which is public unless given. */
export function toNetworkChange(options: NetworkOptions, base?: NetworkOptions['net']): NetworkChange {
  const { net, netRule, netStrict, maxConnections, maxUdpConnections, secret, onSecretViolation } = options;
  if (secret === undefined && onSecretViolation !== undefined)
    throw new UsageError('--on-secret-violation is about secrets\n  try: --secret ENV@HOST beside it');
  const policy = toPolicy(net ?? (netRule === undefined ? undefined : base), netRule);
  return {
    ...(policy === undefined ? {} : { policy }),
    ...(netStrict === undefined ? {} : { strict: netStrict }),
    ...(maxConnections === undefined ? {} : { max_connections: maxConnections }),
    ...(maxUdpConnections === undefined ? {} : { max_udp_connections: maxUdpConnections }),
    ...(secret === undefined ? {} : { secrets: { entries: [...secret], ...onViolation(onSecretViolation) } }),
  };
}

const ACTIONS = {
  block: 'block',
  'block-and-log': 'block_and_log',
  'block-and-terminate': 'block_and_terminate',
} as const;

function onViolation(action: NetworkOptions['onSecretViolation']) {
  return action === undefined ? {} : { on_violation: { type: ACTIONS[action] } };
}

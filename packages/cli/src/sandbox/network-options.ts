import { Option, type Command } from 'commander';
import type { NetworkChange } from '@svc/sdk';
import { parseNetProfile, toPolicy } from '../arguments/net-profile.ts';
import { collectNetRules, type NetRule } from '../arguments/net-rule.ts';
import { wholeNumber } from '../arguments/number.ts';

/** What a sandbox may reach, as the command line says it. */
export interface NetworkOptions {
  readonly net?: NonNullable<NetworkChange['policy']>;
  readonly netRule?: readonly NetRule[];
  readonly netStrict?: boolean;
  readonly maxConnections?: number;
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
    );
}

/** The same in the words of the API; only what was given. */
export function toNetworkChange({ net, netRule, netStrict, maxConnections }: NetworkOptions): NetworkChange {
  const policy = toPolicy(net, netRule);
  return {
    ...(policy === undefined ? {} : { policy }),
    ...(netStrict === undefined ? {} : { strict: netStrict }),
    ...(maxConnections === undefined ? {} : { max_connections: maxConnections }),
  };
}

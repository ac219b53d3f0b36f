import { connect } from 'node:net';
import { Capabilities, SshKeys, SvcError, type Client, type ServerCapabilities } from '@svc/sdk';
import { UsageError } from '../usage-error.ts';
import type { CliConfig } from '../config.ts';
import { pinHostKey, type Gateway } from './known-hosts.ts';
import { findIdentity } from './own-keys.ts';

/** Time limit for the gateway, short because a person waits for a prompt. */
const PROBE_MS = 2000;

export interface GatewayOptions {
  /** True: only over the gateway. Undefined: over the gateway when it works without setup. */
  readonly isWanted: boolean | undefined;
  /** The host of the gateway, when it is not that of the API. */
  readonly address: string | undefined;
}

export interface ChosenGateway extends Gateway {
  /** Options of `ssh`: the user key to offer and the host key to expect. */
  readonly options: readonly string[];
}

/**
 * Chooses the SSH gateway; null: the command channel, which always works.
 * @throws UsageError when the gateway was requested and cannot be used
 */
export async function chooseGateway(
  client: Client,
  { isWanted, address }: GatewayOptions,
  config: Pick<CliConfig, 'contextFolder' | 'sshFolder'>,
): Promise<ChosenGateway | null> {
  if (isWanted === false) return null;
  const isAsked = isWanted === true || address !== undefined;
  const given = address === undefined ? undefined : readAddress(address);
  const [reported, registered] = await Promise.all([reportedBy(client, isAsked), registeredWith(client)]);
  if (reported === null && given === undefined) {
    if (!isAsked) return null;
    throw new UsageError(
      'the server has no SSH gateway; its operator gives it one with --ssh-port\n  try: svc ssh --no-gateway NAME',
    );
  }
  const identity = registered === null ? null : await findIdentity(registered, config.sshFolder);
  const gateway = given ?? { host: hostOf(client), port: reported?.port ?? 0 };
  // Not requested: used only when it is sure to work.
  if (!isAsked && (identity === null || !(await isListening(gateway)))) return null;
  if (isAsked && registered !== null && identity === null) {
    throw new UsageError('none of your SSH keys is registered with the server\n  try: svc ssh-key add');
  }
  const pinned = reported === null ? [] : await pinHostKey(config.contextFolder, gateway, reported.host_key);
  return { ...gateway, options: [...pinned, ...(identity ?? [])] };
}

async function reportedBy(client: Client, isAsked: boolean): Promise<ServerCapabilities['ssh']> {
  try {
    return (await Capabilities.get({ client })).ssh ?? null;
  } catch (error) {
    // The channel may still work.
    if (isAsked || !SvcError.is(error)) throw error;
    return null;
  }
}

/** Null for API keys, which belong to no user and so have no SSH keys. */
async function registeredWith(client: Client): Promise<readonly string[] | null> {
  try {
    return (await SshKeys.list({ client })).map((key) => key.public_key);
  } catch (error) {
    if (!SvcError.is(error)) throw error;
    return null;
  }
}

function hostOf({ apiUrl }: Client): string {
  return new URL(apiUrl).hostname.replace(/^\[(.*)\]$/, '$1');
}

/** SAFETY: the host cannot begin with a hyphen, and so not be taken for an option. */
function readAddress(text: string): Gateway {
  const [, host, port] = /^([^:@\s-][^:@\s]*):(\d{1,5})$/.exec(text) ?? [];
  if (host !== undefined && port !== undefined) return { host, port: Number(port) };
  throw new UsageError(
    `a gateway is HOST:PORT, not '${text}'\n  try: --gateway-address svc.example.com:5522`,
  );
}

async function isListening({ host, port }: Gateway): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port, timeout: PROBE_MS });
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
  socket.once('timeout', () => resolve(false));
  return await promise.finally(() => socket.destroy());
}

import { getCACertificates } from 'node:tls';
import { ChannelClient, FileFailed, type ChannelFiles } from '@svc/contract/channel';
import { subjectHash } from '../egress/tls/subject-hash.ts';
import { AUTHORITY_FILE, TRUST_BUNDLE } from '../guest/guest-config.ts';
import type { GuestLink } from '../guest/guest-link.ts';
import { socketTransport } from '@svc/contract/node-socket-transport';
import type { Network } from '../network/network.ts';
import { isIntercepted } from '../policy/read-ports.ts';
import type { EngineRecord } from './record.ts';

/** The CA bundle of Fedora and its derivatives, which Debian and Alpine keep in `TRUST_BUNDLE`. */
const RED_HAT_BUNDLE = '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem';
/** Other paths of the bundle: links to one of the two in most images, files of their own in some. */
const OTHER_BUNDLES = [
  '/etc/ssl/cert.pem',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/tls/cert.pem',
  '/etc/ssl/ca-bundle.pem',
];
/** Read by the tools that rebuild the bundles (update-ca-certificates, update-ca-trust). */
const RED_HAT_ANCHORS = '/etc/pki/ca-trust/source/anchors';
/** Where OpenSSL looks up an authority by the hash of its name; some programs look nowhere else. The first folder is made if it is missing. */
const HASHED_FOLDERS = [TRUST_BUNDLE.slice(0, TRUST_BUNDLE.lastIndexOf('/')), '/etc/pki/tls/certs'];
/** The largest number of authorities whose names have the same hash. */
const MAX_SAME_HASH = 10;
const MAX_BUNDLE_BYTES = 8 * 1024 * 1024;
const [BEGIN, END] = ['# svc: begin of what the sandbox trusts beside its image', '# svc: end'];

/**
 * Makes programs in the sandbox trust the authority that signs for intercepted hosts and, with `trust_host_cas`, the authorities of this
 * host. svc-init does the work inside, so a symlink of a hostile image leads nowhere but into its own sandbox.
 */
export async function trustAuthority(
  network: Pick<Network, 'authorityCertificate'>,
  { spec }: EngineRecord,
  link: GuestLink,
  signal: AbortSignal,
): Promise<void> {
  const isRead = isIntercepted(spec.network);
  // A set, because OpenSSL's folder has each authority several times: in the bundle, in a file, and under the names of its links.
  const fromHost = spec.network?.trust_host_cas === true ? new Set(getCACertificates('system')) : [];
  const trusted = [...(isRead ? [network.authorityCertificate] : []), ...fromHost];
  if (trusted.length === 0) return;
  const text = trusted.map((certificate) => `${certificate.trim()}\n`).join('');
  const session = await link.takeSession(signal);
  const client = await ChannelClient.connect(socketTransport(session.socket), { signal });
  try {
    await install(client.files, text, signal);
    await linkHashes(client.files, [...new Set(trusted.map(subjectHash))], signal);
  } finally {
    client.close();
    link.drop(session);
  }
}

async function install(files: ChannelFiles, text: string, signal: AbortSignal): Promise<void> {
  const redHat = await read(files, RED_HAT_BUNDLE, signal);
  const own = (await read(files, TRUST_BUNDLE, signal)) ?? redHat ?? '';
  await write(files, TRUST_BUNDLE, withBlock(own, text), signal);
  await write(files, AUTHORITY_FILE, text, signal);
  if (redHat !== null) await write(files, `${RED_HAT_ANCHORS}/svc.pem`, text, signal);
  for (const path of [RED_HAT_BUNDLE, ...OTHER_BUNDLES]) {
    const bundle = await read(files, path, signal);
    if (bundle === null) continue;
    const extended = withBlock(bundle, text);
    // A link to an earlier bundle is extended already.
    if (extended !== bundle) await write(files, path, extended, signal);
  }
}

/** Creates the links of `openssl rehash`, which images may lack; it would replace ours by its own. */
async function linkHashes(
  files: ChannelFiles,
  hashes: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (const folder of HASHED_FOLDERS) {
    const isFolder = await files.stat(folder, {}, signal).then(
      ({ kind }) => kind === 'dir',
      () => false,
    );
    if (!isFolder) continue;
    await Promise.all(hashes.map((hash) => linkHash(files, `${folder}/${hash}`, signal)));
  }
}

async function linkHash(files: ChannelFiles, path: string, signal: AbortSignal): Promise<void> {
  for (let number = 0; number < MAX_SAME_HASH; number++) {
    const found = await linkAt(files, `${path}.${number}`, signal);
    if (found === AUTHORITY_FILE) return;
    if (found === null) return await files.symlink(AUTHORITY_FILE, `${path}.${number}`, signal);
  }
}

/** The target of a link, '' for a file that is no link, null for a missing one. */
async function linkAt(files: ChannelFiles, path: string, signal: AbortSignal): Promise<string | null> {
  try {
    const { kind } = await files.stat(path, { followSymlink: false }, signal);
    return kind === 'symlink' ? await files.readLink(path, signal) : '';
  } catch (error) {
    if (error instanceof FileFailed) return null;
    throw error;
  }
}

/** Replaces the block that an earlier start added. */
function withBlock(bundle: string, text: string): string {
  const start = bundle.indexOf(BEGIN);
  const end = bundle.indexOf(END);
  const rest =
    start < 0 || end < start ? bundle : bundle.slice(0, start) + bundle.slice(end + END.length + 1);
  const separator = rest === '' || rest.endsWith('\n') ? '' : '\n';
  return `${rest}${separator}${BEGIN}\n${text}${END}\n`;
}

/** Null when the file does not exist. */
async function read(files: ChannelFiles, path: string, signal: AbortSignal): Promise<string | null> {
  try {
    const { size } = await files.stat(path, {}, signal);
    if (size > MAX_BUNDLE_BYTES) return null;
    return Buffer.from(await files.readFile(path, {}, signal)).toString('utf8');
  } catch (error) {
    if (error instanceof FileFailed) return null;
    throw error;
  }
}

async function write(files: ChannelFiles, path: string, text: string, signal: AbortSignal): Promise<void> {
  await files.mkdir(path.slice(0, path.lastIndexOf('/')), {}, signal);
  await files.writeFile(path, Buffer.from(text), {}, signal);
}

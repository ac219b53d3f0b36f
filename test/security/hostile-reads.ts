import type { RestOperationName, RestOperations } from '@svc/contract/rest';

/** Every operation that reads. */
type Read = {
  [Name in RestOperationName]: RestOperations[Name]['method'] extends 'GET' ? Name : never;
}[RestOperationName];

const NUMBERS = 'numbers and times';
const ONE_OF_A_LIST = 'shown nowhere; what it says is what the list says';
const OURS = 'words of ours, or of the operator';
const NO_SURFACE = 'for programs: neither svc nor the dashboard shows it';

/**
 * Where what an operation reads is shown: words of `svc`, and pages of the dashboard. A line that begins with `!` is one on which something
 * hostile has to be seen. Or the reason why it is shown nowhere.
 */
export const READS: Readonly<Record<Read, readonly string[] | string>> = {
  'sandboxes.list': ['ps -a', '! ps -a --format {{.Name}}:{{.Labels}}', 'usage', '! /sandboxes', '/'],
  'sandboxes.get': ['! inspect box', '/sandboxes/{sandbox_id}', '/sandboxes/{sandbox_id}/charts'],
  'sandboxes.getByName': ['port box'],
  'sandboxes.volumes': NO_SURFACE,
  'sandboxes.metrics': NUMBERS,
  'progress.follow': 'shown by the status line, which has a test of its own',
  'logs.follow': ['logs -s system box', '/sandboxes/{sandbox_id}/logs'],
  'logs.list': ['logs -s system -n 100 -o json box'],
  'processes.list': ['! process ls box', '! /sandboxes/{sandbox_id}/processes'],
  'processes.get': ONE_OF_A_LIST,
  'processes.output': 'the bytes of a process, which are its own',
  'contexts.list': NO_SURFACE,
  'contexts.get': NO_SURFACE,
  'files.list': NO_SURFACE,
  'files.stat': NO_SURFACE,
  'files.read': 'the bytes of a file, which are its own',
  'files.readByLink': 'the bytes of a file, which are its own',
  'network.log': ['net log box'],
  'network.follow': ['/sandboxes/{sandbox_id}/network'],
  'previews.list': ['preview ls box'],
  'snapshots.candidates': NO_SURFACE,
  'snapshots.listOperations': NO_SURFACE,
  'snapshots.getOperation': ONE_OF_A_LIST,
  'snapshots.list': ['snapshot ls', '! snapshot ls -o json'],
  'snapshots.getByName': ONE_OF_A_LIST,
  'snapshots.get': ONE_OF_A_LIST,
  'images.list': ['image ls', '/sandboxes/new'],
  'volumes.list': ['volume ls', '! /volumes'],
  'volumes.getDefault': ONE_OF_A_LIST,
  'volumes.get': ['! volume inspect data', '! /volumes/{volume_id}'],
  'volumes.metrics': NUMBERS,
  'volumeFiles.list': ['! /volumes/{volume_id}'],
  'volumeFiles.read': 'the bytes of a file, which are its own',
  'volumeFiles.stat': ONE_OF_A_LIST,
  'volumeFiles.exists': 'a yes or no',
  'quotas.get': ['quota', '/settings'],
  'billing.get': ['/settings'],
  'billing.listPlans': OURS,
  'billing.listInvoices': NUMBERS,
  'billing.getInvoice': NUMBERS,
  'billing.getUsage': ['usage', '/usage'],
  'billing.getSandboxUsage': ['/usage'],
  'billing.getStorageUsage': ['/usage'],
  'events.list': ['! events -n 1000', '! /audit', '/sandboxes/{sandbox_id}/events'],
  'events.get': ONE_OF_A_LIST,
  'webhooks.list': ['webhook ls', '! webhook ls -o json', '! /webhooks'],
  'webhooks.get': ['! webhook inspect {webhook_id}', '! /webhooks/{webhook_id}'],
  'webhooks.deliveries': ['webhook deliveries {webhook_id}', '! webhook deliveries -o json {webhook_id}'],
  'organizations.own': ['info'],
  'organizations.list': ['ps -aA', '! /'],
  'organizations.get': ['info'],
  'organizations.checkSandboxSlug': NO_SURFACE,
  'organizations.suggestSandboxSlug': NO_SURFACE,
  'members.list': ['! member ls', '! /members'],
  'invites.get':
    'names that the lists of organizations and members show; the page of an invite sets them as text',
  'invites.list': ['! member ls --invites', '! /members'],
  'identityProvider.get': ['/settings'],
  'apiKeys.list': ['! apikey ls', '! /keys'],
  'tokens.list': ['! token ls', '! /account'],
  'registries.list': ['! /secrets'],
  'secrets.list': ['secret ls', '! secret ls -o json', '/secrets'],
  'users.get': ['info', '/account'],
  'session.get': ['/account'],
  'sessions.list': ['/account'],
  'secondFactor.get': NUMBERS,
  'sshKeys.list': ['! ssh-key ls', '! /account'],
  'capabilities.get': ['info'],
};

const WORDS = Object.values(READS).flatMap((shown) => (typeof shown === 'string' ? [] : shown));

/** What `svc` is asked, or the pages that are opened, each once, and whether something hostile has to be seen there. */
export function shownBy(
  surface: 'svc' | 'dashboard',
): readonly { readonly at: string; readonly isSeen: boolean }[] {
  const all = new Set(WORDS.map((line) => line.replace(/^! /, '')));
  return [...all]
    .filter((at) => at.startsWith('/') === (surface === 'dashboard'))
    .map((at) => ({ at, isSeen: WORDS.includes(`! ${at}`) }));
}

import { ISOLATIONS, type NodeReport, type OrchestratorDescription } from '@svc/contract/orchestrator';
import {
  DEFAULT_PAGE_SIZE,
  FEATURES,
  MAX_PAGE_SIZE,
  MAX_METRICS_RANGE_SECONDS,
  MIN_METRICS_STEP_SECONDS,
  type RestOperations,
  type RestOutput,
} from '@svc/contract/rest';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Nodes } from '../../orchestrator/nodes.ts';
import { ceilingOf, type NetworkCeilings } from '../../sandboxes/network-ceilings.ts';
import type { PreviewAddresses } from '../previews/preview-place.ts';

type NodeView = RestOutput<RestOperations['capabilities.get']>['nodes'][number];
type ClassView = RestOutput<RestOperations['capabilities.get']>['isolation']['classes'][number];

/** Address and host key of the SSH gateway. */
export interface SshPlace {
  readonly port: number;
  /** `<type> <base64>`. */
  readonly hostKey: string;
  /** Of the host key, as `ssh` shows it to its user. */
  readonly fingerprint: string;
}

export interface CapabilityParts {
  readonly nodes: Nodes;
  /** Limit for JSON bodies. */
  readonly maxBodyBytes: number;
  /** Null: this server has no SSH gateway. */
  readonly ssh: () => SshPlace | null;
  /** Null: this server has no domain for previews. */
  readonly previews: PreviewAddresses | null;
  readonly networkCeilings: NetworkCeilings;
}

export function capabilityHandlers({
  nodes,
  maxBodyBytes,
  ssh,
  previews,
  networkCeilings,
}: CapabilityParts): Pick<RestHandlers, 'capabilities.get'> {
  return {
    'capabilities.get': async (_input, { signal, organization }) => {
      const listed = await nodes.listNodes(signal);
      const description = await nodes.describe(signal);
      return {
        version: description.version,
        isolation: { default: description.isolation, classes: describeClasses(description) },
        nodes: listed.flatMap(viewNode),
        network: { ceiling: [...ceilingOf(networkCeilings, organization.slug)] },
        ssh: describeSsh(ssh()),
        previews: describePreviews(previews),
        features: [...FEATURES],
        limits: {
          default_page_size: DEFAULT_PAGE_SIZE,
          max_page_size: MAX_PAGE_SIZE,
          max_body_bytes: maxBodyBytes,
          max_metrics_range_secs: MAX_METRICS_RANGE_SECONDS,
          min_metrics_step_secs: MIN_METRICS_STEP_SECONDS,
        },
      };
    },
  };
}

function describeSsh(place: SshPlace | null) {
  if (place === null) return null;
  return { port: place.port, host_key: place.hostKey, fingerprint: place.fingerprint };
}

function describePreviews(place: PreviewAddresses | null) {
  if (place === null) return null;
  return { domain: place.domain, scheme: place.scheme, port: place.port(), is_open: place.isOpen };
}

/** Every class that can be requested, also those that this host lacks. */
/** The only node of a host has no name and is not listed. */
function viewNode({ name, problem, description }: NodeReport): NodeView[] {
  if (name === null) return [];
  return [
    {
      name,
      is_available: problem === null,
      reason: problem,
      version: description?.version ?? null,
      isolation: description?.isolation ?? null,
      sandboxes: description?.sandboxes ?? null,
    },
  ];
}

function describeClasses({ classes }: OrchestratorDescription): ClassView[] {
  return ISOLATIONS.flatMap((name): ClassView[] => {
    const found = classes.filter(({ isolation }) => isolation === name);
    if (found.length === 0) {
      const reason = 'nothing on this host offers it';
      return [{ name, runtime: null, is_available: false, reason }];
    }
    return found.map(({ runtime, isUsable, reason }) => ({ name, runtime, is_available: isUsable, reason }));
  });
}

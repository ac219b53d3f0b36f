import type { ResolvedSpec } from '@svc/contract/orchestrator';
import type { SandboxView } from '../client/engine-api.ts';
import { envOf } from '../guest/guest-config.ts';
import { grantableRlimits, type RlimitCeilings } from '../runtime/rlimits.ts';
import type { EngineRecord } from './record.ts';
import { hostnameOf } from './configure-guest.ts';

/** The public view of a record: no handle, no token, no host path. */
export function toView(
  record: EngineRecord,
  ceilings: RlimitCeilings,
): Omit<SandboxView, 'ending' | 'sequence'> {
  const { run } = record;
  return {
    id: record.id ?? '',
    state: record.state,
    isolation: record.isolation,
    runtime: record.runtime,
    image: { reference: record.image.reference, id: record.image.id },
    spec: record.spec,
    networkCeiling: record.networkCeiling ?? null,
    resolved: resolve(record, ceilings),
    createdAt: record.createdAt,
    startedAt: run?.startedAt ?? null,
    endedAt: run?.endedAt ?? null,
    end: run?.end ?? null,
    address: run?.slot?.link?.address ?? null,
    timings: run?.timings ?? null,
  };
}

/** The resolved spec: the values of `guestConfig`, with svc-init's defaults for absent ones. */
function resolve(record: EngineRecord, ceilings: RlimitCeilings): ResolvedSpec {
  const { spec, image } = record;
  const { runtime } = spec;
  return {
    entrypoint: runtime?.entrypoint ?? image.config.entrypoint,
    cmd: runtime?.cmd ?? image.config.cmd,
    env: envOf(spec, image.config.env),
    workdir: firstGiven(runtime?.workdir, image.config.workdir, '/'),
    user: firstGiven(runtime?.user, image.config.user, 'root'),
    hostname: hostnameOf(record),
    labels: image.config.labels,
    rlimits: [...grantableRlimits(spec.rlimits ?? [], ceilings)],
    interface: interfaceOf(record),
  };
}

/** Null while it has no interface. */
function interfaceOf({ run }: EngineRecord): NonNullable<ResolvedSpec['interface']> | null {
  const link = run?.endedAt === null ? (run.slot?.link ?? null) : null;
  if (link === null) return null;
  const { address, ipv6, mac, mtu } = link;
  return {
    ipv4Address: address,
    ipv6Address: ipv6?.address ?? null,
    mac: mac.split(':').map((byte) => Number.parseInt(byte, 16)),
    mtu,
  };
}

function firstGiven(own: string | null | undefined, image: string | null, otherwise: string): string {
  const given = own ?? image ?? '';
  return given === '' ? otherwise : given;
}

import type { LimitName } from '@svc/contract/rest';
import { useCall } from '../../api/use-call.ts';
import { Failure } from '../../parts/Failure.tsx';
import { formatBytes, formatMib, formatNumber } from '../../parts/format-amount.ts';
import { formatSpan } from '../../parts/format-time.ts';
import { Loading } from '../../parts/Loading.tsx';
import { Panel } from '../../parts/Panel.tsx';

const formatGib = (gib: number): string => formatBytes(gib * 2 ** 30);
const formatMinutes = (minutes: number): string => formatSpan(minutes * 60_000);

/** Every limit in plain words, in the order in which they are shown. */
const SHOWN: Readonly<Record<LimitName, readonly [string, (value: number) => string]>> = {
  max_sandboxes: ['Sandboxes', formatNumber],
  max_concurrent_persistent_running: ['Persistent sandboxes running', formatNumber],
  max_concurrent_ephemeral_running: ['Ephemeral sandboxes running', formatNumber],
  max_vcpus_per_sandbox: ['vCPUs of one sandbox', formatNumber],
  max_memory_mib_per_sandbox: ['Memory of one sandbox', formatMib],
  max_disk_size_mib_per_sandbox: ['Disk of one sandbox', formatMib],
  max_uptime_minutes_per_sandbox: ['Longest run of one sandbox', formatMinutes],
  max_total_storage_gib: ['Volumes', formatGib],
  max_snapshot_storage_gib: ['Snapshots', formatGib],
  max_image_storage_gib: ['Images', formatGib],
  included_vcpu_hours: ['vCPU-hours this month', formatNumber],
  included_memory_gib_hours: ['Memory, GiB-hours this month', formatNumber],
  included_disk_gib_hours: ['Disk, GiB-hours this month', formatNumber],
  included_storage_gib: ['Volumes, average of this month', formatGib],
};
const NAMES = Object.keys(SHOWN) as readonly LimitName[]; // The keys are checked above.

/** All limits of the plan. */
export function Limits() {
  const { data, error } = useCall('quotas.get', {});
  const plan = useCall('billing.get', {});
  return (
    <Panel title="Plan and limits" hint={plan.data?.plan.display_name}>
      {error === null ? null : <Failure error={error} />}
      {data === undefined ? (
        <Loading rows={3} />
      ) : (
        <dl className="facts">
          {NAMES.map((name) => (
            <div key={name}>
              <dt>{SHOWN[name][0]}</dt>
              <dd>{spell(name, data[name])}</dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  );
}

function spell(name: LimitName, value: number | null): string {
  return value === null ? 'no limit' : SHOWN[name][1](value);
}

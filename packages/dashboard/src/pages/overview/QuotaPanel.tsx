import { useCall } from '../../api/use-call.ts';
import { Failure } from '../../parts/Failure.tsx';
import { formatNumber } from '../../parts/format-amount.ts';
import { Loading } from '../../parts/Loading.tsx';
import { Meter } from '../../parts/Meter.tsx';
import { Panel } from '../../parts/Panel.tsx';

const LIVE_MS = 5000;

export function QuotaPanel() {
  const { data, error } = useCall('quotas.get', {}, { everyMs: LIVE_MS });
  return (
    <Panel title="Limits">
      {error === null ? null : <Failure error={error} />}
      {data === undefined ? (
        <Loading rows={4} />
      ) : (
        <>
          {data.is_suspended ? (
            <p className="banner">The organization is suspended: nothing can be created or started.</p>
          ) : null}
          <Meter
            label="Sandboxes"
            used={data.total_sandboxes}
            limit={data.max_sandboxes}
            format={formatNumber}
          />
          <Meter
            label="Persistent sandboxes running"
            used={data.concurrent_persistent_running}
            limit={data.max_concurrent_persistent_running}
            format={formatNumber}
          />
          <Meter
            label="Ephemeral sandboxes running"
            used={data.concurrent_ephemeral_running}
            limit={data.max_concurrent_ephemeral_running}
            format={formatNumber}
          />
          <Meter
            label="vCPU-hours this month"
            used={data.vcpu_hours_used}
            limit={data.included_vcpu_hours}
            format={formatNumber}
          />
        </>
      )}
    </Panel>
  );
}

import { useCall } from '../../api/use-call.ts';
import { Failure } from '../../parts/Failure.tsx';
import { formatBytes, formatNumber } from '../../parts/format-amount.ts';
import { Loading } from '../../parts/Loading.tsx';
import { Panel } from '../../parts/Panel.tsx';

/** Of the plan, all of them. */
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
          {Object.entries(data)
            .filter(([name]) => /^(max|included)_/.test(name))
            .map(([name, value]) => (
              <div key={name}>
                <dt>{wordsOf(name)}</dt>
                <dd>{spell(name, value)}</dd>
              </div>
            ))}
        </dl>
      )}
    </Panel>
  );
}

const UNITS: Readonly<Record<string, string>> = { vcpu: 'vCPU', vcpus: 'vCPUs', gib: 'GiB', mib: 'MiB' };

function wordsOf(name: string): string {
  const [first = '', ...rest] = name
    .replace(/^max_/, '')
    .replace(/_bytes$/, '')
    .split('_')
    .map((word) => UNITS[word] ?? word);
  const begin = first.startsWith('vCPU') ? first : first.charAt(0).toUpperCase() + first.slice(1);
  return [begin, ...rest].join(' ');
}

function spell(name: string, value: number | boolean | null): string {
  if (typeof value !== 'number') return value === null ? 'no limit' : String(value);
  return name.endsWith('_bytes') ? formatBytes(value) : formatNumber(value);
}

import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useCall } from '../../api/use-call.ts';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { SelectField } from '../../parts/Field.tsx';
import { formatBytes, formatNumber } from '../../parts/format-amount.ts';
import { LoadingPanel } from '../../parts/Loading.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Chart } from './Chart.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

type Metrics = RestCallOutput<'sandboxes.metrics'>['metrics'];

const LIVE_MS = 5000;
/** Time ranges up to now, in seconds, with their steps. */
const RANGES: Readonly<Record<string, { readonly title: string; readonly step: number }>> = {
  900: { title: 'Last 15 minutes', step: 5 },
  3600: { title: 'Last hour', step: 30 },
  86_400: { title: 'Last day', step: 600 },
  604_800: { title: 'Last week', step: 3600 },
};

/** The scale of bytes uses powers of two, so that its lines are at round values. */
const BINARY_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

const CHARTS: readonly {
  readonly title: string;
  readonly series: readonly (readonly [keyof Metrics, string])[];
  readonly format: (amount: number) => string;
  readonly steps?: readonly number[];
}[] = [
  {
    title: 'CPU, percent of one core',
    series: [['cpu', 'used']],
    format: (amount) => `${formatNumber(amount)} %`,
  },
  {
    title: 'Memory',
    series: [
      ['memory_bytes', 'used'],
      ['memory_limit_bytes', 'limit'],
    ],
    format: formatBytes,
    steps: BINARY_STEPS,
  },
  {
    title: 'Disk',
    series: [
      ['disk_used_bytes', 'used'],
      ['disk_total_bytes', 'size'],
    ],
    format: formatBytes,
    steps: BINARY_STEPS,
  },
  {
    title: 'Network, per second',
    series: [
      ['net_rx_bytes_rate', 'received'],
      ['net_tx_bytes_rate', 'sent'],
    ],
    format: formatBytes,
    steps: BINARY_STEPS,
  },
];

/** The resource usage over time, updated live. */
export function ChartsView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const [range, setRange] = useState('900');
  const query = { range_secs: Number(range), step_secs: RANGES[range]?.step ?? 30 };
  const { data, error } = useCall(
    'sandboxes.metrics',
    { params: { sandbox_id: sandbox.id }, query },
    { everyMs: LIVE_MS, keepsPrevious: true },
  );
  if (data === undefined) return error === null ? <LoadingPanel rows={8} /> : <Failure error={error} />;
  if (data.sampling.disabled)
    return (
      <EmptyState icon="chart" title="No measurements">
        <p>This sandbox was created without measurements (runtime.disable_metrics_sample).</p>
      </EmptyState>
    );
  return (
    <>
      <div className="filters">
        <SelectField
          label="Period"
          value={range}
          onChange={setRange}
          choices={Object.entries(RANGES).map(([seconds, { title }]) => [seconds, title] as const)}
        />
      </div>
      <div className="charts">
        {CHARTS.map(({ title, series, format, steps }) => (
          <Panel key={title} title={title}>
            <Chart
              label={title}
              range={data.range}
              series={series.map(([name, word]) => ({
                name: word,
                samples: data.metrics[name][0]?.samples ?? [],
              }))}
              format={format}
              {...(steps === undefined ? {} : { steps })}
            />
          </Panel>
        ))}
      </div>
    </>
  );
}

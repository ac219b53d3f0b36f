import { useMemo } from 'react';
import { useCall } from '../../api/use-call.ts';
import { useIsPriced } from '../../api/use-is-priced.ts';
import { BarChart } from '../../parts/BarChart.tsx';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { TextField } from '../../parts/Field.tsx';
import { formatCents, formatNumber, formatQuantity, formatScale } from '../../parts/format-amount.ts';
import { formatDay } from '../../parts/format-time.ts';
import { Loading } from '../../parts/Loading.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { useSearch } from '../../router/location.ts';
import { saveFile } from '../../parts/save-file.ts';
import { sumByDay, sumByThing, toCsv, type ThingUsage } from './sum-usage.ts';

const DAY_MS = 86_400_000;

/** Usage and cost per UTC day, like the bill. */
export function UsagePage() {
  const [search, setSearch] = useSearch();
  const month = new Date().toISOString().slice(0, 8);
  const from = readDay(search.get('from')) ?? `${month}01`;
  const to = readDay(search.get('to')) ?? new Date().toISOString().slice(0, 10);
  return (
    <Page title="Usage" hint="Days are in UTC">
      <search className="filters">
        <TextField label="From" type="date" value={from} onChange={(value) => setSearch('from', value)} />
        <TextField label="To" type="date" value={to} onChange={(value) => setSearch('to', value)} />
      </search>
      <MonthPanel />
      {from > to ? (
        <p className="hint">The end is before the start.</p>
      ) : (
        <WindowPanels from={from} to={to} />
      )}
    </Page>
  );
}

function MonthPanel() {
  const { data, error } = useCall('billing.getUsage', {});
  const isPriced = useIsPriced();
  return (
    <Panel title="This month" hint={isPriced === true ? 'An estimate' : undefined}>
      {error === null ? null : <Failure error={error} />}
      {data === undefined || isPriced === undefined ? (
        <Loading rows={4} />
      ) : (
        <dl className="facts">
          {isPriced ? (
            <>
              <div>
                <dt>So far</dt>
                <dd className="figure-number">{formatCents(data.total_cents)}</dd>
              </div>
              <div>
                <dt>Projected for the month</dt>
                <dd className="figure-number">{formatCents(data.projected_spend_cents)}</dd>
              </div>
            </>
          ) : null}
          {data.line_items.map(({ name, quantity, unit, amount_cents }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                {formatQuantity(quantity, unit)}
                {isPriced ? ` · ${formatCents(amount_cents)}` : ''}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  );
}

function WindowPanels({ from, to }: { readonly from: string; readonly to: string }) {
  const start = new Date(`${from}T00:00:00.000Z`);
  const end = new Date(new Date(`${to}T00:00:00.000Z`).getTime() + DAY_MS);
  const query = { from: start.toISOString(), to: end.toISOString() };
  const sandboxes = useCall('billing.getSandboxUsage', { query }, { keepsPrevious: true });
  const storage = useCall('billing.getStorageUsage', { query }, { keepsPrevious: true });
  const error = sandboxes.error ?? storage.error;
  const things = useMemo(
    () => sandboxes.data && storage.data && sumByThing(sandboxes.data, storage.data),
    [sandboxes.data, storage.data],
  );
  const days = sandboxes.data === undefined ? [] : sumByDay(sandboxes.data, start, end);
  const save = (): void => {
    if (things !== undefined) saveFile(`usage-${from}-${to}.csv`, [toCsv(things)], 'text/csv');
  };
  return (
    <>
      <Panel title="vCPU-hours by day">
        <BarChart
          label={`vCPU-hours by day from ${from} to ${to}`}
          bars={days.map(({ day, vcpuHours }) => ({ label: day, amount: vcpuHours }))}
          format={(amount) => `${formatNumber(amount)} vCPU-hours`}
          formatScale={formatScale}
          formatLabel={formatDay}
        />
      </Panel>
      <Panel
        title="By sandbox and volume"
        isFlush
        actions={
          <Button icon="download" disabled={things === undefined || things.length === 0} onClick={save}>
            CSV
          </Button>
        }
      >
        <DataTable
          label="Usage by sandbox and volume"
          columns={COLUMNS}
          rows={things}
          keyOf={({ kind, id }) => `${kind} ${id}`}
          error={error}
          empty={
            <EmptyState icon="chart" title="No usage">
              <p>No sandbox ran and no volume had content in these days.</p>
            </EmptyState>
          }
        />
      </Panel>
    </>
  );
}

const COLUMNS: readonly Column<ThingUsage>[] = [
  {
    title: 'Name',
    look: 'main',
    render: ({ name, kind }) => (
      <>
        {name} <span className="hint">{kind}</span>
      </>
    ),
  },
  { title: 'vCPU-hours', look: 'end', render: ({ vcpuHours }) => formatNumber(vcpuHours) },
  { title: 'Memory, GiB-hours', look: 'end', render: ({ memoryGibHours }) => formatNumber(memoryGibHours) },
  { title: 'Disk, GiB-hours', look: 'end', render: ({ diskGibHours }) => formatNumber(diskGibHours) },
];

function readDay(text: string | null): string | undefined {
  return text !== null && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))
    ? text
    : undefined;
}

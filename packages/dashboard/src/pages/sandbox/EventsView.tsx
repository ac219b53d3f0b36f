import type { RestCallOutput } from '@svc/sdk';
import { usePages } from '../../api/use-call.ts';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

type Event = RestCallOutput<'events.list'>['data'][number];

const LIVE_MS = 5000;
const PAGE_SIZE = 100;

/** What was done with it, by whom: of the events that are loaded, those that name it. */
export function EventsView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const pages = usePages('events.list', { query: { limit: PAGE_SIZE } }, { everyMs: LIVE_MS });
  const own = pages.items?.filter(({ payload }) => isOf(payload, sandbox.id));
  return (
    <Panel title="Events" hint="From the audit log of the organization" isFlush>
      <DataTable
        label="Events"
        columns={COLUMNS}
        rows={own}
        keyOf={({ id }) => id}
        error={pages.error}
        more={pages}
        empty={
          <EmptyState icon="list" title="None of the latest events is about it">
            <p>The audit log has older ones.</p>
          </EmptyState>
        }
      />
    </Panel>
  );
}

const COLUMNS: readonly Column<Event>[] = [
  { title: 'What', look: 'main', render: ({ event_type }) => event_type.replaceAll('_', ' ') },
  { title: 'Who', render: ({ actor }) => ('name' in actor ? actor.name : (actor.label ?? '–')) },
  { title: 'When', render: ({ timestamp }) => <Time at={timestamp} /> },
];

function isOf(payload: unknown, id: string): boolean {
  return (
    typeof payload === 'object' && payload !== null && 'sandbox_id' in payload && payload.sandbox_id === id
  );
}

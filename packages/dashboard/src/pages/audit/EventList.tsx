import type { RestCallOutput } from '@svc/sdk';
import { usePages } from '../../api/use-call.ts';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { TextField } from '../../parts/Field.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { useSearch } from '../../router/location.ts';
import { dayToTime } from './day-to-time.ts';

type Event = RestCallOutput<'events.list'>['data'][number];

const PAGE_SIZE = 50;
const LIVE_MS = 5000;

/** Audit events of the organization or of one sandbox. The filter is in the address, so that a view can be shared. */
export function EventList({ sandboxId }: { readonly sandboxId?: string }) {
  const [search, setSearch] = useSearch();
  const type = search.get('type') ?? '';
  const since = dayToTime(search.get('since'), 'start');
  const until = dayToTime(search.get('until'), 'end');
  const query = {
    limit: PAGE_SIZE,
    ...(type === '' ? {} : { event_type: type }),
    ...(sandboxId === undefined ? {} : { sandbox_id: sandboxId }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
  const pages = usePages('events.list', { query }, { everyMs: LIVE_MS });
  return (
    <>
      <search className="filters">
        <TextField
          label="Type"
          placeholder="sandbox_created"
          value={type}
          onChange={(value) => setSearch('type', value.trim())}
        />
        <TextField
          label="From"
          type="date"
          value={search.get('since') ?? ''}
          onChange={(value) => setSearch('since', value)}
        />
        <TextField
          label="To"
          type="date"
          value={search.get('until') ?? ''}
          onChange={(value) => setSearch('until', value)}
        />
      </search>
      <Panel isFlush>
        <DataTable
          label="Events"
          columns={COLUMNS}
          rows={pages.items}
          keyOf={({ id }) => id}
          error={pages.error}
          more={pages}
          empty={
            <EmptyState icon="list" title="No matching events">
              <p>Types are written like sandbox_created; days are in your time zone.</p>
            </EmptyState>
          }
        />
      </Panel>
    </>
  );
}

const COLUMNS: readonly Column<Event>[] = [
  { title: 'When', render: ({ timestamp }) => <Time at={timestamp} /> },
  {
    title: 'What',
    look: 'main',
    render: ({ event_type, payload, actor }) => (
      <>
        <details>
          <summary className="mono">{event_type}</summary>
          <pre className="payload">{JSON.stringify(payload, null, 2)}</pre>
        </details>
        <span className="hint narrow">
          <Actor actor={actor} />
        </span>
      </>
    ),
  },
  { title: 'Who', look: 'small', render: ({ actor }) => <Actor actor={actor} /> },
  {
    title: 'From',
    look: 'small',
    render: ({ source_address }) => <span className="mono">{source_address ?? '–'}</span>,
  },
  { title: 'No.', look: 'small', render: ({ sequence }) => sequence },
];

function Actor({ actor }: { readonly actor: Event['actor'] }) {
  const name = actor.kind === 'api_key' ? actor.name : actor.label;
  const kinds = { user: '', api_key: 'key', ssh_key: 'SSH key', system: 'system' } as const;
  return (
    <>
      {name}
      {kinds[actor.kind] === '' ? null : <span className="hint"> · {kinds[actor.kind]}</span>}
    </>
  );
}

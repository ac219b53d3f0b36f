import type { RestCallOutput } from '@svc/sdk';
import { useOrganization } from '../../api/organization.ts';
import { usePages } from '../../api/use-call.ts';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { formatMib } from '../../parts/format-amount.ts';
import { Icon } from '../../parts/Icon.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { StatusMark } from '../../parts/StatusMark.tsx';
import { Time } from '../../parts/Time.tsx';
import { Link } from '../../router/Link.tsx';
import { useSearch } from '../../router/location.ts';
import { Labels } from './Labels.tsx';
import { readLabels } from './read-labels.ts';
import { SandboxActions } from './SandboxActions.tsx';

type Sandbox = RestCallOutput<'sandboxes.list'>['data'][number];

const LIVE_MS = 2000;
const PAGE_SIZE = 50;

/** All sandboxes, updated live. The search is in the address, so that it can be shared. */
export function SandboxesPage() {
  const { slug } = useOrganization();
  const [search] = useSearch();
  const wanted = (search.get('q') ?? '').toLowerCase();
  const labels = readLabels(search.get('labels') ?? '');
  const query = {
    limit: PAGE_SIZE,
    ...(labels === undefined ? {} : { labels: JSON.stringify(labels) }),
  };
  const pages = usePages('sandboxes.list', { query }, { everyMs: LIVE_MS });
  const rows = pages.items?.filter(({ name, slug: its, spec, requested, status }) =>
    [name, its, (spec ?? requested)?.image ?? '', status].some((text) => text.toLowerCase().includes(wanted)),
  );
  const create = `/orgs/${slug}/sandboxes/new`;
  const isFiltered = wanted !== '' || labels !== undefined;
  return (
    <Page
      title="Sandboxes"
      hint="Newest first, updated as it changes"
      actions={
        <Link className="button primary" href={create}>
          <Icon name="plus" />
          New sandbox
        </Link>
      }
    >
      <Filters />
      <Panel isFlush>
        <DataTable
          label="Sandboxes"
          columns={columnsOf(slug)}
          rows={rows}
          keyOf={({ id }) => id}
          error={pages.error}
          more={pages}
          empty={isFiltered ? <NothingFound /> : <NoneYet create={create} />}
        />
      </Panel>
    </Page>
  );
}

/** The server filters by labels; names, images and states are searched in the loaded pages. */
function Filters() {
  const [search, setSearch] = useSearch();
  return (
    <search className="filters">
      <div className="search">
        <Icon name="search" />
        <input
          type="search"
          aria-label="Search by name, image or status"
          placeholder="Name, image or status"
          value={search.get('q') ?? ''}
          onChange={(event) => setSearch('q', event.target.value)}
        />
      </div>
      <div className="search">
        <Icon name="list" />
        <input
          type="search"
          aria-label="Filter by labels"
          placeholder="Labels: team=web, stage=test"
          value={search.get('labels') ?? ''}
          onChange={(event) => setSearch('labels', event.target.value)}
        />
      </div>
    </search>
  );
}

function columnsOf(slug: string): readonly Column<Sandbox>[] {
  return [
    {
      title: 'Name',
      look: 'main',
      render: ({ id, name, spec, requested }) => (
        <>
          <Link href={`/orgs/${slug}/sandboxes/${id}`}>{name}</Link>
          <Labels labels={(spec ?? requested)?.labels ?? {}} />
        </>
      ),
    },
    { title: 'Status', render: ({ status }) => <StatusMark status={status} /> },
    {
      title: 'Image',
      look: 'small',
      render: ({ spec, requested }) => <span className="mono">{(spec ?? requested)?.image ?? '–'}</span>,
    },
    {
      title: 'Size',
      look: 'small',
      render: ({ spec, requested }) => {
        const resources = (spec ?? requested)?.resources;
        return resources === undefined ? '–' : `${resources.vcpus} vCPU · ${formatMib(resources.memory_mib)}`;
      },
    },
    { title: 'Created', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
    { title: 'Actions', look: 'end', render: (sandbox) => <SandboxActions sandbox={sandbox} isCompact /> },
  ];
}

function NothingFound() {
  return (
    <EmptyState icon="search" title="No matches">
      <p>No sandbox that is shown matches. Remove a filter, or show more of the list.</p>
    </EmptyState>
  );
}

function NoneYet({ create }: { readonly create: string }) {
  return (
    <EmptyState icon="box" title="No sandboxes yet">
      <p>
        Create one here, or with <code>svc run IMAGE</code> from a terminal.
      </p>
      <Link className="button primary" href={create}>
        Create the first sandbox
      </Link>
    </EmptyState>
  );
}

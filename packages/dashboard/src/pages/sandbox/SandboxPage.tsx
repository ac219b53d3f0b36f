import { lazy, Suspense, type ComponentType } from 'react';
import { canAct, useOrganization } from '../../api/organization.ts';
import { useCall } from '../../api/use-call.ts';
import { Failure } from '../../parts/Failure.tsx';
import { LoadingPage, LoadingPanel } from '../../parts/Loading.tsx';
import { Page } from '../../parts/Page.tsx';
import { StatusMark } from '../../parts/StatusMark.tsx';
import { Tabs } from '../../parts/Tabs.tsx';
import { navigate } from '../../router/location.ts';
import type { PathParams } from '../../router/match-path.ts';
import { SandboxActions } from '../sandboxes/SandboxActions.tsx';
import { CodeView } from './CodeView.tsx';
import { EventsView } from './EventsView.tsx';
import { FailurePanel } from './FailurePanel.tsx';
import { FilesView } from './FilesView.tsx';
import { LogsView } from './LogsView.tsx';
import { NetworkView } from './NetworkView.tsx';
import { PortsView } from './PortsView.tsx';
import { ProcessesView } from './ProcessesView.tsx';
import { RecoveryPanel } from './RecoveryPanel.tsx';
import type { SandboxRecord } from './sandbox-record.ts';
import { SummaryView } from './SummaryView.tsx';
import './sandbox.css';

const LIVE_MS = 1500;

/** Views that are loaded on demand, because they are large. */
const TerminalView = lazy(async () => ({ default: (await import('./TerminalView.tsx')).TerminalView }));
const ChartsView = lazy(async () => ({ default: (await import('./ChartsView.tsx')).ChartsView }));

const VIEWS = [
  ['', 'Summary'],
  ['terminal', 'Terminal'],
  ['code', 'Code'],
  ['logs', 'Logs'],
  ['files', 'Files'],
  ['ports', 'Ports'],
  ['charts', 'Charts'],
  ['processes', 'Processes'],
  ['network', 'Network'],
  ['events', 'Events'],
] as const;
type View = (typeof VIEWS)[number][0];

export function SandboxPage({ params }: { readonly params: PathParams }) {
  const { slug, role } = useOrganization();
  const id = params['id'] ?? '';
  const { data: sandbox, error } = useCall(
    'sandboxes.get',
    { params: { sandbox_id: id } },
    { everyMs: LIVE_MS },
  );
  if (sandbox === undefined)
    return error === null ? (
      <LoadingPage />
    ) : (
      <Page title="Sandbox">
        <Failure error={error} />
      </Page>
    );
  const base = `/orgs/${slug}/sandboxes/${id}`;
  const view = VIEWS.find(([name]) => name === (params['view'] ?? ''))?.[0] ?? '';
  const Shown = SHOWN[view];
  const addressOf = (name: string) => (name === '' ? base : `${base}/${name}`);
  // Events are for admins; the server says so too.
  const tabs = VIEWS.filter(([name]) => name !== 'events' || canAct(role, 'admin'));
  return (
    <Page
      title={sandbox.name}
      mark={<StatusMark status={sandbox.status} />}
      hint={(sandbox.spec ?? sandbox.requested)?.image ?? undefined}
      actions={<SandboxActions sandbox={sandbox} onRemoved={() => navigate(`/orgs/${slug}/sandboxes`)} />}
    >
      {error === null ? null : <Failure error={error} />}
      <RecoveryPanel sandbox={sandbox} />
      {sandbox.status === 'failed' ? <FailurePanel sandbox={sandbox} /> : null}
      <Tabs
        label={`Views of ${sandbox.name}`}
        tabs={tabs.map(([name, title]) => ({ href: addressOf(name), name: title }))}
        current={addressOf(view)}
      />
      <Suspense fallback={<LoadingPanel />}>
        <Shown key={`${view} ${sandbox.started_at}`} sandbox={sandbox} />
      </Suspense>
    </Page>
  );
}

/** Each of the list above; what is not in it does not compile. */
const SHOWN: Readonly<Record<View, ComponentType<{ readonly sandbox: SandboxRecord }>>> = {
  '': SummaryView,
  terminal: TerminalView,
  code: CodeView,
  logs: LogsView,
  files: FilesView,
  ports: PortsView,
  charts: ChartsView,
  processes: ProcessesView,
  network: NetworkView,
  events: EventsView,
};

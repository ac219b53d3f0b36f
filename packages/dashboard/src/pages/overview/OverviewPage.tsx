import { useOrganization } from '../../api/organization.ts';
import { useCall } from '../../api/use-call.ts';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { Icon } from '../../parts/Icon.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { StatusMark } from '../../parts/StatusMark.tsx';
import { Time } from '../../parts/Time.tsx';
import { Link } from '../../router/Link.tsx';
import { QuotaPanel } from './QuotaPanel.tsx';
import { SpendPanel } from './SpendPanel.tsx';
import './overview.css';

const LATEST = 8;
const LIVE_MS = 3000;

/** What runs, what it costs, and how much room is left. */
export function OverviewPage() {
  const { slug, name } = useOrganization();
  const create = `/orgs/${slug}/sandboxes/new`;
  return (
    <Page
      title={name}
      hint="Sandboxes, usage and limits"
      actions={
        <Link className="button primary" href={create}>
          <Icon name="plus" />
          New sandbox
        </Link>
      }
    >
      <div className="grid">
        <QuotaPanel />
        <SpendPanel />
      </div>
      <LatestSandboxes slug={slug} create={create} />
    </Page>
  );
}

function LatestSandboxes({ slug, create }: { readonly slug: string; readonly create: string }) {
  const { data, error } = useCall('sandboxes.list', { query: { limit: LATEST } }, { everyMs: LIVE_MS });
  const all = `/orgs/${slug}/sandboxes`;
  return (
    <Panel title="Latest sandboxes" isFlush actions={<Link href={all}>All sandboxes</Link>}>
      {error === null ? null : <Failure error={error} />}
      {data === undefined && error === null ? <Loading rows={4} /> : null}
      {data?.data.length === 0 ? (
        <EmptyState icon="box" title="No sandboxes yet">
          <p>A sandbox is a small machine for code that you do not trust. It starts in a moment.</p>
          <Link className="button primary" href={create}>
            Create the first sandbox
          </Link>
        </EmptyState>
      ) : (
        <ul className="rows">
          {data?.data.map((sandbox) => (
            <li key={sandbox.id}>
              <Link className="row" href={`${all}/${sandbox.id}`}>
                <strong>{sandbox.name}</strong>
                <span className="hint mono row-wide">{(sandbox.spec ?? sandbox.requested)?.image ?? ''}</span>
                <span className="hint row-wide">
                  <Time at={sandbox.created_at} />
                </span>
                <StatusMark status={sandbox.status} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

import type { RestCallOutput } from '@svc/sdk';
import { useAction, usePages } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { showToast } from '../../parts/toast-list.ts';
import type { SandboxRecord } from './sandbox-record.ts';

type Process = RestCallOutput<'processes.list'>['data'][number];

const LIVE_MS = 2000;

/** Detached processes, also those that ended. */
export function ProcessesView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const pages = usePages('processes.list', { params: { sandbox_id: sandbox.id } }, { everyMs: LIVE_MS });
  return (
    <Panel
      title="Detached processes"
      hint="They keep running when the client that started them disconnects"
      isFlush
    >
      <DataTable
        label="Processes"
        columns={COLUMNS}
        rows={pages.items}
        keyOf={({ id }) => id}
        error={pages.error}
        more={pages}
        empty={
          <EmptyState icon="gear" title="No processes yet">
            <p>
              <code>svc process start {sandbox.name} -- COMMAND</code> starts one, and it appears here.
            </p>
          </EmptyState>
        }
      />
    </Panel>
  );
}

const COLUMNS: readonly Column<Process>[] = [
  { title: 'Command', look: 'main', render: ({ command }) => <code>{command.join(' ')}</code> },
  { title: 'Name', look: 'small', render: ({ name }) => name ?? '–' },
  {
    title: 'State',
    render: ({ status, exit }) =>
      status === 'running' ? (
        <span className="status good">running</span>
      ) : (
        <span className="status rest">{exit?.message ?? 'ended'}</span>
      ),
  },
  { title: 'Started', look: 'small', render: ({ started_at }) => <Time at={started_at} /> },
  {
    title: 'Actions',
    look: 'end',
    render: (process) => (process.status === 'running' ? <Kill process={process} /> : null),
  },
];

function Kill({ process }: { readonly process: Process }) {
  const signal = useAction('processes.signal');
  const params = { sandbox_id: process.sandbox_id, process_id: process.id };
  return (
    <Button
      isBusy={signal.isPending}
      onClick={() =>
        signal.mutate(
          { params, body: { signal: 'SIGTERM' } },
          { onError: (error) => showToast('The process was not signalled', error) },
        )
      }
    >
      End it
    </Button>
  );
}

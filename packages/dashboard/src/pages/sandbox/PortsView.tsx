import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CodeBlock } from '../../parts/CodeBlock.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { TextField } from '../../parts/Field.tsx';
import { Form, FormFailure } from '../../parts/Form.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { NotRunning } from './NotRunning.tsx';
import type { SandboxRecord } from './sandbox-record.ts';
import { useListeningPorts } from './use-listening-ports.ts';

type Preview = RestCallOutput<'previews.list'>[number];
type Opened = RestCallOutput<'previews.open'>;

interface PortsViewProps {
  readonly sandbox: SandboxRecord;
}

/** Links to the listening ports of a sandbox. */
export function PortsView({ sandbox }: PortsViewProps) {
  const { data: capabilities } = useCall('capabilities.get', {});
  if (capabilities?.previews === null)
    return (
      <EmptyState icon="signal" title="This server opens no ports">
        <p>
          It has no domain for previews: the operator sets one with{' '}
          <code>svc server start --preview-domain</code>.
        </p>
      </EmptyState>
    );
  return (
    <>
      {sandbox.status === 'running' ? (
        <OpenPort sandbox={sandbox} />
      ) : (
        <NotRunning icon="signal" what="A port can be opened while the sandbox runs." />
      )}
      <Previews sandbox={sandbox} />
    </>
  );
}

function OpenPort({ sandbox: { id } }: PortsViewProps) {
  const [port, setPort] = useState('');
  const listening = useListeningPorts(id);
  const open = useAction('previews.open');
  const start = (wanted: number): void => {
    setPort(String(wanted));
    open.mutate({ params: { sandbox_id: id }, body: { port: wanted } });
  };
  return (
    <Panel title="Open a port" hint="Makes a link to a web server in the sandbox">
      <Form error={open.error} onSubmit={() => start(Number(port))}>
        <div className="port-choice">
          <TextField
            label="Port"
            field="port"
            type="number"
            min={1}
            max={65_535}
            placeholder="8080"
            required
            value={port}
            onChange={setPort}
          />
          <Button type="submit" look="primary" isBusy={open.isPending}>
            Open
          </Button>
        </div>
        {listening.length === 0 ? null : (
          <div className="actions" role="group" aria-label="Listening now">
            <span className="hint">Listening now:</span>
            {listening.map((each) => (
              <Button key={each} aria-label={`Open port ${each}`} onClick={() => start(each)}>
                {String(each)}
              </Button>
            ))}
          </div>
        )}
        <FormFailure />
      </Form>
      {open.data === undefined ? null : <OpenedLink opened={open.data} />}
    </Panel>
  );
}

const ACCESS: Readonly<Record<Opened['access'], string>> = {
  open: 'It works only on the machine that runs this server.',
  public: 'The port is public: the link works for every person who can reach this server.',
  token: 'The link has a token: every person who has the link can use the port.',
};

function OpenedLink({ opened: { url, port, access, expires_at: end } }: { readonly opened: Opened }) {
  // A repeated answer has no secret.
  if (url === null) return <p role="status">Open the port once more: the link was shown before.</p>;
  return (
    <div className="stack opened-port" role="status">
      <CodeBlock label={`Link to port ${port}`} text={url} />
      <p className="hint">
        {ACCESS[access]}{' '}
        {end === null ? null : (
          <>
            It expires <Time at={end} />.
          </>
        )}
      </p>
      <div className="actions">
        <a className="button" href={url} target="_blank" rel="noopener noreferrer">
          Open in a new tab
        </a>
      </div>
    </div>
  );
}

const COLUMNS: readonly Column<Preview>[] = [
  { title: 'Port', look: 'main', render: ({ port }) => port },
  {
    title: 'Access',
    render: ({ access, prefix }) =>
      access === 'public' ? (
        'public'
      ) : (
        <>
          token ending in <code>{prefix}</code>
        </>
      ),
  },
  { title: 'Created', look: 'small', render: ({ created_at: at }) => <Time at={at} /> },
  { title: 'Expires', look: 'small', render: ({ expires_at: at }) => <Time at={at} /> },
];

function Previews({ sandbox: { id } }: PortsViewProps) {
  const { data, error } = useCall('previews.list', { params: { sandbox_id: id } });
  const columns: readonly Column<Preview>[] = [
    ...COLUMNS,
    { title: 'Actions', look: 'end', render: (preview) => <Revoke sandboxId={id} preview={preview} /> },
  ];
  return (
    <Panel title="Active links" isFlush>
      <DataTable
        label="Active links"
        columns={columns}
        rows={data}
        keyOf={({ id: previewId }) => previewId}
        error={error}
        empty={<p className="hint none">No links and no public ports.</p>}
      />
    </Panel>
  );
}

interface RevokeProps {
  readonly sandboxId: string;
  readonly preview: Preview;
}

function Revoke({ sandboxId, preview: { id, port } }: RevokeProps) {
  const action = useAction('previews.revoke');
  return (
    <RemoveButton
      label={`Revoke the link to port ${port}`}
      question={`Revoke the link to port ${port}?`}
      verb="Revoke it"
      input={{ params: { sandbox_id: sandboxId, preview_id: id } }}
      action={action}
    >
      <p>The link stops working at once; connections that it opened end within a minute.</p>
    </RemoveButton>
  );
}

import { encodeVolumePath } from '@svc/contract/volume-path';
import type { RestCallOutput } from '@svc/sdk';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient, useOrganization } from '../../api/organization.ts';
import { watchSending } from '../../api/send-file.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import type { PathParams } from '../../router/match-path.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { DownloadButton } from '../../parts/DownloadButton.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { TextField } from '../../parts/Field.tsx';
import { formatBytes } from '../../parts/format-amount.ts';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Icon } from '../../parts/Icon.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { UploadButton, type UploadWatch } from '../../parts/UploadButton.tsx';
import { Link } from '../../router/Link.tsx';
import { useSearch } from '../../router/location.ts';

/** A day, because the default time limit of the client is too short for large files. */
const UPLOAD_MS = 24 * 60 * 60_000;

type FileInfo = RestCallOutput<'volumeFiles.list'>['entries'][number];

/** A file browser for a volume. The folder is in the address. */
export function VolumePage({ params: { id = '' } }: { readonly params: PathParams }) {
  const { slug } = useOrganization();
  const [search] = useSearch();
  const [isMaking, setMaking] = useState(false);
  const folder = search.get('path') ?? '';
  const volume = useCall('volumes.get', { params: { id } });
  const files = useCall('volumeFiles.list', {
    params: { id },
    headers: { 'x-svc-file-path': encodeVolumePath(folder) },
  });
  const name = volume.data?.name ?? 'host volume';
  return (
    <Page
      title={name}
      hint={<Trail home={`/orgs/${slug}/volumes/${id}`} name={name} folder={folder} />}
      actions={
        <>
          <Upload id={id} folder={folder} />
          <Button icon="folder" onClick={() => setMaking(true)}>
            New folder
          </Button>
        </>
      }
    >
      <Panel isFlush>
        <DataTable
          label={`Files in ${folder === '' ? name : folder}`}
          columns={columnsOf(id)}
          rows={files.data?.entries.toSorted(byKindAndName)}
          keyOf={({ path }) => path}
          error={volume.error ?? files.error}
          empty={
            <EmptyState icon="folder" title="This folder is empty">
              <p>Upload files here, or mount the volume into a sandbox and write there.</p>
            </EmptyState>
          }
        />
      </Panel>
      {isMaking ? <NewFolder id={id} folder={folder} onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

function Trail({
  home,
  name,
  folder,
}: {
  readonly home: string;
  readonly name: string;
  readonly folder: string;
}) {
  const parts = folder === '' ? [] : folder.split('/');
  return (
    <nav className="trail" aria-label="Folder">
      <Link href={home}>{name}</Link>
      {parts.map((part, index) => {
        const path = parts.slice(0, index + 1).join('/');
        return (
          <span key={path}>
            {' / '}
            <Link href={`${home}?path=${encodeURIComponent(path)}`}>{part}</Link>
          </span>
        );
      })}
    </nav>
  );
}

function columnsOf(id: string): readonly Column<FileInfo>[] {
  return [
    { title: 'Name', look: 'main', render: (file) => <FileName id={id} file={file} /> },
    {
      title: 'Size',
      look: 'end',
      render: ({ kind, size }) => (kind === 'directory' ? '–' : formatBytes(size)),
    },
    { title: 'Changed', look: 'small', render: ({ modified_at }) => <Time at={modified_at} /> },
    {
      title: 'Mode',
      look: 'small',
      render: ({ mode }) => <span className="mono">{mode.toString(8).padStart(4, '0')}</span>,
    },
    { title: 'Actions', look: 'end', render: (file) => <FileActions id={id} file={file} /> },
  ];
}

function FileName({ id, file: { path, kind } }: { readonly id: string; readonly file: FileInfo }) {
  const { slug } = useOrganization();
  const name = path.slice(path.lastIndexOf('/') + 1);
  return (
    <span className="with-icon">
      <Icon name={kind === 'directory' ? 'folder' : 'file'} />
      {kind === 'directory' ? (
        <Link href={`/orgs/${slug}/volumes/${id}?path=${encodeURIComponent(path)}`}>{name}</Link>
      ) : (
        name
      )}
    </span>
  );
}

function FileActions({ id, file: { path, kind, size } }: { readonly id: string; readonly file: FileInfo }) {
  const client = useClient();
  const remove = useAction('volumeFiles.remove');
  const at = { params: { id }, headers: { 'x-svc-file-path': encodeVolumePath(path) } };
  return (
    <div className="actions">
      {kind === 'directory' ? null : (
        <DownloadButton
          path={path}
          sizeBytes={size}
          read={(options) => client.call('volumeFiles.read', at, options)}
        />
      )}
      <RemoveButton
        label={`Delete ${path}`}
        question={`Delete ${path}?`}
        verb="Delete it"
        input={{ ...at, headers: { ...at.headers, 'x-svc-file-recursive': 'true' as const } }}
        action={remove}
      >
        <p>{kind === 'directory' ? 'The folder with all that is in it is' : 'It is'} gone for good.</p>
      </RemoveButton>
    </div>
  );
}

function Upload({ id, folder }: { readonly id: string; readonly folder: string }) {
  const client = useClient();
  const cache = useQueryClient();
  const send = async (file: File, { signal, onSent }: UploadWatch): Promise<void> => {
    const path = folder === '' ? file.name : `${folder}/${file.name}`;
    const headers = { 'x-svc-file-path': encodeVolumePath(path) };
    watchSending(file, onSent);
    const options = { signal, timeoutMs: UPLOAD_MS };
    await client.call('volumeFiles.write', { params: { id }, headers, body: file }, options);
  };
  const refresh = () =>
    void cache.invalidateQueries({ predicate: ({ queryKey }) => queryKey[2] === 'volumeFiles.list' });
  return <UploadButton look="primary" send={send} onDone={refresh} />;
}

function NewFolder({
  id,
  folder,
  onClose,
}: {
  readonly id: string;
  readonly folder: string;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState('');
  const make = useAction('volumeFiles.mkdir', { onDone: onClose });
  const path = folder === '' ? name : `${folder}/${name}`;
  return (
    <FormDialog
      title="New folder"
      action="Create"
      isBusy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate({ params: { id }, body: { path } })}
      onClose={onClose}
    >
      <TextField label="Name" field="path" required autoFocus value={name} onChange={setName} />
    </FormDialog>
  );
}

function byKindAndName(a: FileInfo, b: FileInfo): number {
  if (a.kind !== b.kind) return a.kind === 'directory' ? -1 : 1;
  return a.path.localeCompare(b.path);
}

import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { formatBytes } from '../../parts/format-amount.ts';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { Link } from '../../router/Link.tsx';
import { PullImage } from './PullImage.tsx';

type Image = RestCallOutput<'images.list'>[number];

const LIVE_MS = 5000;
/** Length of the id that is shown for an image without a name. */
const SHORT_ID = 19;

/** Images that sandboxes start from: those of the organization, and those that the operator provides. */
export function ImagesPage() {
  const [isPulling, setPulling] = useState(false);
  const { data, error } = useCall('images.list', {}, { everyMs: LIVE_MS });
  const pull = (
    <Button look="primary" icon="download" onClick={() => setPulling(true)}>
      Pull an image
    </Button>
  );
  return (
    <Page title="Images" hint="File systems that sandboxes start from" actions={pull}>
      <Panel isFlush>
        <DataTable
          label="Images"
          columns={COLUMNS}
          rows={data}
          keyOf={({ id }) => id}
          error={error}
          empty={
            <EmptyState icon="package" title="No images yet">
              <p>Pull one ahead of time, or let the first sandbox that needs it do so.</p>
              {pull}
            </EmptyState>
          }
        />
      </Panel>
      {isPulling ? <PullImage onClose={() => setPulling(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<Image>[] = [
  {
    title: 'Image',
    look: 'main',
    render: (image) => (
      <>
        <span className="mono">{nameOf(image)}</span>
        {image.references.slice(1).map((reference) => (
          <span key={reference} className="hint mono block">
            {reference}
          </span>
        ))}
      </>
    ),
  },
  { title: 'Size', look: 'end', render: ({ size_bytes }) => formatBytes(size_bytes) },
  { title: 'Added', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
  {
    title: 'Last used',
    look: 'small',
    render: ({ last_used_at: at, is_provided: isProvided }) =>
      isProvided ? <span className="hint">from the operator</span> : <Time at={at} />,
  },
  { title: 'Actions', look: 'end', render: (image) => <ImageActions image={image} /> },
];

function ImageActions({ image }: { readonly image: Image }) {
  const { slug } = useOrganization();
  const name = nameOf(image);
  const [reference = image.id] = image.references;
  return (
    <div className="actions">
      <Link
        className="button"
        aria-label={`Start a sandbox from ${name}`}
        href={`/orgs/${slug}/sandboxes/new?image=${encodeURIComponent(reference)}`}
      >
        Start
      </Link>
      {image.is_provided ? null : <RemoveImage image={image} />}
    </div>
  );
}

function RemoveImage({ image }: { readonly image: Image }) {
  const action = useAction('images.remove');
  const name = nameOf(image);
  return (
    <RemoveButton
      label={`Delete ${name}`}
      question={`Delete ${name}?`}
      verb="Delete it"
      input={{ params: { reference: image.id } }}
      action={action}
    >
      <p>
        {image.in_use
          ? 'A sandbox or a snapshot uses this image: delete that first.'
          : 'The next sandbox that needs this image pulls it again.'}
      </p>
    </RemoveButton>
  );
}

function nameOf({ id, references }: Image): string {
  return references[0] ?? id.slice(0, SHORT_ID);
}

import { useState } from 'react';
import { useOrganization } from '../../api/organization.ts';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CodeBlock } from '../../parts/CodeBlock.tsx';
import { Form, FormFailure } from '../../parts/Form.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { navigate } from '../../router/location.ts';
import { BasicFields, LifeFields, NetworkFields, StorageFields, type FieldsProps } from './SandboxFields.tsx';
import { EMPTY_FORM, type SandboxForm } from './sandbox-form.ts';
import { toCommand } from './to-command.ts';
import { toRequest } from './to-request.ts';
import './create-sandbox.css';

/** A form, and beside it the same as a command and as a request. */
export function CreateSandboxPage() {
  const { slug } = useOrganization();
  const [form, setForm] = useState<SandboxForm>(EMPTY_FORM);
  const create = useAction('sandboxes.create', {
    onDone: ({ id, name }) => {
      showToast(`${name} is made`);
      navigate(`/orgs/${slug}/sandboxes/${id}`);
    },
  });
  const fields: FieldsProps = { form, set: (change) => setForm({ ...form, ...change }) };
  return (
    <Page title="New sandbox" hint="A small machine for code that you do not trust">
      <Form
        className="create"
        error={create.error}
        onSubmit={() => create.mutate({ body: toRequest(form), query: { start: true } })}
      >
        <div className="create-fields">
          <BasicFields {...fields} />
          <NetworkFields {...fields} />
          <StorageFields {...fields} />
          <LifeFields {...fields} />
          <FormFailure />
          <div className="actions">
            <Button type="submit" look="primary" icon="play" isBusy={create.isPending}>
              Make and start it
            </Button>
            <Button onClick={() => navigate(`/orgs/${slug}/sandboxes`)}>Cancel</Button>
          </div>
        </div>
        <div className="create-same">
          <Panel title="The same from elsewhere">
            <CodeBlock label="Command line" text={toCommand(form)} />
            <CodeBlock
              label={`POST /v1/orgs/${slug}/sandboxes?start=true`}
              text={JSON.stringify(toRequest(form), null, 2)}
            />
          </Panel>
        </div>
      </Form>
    </Page>
  );
}

import type { Static, TSchema } from 'typebox';
import { Type } from '../schema/type.ts';
import { Scripts, strictObject } from '../spec/strict.ts';
import type { Operation } from './operation.ts';
import { SandboxReference } from './sandbox-reference.ts';

const Text = Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' });
const Words = Type.Array(Type.String({ maxLength: 131_072, pattern: '^[^\\u0000]*$' }), { maxItems: 4096 });

/** What `sandbox.start` takes as `config`. A field that is null means its default. */
export const SandboxConfig = strictObject({
  image: nullable(Text, 'Image reference; when given, the stored configuration is replaced'),
  memory: nullable(
    Type.Integer({ minimum: 16, maximum: 4_194_304 }),
    'Memory limit in MiB, 512 unless given',
  ),
  cpus: nullable(Type.Integer({ minimum: 1, maximum: 255 }), 'CPU limit in cores, 1 unless given'),
  envs: nullable(Words, 'Environment, each entry KEY=VALUE'),
  workdir: nullable(Text, 'Working directory of everything that runs in the sandbox'),
  volumes: nullable(Words, 'Directories of the host, each host:guest or host:guest:ro'),
  ports: nullable(Words, 'TCP ports on the loopback interface of the host, each host:guest or port'),
  shell: nullable(Text, 'Shell of the sandbox'),
  scripts: nullable(Scripts, 'Commands by name, put on PATH'),
});
export type SandboxConfig = Static<typeof SandboxConfig>;

const Message = Type.String({ description: 'A sentence that says what was done' });

export const sandboxOperations = {
  'sandbox.start': {
    summary: 'Start a sandbox and wait until it runs',
    access: 'namespace',
    input: strictObject({
      ...SandboxReference,
      config: Type.Optional(Type.Union([SandboxConfig, Type.Null()])),
    }),
    output: Message,
    errors: [
      'sandbox_not_found',
      'invalid_sandbox_config',
      'invalid_state_transition',
      'invalid_image',
      'image_not_found',
      'image_pull_failed',
      'isolation_unavailable',
      'insufficient_capacity',
      'disk_full',
      'insufficient_storage',
      'start_failed',
      'orchestrator_unreachable',
    ],
  },
  'sandbox.stop': {
    summary: 'Stop a sandbox and release its resources; its disk is kept',
    access: 'namespace',
    input: strictObject(SandboxReference),
    output: Message,
    errors: ['sandbox_not_found', 'invalid_state_transition', 'orchestrator_unreachable'],
  },
} as const satisfies Record<string, Operation>;

function nullable<T extends TSchema>(schema: T, description: string) {
  return Type.Optional(Type.Union([schema, Type.Null()], { description }));
}

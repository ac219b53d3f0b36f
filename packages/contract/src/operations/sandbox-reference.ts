import { Type } from '../schema/type.ts';

/** The namespace of a request that names none. */
export const DEFAULT_NAMESPACE = 'default';
/** Every namespace that the caller reaches; legal only where an operation's access is `reach`. */
export const ALL_NAMESPACES = '*';

const NAME_RULE = '1–63 letters, digits, hyphens or underscores; the first one a letter or digit';

export const SandboxName = Type.String({ description: `Sandbox name: ${NAME_RULE}` });
export const Namespace = Type.Optional(
  Type.Union([Type.String(), Type.Null()], {
    description: `Namespace of the sandbox: ${NAME_RULE}`,
    default: DEFAULT_NAMESPACE,
  }),
);

/** The address of a sandbox in every operation on one. */
export const SandboxReference = { sandbox: SandboxName, namespace: Namespace };

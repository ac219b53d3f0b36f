import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from './strict.ts';

const MIB = 2 ** 20;

/** An absolute path in the sandbox, free of NUL. `checkSpec` refuses `..`, `/` and paths of our own. */
const GuestPath = Type.String({
  pattern: '^/[^\\u0000]*$',
  maxLength: 4096,
  description: 'An absolute path in the sandbox',
});
const HostPath = Type.String({ minLength: 1, maxLength: 4096, pattern: '^[^\\u0000]+$' });
const NullableId = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 65_535 }), Type.Null()]));
const Mode = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 0o7777 }), Type.Null()]));

/** Clients send false by default, so it cannot be refused. */
const NEVER_OFF = {
  description:
    'In force on every mount, also when false: no program of a sandbox gains privileges, and no device of the host works ' +
    'in it. Answers show true',
};

export const MountOptions = strictObject({
  readonly: Type.Optional(Type.Boolean()),
  noexec: Type.Optional(Type.Boolean()),
  nosuid: Type.Optional(Type.Boolean(NEVER_OFF)),
  nodev: Type.Optional(Type.Boolean(NEVER_OFF)),
  override_uid: NullableId,
  override_gid: NullableId,
});
export type MountOptions = Static<typeof MountOptions>;

const Options = Type.Optional(MountOptions);
const StatVirtualization = Type.Optional(Type.Enum(['strict', 'relaxed', 'off']));
const HostPermissions = Type.Optional(Type.Enum(['private', 'mirror']));
const OptionalMib = Type.Optional(
  Type.Union([Type.Integer({ minimum: 1, maximum: 16_777_216 }), Type.Null()]),
);

export const Mount = Type.Union([
  strictObject({
    type: Type.Literal('bind'),
    host: HostPath,
    guest: GuestPath,
    options: Options,
    stat_virtualization: StatVirtualization,
    host_permissions: HostPermissions,
    quota_mib: OptionalMib,
  }),
  strictObject({
    type: Type.Literal('named'),
    name: Type.String({ minLength: 1, maxLength: 128 }),
    guest: GuestPath,
    options: Options,
    stat_virtualization: StatVirtualization,
    host_permissions: HostPermissions,
  }),
  strictObject({ type: Type.Literal('tmpfs'), guest: GuestPath, size_mib: OptionalMib, options: Options }),
  strictObject({
    type: Type.Literal('disk_image'),
    host: HostPath,
    guest: GuestPath,
    format: Type.Enum(['qcow2', 'raw', 'vmdk']),
    fstype: Type.Optional(Type.Union([Type.String({ maxLength: 32 }), Type.Null()])),
    options: Options,
  }),
]);
export type Mount = Static<typeof Mount>;

const Replace = Type.Optional(Type.Boolean());
/** Characters of text, which a body that is mostly such text can carry. */
const Text = Type.String({ maxLength: 16 * MIB });

/** Changes to the root file system, applied in order before the first start. */
export const Patch = Type.Union([
  strictObject({ type: Type.Literal('text'), path: GuestPath, content: Text, mode: Mode, replace: Replace }),
  strictObject({
    type: Type.Literal('file'),
    path: GuestPath,
    // In JSON a byte takes up to four.
    content: Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { maxItems: 4 * MIB }),
    mode: Mode,
    replace: Replace,
  }),
  strictObject({
    type: Type.Literal('copy_file'),
    src: HostPath,
    dst: GuestPath,
    mode: Mode,
    replace: Replace,
  }),
  strictObject({ type: Type.Literal('copy_dir'), src: HostPath, dst: GuestPath, replace: Replace }),
  strictObject({ type: Type.Literal('symlink'), target: HostPath, link: GuestPath, replace: Replace }),
  strictObject({ type: Type.Literal('mkdir'), path: GuestPath, mode: Mode }),
  strictObject({ type: Type.Literal('remove'), path: GuestPath }),
  strictObject({ type: Type.Literal('append'), path: GuestPath, content: Text }),
]);
export type Patch = Static<typeof Patch>;

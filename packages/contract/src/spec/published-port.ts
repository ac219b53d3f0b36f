import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from './strict.ts';

export const Port = Type.Integer({ minimum: 1, maximum: 65_535 });

/** A port of the server's host that is forwarded into a sandbox. Only the server knows it; engines do not. */
export const PublishedPort = strictObject({
  guest_port: Port,
  host_port: Port,
  host_bind: Type.Optional(
    Type.String({ maxLength: 64, default: '127.0.0.1', description: 'An address that the operator allows' }),
  ),
  protocol: Type.Optional(Type.Enum(['tcp', 'udp'], { default: 'tcp' })),
});
export type PublishedPort = Static<typeof PublishedPort>;

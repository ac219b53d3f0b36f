import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from './strict.ts';

const MAX_LISTED = 64;
export const Certificates = Type.String({ minLength: 1, maxLength: 131_072 });
const Pattern = Type.String({
  minLength: 1,
  maxLength: 255,
  description: '`example.com`, or `*.example.com` for it and all below it',
});
const CERTIFICATES_HINT = 'The text of certificates (PEM); no file of the host is read';

const MAX_CACHED = 10_000;
/** Clients refuse certificates with a much longer validity. */
const MAX_VALIDITY_HOURS = 24 * 90;

/** How TLS connections of a sandbox are intercepted. */
export const Tls = strictObject({
  enabled: Type.Optional(Type.Boolean({ default: false })),
  intercepted_ports: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), { maxItems: MAX_LISTED, default: [443] }),
  ),
  bypass: Type.Optional(
    Type.Array(Pattern, { maxItems: MAX_LISTED, description: 'Hosts whose connections are left alone' }),
  ),
  verify_upstream: Type.Optional(Type.Boolean({ default: true })),
  scoped_verify_upstream: Type.Optional(
    Type.Array(strictObject({ pattern: Pattern, verify: Type.Boolean() }), { maxItems: MAX_LISTED }),
  ),
  upstream_ca_cert: Type.Optional(
    Type.Array(Certificates, { maxItems: MAX_LISTED, description: CERTIFICATES_HINT }),
  ),
  scoped_upstream_ca_cert: Type.Optional(
    Type.Array(
      strictObject({
        pattern: Pattern,
        path: Type.String({ minLength: 1, maxLength: 131_072, description: CERTIFICATES_HINT }),
      }),
      { maxItems: MAX_LISTED },
    ),
  ),
  block_quic_on_intercept: Type.Optional(Type.Boolean({ default: true })),
  cache: Type.Optional(
    strictObject({
      capacity: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_CACHED, default: 1000 })),
      validity_hours: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_VALIDITY_HOURS, default: 24 })),
    }),
  ),
  intercept_ca: Type.Optional(
    strictObject({
      cert_path: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 4096 }), Type.Null()])),
      key_path: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 4096 }), Type.Null()])),
    }),
  ),
});
export type Tls = Static<typeof Tls>;

/** A secret of an organization. */
export interface SecretRow {
  id: string;
  organization_id: string;
  name: string;
  /** Sealed. */
  value: string;
  /** JSON. */
  allowed_hosts: string;
  /** JSON. */
  upstream_ca_cert: string;
  created_at: string;
  updated_at: string;
}

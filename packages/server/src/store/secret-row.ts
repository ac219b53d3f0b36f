/** A secret of an organization. */
export interface SecretRow {
  id: string;
  organization_id: string;
  name: string;
  /** Sealed. */
  value: string;
  created_at: string;
  updated_at: string;
}

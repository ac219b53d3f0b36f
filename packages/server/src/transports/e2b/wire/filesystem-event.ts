/** A change as E2B's clients read it. */
export interface FilesystemEvent {
  readonly name: string;
  readonly type: string;
  readonly entry?: object;
}

import { Type, type Static } from 'typebox';

/** The answers of the process that reads archives, by task. An archive that took it over chooses them: they are validated, and bounded. */
export const READINGS = {
  /** The archive of a layer, rewritten as it may reach the disk. */
  rewrite: Type.Object({
    counts: Type.Object({
      entries: Type.Integer({ minimum: 0 }),
      unpackedBytes: Type.Integer({ minimum: 0 }),
      /** Device nodes, FIFOs and reserved names that were left out. */
      dropped: Type.Integer({ minimum: 0 }),
    }),
    /** Folders that hide what lies below them in other layers. The empty string is the root. */
    opaque: Type.Array(Type.String()),
  }),
  /** The files of an image archive, as pairs of name and number. */
  number: Type.Array(Type.Tuple([Type.String(), Type.Integer({ minimum: 0 })])),
  recognize: Type.Union([Type.Literal('tar'), Type.Literal('oci_layout'), Type.Literal('docker_archive')]),
};

export type ReadingTask = keyof typeof READINGS;
export type ArchiveReading = { readonly [Task in ReadingTask]: Static<(typeof READINGS)[Task]> };
export type TarKind = ArchiveReading['recognize'];

export const Refusal = Type.Object({
  message: Type.String({ maxLength: 2000 }),
  details: Type.Union([
    Type.Null(),
    Type.Record(Type.String(), Type.String({ maxLength: 2000 }), { maxProperties: 4 }),
  ]),
});

/** Invalid archives are refused with an answer; any other failure is a bug and shows in the exit code. */
export type ArchiveAnswer =
  | { readonly output: ArchiveReading[ReadingTask] }
  | { readonly refusal: { readonly message: string; readonly details: object | null } };

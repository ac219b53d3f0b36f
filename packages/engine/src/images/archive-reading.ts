import { Type, type Static } from 'typebox';

/** What the process that reads archives answers, by what it was asked. Whoever took it over chooses these: they are checked, and bounded. */
export const READINGS = {
  /** The archive of a layer, in the form in which it may reach the disk. */
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
  /** The files of an archive of an image, each under a number: which name has which. */
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

/** What is not an image is refused; all else that goes wrong is a bug, and tells itself by how the process ends. */
export type ArchiveAnswer =
  | { readonly output: ArchiveReading[ReadingTask] }
  | { readonly refusal: { readonly message: string; readonly details: object | null } };
